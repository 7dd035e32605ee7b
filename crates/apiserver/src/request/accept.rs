//! In which form a client wants its answer.

use http::HeaderMap;
use http::header::{ACCEPT, USER_AGENT};

use super::query::Query;
use crate::status::{ApiError, Outcome};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Representation {
    pub(crate) shape: Shape,
    pub(crate) encoding: Encoding,
    /// Whether JSON is indented.
    pub(crate) pretty: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Whole,
    /// Only metadata, in this version of `meta.k8s.io`.
    Metadata(String),
    /// The columns that people see, in this version of `meta.k8s.io`.
    Table(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
}

/// What a place of the API can answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The media types of a built-in resource. They are compared as they are written before anything else is looked at.
    pub(crate) listed: Option<&'static [&'static str]>,
    /// Whether objects can be shown as rows of a table.
    pub(crate) has_rows: bool,
}

/// The media types of most answers.
pub(crate) const OBJECTS: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// Those of lists, which can be watched.
pub(crate) const LISTS: [&str; 5] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", STREAMS[0], STREAMS[1]];

/// Those of watches.
pub(crate) const STREAMS: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

/// Those of what containers print.
pub(crate) const LOGS: [&str; 4] =
    ["text/plain", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

impl Representation {
    pub(crate) fn of(headers: &HeaderMap, query: &Query, offer: &Offer) -> Outcome<Representation> {
        let accept = accepted(headers);
        if let Some(listed) = offer.listed {
            check_listed(&accept, listed)?;
        }
        let (shape, encoding) = if accept.is_empty() {
            (Shape::Whole, Encoding::Json)
        } else {
            let mut clauses = clauses(&accept).into_iter();
            let chosen = clauses.find_map(|clause| clause.chosen(offer.has_rows));
            chosen.ok_or_else(|| ApiError::accepts_only(&OBJECTS))?
        };
        let pretty = match query.get("pretty") {
            Some(value) => !matches!(value, "false" | "0"),
            None => is_browser(headers),
        };
        Ok(Representation { shape, encoding, pretty })
    }

    /// Returns the form of answers to requests without `Accept`.
    pub(crate) fn plain() -> Representation {
        Representation { shape: Shape::Whole, encoding: Encoding::Json, pretty: false }
    }

    /// Returns the form in which a client is told a refusal: JSON, unless it would rather have YAML.
    pub(crate) fn of_refusal(headers: &HeaderMap) -> Representation {
        let accept = accepted(headers);
        let chosen = clauses(&accept).into_iter().filter(|clause| clause.stream.is_none());
        let chosen =
            chosen.filter_map(|clause| clause.chosen(false)).find(|(shape, _)| *shape == Shape::Whole);
        let encoding = chosen.map_or(Encoding::Json, |(_, encoding)| encoding);
        Representation { encoding, ..Representation::plain() }
    }

    pub(crate) fn content_type(&self) -> &'static str {
        match self.encoding {
            Encoding::Json => "application/json",
            Encoding::Yaml => "application/yaml",
        }
    }
}

/// Refuses what takes none of these media types.
pub(crate) fn check_accepted(headers: &HeaderMap, listed: &[&str]) -> Outcome<()> {
    check_listed(&accepted(headers), listed)
}

fn accepted(headers: &HeaderMap) -> String {
    let accept: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
    accept.join(",").trim().to_owned()
}

/// Refuses what names none of these media types. Parameters and preferences do not count here.
fn check_listed(accept: &str, listed: &[&str]) -> Outcome<()> {
    let mut names = accept.split(',').map(|item| item.split(';').next().unwrap_or_default().trim());
    if accept.is_empty() || names.any(|name| name == "*/*" || listed.contains(&name)) {
        return Ok(());
    }
    Err(ApiError::not_acceptable(listed))
}

/// Tools that people read with get indented JSON.
fn is_browser(headers: &HeaderMap) -> bool {
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|name| agent.starts_with(name))
}

/// One media type that a client takes.
#[derive(Debug)]
struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    preference: f32,
    shape: Option<&'a str>,
    group: &'a str,
    version: &'a str,
    stream: Option<&'a str>,
}

/// Returns what a client takes, the best first. What is no media type is passed over.
fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
    clauses.sort_by(|a, b| {
        let wild = |clause: &Clause<'_>| (clause.kind == "*", clause.subtype == "*");
        b.preference.total_cmp(&a.preference).then_with(|| wild(a).cmp(&wild(b)))
    });
    clauses
}

impl<'a> Clause<'a> {
    fn parse(item: &'a str) -> Option<Clause<'a>> {
        let mut parts = item.split(';');
        let (kind, subtype) = match parts.next()?.trim() {
            "*" => ("*", "*"),
            name => name.split_once('/')?,
        };
        let (kind, subtype) = (kind.trim(), subtype.trim());
        let (shape, stream, preference) = (None, None, 1.0);
        let mut clause = Clause { kind, subtype, preference, shape, group: "", version: "", stream };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim();
            match name.trim() {
                "q" => clause.preference = value.parse().unwrap_or(1.0),
                "as" => clause.shape = Some(value),
                "g" => clause.group = value,
                "v" => clause.version = value,
                "stream" => clause.stream = Some(value),
                _ => {}
            }
        }
        Some(clause)
    }

    /// Returns the form that this clause asks for, if there is such a one. Answers in protobuf are not made.
    fn chosen(&self, has_rows: bool) -> Option<(Shape, Encoding)> {
        let encoding = match (self.kind, self.subtype) {
            ("*", "*") | ("application", "*" | "json") => Encoding::Json,
            ("application", "yaml") => Encoding::Yaml,
            _ => return None,
        };
        // YAML comes as a whole.
        if self.stream.is_some_and(|stream| stream != "watch" || encoding == Encoding::Yaml) {
            return None;
        }
        let known = self.group == "meta.k8s.io" && matches!(self.version, "v1" | "v1beta1");
        let version = self.version.to_owned();
        let shape = match self.shape {
            None | Some("") => Shape::Whole,
            Some("Table") if known && has_rows => Shape::Table(version),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") if known => Shape::Metadata(version),
            Some(_) => return None,
        };
        Some((shape, encoding))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(accept: &str) -> Outcome<(Shape, Encoding)> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        let offer = Offer { listed: None, has_rows: true };
        Representation::of(&headers, &Query::default(), &offer).map(|r| (r.shape, r.encoding))
    }

    #[test]
    fn the_first_acceptable_form_is_taken() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(read(table).unwrap(), (Shape::Table("v1".into()), Encoding::Json));
        assert_eq!(read("*/*").unwrap(), (Shape::Whole, Encoding::Json));
        assert_eq!(read("application/yaml").unwrap(), (Shape::Whole, Encoding::Yaml));
        assert_eq!(
            read("application/vnd.kubernetes.protobuf, application/json").unwrap(),
            (Shape::Whole, Encoding::Json)
        );
        assert_eq!(read("application/vnd.kubernetes.protobuf").unwrap_err().code(), 406);
    }

    #[test]
    fn what_a_client_would_rather_have_is_taken_first() {
        let yaml = (Shape::Whole, Encoding::Yaml);
        assert_eq!(read("application/json;q=0.1,application/yaml").unwrap(), yaml);
        assert_eq!(read("*/*, application/yaml").unwrap(), yaml);
        assert_eq!(read("application/*").unwrap(), (Shape::Whole, Encoding::Json));
        assert_eq!(read("application/json;stream=watch").unwrap(), (Shape::Whole, Encoding::Json));
        for accept in [
            "application/yaml;stream=watch",
            "application/json;stream=x",
            "application/json;as=Table;v=v2;g=meta.k8s.io",
            "APPLICATION/JSON",
            "json",
        ] {
            assert_eq!(read(accept).unwrap_err().code(), 406, "{accept}");
        }
    }

    #[test]
    fn refusals_are_told_in_yaml_to_who_takes_that() {
        let told = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            Representation::of_refusal(&headers).encoding
        };
        assert_eq!(told("application/yaml"), Encoding::Yaml);
        assert_eq!(told("text/plain, application/yaml;q=0.5"), Encoding::Yaml);
        for accept in ["text/html", "application/yaml;as=Table;v=v1;g=meta.k8s.io", "application/json"] {
            assert_eq!(told(accept), Encoding::Json, "{accept}");
        }
    }
}

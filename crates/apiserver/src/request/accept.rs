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

impl Representation {
    pub(crate) fn of(headers: &HeaderMap, query: &Query) -> Outcome<Representation> {
        let accept: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
        let accept = accept.join(",");
        let (shape, encoding) = if accept.trim().is_empty() {
            (Shape::Whole, Encoding::Json)
        } else {
            accept.split(',').find_map(offer).ok_or_else(ApiError::not_acceptable)?
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

    pub(crate) fn content_type(&self) -> &'static str {
        match self.encoding {
            Encoding::Json => "application/json",
            Encoding::Yaml => "application/yaml",
        }
    }
}

/// Tools that people read with get indented JSON.
fn is_browser(headers: &HeaderMap) -> bool {
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|name| agent.starts_with(name))
}

fn offer(item: &str) -> Option<(Shape, Encoding)> {
    let mut parts = item.split(';').map(str::trim);
    let encoding = match parts.next()? {
        "*/*" | "application/*" | "application/json" => Encoding::Json,
        "application/yaml" => Encoding::Yaml,
        _ => return None,
    };
    let (mut shape, mut group, mut version) = ("", "", "");
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        match name.trim() {
            "as" => shape = value.trim(),
            "g" => group = value.trim(),
            "v" => version = value.trim(),
            _ => {}
        }
    }
    let known = group == "meta.k8s.io" && matches!(version, "v1" | "v1beta1");
    let shape = match shape {
        "" => Shape::Whole,
        "Table" if known => Shape::Table(version.to_owned()),
        "PartialObjectMetadata" | "PartialObjectMetadataList" if known => Shape::Metadata(version.to_owned()),
        _ => return None,
    };
    Some((shape, encoding))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(accept: &str) -> Outcome<(Shape, Encoding)> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        Representation::of(&headers, &Query::default()).map(|r| (r.shape, r.encoding))
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
}

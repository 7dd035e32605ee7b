//! One version of a chart in an index, as far as it is kept.

use chart::semver::{Constraint, Version};
use serde_json::{Map, Value};

use crate::digest::Digest;

/// The longest text of an entry that is kept, in bytes.
const MAX_TEXT: usize = 4096;

/// The most bytes of a version.
const MAX_VERSION: usize = 128;

/// The most URLs of one version.
const MAX_URLS: usize = 8;

/// The most dependencies of one version.
const MAX_DEPENDENCIES: usize = 200;

/// The most tags of a dependency.
const MAX_TAGS: usize = 50;

/// How many letters of a digest are shown that can't be read.
const MAX_SHOWN: usize = 140;

/// What is kept of a digest that is no text, or too long a one.
const NO_DIGEST: &str = "(no text)";

/// The texts of an entry that are kept.
const TEXTS: [&str; 6] = ["name", "version", "appVersion", "kubeVersion", "digest", "created"];

/// The texts of a dependency that are kept.
const DEPENDENCY_TEXTS: [&str; 5] = ["name", "version", "repository", "condition", "alias"];

/// One version of a chart.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The version as it is written.
    pub version: String,
    /// Its parsed form.
    pub parsed: Version,
    /// Where the archive lies, relative to the repository or absolute.
    pub urls: Vec<String>,
    /// The digest that the archive must have, if the index names one; or why that can't be checked.
    pub digest: Result<Option<Digest>, String>,
    /// When it was published, as the index writes it.
    pub created: Option<String>,
    /// Whether it should not be used any more.
    pub deprecated: bool,
    /// `application` or `library`; empty means the former.
    pub kind: String,
    /// The charts that it needs.
    pub dependencies: Vec<Dependency>,
}

/// A chart that another one needs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Dependency {
    /// The name of the chart.
    pub name: String,
    /// The versions that fit.
    pub version: String,
    /// The URL of the repository, an alias of one, or nothing if the chart has it in itself.
    pub repository: String,
    /// Paths of values, with commas between; the first that is a boolean decides.
    pub condition: String,
    /// Tags that switch it on or off.
    pub tags: Vec<String>,
    /// The name under which it is used.
    pub alias: String,
}

/// Returns what is kept of an entry of an index; `None` if it is no version of the chart `name`.
///
/// What is of another type, or too long, is left out. What the index says is data and nothing else.
pub fn kept(entry: &Value) -> Option<(Version, Value)> {
    let fields = entry.as_object()?;
    let version = scalar(fields.get("version")?)?;
    let parsed = (version.len() <= MAX_VERSION).then(|| Version::parse(&version).ok()).flatten()?;
    let mut kept = texts(fields, &TEXTS);
    kept.insert("version".to_owned(), version.into());
    let has_digest = fields.get("digest").is_some_and(|digest| !digest.is_null() && digest != "");
    if has_digest && !kept.contains_key("digest") {
        kept.insert("digest".to_owned(), NO_DIGEST.into());
    }
    if let Some(Value::String(kind)) = fields.get("type").filter(|kind| is_short(kind)) {
        kept.insert("type".to_owned(), kind.as_str().into());
    }
    if fields.get("deprecated") == Some(&Value::Bool(true)) {
        kept.insert("deprecated".to_owned(), true.into());
    }
    let urls: Vec<Value> = list(fields, "urls").filter(|url| is_short(url)).take(MAX_URLS).cloned().collect();
    kept.insert("urls".to_owned(), urls.into());
    let dependencies: Vec<Value> = list(fields, "dependencies")
        .filter_map(Value::as_object)
        .take(MAX_DEPENDENCIES)
        .map(|dependency| {
            let mut kept = texts(dependency, &DEPENDENCY_TEXTS);
            let tags: Vec<Value> =
                list(dependency, "tags").filter(|tag| is_short(tag)).take(MAX_TAGS).cloned().collect();
            if !tags.is_empty() {
                kept.insert("tags".to_owned(), tags.into());
            }
            Value::Object(kept)
        })
        .collect();
    if !dependencies.is_empty() {
        kept.insert("dependencies".to_owned(), dependencies.into());
    }
    Some((parsed, Value::Object(kept)))
}

/// Returns the version of an entry that is one and can't be kept, since it is too long.
pub fn too_long(entry: &Value) -> Option<String> {
    let version = scalar(entry.as_object()?.get("version")?)?;
    (version.len() > MAX_VERSION && Version::parse(&version).is_ok()).then_some(version)
}

fn texts(fields: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let text = |name: &&str| {
        let text = scalar(fields.get(*name)?).filter(|text| !text.is_empty() && text.len() <= MAX_TEXT)?;
        Some(((*name).to_owned(), Value::String(text)))
    };
    names.iter().filter_map(text).collect()
}

fn list<'f>(fields: &'f Map<String, Value>, name: &str) -> impl Iterator<Item = &'f Value> {
    fields.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn is_short(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty() && text.len() <= MAX_TEXT)
}

/// Returns a scalar as Go reads it into a text; other values are no text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

impl Entry {
    /// Reads what was kept; `None` if that is no entry.
    pub fn read(kept: &Value) -> Option<Self> {
        let fields = kept.as_object()?;
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let owned = |values: &Value| values.as_str().map(str::to_owned);
        let version = text("version").to_owned();
        let parsed = Version::parse(&version).ok()?;
        let dependency = |value: &Value| {
            let fields = value.as_object()?;
            let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            Some(Dependency {
                name: text("name"),
                version: text("version"),
                repository: text("repository"),
                condition: text("condition"),
                tags: list(fields, "tags").filter_map(owned).collect(),
                alias: text("alias"),
            })
        };
        Some(Self {
            parsed,
            urls: list(fields, "urls").filter_map(owned).collect(),
            // Helm writes digits alone.
            digest: digest(text("digest")),
            created: Some(text("created").to_owned()).filter(|created| !created.is_empty()),
            deprecated: fields.get("deprecated") == Some(&Value::Bool(true)),
            kind: text("type").to_owned(),
            dependencies: list(fields, "dependencies").filter_map(dependency).collect(),
            version,
        })
    }

    /// Returns whether a constraint names exactly this version, and no range.
    pub fn is_exactly(&self, constraint: &str) -> bool {
        // `=1.2.3` is no range either.
        let constraint = constraint.strip_prefix('=').map_or(constraint, str::trim_start);
        let parts = constraint.trim_start_matches('v').split(['-', '+']).next().unwrap_or_default();
        let is_whole = parts.split('.').count() == 3;
        let same = |wanted: Version| wanted.to_string() == self.parsed.to_string();
        self.version == constraint || (is_whole && Version::parse(constraint).is_ok_and(same))
    }

    /// Returns whether the version fits a constraint.
    pub fn fits(&self, constraint: &Constraint) -> bool {
        constraint.matches(&self.parsed)
    }
}

/// Reads the digest that an index names. One that can't be read is no reason to take the archive unchecked.
fn digest(named: &str) -> Result<Option<Digest>, String> {
    if named.is_empty() {
        return Ok(None);
    }
    let text = if named.contains(':') { named.to_owned() } else { format!("sha256:{named}") };
    Digest::parse(&text).map(Some).map_err(|_| {
        let shown: String = named.chars().take(MAX_SHOWN).collect();
        format!(
            "the index names the digest {shown:?}, which can't be checked: expected are 64 hexadecimal digits, with or without sha256: before them"
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_is_kept_without_what_nobody_reads() {
        let entry = json!({
            "name": "web", "version": "1.0.0", "description": "long", "icon": "x", "keywords": ["a"], "urls": ["web-1.0.0.tgz", 7],
            "digest": "a".repeat(64), "created": "2026-01-02T03:04:05Z", "deprecated": true, "type": "library", "appVersion": 2.5,
            "dependencies": [{"name": "db", "version": "~1", "repository": "https://x", "tags": ["t"], "import-values": ["x"]}, 3],
        });
        let (_, kept) = kept(&entry).unwrap();
        assert_eq!(
            kept,
            json!({
                "name": "web", "version": "1.0.0", "urls": ["web-1.0.0.tgz"], "digest": "a".repeat(64), "appVersion": "2.5",
                "created": "2026-01-02T03:04:05Z", "deprecated": true, "type": "library",
                "dependencies": [{"name": "db", "version": "~1", "repository": "https://x", "tags": ["t"]}],
            })
        );
        let read = Entry::read(&kept).unwrap();
        assert_eq!(read.digest.as_ref().unwrap().as_ref().unwrap().hex(), "a".repeat(64));
        assert_eq!((read.dependencies[0].name.as_str(), read.dependencies[0].tags.len()), ("db", 1));
    }

    #[test]
    fn a_digest_that_cant_be_read_is_no_missing_one() {
        let read = |digest: Value| {
            let (_, kept) = kept(&json!({"version": "1.0.0", "digest": digest})).unwrap();
            Entry::read(&kept).unwrap().digest
        };
        assert_eq!(read(json!(null)), Ok(None));
        assert_eq!(read(json!("")), Ok(None));
        let digest = Digest::parse(&format!("sha256:{}", "a".repeat(64))).unwrap();
        assert_eq!(read(json!("A".repeat(64))), Ok(Some(digest)));
        for wrong in [
            json!(format!("sha512:{}", "a".repeat(128))),
            json!("abc"),
            json!("a".repeat(MAX_TEXT + 1)),
            json!(["a"]),
            json!(true),
        ] {
            let error = read(wrong.clone()).unwrap_err();
            assert!(error.contains("64 hexadecimal digits") && error.len() < 400, "{wrong}: {error}");
        }
    }

    #[test]
    fn what_is_no_version_is_no_entry() {
        let long = format!("1.0.0-{}", "a".repeat(MAX_VERSION));
        for entry in [json!(1), json!({}), json!({"version": "latest"}), json!({"version": long})] {
            assert!(kept(&entry).is_none(), "{entry}");
        }
        let far =
            json!({"version": "1.0.0", "name": "x".repeat(MAX_TEXT + 1), "urls": ["u".repeat(MAX_TEXT + 1)]});
        assert_eq!(kept(&far).unwrap().1, json!({"version": "1.0.0", "urls": []}));
    }

    #[test]
    fn of_lists_that_are_too_long_the_first_items_are_kept() {
        let many = |count: usize, item: Value| vec![item; count + 1];
        let dependency = json!({"name": "db", "tags": many(MAX_TAGS, json!("t"))});
        let entry = json!({
            "version": "1.0.0", "kubeVersion": ">=1.30", "urls": many(MAX_URLS, json!("u")),
            "dependencies": many(MAX_DEPENDENCIES, dependency),
        });
        let (_, kept) = kept(&entry).unwrap();
        let length = |value: &Value| value.as_array().unwrap().len();
        assert_eq!(kept["kubeVersion"], ">=1.30");
        assert_eq!((length(&kept["urls"]), length(&kept["dependencies"])), (MAX_URLS, MAX_DEPENDENCIES));
        assert_eq!(length(&kept["dependencies"][0]["tags"]), MAX_TAGS);
    }

    #[test]
    fn a_range_is_no_exact_version() {
        let entry = Entry::read(&json!({"version": "v1.2.0"})).unwrap();
        for (constraint, is_exact) in [
            ("1.2.0", true),
            ("v1.2.0", true),
            ("=1.2.0", true),
            ("= v1.2.0", true),
            ("=1.2", false),
            ("1.2", false),
            ("~1.2.0", false),
            ("1.2.x", false),
            ("", false),
        ] {
            assert_eq!(entry.is_exactly(constraint), is_exact, "{constraint}");
        }
    }
}

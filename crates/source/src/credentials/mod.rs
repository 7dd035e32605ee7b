//! The credentials of a release, as the rendered `bind.yaml` of its plan says where they are. See docs/sources.md.
//!
//! ```yaml
//! credential:
//! - {name: URI, value: redis://cache.ops:6379}
//! - {name: PASSWORD, valueFrom: {secretKeyRef: {name: cache, key: password}}}
//! - {name: ADDRESS, valueFrom: {serviceRef: {name: cache, jsonpath: '{.spec.clusterIP}'}}}
//! credentialFrom:
//! - configMapRef: {name: cache}
//! ```
//!
//! [`Credentials::read`] reads it, [`Credentials::references`] says which objects have to be looked up, and
//! [`Credentials::resolve`] puts the parts together. `path` is `jsonpath` as kubectl has it.

mod path;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use thiserror::Error;
use values::yaml;

use path::{Path, PathError};

/// How many bytes the rendered text may have.
pub const MAX_TEXT: usize = 1 << 20;
/// How much memory it may take when it is read, in bytes.
const MAX_TREE: usize = 16 << 20;
/// How many entries each of the two lists may have.
pub const MAX_ENTRIES: usize = 500;
/// How many bytes all credentials may have together: what a Secret holds, with some room for its metadata.
pub const MAX_BYTES: usize = 900 << 10;
/// How many bytes a name may have, as a key of a Secret.
const MAX_NAME: usize = 253;

/// A kind of object that credentials are taken from.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// A `ConfigMap`.
    ConfigMap,
    /// A Secret.
    Secret,
    /// A Service.
    Service,
}

/// An object in the namespace of the release.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Reference {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
}

/// Why there are no credentials. The texts quote names and no values.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CredentialsError {
    /// The text is no YAML.
    #[error("the rendered text is no YAML: {0}")]
    Yaml(yaml::YamlError),
    /// It is larger than a template of credentials has to be.
    #[error("the rendered text has {0} bytes, {MAX_TEXT} are read")]
    TooLarge(usize),
    /// Something in it has another shape.
    #[error("{path} should be {expected}")]
    Shape {
        /// Where, such as `credential[0].name`.
        path: String,
        /// What is expected there.
        expected: &'static str,
    },
    /// An object of another namespace is named. The namespace is not quoted: it may be a value.
    #[error("{path}.namespace: objects are looked up in the namespace of the release only: remove it")]
    Namespace {
        /// Where, such as `credential[0].valueFrom.secretKeyRef`.
        path: String,
    },
    /// A name stands there twice.
    #[error("{path}: {name} is the name of another credential, too")]
    Repeated {
        /// Where.
        path: String,
        /// The name.
        name: String,
    },
    /// There is no such object.
    #[error("there is no {0} in the namespace of the release")]
    NoObject(Reference),
    /// The object has no such key.
    #[error("{object} has no key {key}")]
    NoKey {
        /// The object.
        object: Reference,
        /// The key.
        key: String,
    },
    /// What is in the object is no base64.
    #[error("{object}: key {key} is no base64")]
    NoBase64 {
        /// The object.
        object: Reference,
        /// The key.
        key: String,
    },
    /// The path leads nowhere, or is none.
    #[error("{path}: {problem}")]
    Path {
        /// Where.
        path: String,
        /// What is wrong.
        problem: PathError,
    },
    /// All together fit no Secret.
    #[error("the credentials have {0} bytes together, and a Secret takes {MAX_BYTES}")]
    NoRoom(usize),
}

/// What `bind.yaml` lists.
pub struct Credentials {
    own: Vec<Credential>,
    from: Vec<Reference>,
}

struct Credential {
    /// Where it is listed, for messages.
    path: String,
    name: String,
    source: Source,
}

enum Source {
    Value(String),
    Key(Reference, String),
    Path(Reference, Path),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
            Self::Service => "Service",
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

// Values are secrets.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.own.iter().map(|credential| &credential.name);
        f.debug_struct("Credentials")
            .field("own", &names.collect::<Vec<_>>())
            .field("from", &self.from)
            .finish()
    }
}

impl Credentials {
    /// Reads the rendered text; an empty one has no credentials. `namespace` is that of the release.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, and where.
    pub fn read(text: &str, namespace: &str) -> Result<Self, CredentialsError> {
        if text.len() > MAX_TEXT {
            return Err(CredentialsError::TooLarge(text.len()));
        }
        let document = yaml::parse_only(text, MAX_TREE).map_err(CredentialsError::Yaml)?;
        if document.is_null() {
            return Ok(Self { own: Vec::new(), from: Vec::new() });
        }
        let fields = mapping(&document, "the text")?;
        let mut own: Vec<Credential> = Vec::new();
        for (number, entry) in list(fields, "credential")?.iter().enumerate() {
            let path = format!("credential[{number}]");
            let credential = Credential::read(entry, path, namespace)?;
            if own.iter().any(|other| other.name == credential.name) {
                return Err(CredentialsError::Repeated { path: credential.path, name: credential.name });
            }
            own.push(credential);
        }
        let mut from = Vec::new();
        for (number, entry) in list(fields, "credentialFrom")?.iter().enumerate() {
            let path = format!("credentialFrom[{number}]");
            let fields = mapping(entry, &path)?;
            let kinds = [("configMapRef", Kind::ConfigMap), ("secretRef", Kind::Secret)];
            let (path, kind, fields) = one_of(fields, &path, kinds, "one of configMapRef and secretRef")?;
            from.push(Reference { kind, name: object_name(fields, &path, namespace)? });
        }
        Ok(Self { own, from })
    }

    /// Returns the objects that have to be looked up.
    pub fn references(&self) -> BTreeSet<&Reference> {
        let own = self.own.iter().filter_map(|credential| match &credential.source {
            Source::Value(_) => None,
            Source::Key(object, _) | Source::Path(object, _) => Some(object),
        });
        own.chain(&self.from).collect()
    }

    /// Returns the credentials by name. `objects` are those that were found.
    ///
    /// Of two lists in `credentialFrom` with one name the later counts; what `credential` says counts more than both.
    ///
    /// # Errors
    ///
    /// Something that is missing, or that there is too much.
    pub fn resolve(
        &self,
        objects: &BTreeMap<Reference, Value>,
    ) -> Result<BTreeMap<String, Vec<u8>>, CredentialsError> {
        let find = |object: &Reference| {
            objects.get(object).ok_or_else(|| CredentialsError::NoObject(object.clone()))
        };
        let mut found = BTreeMap::new();
        for reference in &self.from {
            let object = find(reference)?;
            for field in ["data", "binaryData"] {
                for key in object.get(field).and_then(Value::as_object).into_iter().flat_map(Map::keys) {
                    found.insert(key.clone(), value_of(reference, object, key)?);
                }
            }
        }
        for Credential { path, name, source } in &self.own {
            let value = match source {
                Source::Value(value) => value.clone().into_bytes(),
                Source::Key(reference, key) => value_of(reference, find(reference)?, key)?,
                Source::Path(reference, jsonpath) => {
                    let text = jsonpath.text(find(reference)?);
                    let wrong = |problem| CredentialsError::Path { path: path.clone(), problem };
                    text.map_err(wrong)?.into_bytes()
                }
            };
            found.insert(name.clone(), value);
        }
        let bytes = found.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > MAX_BYTES { Err(CredentialsError::NoRoom(bytes)) } else { Ok(found) }
    }
}

impl Credential {
    fn read(entry: &Value, path: String, namespace: &str) -> Result<Self, CredentialsError> {
        let fields = mapping(entry, &path)?;
        let name = text(fields, &path, "name")?;
        let is_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || name.len() > MAX_NAME || name.starts_with("..") || !name.bytes().all(is_key) {
            let expected = "a key of a Secret: letters, digits, -, _ and .";
            return Err(CredentialsError::Shape { path: format!("{path}.name"), expected });
        }
        let source = match (field(fields, "value"), field(fields, "valueFrom")) {
            (Some(_), None) => Source::Value(text(fields, &path, "value")?),
            (None, Some(from)) => Self::read_from(from, &format!("{path}.valueFrom"), namespace)?,
            (Some(_), Some(_)) | (None, None) => {
                return Err(CredentialsError::Shape {
                    path,
                    expected: "a name with one of value and valueFrom",
                });
            }
        };
        Ok(Self { path, name, source })
    }

    fn read_from(from: &Value, path: &str, namespace: &str) -> Result<Source, CredentialsError> {
        let kinds = [
            ("configMapKeyRef", Kind::ConfigMap),
            ("secretKeyRef", Kind::Secret),
            ("serviceRef", Kind::Service),
        ];
        let expected = "one of configMapKeyRef, secretKeyRef and serviceRef";
        let (path, kind, fields) = one_of(mapping(from, path)?, path, kinds, expected)?;
        let object = Reference { kind, name: object_name(fields, &path, namespace)? };
        if kind != Kind::Service {
            return Ok(Source::Key(object, text(fields, &path, "key")?));
        }
        let jsonpath = text(fields, &path, "jsonpath")?;
        let wrong = |problem| CredentialsError::Path { path: format!("{path}.jsonpath"), problem };
        Ok(Source::Path(object, Path::parse(&jsonpath).map_err(wrong)?))
    }
}

/// Returns what an object has at a key.
fn value_of(reference: &Reference, object: &Value, key: &str) -> Result<Vec<u8>, CredentialsError> {
    let entry = |field: &str| object.get(field)?.get(key)?.as_str();
    let encoded = match (reference.kind, entry("data")) {
        (Kind::ConfigMap, Some(text)) => return Ok(text.as_bytes().to_vec()),
        (Kind::ConfigMap, None) => entry("binaryData"),
        (Kind::Secret | Kind::Service, data) => data,
    };
    let missing = || CredentialsError::NoKey { object: reference.clone(), key: key.to_owned() };
    let decoded = STANDARD.decode(encoded.ok_or_else(missing)?);
    decoded.map_err(|_| CredentialsError::NoBase64 { object: reference.clone(), key: key.to_owned() })
}

fn field<'v>(fields: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    fields.get(name).filter(|value| !value.is_null())
}

fn mapping<'v>(value: &'v Value, path: &str) -> Result<&'v Map<String, Value>, CredentialsError> {
    let expected = "a mapping";
    value.as_object().ok_or_else(|| CredentialsError::Shape { path: path.to_owned(), expected })
}

fn list<'v>(fields: &'v Map<String, Value>, name: &str) -> Result<&'v [Value], CredentialsError> {
    let wrong =
        || CredentialsError::Shape { path: name.to_owned(), expected: "a list of at most 500 entries" };
    let Some(value) = field(fields, name) else { return Ok(&[]) };
    let list = value.as_array().filter(|list| list.len() <= MAX_ENTRIES);
    list.map(Vec::as_slice).ok_or_else(wrong)
}

/// Returns a scalar as a text.
fn text(fields: &Map<String, Value>, path: &str, name: &str) -> Result<String, CredentialsError> {
    match field(fields, name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(scalar @ (Value::Number(_) | Value::Bool(_))) => Ok(scalar.to_string()),
        None | Some(Value::Null | Value::Array(_) | Value::Object(_)) => {
            Err(CredentialsError::Shape { path: format!("{path}.{name}"), expected: "a text" })
        }
    }
}

/// Returns the name of an object in this namespace; it becomes a part of a URL.
fn object_name(fields: &Map<String, Value>, path: &str, namespace: &str) -> Result<String, CredentialsError> {
    // Who names another one must not get the object of that name from here.
    if field(fields, "namespace").is_some_and(|named| named.as_str() != Some(namespace)) {
        return Err(CredentialsError::Namespace { path: path.to_owned() });
    }
    let name = text(fields, path, "name")?;
    let is_good =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if name.is_empty() || name.len() > MAX_NAME || name.starts_with('.') || !name.bytes().all(is_good) {
        return Err(CredentialsError::Shape {
            path: format!("{path}.name"),
            expected: "the name of an object",
        });
    }
    Ok(name)
}

/// Returns the one field of these that is there, with its path and its kind.
fn one_of<'v, const N: usize>(
    fields: &'v Map<String, Value>,
    path: &str,
    kinds: [(&str, Kind); N],
    expected: &'static str,
) -> Result<(String, Kind, &'v Map<String, Value>), CredentialsError> {
    let mut found = kinds.iter().filter_map(|(name, kind)| Some((*name, *kind, field(fields, name)?)));
    match (found.next(), found.next()) {
        (Some((name, kind, value)), None) => {
            let path = format!("{path}.{name}");
            let fields = mapping(value, &path)?;
            Ok((path, kind, fields))
        }
        _ => Err(CredentialsError::Shape { path: path.to_owned(), expected }),
    }
}

#[cfg(test)]
mod tests;

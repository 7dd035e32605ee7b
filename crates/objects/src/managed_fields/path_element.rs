//! An element of a path through an object, as `fieldsV1` and conflicts write it.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

/// One step of a path: a field, an item of a list with its key or its value, or a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathElement {
    /// A field of an object or a key of a map.
    FieldName(String),
    /// The item of a list whose fields have these values, sorted by name.
    Key(Vec<(String, Value)>),
    /// The item of a set.
    Value(Value),
    /// A position in a list.
    Index(i64),
}

impl PathElement {
    /// Returns the step as a key of `fieldsV1`: `f:name`, `k:{…}`, `v:…` or `i:…`.
    pub fn to_key(&self) -> String {
        match self {
            PathElement::FieldName(name) => format!("f:{name}"),
            PathElement::Key(keys) => key_text(keys.iter().map(|(name, value)| (name.as_str(), value))),
            PathElement::Value(value) => format!("v:{value}"),
            PathElement::Index(index) => format!("i:{index}"),
        }
    }

    /// Reads a key of `fieldsV1`.
    pub fn from_key(key: &str) -> Option<PathElement> {
        let (kind, rest) = key.split_once(':')?;
        match kind {
            "f" => Some(PathElement::FieldName(rest.to_owned())),
            "k" => match serde_json::from_str(rest).ok()? {
                Value::Object(map) => Some(PathElement::Key(map.into_iter().collect())),
                _ => None,
            },
            "v" => serde_json::from_str(rest).ok().map(PathElement::Value),
            "i" => rest.parse().ok().map(PathElement::Index),
            _ => None,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            PathElement::FieldName(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }
}

/// Returns the key of `fieldsV1` of an item whose fields have these values, sorted by name.
pub(super) fn key_text<'a>(keys: impl Iterator<Item = (&'a str, &'a Value)>) -> String {
    let mut out = Vec::with_capacity(48);
    out.extend_from_slice(b"k:{");
    for (index, (name, value)) in keys.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_text(&mut out, name);
        out.push(b':');
        let _ = serde_json::to_writer(&mut out, value);
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// Writes a text as JSON.
pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    // Writing text into memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (PathElement::FieldName(a), PathElement::FieldName(b)) => a.cmp(b),
            (PathElement::Key(a), PathElement::Key(b)) => compare_keys(a, b),
            (PathElement::Value(a), PathElement::Value(b)) => compare_values(a, b),
            (PathElement::Index(a), PathElement::Index(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

fn compare_keys(a: &[(String, Value)], b: &[(String, Value)]) -> Ordering {
    for ((name_a, a), (name_b, b)) in a.iter().zip(b) {
        let order = name_a.cmp(name_b).then_with(|| compare_values(a, b));
        if order.is_ne() {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

fn compare_values(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            let order = x.as_f64().partial_cmp(&y.as_f64()).unwrap_or(Ordering::Equal);
            order.then_with(|| x.to_string().cmp(&y.to_string()))
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (a, b) => rank(a).cmp(&rank(b)).then_with(|| a.to_string().cmp(&b.to_string())),
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::FieldName(name) => write!(f, ".{name}"),
            PathElement::Key(keys) => {
                let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", keys.join(","))
            }
            PathElement::Value(value) => write!(f, "[={value}]"),
            PathElement::Index(index) => write!(f, "[{index}]"),
        }
    }
}

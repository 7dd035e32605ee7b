//! To and from JSON values.

use std::borrow::Cow;

use golang::json::{Marshal, Unmarshal};
use serde_json::Number;

use super::{Entries, List, MAX_NESTING, Map, Value};

/// Why a value has no JSON form.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ToJsonError {
    /// Not a number, or an infinite one.
    #[error("json: unsupported value: {0}")]
    Number(&'static str),
    /// A type that JSON does not know.
    #[error("json: unsupported type: {0}")]
    Type(String),
    /// There is too much in it: a value may hold another one many times.
    #[error("value holds more than {MAX_VALUES} values")]
    Size,
    /// The value is nested too deeply, or holds itself.
    #[error("value is nested more than {MAX_NESTING} levels deep or holds itself")]
    Nesting,
}

impl Value {
    /// Returns the value that Helm reads from YAML or JSON text: every number is a `float64`.
    ///
    /// What lies deeper than [`MAX_NESTING`] becomes nil.
    pub fn from_json(json: &serde_json::Value) -> Self {
        from_json(json, false, 0)
    }

    /// Returns the same value with whole numbers as `int64`, which is how `--set` leaves them.
    pub fn from_typed_json(json: &serde_json::Value) -> Self {
        from_json(json, true, 0)
    }

    /// Returns the same of a part that lies `depth` deep in what it belongs to.
    pub(crate) fn from_typed_json_at(json: &serde_json::Value, depth: usize) -> Self {
        from_json(json, true, depth)
    }

    /// Returns the JSON form: floats stay floats, integers integers.
    pub fn to_json(&self) -> Result<serde_json::Value, ToJsonError> {
        to_json(self, 0, &mut 0)
    }
}

impl Marshal for Value {
    fn replacement(&self) -> Option<Self> {
        let Self::Object(object) = self else {
            return None;
        };
        object.json().map(|json| Self::from_typed_json(&json)).or_else(|| object.underlying())
    }

    fn members(&self) -> Vec<(&'static str, Self)> {
        let Self::Object(object) = self else {
            return Vec::new();
        };
        object.json_members().unwrap_or_else(|| object.fields())
    }
}

impl Unmarshal for Value {
    type Members = Entries;

    fn null() -> Self {
        Self::Nil
    }

    fn bool(truth: bool) -> Self {
        Self::Bool(truth)
    }

    fn number(number: f64) -> Self {
        Self::Float(number)
    }

    fn text(text: Cow<'_, str>) -> Self {
        Self::Text(text.into())
    }

    fn array(items: Vec<Self>) -> Self {
        Self::list(items)
    }

    fn add(members: &mut Entries, key: Cow<'_, str>, value: Self) {
        members.insert(key.as_ref().into(), value);
    }

    fn object(members: Entries) -> Self {
        Self::Map(Map::new(members))
    }
}

/// How many values one JSON value may be made of.
const MAX_VALUES: usize = 10_000_000;

fn from_json(json: &serde_json::Value, typed: bool, depth: usize) -> Value {
    if depth > MAX_NESTING {
        return Value::Nil;
    }
    match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(truth) => Value::Bool(*truth),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) if typed => Value::Int64(whole),
            Some(_) | None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::text(text.as_str()),
        serde_json::Value::Array(items) => {
            Value::List(List::new(items.iter().map(|item| from_json(item, typed, depth + 1)).collect()))
        }
        serde_json::Value::Object(entries) => Value::Map(Map::new(
            entries
                .iter()
                .map(|(key, value)| (key.as_str().into(), from_json(value, typed, depth + 1)))
                .collect(),
        )),
    }
}

fn to_json(value: &Value, depth: usize, count: &mut usize) -> Result<serde_json::Value, ToJsonError> {
    if depth > MAX_NESTING {
        return Err(ToJsonError::Nesting);
    }
    *count += 1;
    if *count > MAX_VALUES {
        return Err(ToJsonError::Size);
    }
    Ok(match value {
        Value::Nil => serde_json::Value::Null,
        Value::Bool(truth) => (*truth).into(),
        Value::Int(n) | Value::Int64(n) | Value::Small(_, n) => (*n).into(),
        Value::Uint(_, n) => (*n).into(),
        Value::Float(n) => match Number::from_f64(*n) {
            Some(number) => serde_json::Value::Number(number),
            None if n.is_nan() => return Err(ToJsonError::Number("NaN")),
            None if *n > 0.0 => return Err(ToJsonError::Number("+Inf")),
            None => return Err(ToJsonError::Number("-Inf")),
        },
        Value::Complex(..) => return Err(ToJsonError::Type(value.type_name().to_owned())),
        Value::Text(text) => text.lossy().into_owned().into(),
        Value::Bytes(bytes) => {
            use base64::Engine as _;
            base64::engine::general_purpose::STANDARD.encode(bytes).into()
        }
        Value::List(list) if list.is_nil() => serde_json::Value::Null,
        Value::Map(map) if map.is_nil() => serde_json::Value::Null,
        Value::List(list) => list
            .items()
            .iter()
            .map(|item| to_json(item, depth + 1, count))
            .collect::<Result<Vec<_>, _>>()?
            .into(),
        Value::Map(map) => map
            .entries()
            .iter()
            .map(|(key, value)| Ok((key.to_string(), to_json(value, depth + 1, count)?)))
            .collect::<Result<serde_json::Map<_, _>, _>>()?
            .into(),
        Value::Object(object) => match (object.json(), object.underlying()) {
            (Some(json), _) => json,
            (None, Some(value)) => to_json(&value, depth + 1, count)?,
            (None, None) => object
                .json_members()
                .unwrap_or_else(|| object.fields())
                .into_iter()
                .map(|(name, value)| Ok((name.to_owned(), to_json(&value, depth + 1, count)?)))
                .collect::<Result<serde_json::Map<_, _>, _>>()?
                .into(),
        },
    })
}

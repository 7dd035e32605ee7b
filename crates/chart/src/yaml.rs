//! YAML files of charts and users.

use serde_json::{Map, Number, Value};

use crate::decode::{DecodeError, FieldPath};

/// Why a YAML file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is not YAML.
    #[error("error converting YAML to JSON: {0}")]
    Yaml(String),
    /// It has values of other types than expected.
    #[error(transparent)]
    Decode(DecodeError),
}

impl From<DecodeError> for FileError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

/// Reads the first document of a file.
pub fn read(data: &[u8]) -> Result<Value, FileError> {
    parse(data).map_err(FileError::Yaml)
}

/// Reads the first document of a text; the error is what Go's reader says.
pub fn parse(data: &[u8]) -> Result<Value, String> {
    match std::str::from_utf8(data) {
        Ok(text) => values::yaml::parse(text).map_err(|error| error.go_text()),
        Err(error) => {
            Err(format!("yaml: {}", unreadable(data.get(error.valid_up_to()..).unwrap_or_default())))
        }
    }
}

/// Returns what is wrong with bytes that begin with something that is no UTF-8.
fn unreadable(bytes: &[u8]) -> &'static str {
    let width = match bytes.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        Some(_) | None => return "invalid leading UTF-8 octet",
    };
    let trailing = bytes.get(1..width).unwrap_or_else(|| bytes.get(1..).unwrap_or_default());
    if bytes.len() < width {
        "incomplete UTF-8 octet sequence"
    } else if trailing.iter().any(|byte| byte & 0xc0 != 0x80) {
        "invalid trailing UTF-8 octet"
    } else if matches!(bytes, [0xc0 | 0xc1, ..] | [0xe0, 0x80..=0x9f, ..] | [0xf0, 0x80..=0x8f, ..]) {
        "invalid length of a UTF-8 sequence"
    } else {
        "invalid Unicode character"
    }
}

/// Reads a file that holds a map, or nothing; all numbers become floats, as they
/// do where Helm reads values.
pub fn read_map(data: &[u8]) -> Result<Map<String, Value>, FileError> {
    match read(data)? {
        Value::Null => Ok(Map::new()),
        Value::Object(mut entries) => {
            entries.values_mut().for_each(floats);
            Ok(entries)
        }
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Err(FileError::Decode(FieldPath::DOCUMENT.mismatch(&other, "map[string]interface {}")))
        }
    }
}

/// Makes a float of every number in `value`.
pub fn floats(value: &mut Value) {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => {}
        Value::Number(number) => {
            if let Some(float) = number.as_f64().and_then(Number::from_f64) {
                *number = float;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(floats),
        Value::Object(entries) => entries.values_mut().for_each(floats),
    }
}

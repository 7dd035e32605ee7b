//! YAML files of charts and users.

use serde_json::{Map, Number, Value};

use crate::decode::DecodeError;
use crate::load::DOCUMENT;

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

/// Reads the first document of a file.
pub fn read(data: &[u8]) -> Result<Value, FileError> {
    let text = String::from_utf8_lossy(data);
    values::yaml::parse(&text).map_err(|error| FileError::Yaml(error.go_text()))
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
            Err(FileError::Decode(DOCUMENT.mismatch(&other, "map[string]interface {}")))
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

//! Files of YAML that hold a mapping.

use std::io;
use std::path::Path;

use serde_json::{Map, Value};
use values::yaml;

use crate::regular_file;

/// Reads a YAML file that holds a mapping; `None` when there is no such file.
pub(super) fn read_mapping(path: &Path) -> Result<Option<Map<String, Value>>, String> {
    let text = match regular_file::read_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("can't be read: {error}")),
    };
    match yaml::parse(&text).map_err(|error| error.to_string())? {
        Value::Null => Ok(Some(Map::new())),
        Value::Object(mapping) => Ok(Some(mapping)),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err("should be a mapping of keys to values".to_owned())
        }
    }
}

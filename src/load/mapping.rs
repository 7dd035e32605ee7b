//! Files of YAML that hold a mapping.

use std::io;
use std::path::Path;

use serde_json::{Map, Value};
use values::yaml;

use crate::regular_file;

/// The longest text of a key of `module.yaml`.
pub(super) const MAX_TEXT: usize = 253;

/// Reads a YAML file that holds a mapping; `None` when there is no such file.
pub(super) fn read_mapping(path: &Path) -> Result<Option<Map<String, Value>>, String> {
    read(path, yaml::parse)
}

/// Reads such a file, and refuses keys that occur twice in one mapping.
pub(super) fn read_strict_mapping(path: &Path) -> Result<Option<Map<String, Value>>, String> {
    read(path, yaml::parse_strict)
}

fn read(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<Value, yaml::YamlError>,
) -> Result<Option<Map<String, Value>>, String> {
    let text = match regular_file::read_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("can't be read: {error}")),
    };
    match parse(&text).map_err(|error| error.to_string())? {
        Value::Null => Ok(Some(Map::new())),
        Value::Object(mapping) => Ok(Some(mapping)),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err("should be a mapping of keys to values".to_owned())
        }
    }
}

/// Refuses keys that nobody knows; `place` stands before them.
pub(super) fn check_keys(
    fields: &Map<String, Value>,
    place: &str,
    keys: &[&'static str],
) -> Result<(), String> {
    let Some(unknown) = fields.keys().find(|key| !keys.contains(&key.as_str())) else { return Ok(()) };
    let shown: String = unknown.chars().take(100).collect();
    Err(match engine::view::nearest(&shown, keys.iter().copied()) {
        Some(near) => format!("{place}there is no key {shown:?}; did you mean {near}?"),
        None => format!("{place}there is no key {shown:?}; the keys are {}", keys.join(", ")),
    })
}

//! Limits and keys of the mappings of `module.yaml`.

use serde_json::{Map, Value};

use crate::view::nearest;

/// The longest text of a key.
pub(super) const MAX_TEXT: usize = 253;

/// Refuses keys that nobody knows; `place` stands before them.
pub(super) fn check_keys(
    fields: &Map<String, Value>,
    place: &str,
    keys: &[&'static str],
) -> Result<(), String> {
    let Some(unknown) = fields.keys().find(|key| !keys.contains(&key.as_str())) else { return Ok(()) };
    let shown: String = unknown.chars().take(100).collect();
    Err(match nearest(&shown, keys.iter().copied()) {
        Some(near) => format!("{place}there is no key {shown:?}; did you mean {near}?"),
        None => format!("{place}there is no key {shown:?}; the keys are {}", keys.join(", ")),
    })
}

//! How much memory a tree of JSON takes, as an estimate that is seldom too low.
//!
//! Texts from outside are small where their trees are not: `{a}` has three bytes, its map has hundreds. Who reads or
//! completes a tree adds up what its parts take, and stops before there is too much of them.

use serde_json::Value;

/// What a node takes in the list around it, which grows by doubling. It is nearly all that an empty list takes, of which several copies
/// are made.
pub const ITEM: usize = 96;

/// What an entry takes in the map around it, without the text of its key.
pub const ENTRY: usize = 128;

/// What the first entry of a map takes beside that: maps keep their entries in blocks of eleven.
pub const BLOCK: usize = 512;

/// What a text takes beside its bytes.
pub const TEXT: usize = 16;

/// Returns how many bytes a copy of `value` takes, about.
///
/// ```
/// use serde_json::json;
///
/// assert!(objects::memory::estimate(&json!([{"a": null}])) > 500);
/// ```
pub fn estimate(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => TEXT + text.len(),
        Value::Array(items) => items.iter().map(|item| ITEM + estimate(item)).sum(),
        Value::Object(map) if map.is_empty() => 0,
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| ENTRY + TEXT + key.len() + estimate(value);
            BLOCK + map.iter().map(entry).sum::<usize>()
        }
    }
}

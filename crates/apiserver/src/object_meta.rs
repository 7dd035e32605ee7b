//! Reads and changes `metadata` of an object.

use serde_json::{Map, Value, json};

use crate::status::{ApiError, Outcome};

/// Returns the metadata of an object.
pub(crate) fn of(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata").and_then(Value::as_object)
}

/// Returns a text of the metadata, empty if it is absent.
pub(crate) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    of(object).and_then(|metadata| metadata.get(name)).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the name, or the beginning of the one that is made later.
pub(crate) fn name_or_base(object: &Value) -> &str {
    let names = ["name", "generateName"].map(|name| text(object, name));
    names.into_iter().find(|name| !name.is_empty()).unwrap_or_default()
}

/// Returns the metadata for a change. Absent metadata is added; an error is returned for what is no object.
pub(crate) fn of_mut(object: &mut Value) -> Outcome<&mut Map<String, Value>> {
    let fields = object.as_object_mut().ok_or_else(not_an_object)?;
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    metadata.as_object_mut().ok_or_else(not_an_object)
}

fn not_an_object() -> ApiError {
    ApiError::bad_request("the body and its metadata must be objects")
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let list = of(object).and_then(|metadata| metadata.get("finalizers")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns whether the object has a deletion timestamp.
pub(crate) fn is_deleting(object: &Value) -> bool {
    of(object).is_some_and(|metadata| metadata.get("deletionTimestamp").is_some_and(|t| !t.is_null()))
}

pub(crate) fn add_finalizer(object: &mut Value, name: &str) -> Outcome<()> {
    if finalizers(object).contains(&name) {
        return Ok(());
    }
    let list = of_mut(object)?.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(json!(name));
    }
    Ok(())
}

/// Reads a revision; the error is in the words of Go.
pub(crate) fn revision(text: &str) -> Result<u64, String> {
    // A sign is none of its characters.
    let read = if text.starts_with('+') { "".parse::<u64>() } else { text.parse::<u64>() };
    read.map_err(|error| {
        let overflows = *error.kind() == std::num::IntErrorKind::PosOverflow;
        let why = if overflows { "value out of range" } else { "invalid syntax" };
        format!("strconv.ParseUint: parsing {}: {why}", golang::strconv::quote(text.as_bytes()))
    })
}

//! Reads and fills in the fields of one object.

use serde_json::{Map, Value};

pub(super) type Fields = Map<String, Value>;

/// Empty texts and lists are as good as none; an empty object that was given is not.
pub(super) fn is_absent(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => false,
    }
}

pub(super) fn text<'a>(fields: &'a Fields, key: &str) -> &'a str {
    fields.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn put(fields: &mut Fields, key: &str, value: Value) {
    if is_absent(fields.get(key)) {
        fields.insert(key.to_owned(), value);
    }
}

pub(super) fn object<'a>(fields: &'a mut Fields, key: &str) -> Option<&'a mut Fields> {
    fields.get_mut(key).and_then(Value::as_object_mut)
}

pub(super) fn object_or_new<'a>(fields: &'a mut Fields, key: &str) -> Option<&'a mut Fields> {
    put(fields, key, Value::Object(Map::new()));
    object(fields, key)
}

pub(super) fn list<'a>(fields: &'a mut Fields, key: &str) -> impl Iterator<Item = &'a mut Fields> {
    let items = fields.get_mut(key).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

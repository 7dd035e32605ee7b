//! Looking into objects that have been read as their type.

use serde_json::{Map, Value};

/// Returns the value at a path of keys with dots; `null` when there is none.
pub(super) fn get<'a>(object: &'a Value, path: &str) -> &'a Value {
    let mut place = object;
    for key in path.split('.') {
        place = place.get(key).unwrap_or(&Value::Null);
    }
    place
}

/// Returns the text at a path, empty when there is none.
pub(super) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    get(object, path).as_str().unwrap_or_default()
}

/// Returns the number at a path.
pub(super) fn int(object: &Value, path: &str) -> Option<i64> {
    get(object, path).as_i64()
}

/// Tells whether something is at a path.
pub(super) fn has(object: &Value, path: &str) -> bool {
    !get(object, path).is_null()
}

/// Tells whether `true` is at a path.
pub(super) fn flag(object: &Value, path: &str) -> bool {
    get(object, path) == &Value::Bool(true)
}

/// Returns the items of the list at a path.
pub(super) fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    get(object, path).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the entries of the map at a path.
pub(super) fn map<'a>(object: &'a Value, path: &str) -> &'a Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    get(object, path).as_object().unwrap_or(&EMPTY)
}

/// Returns the texts of the list at a path.
pub(super) fn texts<'a>(object: &'a Value, path: &str) -> impl Iterator<Item = &'a str> {
    list(object, path).iter().filter_map(Value::as_str)
}

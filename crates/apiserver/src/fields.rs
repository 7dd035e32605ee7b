//! Looks into objects by paths of keys with dots.

use serde_json::{Map, Value};

/// Returns the value at a path; `null` when there is none.
pub(crate) fn get<'a>(object: &'a Value, path: &str) -> &'a Value {
    let mut value = object;
    for key in path.split('.') {
        value = value.get(key).unwrap_or(&Value::Null);
    }
    value
}

/// Returns the text at a path, empty when there is none.
pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    get(object, path).as_str().unwrap_or_default()
}

/// Returns the number at a path.
pub(crate) fn int(object: &Value, path: &str) -> Option<i64> {
    get(object, path).as_i64()
}

/// Returns whether something is at a path.
pub(crate) fn has(object: &Value, path: &str) -> bool {
    !get(object, path).is_null()
}

/// Returns whether `true` is at a path.
pub(crate) fn flag(object: &Value, path: &str) -> bool {
    get(object, path) == &Value::Bool(true)
}

/// Returns the items of the list at a path.
pub(crate) fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    get(object, path).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the entries of the map at a path.
pub(crate) fn map<'a>(object: &'a Value, path: &str) -> &'a Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    get(object, path).as_object().unwrap_or(&EMPTY)
}

/// Returns the texts of the list at a path.
pub(crate) fn texts<'a>(object: &'a Value, path: &str) -> impl Iterator<Item = &'a str> {
    list(object, path).iter().filter_map(Value::as_str)
}

/// Does something with the fields at a place like `spec/items/*/name`: it gets the object that has the field, and the name of
/// the field. A star stands for all items or entries.
pub(crate) fn each(value: &mut Value, place: &str, act: &mut dyn FnMut(&mut Map<String, Value>, &str)) {
    let Some((step, rest)) = place.split_once('/') else {
        if let Some(fields) = value.as_object_mut() {
            act(fields, place);
        }
        return;
    };
    match value {
        Value::Array(items) if step == "*" => items.iter_mut().for_each(|item| each(item, rest, act)),
        Value::Object(entries) if step == "*" => {
            entries.values_mut().for_each(|entry| each(entry, rest, act));
        }
        Value::Object(fields) => {
            if let Some(inner) = fields.get_mut(step) {
                each(inner, rest, act);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_star_stands_for_every_item_and_entry() {
        let mut object = json!({"a": [{"b": {"x": {"c": 1, "d": 2}}}, {"b": {"y": {"c": 1}}}, {}], "c": 1});
        let mut drop = |place: &str| {
            each(&mut object, place, &mut |fields, name| {
                fields.remove(name);
            });
        };
        drop("a/*/b/*/c");
        drop("none/c");
        drop("c");
        assert_eq!(object, json!({"a": [{"b": {"x": {"d": 2}}}, {"b": {"y": {}}}, {}]}));
    }
}

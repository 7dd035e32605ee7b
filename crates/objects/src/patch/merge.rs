//! JSON merge patches.

use serde_json::{Map, Value};

/// Returns `document` with `patch` merged into it: `null` deletes, objects merge, everything else replaces.
pub fn apply(mut document: Value, patch: Value) -> Value {
    merge(&mut document, patch);
    document
}

fn merge(document: &mut Value, mut patch: Value) {
    if let (Value::Object(target), Value::Object(changes)) = (&mut *document, &mut patch) {
        for (key, change) in std::mem::take(changes) {
            merge_key(target, key, change);
        }
        return;
    }
    // Servers keep a list as it is where it replaces an object only.
    if !document.is_object() {
        drop_nulls(&mut patch);
    }
    *document = patch;
}

fn merge_key(target: &mut Map<String, Value>, key: String, mut change: Value) {
    if change.is_null() {
        target.remove(&key);
        return;
    }
    match target.get_mut(&key) {
        None | Some(Value::Null) => {
            drop_nulls(&mut change);
            target.insert(key, change);
        }
        Some(current) => merge(current, change),
    }
}

/// Drops what is null in objects; a list has as many items as before.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, item| !item.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the merge patch that makes `modified` of `original`.
pub fn diff(original: &Value, modified: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (original, modified) else {
        return modified.clone();
    };
    let mut patch = Map::new();
    for (key, value) in to {
        match from.get(key) {
            Some(old) if old == value => {}
            Some(old @ Value::Object(_)) if value.is_object() => {
                patch.insert(key.clone(), diff(old, value));
            }
            Some(_) | None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_examples_of_the_standard_hold() {
        let cases = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        ];
        for (document, patch, expected) in cases {
            assert_eq!(apply(document, patch.clone()), expected, "{patch}");
        }
    }

    #[test]
    fn slip_33_items_of_lists_that_are_null_stay_and_their_fields_go_as_on_servers() {
        let document = json!({"list": [1], "map": {"a": 1}, "text": "x"});
        let items = json!([null, 1, {"a": null, "b": [null]}]);
        for (key, expected) in [
            ("list", json!([null, 1, {"b": [null]}])),
            ("text", json!([null, 1, {"b": [null]}])),
            ("new", json!([null, 1, {"b": [null]}])),
            ("map", items.clone()),
        ] {
            let merged = apply(document.clone(), json!({ key: items }));
            assert_eq!(merged[key], expected, "{key}");
        }
    }

    #[test]
    fn a_difference_merges_to_the_same() {
        let (from, to) =
            (json!({"a": {"b": 1, "c": 2}, "d": [1]}), json!({"a": {"b": 1}, "d": [2], "e": {}}));
        let patch = diff(&from, &to);
        assert_eq!(patch, json!({"a": {"c": null}, "d": [2], "e": {}}));
        assert_eq!(apply(from, patch), to);
    }
}

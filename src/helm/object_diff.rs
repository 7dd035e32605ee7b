//! What one revision changes of the one before, in one line.

use serde_json::{Map, Value};

use super::object::{Key, Object};

/// Returns the first difference: an object that is new or gone, or the path of a field
/// that has another value. The values themselves can be secrets and are not named.
pub(super) fn first(before: &[Object], after: &[Object], namespace: &str) -> Option<String> {
    for object in after {
        let key = object.key(namespace);
        let shown = shown(&key);
        match before.iter().rev().find(|old| old.key(namespace) == key) {
            None => return Some(format!("{shown} is new")),
            Some(old) => {
                if let Some(path) = path(&old.value, &object.value) {
                    return Some(format!("{shown} differs at {path}"));
                }
            }
        }
    }
    let gone =
        before.iter().find(|old| !after.iter().any(|object| object.key(namespace) == old.key(namespace)))?;
    Some(format!("{} is gone", shown(&gone.key(namespace))))
}

/// Returns how an object is called in messages.
pub(super) fn shown(key: &Key) -> String {
    format!("{} {}/{}", key.kind, key.namespace, key.name)
}

/// Returns the path of the first value that a patch sets.
pub(super) fn place(patch: &Value) -> String {
    let Value::Object(entries) = patch else { return String::new() };
    // Directives of strategic patches are no fields.
    let found = entries.iter().find(|(key, _)| !key.starts_with('$'));
    found.map_or_else(String::new, |(key, value)| format!("/{}{}", escaped(key), place(value)))
}

/// Returns the objects, each with what is put on it when it is written, in an order
/// that does not depend on that of the chart.
fn canonical(objects: &[Object], namespace: &str) -> Vec<(Key, Value)> {
    let mut canonical: Vec<(Key, Value)> = objects
        .iter()
        .map(|object| {
            let key = object.key(namespace);
            let mut value = object.value.clone();
            if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("namespace");
            }
            (key, value)
        })
        .collect();
    canonical.sort_by(|a, b| a.0.cmp(&b.0));
    canonical
}

/// Reports whether both are the same objects with the same fields, however they are written.
pub(super) fn is_none(before: &[Object], after: &[Object], namespace: &str) -> bool {
    canonical(before, namespace) == canonical(after, namespace)
}

/// What changes by itself with every write of an object.
const BOOKKEEPING: [&str; 5] = ["creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"];

/// Returns an object without what changes by itself with every write.
pub(super) fn without_bookkeeping(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !BOOKKEEPING.contains(&field.as_str()));
    }
    object
}

/// One step from a value to one inside of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A field of an object.
    Field(String),
    /// An item of a list.
    Item(usize),
}

/// How many places are looked for.
const PLACES: usize = 100;

/// Returns the first places at which two values differ.
pub(super) fn places(before: &Value, after: &Value) -> Vec<Vec<Step>> {
    let mut places = Vec::new();
    collect(before, after, &mut Vec::new(), &mut places);
    places
}

fn collect(before: &Value, after: &Value, path: &mut Vec<Step>, places: &mut Vec<Vec<Step>>) {
    if places.len() >= PLACES || before == after {
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                let value = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                path.push(Step::Field(key.clone()));
                collect(&value(old), &value(new), path, places);
                path.pop();
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                path.push(Step::Item(index));
                collect(old, new, path, places);
                path.pop();
            }
        }
        (_, _) => places.push(path.clone()),
    }
}

/// Returns a place as a JSON pointer.
pub(super) fn pointer(place: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Field(name) => format!("/{}", escaped(name)),
        Step::Item(index) => format!("/{index}"),
    };
    place.iter().map(step).collect()
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Returns the path of the first value that differs.
fn path(before: &Value, after: &Value) -> Option<String> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
            keys.sort();
            keys.dedup();
            keys.into_iter().find_map(|key| {
                let inner = match (before.get(key), after.get(key)) {
                    (Some(before), Some(after)) => path(before, after)?,
                    _ => String::new(),
                };
                Some(format!("/{}{inner}", escaped(key)))
            })
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            let mut pairs = before.iter().zip(after).enumerate();
            pairs.find_map(|(index, (before, after))| Some(format!("/{index}{}", path(before, after)?)))
        }
        (before, after) => (before != after).then(String::new),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, data: impl Into<Value>) -> Object {
        let data = data.into();
        Object {
            path: String::new(),
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            name: name.to_owned(),
            namespace: None,
            value: json!({ "data": data }),
        }
    }

    #[test]
    fn places_are_found_on_all_levels() {
        let before = json!({"a": 1, "l": [{"x": 1}, {"x": 2}], "gone": true, "m": [1]});
        let after = json!({"a": 1, "l": [{"x": 1}, {"x": 3}], "new/er": {"y": 1}, "m": [1, 2]});
        let found: Vec<String> = places(&before, &after).iter().map(|place| pointer(place)).collect();
        assert_eq!(found, ["/gone", "/l/1/x", "/m", "/new~1er"]);
    }

    #[test]
    fn f_a9_the_path_that_changes_is_named_and_its_value_is_not() {
        let old = [object("a", json!({"x": 1, "list": [{"password": "p"}]}))];
        for (new, expected) in [
            (vec![object("a", json!({"x": 1, "list": [{"password": "p"}]}))], None),
            (
                vec![object("a", json!({"x": 1, "list": [{"password": "q"}]}))],
                Some("Secret ns/a differs at /data/list/0/password"),
            ),
            (vec![object("a", json!({"x": 1}))], Some("Secret ns/a differs at /data/list")),
            (vec![object("b", json!({}))], Some("Secret ns/b is new")),
            (vec![], Some("Secret ns/a is gone")),
        ] {
            assert_eq!(first(&old, &new, "ns").as_deref(), expected);
        }
    }
}

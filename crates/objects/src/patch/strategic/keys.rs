//! Items of merged lists whose keys somebody has edited.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::rule;
use crate::go_value::printed;
use crate::types::Shape;

/// What tells two items apart in most lists, whatever their key is.
const NAME: &str = "name";

/// Returns `current` with the keys that items of merged lists had in the states `before`, where somebody has edited them; `None` if
/// nobody has.
///
/// A strategic patch knows an item by its key alone. One with another key is an item of others to it, which stays beside the one
/// that is added again, and an API server refuses two of the same name. So an item that no state knows, nor `wanted`, is taken for
/// one that is gone if it has its name, or if both have none and it stands in its place.
pub fn with_keys(before: &[&Value], wanted: &Value, current: &Value, shape: &Shape) -> Option<Value> {
    let mut restored = current.clone();
    let states = States { before: before.to_vec(), wanted: Some(wanted) };
    restore(&states, &mut restored, Some(shape)).then_some(restored)
}

/// What stands at one place in each state.
struct States<'v> {
    before: Vec<&'v Value>,
    wanted: Option<&'v Value>,
}

impl<'v> States<'v> {
    fn below(&self, inner: impl Fn(&'v Value) -> Option<&'v Value>) -> Self {
        let before = self.before.iter().filter_map(|state| inner(state)).collect();
        Self { before, wanted: self.wanted.and_then(&inner) }
    }

    /// Returns the items of the lists that stand here, by their keys.
    fn by_key(&self, key: &str) -> BTreeMap<String, States<'v>> {
        let mut all: BTreeMap<String, States<'v>> = BTreeMap::new();
        let entry = |(value, item): (&'v Value, &'v Value)| (printed(value), item);
        let keyed = |list: &'v Value| items(list).iter().filter_map(|item| Some((item.get(key)?, item)));
        for (value, item) in self.before.iter().flat_map(|list| keyed(list)).map(entry) {
            let states = all.entry(value).or_insert_with(|| States { before: Vec::new(), wanted: None });
            states.before.push(item);
        }
        for (value, item) in self.wanted.into_iter().flat_map(keyed).map(entry) {
            all.entry(value).or_insert_with(|| States { before: Vec::new(), wanted: None }).wanted =
                Some(item);
        }
        all
    }
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn name(item: &Value) -> Option<&str> {
    item.get(NAME).and_then(Value::as_str).filter(|name| !name.is_empty())
}

/// Restores the keys of the items inside of an object, and returns whether there were any.
fn restore(states: &States<'_>, current: &mut Value, shape: Option<&Shape>) -> bool {
    let Value::Object(fields) = current else { return false };
    let mut is_restored = false;
    for (field, value) in fields {
        let below = states.below(|state| state.get(field));
        if below.before.is_empty() {
            continue;
        }
        let Ok(rule) = rule(shape, field, value.is_array()) else { continue };
        is_restored |= match value {
            Value::Object(_) if !rule.patch.replace => restore(&below, value, rule.shape),
            Value::Array(items) if !rule.key().is_empty() => {
                restore_items(&below, items, rule.shape, rule.key())
            }
            _ => false,
        };
    }
    is_restored
}

fn restore_items(states: &States<'_>, current: &mut [Value], shape: Option<&Shape>, key: &str) -> bool {
    let known = states.by_key(key);
    let mut is_restored = false;
    let mut there: BTreeSet<String> = current.iter().filter_map(|item| item.get(key)).map(printed).collect();
    // Whoever edits a name has made another item.
    let lists = states.before.iter().filter(|_| key != NAME);
    for (index, gone) in lists.flat_map(|list| items(list).iter().enumerate()) {
        let Some(value) = gone.get(key).filter(|value| !there.contains(&printed(value))) else { continue };
        let is_it = |item: &Value| {
            name(item) == name(gone) && item.get(key).is_some_and(|key| !known.contains_key(&printed(key)))
        };
        let place = match current.get(index) {
            Some(item) if is_it(item) => Some(index),
            Some(_) | None if name(gone).is_some() => current.iter().position(is_it),
            Some(_) | None => None,
        };
        let item = place.and_then(|place| current.get_mut(place)).and_then(Value::as_object_mut);
        if let Some(item) = item {
            item.insert(key.to_owned(), value.clone());
            there.insert(printed(value));
            is_restored = true;
        }
    }
    for item in current {
        let states = item.get(key).and_then(|value| known.get(&printed(value)));
        is_restored |= states.is_some_and(|states| restore(states, item, shape));
    }
    is_restored
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::types;

    fn restored(before: &[Value], wanted: &Value, current: &Value) -> Option<Value> {
        let service = types::name_of_kind("", "v1", "Service").map(Shape::Named).unwrap();
        let state = |ports: &Value| json!({"spec": {"ports": ports}});
        let before: Vec<Value> = before.iter().map(state).collect();
        let before: Vec<&Value> = before.iter().collect();
        let found = with_keys(&before, &state(wanted), &state(current), &service);
        found.map(|found| found.pointer("/spec/ports").unwrap().clone())
    }

    #[test]
    fn an_item_whose_key_was_edited_is_the_one_of_its_name() {
        let [http, edited] = [80, 98].map(|port| json!({"name": "http", "port": port}));
        let kept = json!({"name": "http", "port": 98, "nodePort": 31000, "protocol": "TCP"});
        let [web, other] = [443, 7070].map(|port| json!({"name": "web", "port": port}));
        let unnamed = |port: u32| json!({"port": port, "targetPort": 8080});
        for (before, wanted, current, expected) in [
            (vec![json!([http])], json!([http]), json!([http]), None),
            (vec![json!([http])], json!([http]), json!([edited]), Some(json!([http]))),
            // What else was written into it stays for the patch.
            (
                vec![json!([http])],
                json!([http]),
                json!([kept]),
                Some(json!([{"name": "http", "port": 80, "nodePort": 31000, "protocol": "TCP"}])),
            ),
            (vec![json!([http, web])], json!([http, web]), json!([web, edited]), Some(json!([web, http]))),
            (
                vec![json!([unnamed(80)])],
                json!([unnamed(80)]),
                json!([unnamed(98)]),
                Some(json!([unnamed(80)])),
            ),
            (vec![json!([http])], json!([http]), json!([unnamed(98)]), None),
            (vec![json!([unnamed(80)])], json!([unnamed(80)]), json!([http, unnamed(98)]), None),
            // An item that others have added, and one that somebody has deleted.
            (vec![json!([http])], json!([http, web]), json!([http, other]), None),
            (vec![json!([http, web])], json!([http, web]), json!([http]), None),
            // The chart changes the key as somebody did, or in another way.
            (vec![json!([http])], json!([edited]), json!([edited]), None),
            (
                vec![json!([http])],
                json!([{"name": "http", "port": 81}]),
                json!([edited]),
                Some(json!([http])),
            ),
            // Of two revisions either may be in the cluster.
            (vec![json!([http]), json!([edited])], json!([http]), json!([edited]), None),
            (vec![json!([{"name": "http"}]), json!(5)], json!([http]), json!([edited]), None),
        ] {
            assert_eq!(restored(&before, &wanted, &current), expected, "{before:?} {wanted} {current}");
        }
    }

    #[test]
    fn lists_inside_of_items_are_looked_at_and_items_with_another_name_are_others() {
        let pod = types::name_of_kind("", "v1", "Pod").map(Shape::Named).unwrap();
        let state = |name: &str, port: u32, mount: &str| {
            json!({"spec": {"containers": [{
                "name": name, "ports": [{"containerPort": port, "name": "http"}],
                "volumeMounts": [{"name": "v", "mountPath": mount}, {"name": "v", "mountPath": "/kept"}],
            }]}})
        };
        let before = state("c", 80, "/a");
        for (current, expected) in [
            (state("c", 98, "/a"), Some(before.clone())),
            (state("c", 98, "/b"), Some(before.clone())),
            (state("d", 98, "/b"), None),
            (json!({"spec": {"containers": "none"}}), None),
            (json!({"spec": null}), None),
        ] {
            assert_eq!(with_keys(&[&before], &before, &current, &pod), expected, "{current}");
        }
    }
}

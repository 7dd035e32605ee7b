//! Whether a living object has what it should have, and what it has beside that.

use serde_json::{Map, Value, json};

use crate::hook::reconcile::FieldPath;

/// Returns whether a living object has everything that it should have. What it has besides is of others.
pub(super) fn includes(living: &Value, wanted: &Value) -> bool {
    match (living, wanted) {
        (Value::Object(living), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| match living.get(key) {
                Some(living) => includes(living, wanted),
                None => is_nothing(wanted),
            })
        }
        (Value::Array(living), Value::Array(wanted)) => {
            match ids(wanted) {
                // The order is no matter, and there may be more of them.
                Some(ids) => wanted.iter().zip(ids).all(|(wanted, name)| {
                    living.iter().any(|living| id(living) == Some(name) && includes(living, wanted))
                }),
                None => {
                    living.len() == wanted.len()
                        && living.iter().zip(wanted).all(|(living, wanted)| includes(living, wanted))
                }
            }
        }
        (living, wanted) => living == wanted,
    }
}

/// Returns the merge patches that take from a living object what it has in these fields beside what it should have there.
pub(super) fn surplus<'f>(
    living: &Value,
    wanted: &Value,
    exact: &'f [FieldPath],
) -> Vec<(&'f FieldPath, Value)> {
    let one = |field: &'f FieldPath| {
        let change = without(field.value(living)?, field.value(wanted).unwrap_or(&Value::Null))?;
        Some((field, field.parts().rev().fold(change, |change, part| json!({ part: change }))))
    };
    exact.iter().filter_map(one).collect()
}

/// Returns the merge patch that takes from a value what should not be in it; `None` if there is nothing. What should be there and
/// is not is no matter here.
fn without(living: &Value, wanted: &Value) -> Option<Value> {
    match (living, wanted) {
        (living, Value::Null) => (!is_nothing(living)).then_some(Value::Null),
        (Value::Object(living), Value::Object(wanted)) => {
            let change = |(key, living): (&String, &Value)| {
                let change = without(living, wanted.get(key).unwrap_or(&Value::Null))?;
                Some((key.clone(), change))
            };
            let changes: Map<String, Value> = living.iter().filter_map(change).collect();
            (!changes.is_empty()).then(|| changes.into())
        }
        (Value::Array(living), Value::Array(items)) => {
            // A merge patch knows lists as a whole only.
            let pairs = pairs(living, items)?;
            let is_more = living.len() > items.len()
                || pairs.into_iter().any(|(living, wanted)| without(living, wanted).is_some());
            is_more.then(|| wanted.clone())
        }
        _ => None,
    }
}

/// Returns each wanted item of a list with the living one in its place; `None` if that of one is missing. Of several living ones
/// that have its name, as the mounts of a volume do, that is the one that has what it should have, and the least beside that.
fn pairs<'v>(living: &'v [Value], wanted: &'v [Value]) -> Option<Vec<(&'v Value, &'v Value)>> {
    let Some(ids) = ids(wanted) else {
        return (living.len() == wanted.len()).then(|| living.iter().zip(wanted).collect());
    };
    let mut left: Vec<&Value> = living.iter().collect();
    let pairs = wanted.iter().zip(ids).map(|(wanted, name)| {
        let mut of_name = left.iter().enumerate().filter(|(_, living)| id(living) == Some(name));
        let first = of_name.next()?;
        let judged =
            |(_, living): &(usize, &&Value)| (!includes(living, wanted), without(living, wanted).is_some());
        let best = match of_name.next() {
            None => first,
            Some(second) => [first, second].into_iter().chain(of_name).min_by_key(judged)?,
        };
        let place = best.0;
        Some((left.remove(place), wanted))
    });
    pairs.collect()
}

/// Returns the names, or identities, of the items of a list; `None` if not all have one.
fn ids(items: &[Value]) -> Option<Vec<&str>> {
    let ids: Option<Vec<&str>> = items.iter().map(id).collect();
    ids.filter(|ids| !ids.is_empty())
}

fn id(item: &Value) -> Option<&str> {
    ["name", "uid"].iter().find_map(|key| item.get(key)?.as_str())
}

/// Returns whether a field that is left out says the same.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patches(living: &Value, wanted: &Value) -> Vec<Value> {
        let exact = [FieldPath::parse("spec").unwrap()];
        let (living, wanted) = (json!({"spec": living, "status": 1}), json!({"spec": wanted}));
        surplus(&living, &wanted, &exact).into_iter().map(|(_, change)| change).collect()
    }

    #[test]
    fn what_a_field_has_beside_what_is_said_is_taken_away() {
        let spec = |change: Value| vec![json!({"spec": change})];
        for (living, wanted, expected) in [
            (json!({"a": 1, "b": 2}), json!({"a": 1}), spec(json!({"b": null}))),
            // What is to be changed is no matter here.
            (json!({"a": 2}), json!({"a": 1, "c": 1}), Vec::new()),
            (
                json!({"p": {"aws": 1, "gcp": {"x": 1}}}),
                json!({"p": {"aws": 1}}),
                spec(json!({"p": {"gcp": null}})),
            ),
            // What says nothing is no more.
            (json!({"a": 1, "b": {}, "c": [], "d": null}), json!({"a": 1}), Vec::new()),
            (json!({"a": 1}), json!({"a": null}), spec(json!({"a": null}))),
            // Items of a list that have names may have another order.
            (
                json!({"l": [{"name": "b"}, {"name": "a"}]}),
                json!({"l": [{"name": "a"}, {"name": "b"}]}),
                Vec::new(),
            ),
            (
                json!({"l": [{"name": "b"}, {"name": "a"}]}),
                json!({"l": [{"name": "a"}]}),
                spec(json!({"l": [{"name": "a"}]})),
            ),
            (
                json!({"l": [{"name": "a", "x": 1}]}),
                json!({"l": [{"name": "a"}]}),
                spec(json!({"l": [{"name": "a"}]})),
            ),
            // Of several with one name each has its own place.
            (
                json!({"l": [{"name": "v", "at": "/b"}, {"name": "v", "at": "/a"}]}),
                json!({"l": [{"name": "v", "at": "/a"}, {"name": "v", "at": "/b"}]}),
                Vec::new(),
            ),
            (
                json!({"l": [{"name": "v", "at": "/b", "ro": true}, {"name": "v", "at": "/a"}]}),
                json!({"l": [{"name": "v", "at": "/a"}, {"name": "v", "at": "/b"}]}),
                spec(json!({"l": [{"name": "v", "at": "/a"}, {"name": "v", "at": "/b"}]})),
            ),
            (
                json!({"l": [{"name": "v", "at": "/a", "ro": true}, {"name": "v", "at": "/a"}]}),
                json!({"l": [{"name": "v", "at": "/a"}, {"name": "v", "at": "/a", "ro": true}]}),
                Vec::new(),
            ),
            // One of them that is missing is made, and nothing is taken away before.
            (
                json!({"l": [{"name": "v", "at": "/b", "ro": true}]}),
                json!({"l": [{"name": "v", "at": "/a"}, {"name": "v", "at": "/b"}]}),
                Vec::new(),
            ),
            // Those that have none are applied as a whole.
            (json!({"l": [1, 2]}), json!({"l": [1]}), Vec::new()),
            (json!({"l": [{"x": 1, "y": 1}]}), json!({"l": [{"x": 1}]}), spec(json!({"l": [{"x": 1}]}))),
        ] {
            assert_eq!(patches(&living, &wanted), expected, "{living} {wanted}");
        }
    }

    #[test]
    fn a_field_of_which_nothing_is_said_is_to_be_nothing() {
        let exact = ["spec.a.b", "spec.c"].map(|path| FieldPath::parse(path).unwrap());
        let living = json!({"spec": {"a": {"b": 1, "c": 1}, "d": 1}});
        let changes: Vec<Value> =
            surplus(&living, &json!({}), &exact).into_iter().map(|(_, change)| change).collect();
        assert_eq!(changes, [json!({"spec": {"a": {"b": null}}})]);
    }
}

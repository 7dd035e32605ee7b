//! Making strategic merge patches: of two states, and of the three that `kubectl apply` and Helm know.

use serde_json::{Value, json};

use super::list::{deduplicated, element_kind};
use super::merge::{Target, merge_object};
use super::order::sorted;
use super::{
    DELETE_LIST, DIRECTIVE, ElementKind, Object, RETAIN_KEYS, SET_ORDER, StrategicError, merge_value, rule,
    same_type,
};
use crate::go_value::printed;
use crate::types::Shape;

#[derive(Clone, Copy)]
struct Options {
    ignore_deletions: bool,
    ignore_additions: bool,
    retain_keys: bool,
}

const ALL: Options = Options { ignore_deletions: false, ignore_additions: false, retain_keys: false };

/// Returns the patch that makes `modified` of `original`.
pub fn two_way(original: &Value, modified: &Value, shape: &Shape) -> Result<Value, StrategicError> {
    let (original, modified) = (object(original)?, object(modified)?);
    diff_objects(original, modified, Some(shape), ALL).map(Value::Object)
}

/// Returns the patch that brings `current` to `modified`, and takes away only what `original` had.
///
/// What others have added to `current` stays, what they have changed is changed back.
pub fn three_way(
    original: &Value,
    modified: &Value,
    current: &Value,
    shape: &Shape,
) -> Result<Value, StrategicError> {
    let (original, modified) = (object(original)?, object(modified)?);
    let changes = Options { ignore_deletions: true, ..ALL };
    let changes = diff_objects(object(current)?, modified, Some(shape), changes)?;
    let deletions = Options { ignore_additions: true, ..ALL };
    let deletions = diff_objects(original, modified, Some(shape), deletions)?;
    merge_object(deletions, changes, Some(shape), Target::Patch).map(Value::Object)
}

fn object(value: &Value) -> Result<&Object, StrategicError> {
    static EMPTY: std::sync::LazyLock<Object> = std::sync::LazyLock::new(Object::new);
    match value {
        Value::Null => Ok(&EMPTY),
        Value::Object(map) => Ok(map),
        _ => Err(StrategicError::Other("invalid JSON document".to_owned())),
    }
}

fn diff_objects(
    original: &Object,
    modified: &Object,
    shape: Option<&Shape>,
    options: Options,
) -> Result<Object, StrategicError> {
    let mut patch = Object::new();
    for (key, new) in modified {
        match original.get(key) {
            None if options.ignore_additions => {}
            None => {
                patch.insert(key.clone(), new.clone());
            }
            Some(old) if key == DIRECTIVE || !same_type(old, new) => {
                if !options.ignore_additions && old != new {
                    patch.insert(key.clone(), new.clone());
                }
            }
            Some(old) => diff_field(&mut patch, key, old, new, shape, options)?,
        }
    }
    if !options.ignore_deletions {
        for key in original.keys().filter(|key| !modified.contains_key(*key)) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    if options.retain_keys {
        let kept = modified.iter().filter(|(_, value)| !value.is_null());
        let mut kept: Vec<Value> = kept.map(|(key, _)| Value::from(key.as_str())).collect();
        kept.sort_by_key(printed);
        let lost = original.iter().any(|(key, v)| !v.is_null() && !modified.contains_key(key));
        if !kept.is_empty() && (!patch.is_empty() || lost) {
            patch.insert(RETAIN_KEYS.to_owned(), Value::Array(kept));
        }
    }
    Ok(patch)
}

fn diff_field(
    patch: &mut Object,
    key: &str,
    old: &Value,
    new: &Value,
    shape: Option<&Shape>,
    options: Options,
) -> Result<(), StrategicError> {
    let found = match rule(shape, key, old.is_array()) {
        Err(_) if old == new => return Ok(()),
        found => found,
    };
    match (old, new) {
        (Value::Object(from), Value::Object(to)) => {
            let rule = found?;
            if rule.patch.replace {
                if !options.ignore_additions {
                    patch.insert(key.to_owned(), new.clone());
                }
                return Ok(());
            }
            let options = Options { retain_keys: rule.patch.retain_keys, ..options };
            let inner = diff_objects(from, to, rule.shape, options)?;
            if !inner.is_empty() {
                patch.insert(key.to_owned(), Value::Object(inner));
            }
        }
        (Value::Array(from), Value::Array(to)) => {
            let rule = found?;
            if rule.patch.merge_key.is_none() {
                replace_if_changed(patch, key, old, new, options);
                return Ok(());
            }
            let options = Options { retain_keys: rule.patch.retain_keys, ..options };
            let lists = diff_lists(from, to, rule.shape, rule.key(), options)?;
            let mut put = |key: String, list: Vec<Value>| {
                if !list.is_empty() {
                    patch.insert(key, Value::Array(list));
                }
            };
            put(key.to_owned(), lists.changes);
            put(format!("{DELETE_LIST}/{key}"), lists.deletions);
            put(format!("{SET_ORDER}/{key}"), lists.order);
        }
        _ => replace_if_changed(patch, key, old, new, options),
    }
    Ok(())
}

fn replace_if_changed(patch: &mut Object, key: &str, old: &Value, new: &Value, options: Options) {
    if !options.ignore_additions && old != new {
        patch.insert(key.to_owned(), new.clone());
    }
}

/// What a difference of lists leaves in the patch.
#[derive(Default)]
struct Lists {
    changes: Vec<Value>,
    deletions: Vec<Value>,
    order: Vec<Value>,
}

fn diff_lists(
    from: &[Value],
    to: &[Value],
    shape: Option<&Shape>,
    key: &str,
    options: Options,
) -> Result<Lists, StrategicError> {
    if from.is_empty() {
        let changes = if options.ignore_additions { Vec::new() } else { to.to_vec() };
        return Ok(Lists { changes, ..Lists::default() });
    }
    match element_kind(&[from, to])? {
        ElementKind::Objects => diff_lists_of_objects(from, to, shape, key, options),
        ElementKind::Scalars => {
            let mut lists = diff_lists_of_scalars(from, to, options);
            lists.changes = sorted(lists.changes, to, key, ElementKind::Scalars)?;
            let deleted = !options.ignore_deletions && !lists.deletions.is_empty();
            if deleted || (!options.ignore_additions && from != to) {
                lists.order = to.to_vec();
            }
            Ok(lists)
        }
    }
}

fn diff_lists_of_scalars(from: &[Value], to: &[Value], options: Options) -> Lists {
    let by_text = |items: &[Value]| {
        let mut items = items.to_vec();
        items.sort_by_key(printed);
        items
    };
    let mut lists = Lists::default();
    let (mut old, mut new) = (by_text(from).into_iter().peekable(), by_text(to).into_iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => break,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(_), None) => std::cmp::Ordering::Less,
            (Some(old), Some(new)) => printed(old).cmp(&printed(new)),
        };
        if order.is_le() {
            let item = old.next();
            if order.is_lt() && !options.ignore_deletions {
                lists.deletions.extend(item);
            }
        }
        if order.is_ge() {
            let item = new.next();
            if order.is_gt() && !options.ignore_additions {
                lists.changes.extend(item);
            }
        }
    }
    lists.deletions = deduplicated(lists.deletions);
    lists
}

fn diff_lists_of_objects(
    from: &[Value],
    to: &[Value],
    shape: Option<&Shape>,
    key: &str,
    options: Options,
) -> Result<Lists, StrategicError> {
    let (mut edits, mut deletions) = (Vec::new(), Vec::new());
    let (old, new) = (by_key(from, key)?, by_key(to, key)?);
    let (mut old, mut new) = (old.into_iter().peekable(), new.into_iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => break,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(_), None) => std::cmp::Ordering::Less,
            (Some((old, _)), Some((new, _))) => old.cmp(new),
        };
        let before = if order.is_le() { old.next() } else { None };
        let after = if order.is_ge() { new.next() } else { None };
        match (before, after) {
            (Some((_, before)), Some((_, after))) => {
                let mut patch = diff_objects(object(before)?, object(after)?, shape, options)?;
                if !patch.is_empty() {
                    patch.insert(key.to_owned(), merge_value(after, key)?.clone());
                    edits.push(Value::Object(patch));
                }
            }
            (None, Some((_, after))) if !options.ignore_additions => edits.push(after.clone()),
            (Some((_, before)), None) if !options.ignore_deletions => {
                deletions.push(json!({DIRECTIVE: "delete", key: merge_value(before, key)?}));
            }
            (_, _) => {}
        }
    }
    let mut changes = sorted(edits, to, key, ElementKind::Objects)?;
    changes.extend(deletions);
    let same_order = from.len() == to.len() && from.iter().zip(to).all(|(a, b)| a.get(key) == b.get(key));
    let mut order = Vec::new();
    let differs = !changes.is_empty();
    if (!options.ignore_additions && (differs || !same_order)) || (!options.ignore_deletions && differs) {
        for item in to {
            order.push(json!({key: merge_value(item, key)?}));
        }
    }
    Ok(Lists { changes, deletions: Vec::new(), order })
}

/// Returns the items with the text of their key, sorted by it.
fn by_key<'a>(items: &'a [Value], key: &str) -> Result<Vec<(String, &'a Value)>, StrategicError> {
    let mut keyed = items
        .iter()
        .map(|item| Ok((printed(merge_value(item, key)?), item)))
        .collect::<Result<Vec<_>, StrategicError>>()?;
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(keyed)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::needless_pass_by_value, reason = "tests read better so")]
    use super::super::apply;
    use super::*;
    use crate::types;

    fn deployment() -> Shape {
        Shape::Named(types::name_of_kind("apps", "v1", "Deployment").unwrap())
    }

    fn pod(spec: Value) -> Value {
        json!({"spec": {"template": {"spec": spec}}})
    }

    #[test]
    fn containers_are_merged_by_name() {
        let old = pod(json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}));
        let patch = pod(json!({"containers": [{"name": "b", "image": "2"}, {"name": "c", "image": "3"}]}));
        let new = apply(old, patch, &deployment()).unwrap();
        let expected =
            json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c", "image": "3"}]);
        assert_eq!(new["spec"]["template"]["spec"]["containers"], expected);
    }

    #[test]
    fn directives_delete_replace_and_order() {
        let containers = json!([{"name": "a", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]);
        let old = pod(json!({"containers": containers, "nodeSelector": {"x": "1"}}));
        let patch = pod(json!({
            "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
            "containers": [{"name": "c"}, {"name": "b", "$patch": "delete"}, {"name": "a", "env": [{"$patch": "replace"}, {"name": "Y"}]}],
            "nodeSelector": {"$patch": "replace", "y": "2"},
        }));
        let error = apply(old.clone(), patch, &deployment());
        let new = error.unwrap();
        let expected = pod(json!({
            "containers": [{"name": "c"}, {"name": "a", "env": [{"name": "Y"}]}],
            "nodeSelector": {"y": "2"},
        }));
        assert_eq!(new, expected);
        let patch = pod(json!({"containers": [{"name": "b", "$patch": "explode"}]}));
        let error = apply(old, patch, &deployment()).unwrap_err();
        assert_eq!(error.to_string(), "unknown patch type: explode in map: map[$patch:explode name:b]");
    }

    #[test]
    fn retained_keys_are_all_that_stays() {
        let old = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
        let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
        let new = apply(old.clone(), patch.clone(), &deployment()).unwrap();
        assert_eq!(new, json!({"spec": {"strategy": {"type": "Recreate"}}}));
        assert_eq!(
            two_way(&old, &new, &deployment()).unwrap(),
            json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": null}}})
        );
    }

    #[test]
    fn lists_of_scalars_are_sets() {
        let shape = deployment();
        let old = json!({"metadata": {"finalizers": ["a", "b"]}});
        let new = json!({"metadata": {"finalizers": ["c", "b"]}});
        let patch = two_way(&old, &new, &shape).unwrap();
        let expected = json!({"metadata": {
            "$deleteFromPrimitiveList/finalizers": ["a"],
            "$setElementOrder/finalizers": ["c", "b"],
            "finalizers": ["c"],
        }});
        assert_eq!(patch, expected);
        assert_eq!(apply(old, patch, &shape).unwrap(), new);
    }

    #[test]
    fn three_states_make_a_patch_that_leaves_others_fields_alone() {
        let original = pod(json!({"containers": [{"name": "a", "image": "1"}, {"name": "old"}]}));
        let modified = pod(json!({"containers": [{"name": "a", "image": "2"}]}));
        let current =
            pod(json!({"containers": [{"name": "a", "image": "1"}, {"name": "old"}, {"name": "injected"}]}));
        let patch = three_way(&original, &modified, &current, &deployment()).unwrap();
        let expected = pod(json!({
            "$setElementOrder/containers": [{"name": "a"}],
            "containers": [{"name": "a", "image": "2"}, {"name": "old", "$patch": "delete"}],
        }));
        assert_eq!(patch, expected);
        let new = apply(current, patch, &deployment()).unwrap();
        assert_eq!(new, pod(json!({"containers": [{"name": "a", "image": "2"}, {"name": "injected"}]})));
    }

    #[test]
    fn nulls_in_new_objects_vanish() {
        let new =
            apply(json!({}), json!({"spec": {"replicas": null, "paused": true}}), &deployment()).unwrap();
        assert_eq!(new, json!({"spec": {"paused": true}}));
    }

    #[test]
    fn unknown_fields_of_known_objects_are_replaced_but_not_merged() {
        let patch = json!({"spec": {"bogus": {"a": 1}}});
        let once = apply(json!({"spec": {}}), patch.clone(), &deployment()).unwrap();
        let twice = apply(once, patch, &deployment()).unwrap_err();
        assert_eq!(
            twice.to_string(),
            "unable to find api field in struct DeploymentSpec for the json field \"bogus\""
        );
    }
}

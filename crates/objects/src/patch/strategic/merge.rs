//! Applying a strategic merge patch.

use serde_json::Value;

use super::list::{element_kind, merge_list, partition};
use super::order::{normalise_order, validate_order};
use super::{
    DELETE_LIST, DIRECTIVE, Object, RETAIN_KEYS, SET_ORDER, StrategicError, as_list, rule, same_type,
};
use crate::go_value::printed;
use crate::types::Shape;

/// What a patch is merged into.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// An object: directives are carried out.
    Object,
    /// Another patch: directives are kept.
    Patch,
}

impl Target {
    pub(super) fn is_object(self) -> bool {
        matches!(self, Target::Object)
    }
}

/// Returns `document`, an object of `shape`, after `patch`.
pub fn apply(document: Value, patch: Value, shape: &Shape) -> Result<Value, StrategicError> {
    let (Value::Object(document), Value::Object(patch)) = (document, patch) else {
        return Err(StrategicError::Other("invalid JSON document".to_owned()));
    };
    merge_object(document, patch, Some(shape), Target::Object).map(Value::Object)
}

pub(super) fn merge_object(
    mut original: Object,
    mut patch: Object,
    shape: Option<&Shape>,
    target: Target,
) -> Result<Object, StrategicError> {
    if let Some(directive) = patch.remove(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Object::new()),
            _ => Err(unknown_directive(&directive, patch)),
        };
    }
    retain_keys(&mut original, &mut patch, target)?;
    let orders: Vec<String> = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for key in orders {
        merge_ordered(&mut original, &mut patch, &key, shape, target)?;
    }
    for (key, change) in patch {
        merge_field(&mut original, key, change, shape, target)?;
    }
    Ok(original)
}

pub(super) fn unknown_directive(directive: &Value, mut map: Object) -> StrategicError {
    map.insert(DIRECTIVE.to_owned(), directive.clone());
    StrategicError::Directive { directive: printed(directive), map: printed(&Value::Object(map)) }
}

fn retain_keys(original: &mut Object, patch: &mut Object, target: Target) -> Result<(), StrategicError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    if !target.is_object() {
        if original.get(RETAIN_KEYS).is_some_and(|known| *known != keys) {
            let text = "the $retainKeys of two patches differ";
            return Err(StrategicError::Other(text.to_owned()));
        }
        original.insert(RETAIN_KEYS.to_owned(), keys);
        return Ok(());
    }
    let Value::Array(keys) = keys else {
        return Err(StrategicError::Format("retainKeys"));
    };
    let kept = |key: &str| keys.iter().any(|k| k.as_str() == Some(key));
    let directive = |key: &str| key.starts_with(DELETE_LIST) || key.starts_with(SET_ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && !directive(key) && !kept(key)) {
        return Err(StrategicError::Format("retainKeys"));
    }
    original.retain(|key, _| kept(key));
    Ok(())
}

fn plain_key<'a>(key: &'a str, prefix: &str, what: &'static str) -> Result<&'a str, StrategicError> {
    key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')).ok_or(StrategicError::Format(what))
}

/// Merges a list whose order the patch gives in `order_key`.
fn merge_ordered(
    original: &mut Object,
    patch: &mut Object,
    order_key: &str,
    shape: Option<&Shape>,
    target: Target,
) -> Result<(), StrategicError> {
    const WHAT: &str = "setElementOrder list";
    let Some(order) = patch.remove(order_key) else {
        return Ok(());
    };
    if !target.is_object() {
        if original.get(order_key).is_some_and(|known| *known != order) {
            return Err(StrategicError::Format(WHAT));
        }
        original.insert(order_key.to_owned(), order.clone());
    }
    let order = as_list(order)?;
    let key = plain_key(order_key, SET_ORDER, WHAT)?;
    let current = original.get(key).cloned().map(as_list).transpose()?;
    let change = patch.get(key).cloned().map(as_list).transpose()?;
    let rule = rule(shape, key, true)?;
    validate_order(change.as_deref().unwrap_or_default(), &order, rule.key())?;
    let kind = element_kind(&[current.as_deref().unwrap_or_default(), change.as_deref().unwrap_or_default()]);
    let server_order = current.clone().unwrap_or_default();
    let merged = match (current, change) {
        (None, None) => return Ok(()),
        (Some(current), None) => current,
        (None, Some(change)) => change.into_iter().filter_map(without_directives).collect(),
        (Some(_), Some(change)) if rule.patch.merge_key.is_none() => change,
        (Some(current), Some(change)) => merge_list(current, change, rule.shape, rule.key(), target, false)?,
    };
    let (ours, theirs) = partition(merged, &order, rule.key())?;
    let both = normalise_order(ours, theirs, &order, &server_order, rule.key(), kind?)?;
    original.insert(key.to_owned(), Value::Array(both));
    patch.remove(key);
    Ok(())
}

fn merge_field(
    original: &mut Object,
    key: String,
    change: Value,
    shape: Option<&Shape>,
    target: Target,
) -> Result<(), StrategicError> {
    let deletes = key.starts_with(DELETE_LIST);
    if deletes && !target.is_object() {
        original.insert(key, change);
        return Ok(());
    }
    let key = if deletes { plain_key(&key, DELETE_LIST, "primitive list")?.to_owned() } else { key };
    if change.is_null() {
        original.remove(&key);
        if target.is_object() {
            return Ok(());
        }
    }
    let same = original.get(&key).map(|current| same_type(current, &change));
    if same != Some(true) {
        if !deletes {
            insert_change(original, key, change, target);
        }
        return Ok(());
    }
    let current = original.remove(&key).unwrap_or_default();
    let merged = match (current, change) {
        (Value::Object(current), Value::Object(change)) => {
            let rule = rule(shape, &key, false)?;
            if rule.patch.replace {
                Value::Object(change)
            } else {
                Value::Object(merge_object(current, change, rule.shape, target)?)
            }
        }
        (Value::Array(current), Value::Array(change)) => {
            let rule = rule(shape, &key, true)?;
            if rule.patch.merge_key.is_some() || deletes {
                Value::Array(merge_list(current, change, rule.shape, rule.key(), target, deletes)?)
            } else {
                Value::Array(change)
            }
        }
        (_, change) => change,
    };
    original.insert(key, merged);
    Ok(())
}

/// Inserts a value that does not merge with what is there.
fn insert_change(original: &mut Object, key: String, mut change: Value, target: Target) {
    if target.is_object() {
        drop_nulls(&mut change);
    }
    match without_directives(change) {
        Some(value) => original.insert(key, value),
        None => original.remove(&key),
    };
}

/// Nulls inside of new objects delete nothing: they vanish. Lists are left alone, the objects in them are not.
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

/// Returns the value without the objects that are only an order to the merge.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let kept = map.into_iter().filter_map(|(key, item)| Some((key, without_directives(item)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}

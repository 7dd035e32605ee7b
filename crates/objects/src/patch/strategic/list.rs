//! Merging the lists of a strategic merge patch.

use serde_json::Value;

use super::merge::{Target, merge_object, unknown_directive};
use super::order::normalise_order;
use super::{DIRECTIVE, ElementKind, StrategicError, as_object, merge_value, same_type};
use crate::go_value::printed;
use crate::types::Shape;

/// Returns what the items of all lists are; they must be of one type.
pub(super) fn element_kind(lists: &[&[Value]]) -> Result<ElementKind, StrategicError> {
    let mut first: Option<&Value> = None;
    for item in lists.iter().flat_map(|list| list.iter()) {
        match first {
            None if item.is_array() => return Err(StrategicError::ListOfLists),
            None => first = Some(item),
            Some(known) if same_type(known, item) => {}
            Some(_) => {
                let all = lists.iter().map(|list| printed(&Value::Array(list.to_vec())));
                let all: Vec<String> = all.collect();
                let text = format!("list element types are not identical: [{}]", all.join(" "));
                return Err(StrategicError::Other(text));
            }
        }
    }
    match first {
        Some(Value::Object(_)) => Ok(ElementKind::Objects),
        Some(_) => Ok(ElementKind::Scalars),
        None => Err(StrategicError::Other("no elements in any of the given slices".to_owned())),
    }
}

/// Returns `original` after `patch`. With `deletes` the items of the patch are taken away.
pub(super) fn merge_list(
    original: Vec<Value>,
    patch: Vec<Value>,
    shape: Option<&Shape>,
    key: &str,
    target: Target,
    deletes: bool,
) -> Result<Vec<Value>, StrategicError> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let kind = element_kind(&[&original, &patch])?;
    let (merged, server_order, patch_order) = match kind {
        ElementKind::Scalars => {
            if target.is_object() && deletes {
                return Ok(original.into_iter().filter(|item| !patch.contains(item)).collect());
            }
            let both = original.iter().chain(&patch).cloned().collect();
            (deduplicated(both), original, patch)
        }
        ElementKind::Objects => {
            if key.is_empty() {
                let name = shape.and_then(Shape::object).map_or("", |object| &*object.name);
                let text = format!("cannot merge lists without merge key for {name}");
                return Err(StrategicError::Other(text));
            }
            let (original, patch) = obey_directives(original, patch, key)?;
            let merged = merge_items(original.clone(), patch.clone(), key, shape, target)?;
            (merged, original, patch)
        }
    };
    let (ours, theirs) = partition(merged, &patch_order, key)?;
    normalise_order(ours, theirs, &patch_order, &server_order, key, kind)
}

/// Returns both lists after what `$patch` says in the items of the patch.
fn obey_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), StrategicError> {
    let mut kept = Vec::with_capacity(patch.len());
    let mut replace = false;
    for item in patch {
        let directive = as_object(&item)?.get(DIRECTIVE).cloned();
        match directive.as_ref().map(Value::as_str) {
            None => kept.push(item),
            Some(Some("delete")) => {
                let value = merge_value(&item, key)?;
                for other in &original {
                    as_object(other)?;
                }
                original.retain(|other| other.get(key) != Some(value));
            }
            Some(Some("replace")) => replace = true,
            Some(Some("merge")) => {
                let text = "merging lists cannot yet be specified in the patch";
                return Err(StrategicError::Other(text.to_owned()));
            }
            Some(_) => {
                let map = as_object(&item)?.clone();
                return Err(unknown_directive(&directive.unwrap_or_default(), map));
            }
        }
    }
    if replace { Ok((kept, Vec::new())) } else { Ok((original, kept)) }
}

fn merge_items(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
    shape: Option<&Shape>,
    target: Target,
) -> Result<Vec<Value>, StrategicError> {
    for item in patch {
        let value = merge_value(&item, key)?.clone();
        let found = original.iter_mut().find(|other| other.get(key) == Some(&value));
        match (found, item) {
            (Some(slot), Value::Object(change)) => {
                let current = as_object(slot)?.clone();
                *slot = Value::Object(merge_object(current, change, shape, target)?);
            }
            (_, item) => original.push(item),
        }
    }
    Ok(original)
}

/// Splits a list into the items that `by` names and the others.
pub(super) fn partition(
    items: Vec<Value>,
    by: &[Value],
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), StrategicError> {
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for item in items {
        let inside = if key.is_empty() {
            by.contains(&item)
        } else {
            let value = merge_value(&item, key)?;
            by.iter().any(|other| other.get(key) == Some(value))
        };
        if inside { named.push(item) } else { others.push(item) }
    }
    Ok((named, others))
}

/// Returns the items without repetitions. The last item takes the place of a repeated one, as in the reference algorithm.
pub(super) fn deduplicated(mut items: Vec<Value>) -> Vec<Value> {
    let mut i = 0;
    while i < items.len() {
        let mut j = i + 1;
        while j < items.len() {
            if items.get(i) == items.get(j) {
                items.swap_remove(j);
            } else {
                j += 1;
            }
        }
        i += 1;
    }
    items
}

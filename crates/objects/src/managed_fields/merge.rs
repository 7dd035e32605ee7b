//! Laying an applied object over the live one, and taking paths out of an object.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::field_set::FieldSet;
use super::path_element::PathElement;
use super::type_ref::{Atom, TypeRef, entries, items};
use crate::types::ListType;

/// Returns `live` with `applied` laid over it. Nothing is left of an object or list that ends up empty.
pub(super) fn merged(
    live: Option<&Value>,
    applied: Option<&Value>,
    type_ref: TypeRef<'_>,
) -> Result<Option<Value>, String> {
    let Some(shown) = applied.or(live) else {
        return Ok(None);
    };
    let whole = || Ok(Some(shown.clone()));
    match type_ref.atom(shown) {
        Atom::Leaf => whole(),
        Atom::Map => {
            let same_kind = live.is_none_or(|live| matches!(type_ref.atom(live), Atom::Map));
            if !same_kind || (entries(live).is_empty() && entries(applied).is_empty()) {
                return whole();
            }
            let (live, applied) = (entries(live), entries(applied));
            let keys: BTreeSet<&String> = live.keys().chain(applied.keys()).collect();
            let mut out = Map::new();
            for key in keys {
                if let Some(value) = merged(live.get(key), applied.get(key), type_ref.child(key))? {
                    out.insert(key.clone(), value);
                }
            }
            Ok((!out.is_empty()).then_some(Value::Object(out)))
        }
        Atom::List(list_type) => {
            if items(live).is_empty() && items(applied).is_empty() {
                return whole();
            }
            let out = merged_list(items(live), items(applied), list_type, type_ref)?;
            Ok((!out.is_empty()).then_some(Value::Array(out)))
        }
    }
}

/// Items by their elements of a path, in their order. A repeated item of the live list has no value of its own.
struct Indexed<'a> {
    order: Vec<PathElement>,
    values: BTreeMap<PathElement, Option<&'a Value>>,
}

fn index<'a>(
    list: &'a [Value],
    list_type: &ListType,
    type_ref: TypeRef<'_>,
    repeats: bool,
) -> Result<Indexed<'a>, String> {
    let mut indexed = Indexed { order: Vec::new(), values: BTreeMap::new() };
    for (at, item) in list.iter().enumerate() {
        let element = type_ref.path_element(list_type, item).map_err(|why| format!("element {at}: {why}"))?;
        if indexed.values.contains_key(&element) {
            if !repeats {
                return Err(format!("duplicate entries for key {element}"));
            }
            indexed.values.insert(element.clone(), None);
        } else {
            indexed.values.insert(element.clone(), Some(item));
        }
        indexed.order.push(element);
    }
    Ok(indexed)
}

fn merged_list(
    live: &[Value],
    applied: &[Value],
    list_type: &ListType,
    type_ref: TypeRef<'_>,
) -> Result<Vec<Value>, String> {
    let theirs = index(live, list_type, type_ref, true)?;
    let ours = index(applied, list_type, type_ref, false)?;
    let in_both = ours.order.iter().filter(|element| theirs.values.contains_key(*element));
    let mut shared: VecDeque<&PathElement> = in_both.collect();
    let mut next_shared = shared.pop_front();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let mut out = Vec::with_capacity(live.len().max(applied.len()));
    let (mut left, mut right) = (0, 0);
    let both = |element: &PathElement| {
        let theirs = theirs.values.get(element).copied().flatten();
        merged(theirs, ours.values.get(element).copied().flatten(), type_ref.item())
    };
    while left < theirs.order.len() || right < ours.order.len() {
        if let (Some(theirs_next), Some(ours_next)) = (theirs.order.get(left), ours.order.get(right)) {
            if theirs_next == ours_next {
                done.insert(ours_next);
                out.extend(both(ours_next)?);
                left += 1;
                right += 1;
                next_shared = shared.pop_front();
                continue;
            }
            // The applied order moves this item: it comes when its turn is there.
            if ours.values.contains_key(theirs_next) && next_shared.is_some_and(|s| s != theirs_next) {
                left += 1;
                continue;
            }
        }
        if let Some(element) = theirs.order.get(left) {
            if !ours.values.contains_key(element) {
                out.extend(merged(live.get(left), None, type_ref.item())?);
                left += 1;
                continue;
            }
            if done.contains(element) {
                left += 1;
            }
        }
        if let Some(element) = ours.order.get(right) {
            done.insert(element);
            out.extend(both(element)?);
            right += 1;
            if next_shared == Some(element) {
                next_shared = shared.pop_front();
            }
        }
    }
    Ok(out)
}

/// Returns `value` without the paths of `gone`.
pub(super) fn removed(value: &Value, gone: &FieldSet, type_ref: TypeRef<'_>) -> Option<Value> {
    match (type_ref.atom(value), value) {
        (Atom::Map, Value::Object(map)) => {
            let mut out = Map::new();
            for (key, item) in map {
                let step = PathElement::FieldName(key.clone());
                if gone.has(&step) {
                    continue;
                }
                let left = match gone.below(&step) {
                    // What loses all its parts stays as a null until it is completed again.
                    Some(inner) => removed(item, inner, type_ref.child(key)).unwrap_or(Value::Null),
                    None => item.clone(),
                };
                out.insert(key.clone(), left);
            }
            (!out.is_empty()).then_some(Value::Object(out))
        }
        (Atom::List(list_type), Value::Array(list)) => {
            let mut out = Vec::with_capacity(list.len());
            for item in list {
                let Ok(step) = type_ref.path_element(list_type, item) else {
                    out.push(item.clone());
                    continue;
                };
                if gone.has(&step) {
                    continue;
                }
                out.push(match gone.below(&step) {
                    Some(inner) => removed(item, inner, type_ref.item()).unwrap_or(Value::Null),
                    None => item.clone(),
                });
            }
            (!out.is_empty()).then_some(Value::Array(out))
        }
        (Atom::Map | Atom::List(_), _) => None,
        (Atom::Leaf, Value::Array(list)) if list.is_empty() => None,
        (Atom::Leaf, value) => Some(value.clone()),
    }
}

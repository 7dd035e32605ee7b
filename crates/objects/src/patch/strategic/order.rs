//! The order of merged lists: that of the patch for its items, that of the object for the others.

use serde_json::Value;

use super::{DIRECTIVE, ElementKind, SET_ORDER, StrategicError, merge_value};
use crate::go_value::printed;

fn index(list: &[Value], item: &Value, key: &str, kind: ElementKind) -> Option<usize> {
    match kind {
        ElementKind::Objects => list.iter().position(|other| other.get(key) == item.get(key)),
        ElementKind::Scalars => list.iter().position(|other| other == item),
    }
}

fn is_deletion(item: &Value) -> bool {
    item.get(DIRECTIVE).and_then(Value::as_str) == Some("delete")
}

/// Checks that the items of a patch come in the order that `$setElementOrder` of the patch gives.
pub(super) fn validate_order(patch: &[Value], order: &[Value], key: &str) -> Result<(), StrategicError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut announced = order.iter();
    let wanted = patch.iter().filter(|item| item.get(DIRECTIVE).is_none());
    for item in wanted {
        let mut found = false;
        for other in announced.by_ref() {
            let equal = if key.is_empty() {
                item == other
            } else {
                merge_value(item, key)? == merge_value(other, key)?
            };
            if equal {
                found = true;
                break;
            }
        }
        if !found {
            let list = |items: &[Value]| printed(&Value::Array(items.to_vec()));
            let (patch, order) = (list(patch), list(order));
            return Err(StrategicError::Other(format!(
                "The order in patch list:\n{patch}\n doesn't match {SET_ORDER} list:\n{order}\n"
            )));
        }
    }
    Ok(())
}

/// Returns the items of the patch and those of the server in one list.
pub(super) fn normalise_order(
    ours: Vec<Value>,
    theirs: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    key: &str,
    kind: ElementKind,
) -> Result<Vec<Value>, StrategicError> {
    let ours = sorted(ours, patch_order, key, kind)?;
    let theirs = sorted(theirs, server_order, key, kind)?;
    let mut all = Vec::with_capacity(ours.len() + theirs.len());
    let (mut ours, mut theirs) = (ours.into_iter().peekable(), theirs.into_iter().peekable());
    loop {
        let theirs_first = match (theirs.peek(), ours.peek()) {
            (None, None) => return Ok(all),
            (None, Some(_)) => false,
            (Some(_), None) => true,
            (Some(left), Some(right)) => {
                let left = index(server_order, left, key, kind);
                let right = index(server_order, right, key, kind);
                left.zip(right).is_some_and(|(left, right)| left < right)
            }
        };
        all.extend(if theirs_first { theirs.next() } else { ours.next() });
    }
}

/// Returns the items in the order of `order`, deletions last.
pub(super) fn sorted(
    items: Vec<Value>,
    order: &[Value],
    key: &str,
    kind: ElementKind,
) -> Result<Vec<Value>, StrategicError> {
    let mut deletions = Vec::new();
    let mut sorted: Vec<Value> = Vec::with_capacity(items.len());
    if kind == ElementKind::Objects {
        for item in items.iter().chain(order) {
            merge_value(item, key)?;
        }
    }
    for item in items {
        if kind == ElementKind::Objects && is_deletion(&item) {
            deletions.push(item);
            continue;
        }
        // An item that the order does not know goes before what is there.
        let place = index(order, &item, key, kind);
        let mut at = sorted.len();
        while let Some(before) = at.checked_sub(1).and_then(|i| sorted.get(i)) {
            let known = place.zip(index(order, before, key, kind));
            if known.is_some_and(|(place, before)| place >= before) {
                break;
            }
            at -= 1;
        }
        sorted.insert(at, item);
    }
    sorted.extend(deletions);
    Ok(sorted)
}

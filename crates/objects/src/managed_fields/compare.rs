//! What differs between two states of an object.

use std::collections::BTreeMap;

use serde_json::Value;

use super::field_set::{FieldSet, Node};
use super::path_element::PathElement;
use super::type_ref::{Atom, TypeRef, entries, items};
use crate::types::ListType;

/// Paths that went, changed and came.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) removed: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) added: FieldSet,
}

impl Comparison {
    /// Leaves out what is at or below the paths of `ignored`.
    pub(super) fn ignore(self, ignored: &FieldSet) -> Comparison {
        Comparison {
            removed: self.removed.without(ignored),
            modified: self.modified.without(ignored),
            added: self.added.without(ignored),
        }
    }
}

/// Compares two states of one object.
pub(super) fn compare(old: &Value, new: &Value, type_ref: TypeRef<'_>) -> Comparison {
    let found = value(Some(old), Some(new), type_ref);
    Comparison { removed: found.removed.below, modified: found.modified.below, added: found.added.below }
}

/// What was found at one step and below it.
#[derive(Default)]
struct Found {
    removed: Node,
    modified: Node,
    added: Node,
}

impl Found {
    /// Takes over what was found below a step.
    fn put(&mut self, step: PathElement, found: Found) {
        let Found { removed, modified, added } = found;
        let mut parts = [
            (&mut self.removed.below, removed),
            (&mut self.modified.below, modified),
            (&mut self.added.below, added),
        ]
        .into_iter()
        .filter(|(_, node)| !node.is_empty());
        // Nearly always there is one part, which gets the step without a copy.
        let Some((first, node)) = parts.next() else {
            return;
        };
        for (set, node) in parts {
            set.put(step.clone(), node);
        }
        first.put(step, node);
    }
}

fn value(old: Option<&Value>, new: Option<&Value>, type_ref: TypeRef<'_>) -> Found {
    let Some(shown) = new.or(old) else {
        return Found::default();
    };
    let (before, after) = (old.map(|v| type_ref.atom(v)), type_ref.atom(shown));
    let is_leaf = match (&before, &after) {
        (Some(Atom::Map) | None, Atom::Map) => entries(old).is_empty() && entries(new).is_empty(),
        (Some(Atom::List(_)) | None, Atom::List(_)) => items(old).is_empty() && items(new).is_empty(),
        _ => true,
    };
    if is_leaf {
        return leaf(old, new);
    }
    let mut found = match after {
        Atom::Leaf => Found::default(),
        Atom::Map => map(old, new, type_ref),
        Atom::List(list_type) => list(old, new, type_ref, list_type),
    };
    found.added.member |= old.is_none() && new.is_some();
    found.removed.member |= old.is_some() && new.is_none();
    found
}

fn leaf(old: Option<&Value>, new: Option<&Value>) -> Found {
    let mut found = Found::default();
    match (old, new) {
        (None, _) => found.added.member = true,
        (_, None) => found.removed.member = true,
        (Some(old), Some(new)) => found.modified.member = !equal(old, new),
    }
    found
}

fn map(old: Option<&Value>, new: Option<&Value>, type_ref: TypeRef<'_>) -> Found {
    let mut found = Found::default();
    let (old, new) = (entries(old), entries(new));
    for (key, after) in new {
        found.put(PathElement::FieldName(key.clone()), value(old.get(key), Some(after), type_ref.child(key)));
    }
    for (key, before) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
        found.put(PathElement::FieldName(key.clone()), value(Some(before), None, type_ref.child(key)));
    }
    found
}

fn list(old: Option<&Value>, new: Option<&Value>, type_ref: TypeRef<'_>, list_type: &ListType) -> Found {
    let mut both: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for item in items(old) {
        if let Ok(element) = type_ref.path_element(list_type, item) {
            both.entry(element).or_default().0.push(item);
        }
    }
    for item in items(new) {
        if let Ok(element) = type_ref.path_element(list_type, item) {
            both.entry(element).or_default().1.push(item);
        }
    }
    let mut found = Found::default();
    for (element, (old, new)) in both {
        let mut here = match (old.as_slice(), new.as_slice()) {
            ([] | [_], [] | [_]) => value(old.first().copied(), new.first().copied(), type_ref.item()),
            ([one], _) => value(Some(one), None, type_ref.item()),
            (_, [one]) => value(None, Some(one), type_ref.item()),
            (_, _) => Found::default(),
        };
        match (old.as_slice(), new.as_slice()) {
            ([] | [_], [] | [_]) => {}
            ([] | [_], _) => here.added.member = true,
            (_, [] | [_]) => here.removed.member = true,
            (old, new) => here.modified.member = old != new,
        }
        found.put(element, here);
    }
    found
}

/// Returns whether two values are the same; `1` and `1.0` are.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

//! What differs between two states of an object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::element::Element;
use super::place::{Owned, Place, entries, items};
use super::set::FieldSet;

/// Paths that went, changed and came.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) removed: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) added: FieldSet,
}

impl Comparison {
    /// Leaves out what is at or below the paths of `ignored`.
    pub(super) fn ignore(&mut self, ignored: &FieldSet) {
        self.removed = self.removed.without(ignored);
        self.modified = self.modified.without(ignored);
        self.added = self.added.without(ignored);
    }
}

/// Compares two states of one object.
pub(super) fn compare(old: &Value, new: &Value, place: Place<'_>) -> Comparison {
    let mut walk = Walk { path: Vec::new(), found: Comparison::default() };
    walk.value(Some(old), Some(new), place);
    walk.found
}

struct Walk {
    path: Vec<Element>,
    found: Comparison,
}

impl Walk {
    fn value(&mut self, old: Option<&Value>, new: Option<&Value>, place: Place<'_>) {
        let Some(shown) = new.or(old) else {
            return;
        };
        let (before, after) = (old.map(|v| place.owned(v)), place.owned(shown));
        let is_leaf = match (&before, &after) {
            (Some(Owned::Map) | None, Owned::Map) => entries(old).is_empty() && entries(new).is_empty(),
            (Some(Owned::List(_)) | None, Owned::List(_)) => items(old).is_empty() && items(new).is_empty(),
            _ => true,
        };
        if is_leaf {
            return self.leaf(old, new);
        }
        match after {
            Owned::Leaf => {}
            Owned::Map => self.map(old, new, place),
            Owned::List(_) => self.list(old, new, place),
        }
        match (old, new) {
            (None, Some(_)) => self.found.added.insert(&self.path),
            (Some(_), None) => self.found.removed.insert(&self.path),
            (_, _) => {}
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, _) => self.found.added.insert(&self.path),
            (_, None) => self.found.removed.insert(&self.path),
            (Some(old), Some(new)) if !equal(old, new) => self.found.modified.insert(&self.path),
            (Some(_), Some(_)) => {}
        }
    }

    fn map(&mut self, old: Option<&Value>, new: Option<&Value>, place: Place<'_>) {
        let (old, new) = (entries(old), entries(new));
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            self.path.push(Element::Field(key.clone()));
            self.value(old.get(key), new.get(key), place.child(key));
            self.path.pop();
        }
    }

    fn list(&mut self, old: Option<&Value>, new: Option<&Value>, place: Place<'_>) {
        let mut both: BTreeMap<Element, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        let Some(Owned::List(listing)) = new.or(old).map(|value| place.owned(value)) else {
            return;
        };
        for item in items(old) {
            if let Ok(element) = place.element(listing, item) {
                both.entry(element).or_default().0.push(item);
            }
        }
        for item in items(new) {
            if let Ok(element) = place.element(listing, item) {
                both.entry(element).or_default().1.push(item);
            }
        }
        for (element, (old, new)) in both {
            self.path.push(element);
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => {
                    self.value(old.first().copied(), new.first().copied(), place.item());
                }
                ([], _) => self.found.added.insert(&self.path),
                ([one], _) => {
                    self.value(Some(one), None, place.item());
                    self.found.added.insert(&self.path);
                }
                (_, []) => self.found.removed.insert(&self.path),
                (_, [one]) => {
                    self.value(None, Some(one), place.item());
                    self.found.removed.insert(&self.path);
                }
                (old, new) if old != new => self.found.modified.insert(&self.path),
                (_, _) => {}
            }
            self.path.pop();
        }
    }
}

/// Tells whether two values are the same; `1` and `1.0` are.
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

//! Which objects of a watch are about which parent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::hook::snapshot::Key;

/// What an object says of whom it is about.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Reference {
    /// The object with this name.
    Named(Key),
    /// The object with this identity.
    Uid(Arc<str>),
    /// Those that name the object at this place, which is its own.
    Own(Key),
}

/// Which objects of a watch are about whom.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_reference: BTreeMap<Reference, BTreeSet<Key>>,
    by_object: BTreeMap<Key, Vec<Reference>>,
}

impl Index {
    /// Records whom an object is about; nobody if it is gone. Returns all whom it was or is about.
    pub(super) fn set(&mut self, object: &Key, references: Vec<Reference>) -> BTreeSet<Reference> {
        let mut all: BTreeSet<Reference> = references.iter().cloned().collect();
        let old = if references.is_empty() {
            self.by_object.remove(object)
        } else {
            self.by_object.insert(object.clone(), references.clone())
        };
        for reference in old.into_iter().flatten() {
            if let Some(objects) = self.by_reference.get_mut(&reference) {
                objects.remove(object);
                if objects.is_empty() {
                    self.by_reference.remove(&reference);
                }
            }
            all.insert(reference);
        }
        for reference in references {
            self.by_reference.entry(reference).or_default().insert(object.clone());
        }
        all
    }

    /// Returns the objects that are about any of these, sorted.
    pub(super) fn get<'i>(&'i self, references: &[Reference]) -> BTreeSet<&'i Key> {
        references.iter().filter_map(|reference| self.by_reference.get(reference)).flatten().collect()
    }

    /// Returns whom an object is about.
    pub(super) fn of(&self, object: &Key) -> &[Reference] {
        self.by_object.get(object).map(Vec::as_slice).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_changes_its_parent_concerns_both() {
        let (one, other) = (Reference::Uid("1".into()), Reference::Named(Key::new("a", "b")));
        let (x, y) = (Key::new("a", "x"), Key::new("a", "y"));
        let mut index = Index::default();
        assert_eq!(index.set(&x, vec![one.clone()]), [one.clone()].into());
        index.set(&y, vec![one.clone()]);
        assert_eq!(index.set(&x, vec![other.clone()]), [one.clone(), other.clone()].into());
        assert_eq!(index.get(std::slice::from_ref(&one)), [&y].into());
        assert_eq!(index.get(&[one.clone(), other.clone()]), [&x, &y].into());
        assert_eq!(index.set(&x, Vec::new()), [other.clone()].into());
        index.set(&y, Vec::new());
        assert!(index.by_reference.is_empty() && index.by_object.is_empty());
    }
}

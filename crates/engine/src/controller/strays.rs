//! Objects that left the selection of a binding and still have its finalizer: who is deleted is finalized all the same.
//!
//! An object that lives is left alone. Whether there are any is seen by their metadata at the start, and by what leaves the
//! selection. As long as there are some, all objects are watched that may have been selected, and these are kept.

use std::sync::Arc;

use super::watch::Watch;
use crate::hook::selection::Namespaces;
use crate::hook::snapshot::{Item, Key};
use crate::hook::{ReconcileBinding, Selection};

/// The watch of objects that left the selection.
#[derive(Debug)]
pub(super) struct Strays {
    pub(super) watch: Watch,
    /// Whether it shows objects as a whole. Otherwise it only looks whether there are any.
    pub(super) is_whole: bool,
}

/// What is known of objects that left the selection of a controller.
#[derive(Debug, Default)]
pub(super) struct Straying {
    pub(super) strays: Option<Strays>,
    /// Whether one may have left that no watch shows.
    pub(super) has_lost: bool,
    /// Whether there may have to be another watch.
    pub(super) is_due: bool,
}

/// Returns whether an object can leave the selection and keep the finalizer.
pub(super) fn may_stray(binding: &ReconcileBinding) -> bool {
    let Selection { labels, fields, namespaces, .. } = &binding.parent;
    let is_labelled = matches!(namespaces, Namespaces::Labelled(_));
    let has_others = !labels.to_string().is_empty() || !fields.to_string().is_empty();
    binding.finalizer.is_some() && (is_labelled || has_others)
}

impl Straying {
    /// Returns what is known of the objects of a binding that begins: those may have left before.
    pub(super) fn of(binding: &ReconcileBinding) -> Self {
        let is_due = may_stray(binding);
        Self { strays: None, has_lost: is_due, is_due }
    }

    /// Records that an object left which has the finalizer.
    pub(super) fn lose(&mut self) {
        (self.has_lost, self.is_due) = (true, true);
    }

    /// Records that a watch showed something else.
    pub(super) fn look(&mut self) {
        self.is_due = true;
    }

    /// Returns a whole object that may have left.
    pub(super) fn item(&self, key: &Key) -> Option<&Arc<Item>> {
        self.strays.as_ref().filter(|strays| strays.is_whole)?.watch.snapshot.get(key)
    }
}

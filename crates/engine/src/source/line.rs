//! Who waits for the registry, in order of arrival.

use std::collections::BTreeMap;

use crate::reconcile::WorkKey;

/// Who waits for the registry. A thousand may, so none of them is looked for one by one.
#[derive(Debug, Default)]
pub(super) struct Line {
    places: BTreeMap<WorkKey, u64>,
    order: BTreeMap<u64, WorkKey>,
    /// The number of the next place.
    next: u64,
}

impl Line {
    /// Adds a key at the end, unless it waits already.
    pub(super) fn push(&mut self, work: &WorkKey) {
        if self.places.contains_key(work) {
            return;
        }
        self.places.insert(work.clone(), self.next);
        self.order.insert(self.next, work.clone());
        self.next += 1;
    }

    /// Takes the first one out.
    pub(super) fn pop(&mut self) -> Option<WorkKey> {
        let (_, work) = self.order.pop_first()?;
        self.places.remove(&work);
        Some(work)
    }

    /// Takes a key out, wherever it is.
    pub(super) fn remove(&mut self, work: &WorkKey) {
        if let Some(place) = self.places.remove(work) {
            self.order.remove(&place);
        }
    }
}

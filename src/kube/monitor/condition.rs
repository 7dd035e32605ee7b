//! Whether the watches of an informer work, and whether its monitors were told otherwise.

use std::collections::BTreeSet;

/// Whether the watches of an informer work. That a list works says nothing of the watch behind it.
#[derive(Debug, Default)]
pub(super) struct Condition {
    /// The collections whose watch does not work, or has not lasted yet.
    unproven: BTreeSet<usize>,
    /// Whether the monitors were told of a failure.
    is_reported: bool,
}

impl Condition {
    /// Records that the watches of so many collections are about to be opened.
    pub(super) fn begin(&mut self, collections: usize) {
        self.unproven.extend(0..collections);
    }

    /// Records that the watch of a collection does not work.
    pub(super) fn fail(&mut self, collection: usize) {
        self.unproven.insert(collection);
    }

    /// Records that the monitors are told of a failure.
    pub(super) fn report(&mut self) {
        self.is_reported = true;
    }

    /// Records that the watch of a collection works. Returns whether the monitors have to be told that all is well again.
    pub(super) fn works(&mut self, collection: usize) -> bool {
        self.unproven.remove(&collection);
        self.unproven.is_empty() && std::mem::take(&mut self.is_reported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slip_02_a_watch_works_again_when_all_its_collections_do() {
        let mut condition = Condition::default();
        condition.begin(2);
        assert!(!condition.works(0) && !condition.works(1), "nobody was told otherwise");
        condition.report();
        condition.begin(2);
        assert!(!condition.works(1), "one of two");
        condition.fail(1);
        assert!(!condition.works(0));
        assert!(condition.works(1));
        assert!(!condition.works(1), "it is told once");
    }
}

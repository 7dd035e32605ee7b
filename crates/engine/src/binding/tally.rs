//! What happened to the objects of a watch, counted.

use crate::hook::snapshot::{Change, Snapshot};
use crate::hook::spec::WatchEvent;

/// How often what happened to the objects of a watch.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// Objects that came, those of the first list too.
    pub added: u64,
    /// Objects that changed so that a hook sees it.
    pub modified: u64,
    /// Objects that went.
    pub deleted: u64,
    /// How often the last object went.
    pub cleaned: u64,
}

impl Tally {
    /// Counts changes that led to `snapshot`.
    pub(super) fn count<'c>(&mut self, changes: impl IntoIterator<Item = &'c Change>, snapshot: &Snapshot) {
        let deleted = self.deleted;
        for change in changes {
            match change.event {
                WatchEvent::Added => self.added += 1,
                WatchEvent::Modified => self.modified += 1,
                WatchEvent::Deleted => self.deleted += 1,
            }
        }
        if self.deleted > deleted && snapshot.is_empty() {
            self.cleaned += 1;
        }
    }

    /// Returns what was counted since `earlier`.
    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            added: self.added - earlier.added,
            modified: self.modified - earlier.modified,
            deleted: self.deleted - earlier.deleted,
            cleaned: self.cleaned - earlier.cleaned,
        }
    }
}

//! The last state that we left each release in, and whether its records still say so. No I/O.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chart::record::Status;

use super::marks::OriginLabels;
use super::storage::{CHECKSUM, StoredRevision};

/// How long a release is left alone while somebody else seems to change it.
pub(super) const WORK: Duration = Duration::from_secs(30);

/// The state that the last run left a release in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LastRelease {
    /// The checksum of what was rendered.
    pub(super) checksum: String,
    /// The deployed revision.
    pub(super) revision: u32,
    /// Whether the module was in maintenance.
    pub(super) maintenance: bool,
    /// Where its module and its chart come from, as its record says.
    pub(super) origin: OriginLabels,
    /// Which writes of the record of that revision are known: ours, or what was found.
    pub(super) written: Vec<String>,
}

/// Records that are not as they were left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Deviation {
    /// What was found, in one line.
    pub(super) what: String,
    /// Whether somebody else seems to change the release, so that this may pass.
    pub(super) passes: bool,
}

impl Deviation {
    pub(super) fn new(what: String) -> Self {
        Self { what, passes: false }
    }
}

impl LastRelease {
    /// Reports whether the release may be another than it was left, now that the record of
    /// revision `version` was written. The records are asked before anything is done.
    pub(super) fn may_differ(&self, stored: &StoredRevision) -> bool {
        if stored.version < self.revision {
            return stored.status == Status::Deployed;
        }
        stored.version > self.revision || !self.written.contains(&stored.written)
    }

    /// Returns in what `history`, which is sorted by version, is not as it was left.
    pub(super) fn deviation(
        &self,
        history: &[StoredRevision],
        is_ours: impl Fn(&StoredRevision) -> bool,
    ) -> Option<Deviation> {
        let number = self.revision;
        let Some(newest) = history.last() else {
            return Some(Deviation::new("its records are gone".to_owned()));
        };
        let status = newest.status.name();
        let passes = newest.status.is_pending() || newest.status == Status::Uninstalling;
        let what = if newest.version < number {
            format!("the record of revision {number} is gone")
        } else if newest.version > number {
            format!("somebody else wrote revision {}, which is {status}", newest.version)
        } else if newest.status != Status::Deployed {
            format!("the status of revision {number} is {status}")
        } else if !is_ours(newest) {
            format!("revision {number} is marked as somebody else's")
        } else if newest.label(CHECKSUM).unwrap_or_default() != self.checksum {
            format!("revision {number} has another checksum")
        } else {
            let deployed =
                |stored: &&StoredRevision| stored.version < number && stored.status == Status::Deployed;
            let older = history.iter().rev().find(deployed)?;
            format!("revision {} is deployed beside revision {number}", older.version)
        };
        Some(Deviation { what, passes })
    }
}

/// The last state of all releases.
#[derive(Clone, Debug, Default)]
pub(super) struct LastReleases(Arc<Mutex<BTreeMap<String, LastRelease>>>);

impl LastReleases {
    pub(super) fn get(&self, release: &str) -> Option<LastRelease> {
        self.lock(|all| all.get(release).cloned())
    }

    pub(super) fn set(&self, release: &str, last: Option<LastRelease>) {
        self.lock(|all| match last {
            Some(last) => all.insert(release.to_owned(), last),
            None => all.remove(release),
        });
    }

    /// Records a write of ours to the record of a revision, if that is the one which the last run left.
    pub(super) fn wrote(&self, release: &str, revision: u32, written: String) {
        self.lock(|all| {
            if let Some(last) = all.get_mut(release).filter(|last| last.revision == revision) {
                last.written.push(written);
            }
        });
    }

    /// Forgets a release if this is its last state, and returns whether it was.
    pub(super) fn forget(&self, release: &str, last: &LastRelease) -> bool {
        self.lock(|all| {
            let is_same = all.get(release) == Some(last);
            if is_same {
                all.remove(release);
            }
            is_same
        })
    }

    /// Returns the releases whose last state is known.
    pub(super) fn names(&self) -> Vec<String> {
        self.lock(|all| all.keys().cloned().collect())
    }

    fn lock<T>(&self, work: impl FnOnce(&mut BTreeMap<String, LastRelease>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(version: u32, status: Status, written: &str) -> StoredRevision {
        let labels = [(CHECKSUM.to_owned(), "c".to_owned())].into();
        StoredRevision { version, status, labels, written: written.to_owned() }
    }

    fn last() -> LastRelease {
        LastRelease {
            checksum: "c".to_owned(),
            revision: 2,
            maintenance: false,
            origin: OriginLabels::default(),
            written: vec!["10".to_owned()],
        }
    }

    #[test]
    fn what_was_not_left_so_is_told() {
        use Status::{Deployed, Failed, PendingRollback, Superseded, Uninstalling};
        for (history, ours, expected) in [
            (vec![(1, Superseded), (2, Deployed)], true, None),
            (vec![], true, Some(("its records are gone", false))),
            (vec![(1, Deployed)], true, Some(("the record of revision 2 is gone", false))),
            (
                vec![(2, Superseded), (3, Deployed)],
                true,
                Some(("somebody else wrote revision 3, which is deployed", false)),
            ),
            (
                vec![(2, Deployed), (3, PendingRollback)],
                true,
                Some(("somebody else wrote revision 3, which is pending-rollback", true)),
            ),
            (vec![(2, Failed)], true, Some(("the status of revision 2 is failed", false))),
            (vec![(2, Uninstalling)], true, Some(("the status of revision 2 is uninstalling", true))),
            (vec![(2, Deployed)], false, Some(("revision 2 is marked as somebody else's", false))),
            (
                vec![(1, Deployed), (2, Deployed)],
                true,
                Some(("revision 1 is deployed beside revision 2", false)),
            ),
        ] {
            let history: Vec<StoredRevision> =
                history.into_iter().map(|(version, status)| stored(version, status, "10")).collect();
            let found = last().deviation(&history, |_| ours);
            let found = found.as_ref().map(|found| (found.what.as_str(), found.passes));
            assert_eq!(found, expected, "{history:?}");
        }
        let mut other = stored(2, Deployed, "10");
        other.labels.clear();
        assert_eq!(last().deviation(&[other], |_| true).unwrap().what, "revision 2 has another checksum");
    }

    #[test]
    fn our_own_writes_are_no_reason_to_look() {
        for (record, expected) in [
            (stored(1, Status::Superseded, "11"), false),
            (stored(1, Status::Deployed, "11"), true),
            (stored(2, Status::Deployed, "10"), false),
            (stored(2, Status::Deployed, "12"), true),
            (stored(3, Status::PendingRollback, "12"), true),
        ] {
            assert_eq!(last().may_differ(&record), expected, "{record:?}");
        }
    }
}

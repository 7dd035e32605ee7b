//! One list of the records of all releases, for the first question about each of them.
//!
//! A start asks of every release whether its last revision stands. One list answers that for all, and the watch of
//! records goes on behind it, so that nothing that happened since is missed. What the list says of a release is told
//! once: after that the operator knows the release itself, or asks for its records by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chart::record::Status;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::marks::OriginLabels;
use super::storage::{CHECKSUM, MAINTENANCE, Storage, StoredRevision};
use crate::cluster::request::RequestError;

/// How old the list may be as long as nobody watches what happened since.
const FRESH: Duration = Duration::from_mins(1);

/// A deployed revision that is ours, and the only one that is deployed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) version: u32,
    /// The checksum of what was rendered; empty if the record does not say it.
    pub(super) checksum: String,
    pub(super) maintenance: bool,
    /// Where its module and its chart come from.
    pub(super) origin: OriginLabels,
    /// Which write of the record this is.
    pub(super) written: String,
}

/// What is known of the records of a release without asking for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// There are none.
    Absent,
    /// The newest stands.
    Stands(Standing),
    /// None of them stands, or they have to be asked for.
    Unknown,
}

/// The records of a release, as far as an upgrade knows them.
#[derive(Default)]
pub(super) struct History {
    pub(super) revisions: Vec<StoredRevision>,
    /// Whether they were asked for. Otherwise a list showed none.
    pub(super) is_read: bool,
}

/// What a list says of releases: of each as much as is needed to see whether it stands.
#[derive(Debug, Default)]
pub(super) struct Listed(BTreeMap<String, Entry>);

#[derive(Debug, Default)]
struct Entry {
    newest: u32,
    deployed: u32,
    standing: Option<Standing>,
}

impl Listed {
    /// Adds one record. They come in no particular order.
    pub(super) fn add(&mut self, release: &str, stored: &StoredRevision, is_ours: bool) {
        if !self.0.contains_key(release) {
            self.0.insert(release.to_owned(), Entry::default());
        }
        let Some(entry) = self.0.get_mut(release) else { return };
        let is_deployed = stored.status == Status::Deployed;
        entry.deployed += u32::from(is_deployed);
        if stored.version >= entry.newest {
            entry.newest = stored.version;
            entry.standing = (is_deployed && is_ours).then(|| Standing {
                version: stored.version,
                checksum: stored.label(CHECKSUM).unwrap_or_default().to_owned(),
                maintenance: stored.label(MAINTENANCE) == Some("true"),
                origin: stored.origin(),
                written: stored.written.clone(),
            });
        }
    }

    /// Returns what was said of a release, and forgets it.
    fn take(&mut self, release: &str) -> Known {
        match self.0.remove(release) {
            None => Known::Absent,
            Some(Entry { deployed: 1, standing: Some(standing), .. }) => Known::Stands(standing),
            Some(_) => Known::Unknown,
        }
    }
}

impl Known {
    /// Returns what all records of a release say; `Unknown` if none stands.
    pub(super) fn of(history: &[StoredRevision], is_ours: impl Fn(&StoredRevision) -> bool) -> Self {
        let mut listed = Listed::default();
        for stored in history {
            listed.add("", stored, is_ours(stored));
        }
        listed.take("")
    }
}

/// The first list of all records, and what it was not asked yet.
#[derive(Clone)]
pub(super) struct FirstList {
    storage: Storage,
    state: Arc<Mutex<State>>,
    /// Held by who lists: all others wait for the same answer.
    listing: Arc<tokio::sync::Mutex<()>>,
    /// Which writes of our deployed records can be read, by release.
    readable: Arc<OnceCell<Mutex<BTreeMap<String, String>>>>,
}

#[derive(Default)]
enum State {
    #[default]
    Unasked,
    Listed {
        listed: Listed,
        /// Where to watch from.
        version: String,
        since: Instant,
        is_watched: bool,
        /// The releases of this operator, each with whether one of its records has the mark of a source. None when they were
        /// told, and when any record has changed since.
        owned: Option<BTreeMap<String, bool>>,
        /// The releases whose records are asked for by name from now on.
        passed: BTreeSet<String>,
    },
    Over,
}

impl FirstList {
    pub(super) fn new(storage: Storage) -> Self {
        Self { storage, state: Arc::default(), listing: Arc::default(), readable: Arc::default() }
    }

    fn lock<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lists the records, if nobody did. Who asks meanwhile waits for the same answer.
    async fn ask(&self) -> Result<(), RequestError> {
        let is_unasked = || self.lock(|state| matches!(state, State::Unasked));
        if is_unasked() {
            let _turn = self.listing.lock().await;
            if is_unasked() {
                let since = Instant::now();
                let (mut listed, mut owned) = (Listed::default(), BTreeMap::new());
                let add = |release: &str, stored: &StoredRevision| {
                    listed.add(release, stored, self.storage.is_ours(stored));
                    if self.storage.owns(&stored.labels)
                        && let Some(name) = stored.label("name")
                    {
                        *owned.entry(name.to_owned()).or_default() |= stored.has_source();
                    }
                };
                let version = self.storage.list(add).await?;
                let (owned, passed) = (Some(owned), BTreeSet::new());
                self.lock(|state| {
                    *state = State::Listed { listed, version, since, is_watched: false, owned, passed };
                });
            }
        }
        Ok(())
    }

    /// Returns what the list says of a release, once. The first call lists the records.
    pub(super) async fn take(&self, release: &str) -> Result<Known, RequestError> {
        self.ask().await?;
        Ok(self.lock(|state| match state {
            State::Listed { since, is_watched: false, .. } if since.elapsed() > FRESH => Known::Unknown,
            State::Listed { listed, passed, .. } => {
                if passed.insert(release.to_owned()) {
                    listed.take(release)
                } else {
                    Known::Unknown
                }
            }
            State::Unasked | State::Over => Known::Unknown,
        }))
    }

    /// Has the records of a release asked for by name: they have changed, or are about to.
    pub(super) fn pass_by(&self, release: &str) {
        self.lock(|state| {
            let State::Listed { listed, passed, owned, .. } = state else { return };
            *owned = None;
            if passed.insert(release.to_owned()) {
                listed.take(release);
            }
        });
    }

    /// Returns the releases of this operator, each with whether one of its records has the mark of a source, if they are those
    /// of the list still: it is watched, and no record has changed. It tells them once.
    ///
    /// With `shares`, runs that ask the same begin at the same time: they get the same list, which is not watched so early.
    pub(super) async fn owned(&self, shares: bool) -> Result<Option<BTreeMap<String, bool>>, RequestError> {
        if shares {
            self.ask().await?;
        }
        Ok(self.lock(|state| match state {
            State::Listed { is_watched, since, owned, .. }
                if *is_watched || (shares && since.elapsed() <= FRESH) =>
            {
                owned.take()
            }
            State::Listed { .. } | State::Unasked | State::Over => None,
        }))
    }

    /// Returns where to watch the records from, if they were listed. Who asks watches them from now on.
    pub(super) fn watch(&self) -> Option<String> {
        self.lock(|state| match state {
            State::Listed { version, is_watched, .. } => {
                *is_watched = true;
                Some(version.clone())
            }
            State::Unasked | State::Over => None,
        })
    }

    /// Forgets the list: something may have been missed since.
    pub(super) fn end(&self) {
        self.lock(|state| *state = State::Over);
    }

    /// Reports whether the record of a revision that the list showed can be read. The first call reads those of all
    /// releases; one that was written since is not among them.
    pub(super) async fn is_readable(&self, release: &str, standing: &Standing) -> Result<bool, RequestError> {
        let read = || async { self.storage.readable().await.map(Mutex::new) };
        let readable = self.readable.get_or_try_init(read).await?;
        let mut readable = readable.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(readable.remove(release).is_some_and(|written| written == standing.written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(version: u32, status: Status) -> StoredRevision {
        let labels = [(CHECKSUM.to_owned(), format!("sum{version}"))].into();
        StoredRevision { version, status, labels, written: format!("w{version}") }
    }

    #[test]
    fn a_release_stands_if_its_newest_revision_is_ours_and_alone_deployed() {
        use Status::{Deployed, Failed, PendingUpgrade, Superseded};
        for (history, ours, expected) in [
            (vec![], true, None),
            (vec![(1, Deployed)], true, Some(1)),
            (vec![(1, Deployed)], false, None),
            (vec![(2, Deployed), (1, Superseded)], true, Some(2)),
            (vec![(1, Superseded), (2, Deployed)], true, Some(2)),
            (vec![(10, Deployed), (2, Deployed)], true, None),
            (vec![(2, Failed), (1, Deployed)], true, None),
            (vec![(1, Deployed), (2, PendingUpgrade)], true, None),
        ] {
            let history: Vec<_> =
                history.into_iter().map(|(version, status)| stored(version, status)).collect();
            let found = Known::of(&history, |_| ours);
            assert_eq!(found == Known::Absent, history.is_empty());
            let expected = expected.map(|version| Standing {
                version,
                checksum: format!("sum{version}"),
                maintenance: false,
                origin: OriginLabels::default(),
                written: format!("w{version}"),
            });
            let found = if let Known::Stands(standing) = found { Some(standing) } else { None };
            assert_eq!(found, expected, "{history:?}");
        }
    }

    #[test]
    fn what_a_list_says_of_a_release_is_told_once_and_many_revisions_are_one_entry() {
        let mut listed = Listed::default();
        for version in 1..=10 {
            let status = if version == 10 { Status::Deployed } else { Status::Superseded };
            listed.add("web", &stored(version, status), true);
        }
        assert_eq!(listed.0.len(), 1);
        assert!(matches!(listed.take("web"), Known::Stands(Standing { version: 10, .. })));
        assert_eq!(listed.take("other"), Known::Absent);
    }
}

//! The objects of a cluster: the store behind its lock, and the watches that wait for its changes.

mod error;
mod journal;
mod recovery;
pub(crate) mod state_file;
mod watchers;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use jiff::Timestamp;
use tokio::sync::watch;

pub use error::StateError;
pub(crate) use watchers::Watcher;

use crate::store::{Committed, Encoded, Limits, ObjectRef, Refusal, Store, Stored, TableName, Write, key_of};
use crate::sync::lock;
use journal::Journal;
use watchers::Watchers;

/// The revision that watches receive when their table is no longer served.
pub(crate) const CLOSED: u64 = u64::MAX;

/// The store and its watches.
#[derive(Debug)]
pub(crate) struct Storage {
    store: RwLock<Store>,
    /// The revision of the latest change of each table that is watched.
    revisions: Mutex<HashMap<TableName, watch::Sender<u64>>>,
    watchers: Watchers,
    /// Locked while the store is, and after it.
    keeping: Mutex<Keeping>,
}

/// Where changes are written down before they are made.
#[derive(Debug, Default)]
enum Keeping {
    #[default]
    Nowhere,
    Journal(Journal),
    /// The state file is no longer that of this cluster.
    Ended,
}

/// All objects at one revision.
struct Contents {
    revision: u64,
    tables: Vec<(TableName, Vec<Arc<Stored>>)>,
}

impl Storage {
    pub(crate) fn new(limits: Limits) -> Storage {
        Storage {
            store: RwLock::new(Store::new(limits)),
            revisions: Mutex::default(),
            watchers: Watchers::default(),
            keeping: Mutex::default(),
        }
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Store> {
        self.store.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the latest version of an object.
    pub(crate) fn get(&self, object: &ObjectRef) -> Option<Arc<Stored>> {
        self.read().get(&object.table, &object.key).cloned()
    }

    pub(crate) fn find(&self, table: &str, namespace: Option<&str>, name: &str) -> Option<Arc<Stored>> {
        self.read().get(table, &key_of(namespace, name)).cloned()
    }

    /// Returns the objects of a table, or only those of a namespace, in the order of their keys.
    pub(crate) fn all(&self, table: &str, namespace: Option<&str>) -> Vec<Arc<Stored>> {
        self.read().all(table, namespace)
    }

    /// Returns the objects that name `uid` as an owner.
    pub(crate) fn dependents_of(&self, uid: &str) -> Vec<ObjectRef> {
        self.read().dependents_of(uid).cloned().collect()
    }

    /// Commits a change and wakes the watches of its table.
    pub(crate) fn commit(
        &self,
        object: &ObjectRef,
        write: Write,
        now: Timestamp,
    ) -> Result<Committed, Refusal> {
        let mut store = self.write();
        let committed = store.prepare(object, write, now)?;
        if let Committed::Changed(event) = &committed {
            let kept = match &mut *lock(&self.keeping) {
                Keeping::Nowhere => Ok(()),
                Keeping::Journal(journal) => journal.append(object, event),
                Keeping::Ended => Err(StateError::Ended),
            };
            kept.map_err(|error| Refusal::NotKept(error.to_string()))?;
            store.apply(object, event, now);
        }
        drop(store);
        if let Committed::Changed(event) = &committed
            && let Some(revision) = lock(&self.revisions).get(&object.table)
        {
            revision.send_replace(event.revision);
        }
        Ok(committed)
    }

    /// Returns a receiver of the latest revision of a table, for a watch that begins.
    pub(crate) fn subscribe(&self, table: &TableName) -> watch::Receiver<u64> {
        let mut revisions = lock(&self.revisions);
        // Tables without watches are dropped here, where new watches begin.
        if revisions.len() > 256 {
            revisions.retain(|_, revision| revision.receiver_count() > 0);
        }
        revisions.entry(Arc::clone(table)).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    pub(crate) fn close(&self, table: &TableName) {
        if let Some(revision) = lock(&self.revisions).remove(table) {
            revision.send_replace(CLOSED);
        }
    }

    /// Records a watch that begins; the record is removed when the watch drops it.
    pub(crate) fn add_watcher(&self, table: &TableName) -> Arc<Watcher> {
        self.watchers.add(table)
    }

    /// Returns whether every watch has sent all changes and its client has received them.
    pub(crate) fn watches_are_done(&self) -> bool {
        self.watchers.are_done(&self.read())
    }

    /// Drops the history: revisions before the present one are expired.
    pub(crate) fn forget_history(&self) {
        self.write().forget_history();
    }

    /// Puts back an object from a state file, with its revision. Watches are not woken.
    pub(crate) fn restore(&self, object: &ObjectRef, encoded: Encoded, revision: u64, now: Timestamp) {
        self.write().restore(object, encoded, revision, now);
    }

    fn begin_journal(&self, journal: Journal) {
        *lock(&self.keeping) = Keeping::Journal(journal);
    }

    /// Refuses all changes from now on; returns the journal there was.
    fn end_journal(&self) -> Option<Journal> {
        match std::mem::replace(&mut *lock(&self.keeping), Keeping::Ended) {
            Keeping::Journal(journal) => Some(journal),
            Keeping::Nowhere | Keeping::Ended => None,
        }
    }

    /// Returns all objects, for a snapshot. What is committed from now on goes into a new file of the journal.
    ///
    /// The objects are shared with the store, so that it is locked for a short time only.
    fn snapshot(&self) -> Result<Contents, StateError> {
        let store = self.read();
        if let Keeping::Journal(journal) = &mut *lock(&self.keeping) {
            journal.rotate()?;
        }
        let tables = store.tables().map(|table| (Arc::clone(table), store.all(table, None))).collect();
        Ok(Contents { revision: store.revision(), tables })
    }

    /// Drops the part of the journal that the snapshot holds.
    fn snapshot_is_kept(&self) -> Result<(), StateError> {
        match &mut *lock(&self.keeping) {
            Keeping::Journal(journal) => journal.drop_older(),
            Keeping::Nowhere | Keeping::Ended => Ok(()),
        }
    }

    /// Continues after the revision of a state file.
    fn resume_at(&self, revision: u64) {
        self.write().resume_at(revision);
    }
}

//! The open watches and the revision that each has sent. Tests wait until all are done instead of sleeping.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::store::{Store, TableName};
use crate::sync::lock;

#[derive(Debug, Default)]
pub(super) struct Watchers(Mutex<Vec<Weak<Watcher>>>);

#[derive(Debug)]
pub(crate) struct Watcher {
    table: TableName,
    /// Everything up to this revision has been sent.
    sent: AtomicU64,
    /// Whether the client has received all of it and asks for more.
    is_waiting: AtomicBool,
}

impl Watchers {
    pub(super) fn add(&self, table: &TableName) -> Arc<Watcher> {
        let watcher = Arc::new(Watcher {
            table: Arc::clone(table),
            sent: AtomicU64::new(0),
            is_waiting: AtomicBool::new(false),
        });
        let mut watchers = lock(&self.0);
        watchers.retain(|watcher| watcher.strong_count() > 0);
        watchers.push(Arc::downgrade(&watcher));
        watcher
    }

    /// Returns whether no watch has anything left to send.
    pub(super) fn are_done(&self, store: &Store) -> bool {
        let watchers: Vec<Arc<Watcher>> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        watchers.iter().all(|watcher| watcher.is_done(store))
    }
}

impl Watcher {
    /// Records that everything up to `revision` has been sent and the client asks for more.
    pub(crate) fn waits_after(&self, revision: u64) {
        self.sent.store(revision, Ordering::Relaxed);
        self.is_waiting.store(true, Ordering::Release);
    }

    /// Records that the watch has something to send.
    pub(crate) fn sends(&self) {
        self.is_waiting.store(false, Ordering::Release);
    }

    fn is_done(&self, store: &Store) -> bool {
        let sent = self.sent.load(Ordering::Relaxed);
        self.is_waiting.load(Ordering::Acquire)
            && store.since(&self.table, sent, 1).is_ok_and(|events| events.is_empty())
    }
}

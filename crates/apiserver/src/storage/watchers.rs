//! Whether the server is still: nothing is left to do, and every watch has sent all there is.
//!
//! Tests wait for this instead of sleeping.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::cluster::{Cluster, lock};
use crate::store::TableName;

/// What is open and what is put off.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    followers: Mutex<Vec<Weak<Follower>>>,
    delayed: AtomicUsize,
}

/// How far a watch is.
#[derive(Debug)]
pub(crate) struct Follower {
    table: TableName,
    /// Everything up to this revision has been sent.
    cursor: AtomicU64,
    /// Whether the client has taken all of it and asks for more.
    waits: AtomicBool,
}

impl Quiet {
    /// Returns the entry of a watch that begins; it goes when the watch drops it.
    pub(crate) fn follow(&self, table: &TableName) -> Arc<Follower> {
        let follower =
            Follower { table: Arc::clone(table), cursor: AtomicU64::new(0), waits: AtomicBool::new(false) };
        let follower = Arc::new(follower);
        let mut followers = lock(&self.followers);
        followers.retain(|follower| follower.strong_count() > 0);
        followers.push(Arc::downgrade(&follower));
        follower
    }

    /// Notes that something will be done after a while.
    pub(crate) fn put_off(&self) {
        self.delayed.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that it is done now.
    pub(crate) fn take_up(&self) {
        self.delayed.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Follower {
    pub(crate) fn waits_behind(&self, revision: u64) {
        self.cursor.store(revision, Ordering::Relaxed);
        self.waits.store(true, Ordering::Release);
    }

    pub(crate) fn goes_on(&self) {
        self.waits.store(false, Ordering::Release);
    }

    fn is_through(&self, cluster: &Cluster) -> bool {
        let behind = self.cursor.load(Ordering::Relaxed);
        self.waits.load(Ordering::Acquire)
            && cluster.read().since(&self.table, behind, 1).is_ok_and(|events| events.is_empty())
    }
}

/// Returns whether the cluster is still.
pub(crate) fn is_still(cluster: &Cluster) -> bool {
    let followers: Vec<Arc<Follower>> =
        lock(&cluster.quiet.followers).iter().filter_map(Weak::upgrade).collect();
    cluster.quiet.delayed.load(Ordering::Relaxed) == 0
        && cluster.chores.is_idle()
        && followers.iter().all(|follower| follower.is_through(cluster))
}

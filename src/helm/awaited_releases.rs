//! The releases whose objects somebody waits for, and what a look at objects shows. No I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::object::Key;
use crate::cluster::Resource;

/// The releases whose objects are awaited.
#[derive(Clone, Default)]
pub(super) struct AwaitedReleases(Arc<Mutex<BTreeMap<String, Awaited>>>);

struct Awaited {
    task: AbortHandle,
    /// Rings when one of the objects has changed that are not ready.
    bell: Arc<Notify>,
    /// Namespace and name of these objects, of whatever kind.
    objects: BTreeSet<(String, String)>,
}

/// What a look at objects shows.
#[derive(Debug, Default)]
pub(super) struct ReadinessLook {
    /// Those that are not ready, each with the reason.
    pub(super) unready: Vec<(Key, String)>,
    /// Whether one could not be read.
    pub(super) has_failed: bool,
}

impl AwaitedReleases {
    /// Rings where an object is awaited that has changed; all bells, if it is not known which one.
    pub(super) fn changed(&self, object: Option<&(String, String)>) {
        let awaited = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for awaited in awaited.values() {
            if object.is_none_or(|object| awaited.objects.contains(object)) {
                awaited.bell.notify_one();
            }
        }
    }

    /// Forgets a release.
    pub(super) fn forget(&self, release: &str) {
        let mut awaited = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(awaited) = awaited.remove(release) {
            awaited.task.abort();
        }
    }

    /// Records who waits for a release, in place of whoever did before.
    pub(super) fn insert(&self, release: String, task: AbortHandle, bell: Arc<Notify>) {
        let mut awaited = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = awaited.insert(release, Awaited { task, bell, objects: BTreeSet::new() }) {
            before.task.abort();
        }
    }

    /// Records which objects of a release are not ready: the bell rings for these.
    pub(super) fn set_objects(&self, release: &str, objects: &[(Key, Resource)]) {
        let mut awaited = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(awaited) = awaited.get_mut(release) {
            awaited.objects =
                objects.iter().map(|(key, _)| (key.namespace.clone(), key.name.clone())).collect();
        }
    }
}

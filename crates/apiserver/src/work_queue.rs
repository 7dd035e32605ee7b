//! The queue of what the server does on its own after a change: collecting garbage, emptying namespaces, simulating
//! workloads.
//!
//! No loop looks for work. A commit adds the work that follows from it; whoever finishes a request starts a worker if
//! there is none, and the worker ends when the queue is empty (`controllers`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;

use crate::registry::DEFINITIONS;
use crate::store::{Change, Event, ObjectRef, Store, Stored};
use crate::sync::lock;

/// One thing to do. The queue is worked off in this order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// The delay of a simulated object has passed.
    Due(ObjectRef),
    /// An object began to wait for its deletion.
    Deleting(ObjectRef),
    /// An object names owners, which must exist.
    Owned(ObjectRef),
    /// The object with this identity is gone: its dependents must be looked at.
    OwnerGone(String),
    /// A simulated object changed.
    Simulate(ObjectRef),
}

/// The queue, and whether a worker is busy with it.
#[derive(Debug)]
pub(crate) struct WorkQueue {
    /// Whether workloads are simulated.
    simulates: bool,
    queue: Mutex<Queue>,
    idle: tokio::sync::Notify,
    /// How much work waits for its delay.
    delayed: AtomicUsize,
    /// The deadlines that are waited for, one for each object.
    deadlines: Mutex<BTreeMap<ObjectRef, Timestamp>>,
}

#[derive(Debug, Default)]
struct Queue {
    work: BTreeSet<Work>,
    has_worker: bool,
}

impl WorkQueue {
    pub(crate) fn new(simulates: bool) -> WorkQueue {
        WorkQueue {
            simulates,
            queue: Mutex::default(),
            idle: tokio::sync::Notify::new(),
            delayed: AtomicUsize::new(0),
            deadlines: Mutex::default(),
        }
    }

    /// Adds work unless it is in the queue already.
    pub(crate) fn add(&self, work: Work) {
        lock(&self.queue).work.insert(work);
    }

    /// Adds the work that follows from a change.
    pub(crate) fn observe(&self, store: &Store, object: &ObjectRef, event: &Event) {
        let stored = &event.object;
        if event.change == Change::Deleted {
            if store.dependents_of(&stored.uid).next().is_some() {
                self.add(Work::OwnerGone(stored.uid.to_string()));
            }
            for waiting in waiting_for(store, object, stored) {
                self.add(Work::Deleting(waiting));
            }
        } else {
            let before = event.previous.as_ref().map(|previous| &previous.owners);
            if !stored.owners.is_empty() && before != Some(&stored.owners) {
                self.add(Work::Owned(object.clone()));
            }
            // An owner that waits for this dependent may have been let go.
            for owner in before.into_iter().flatten().filter_map(|uid| store.find_by_uid(uid)) {
                if store.get(&owner.table, &owner.key).is_some_and(|owner| owner.deleting) {
                    self.add(Work::Deleting(owner.clone()));
                }
            }
            if stored.deleting {
                self.add(Work::Deleting(object.clone()));
            }
        }
        if self.simulates {
            for affected in affected(store, object, event) {
                self.add(Work::Simulate(affected));
            }
        }
    }

    /// Returns whether a worker must be started; it counts as started then.
    pub(crate) fn start_worker(&self) -> bool {
        let mut queue = lock(&self.queue);
        if queue.has_worker || queue.work.is_empty() {
            return false;
        }
        queue.has_worker = true;
        true
    }

    /// Returns the next work of the worker; nothing ends it.
    pub(crate) fn next(&self) -> Option<Work> {
        let mut queue = lock(&self.queue);
        let work = queue.work.pop_first();
        queue.has_worker = work.is_some();
        work
    }

    /// Wakes those who wait for the end of the worker.
    pub(crate) fn worker_ended(&self) {
        self.idle.notify_waiters();
    }

    /// Returns what is ready when a worker ends after this moment, once it is enabled.
    pub(crate) fn idle(&self) -> tokio::sync::futures::Notified<'_> {
        self.idle.notified()
    }

    /// Returns whether nothing is in the queue and no worker is busy.
    pub(crate) fn is_idle(&self) -> bool {
        let queue = lock(&self.queue);
        !queue.has_worker && queue.work.is_empty()
    }

    /// Records that work will be added after a delay.
    pub(crate) fn delay(&self) {
        self.delayed.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds work whose delay has passed.
    pub(crate) fn add_delayed(&self, work: Work) {
        self.delayed.fetch_sub(1, Ordering::Relaxed);
        self.add(work);
    }

    /// Records that an object is looked at when a time has come; returns false if it is looked at earlier or then.
    pub(crate) fn arm(&self, object_ref: &ObjectRef, at: Timestamp) -> bool {
        let mut deadlines = lock(&self.deadlines);
        if deadlines.get(object_ref).is_some_and(|known| *known <= at) {
            return false;
        }
        deadlines.insert(object_ref.clone(), at);
        true
    }

    /// Ends the wait for a time; returns false if an earlier one took its place.
    pub(crate) fn disarm(&self, object_ref: &ObjectRef, at: Timestamp) -> bool {
        let mut deadlines = lock(&self.deadlines);
        let is_this = deadlines.get(object_ref) == Some(&at);
        if is_this {
            deadlines.remove(object_ref);
        }
        is_this
    }

    /// Returns whether work waits for its delay.
    pub(crate) fn has_delayed(&self) -> bool {
        self.delayed.load(Ordering::Relaxed) != 0
    }
}

/// Returns what may have waited for an object that is gone: its owners, its namespace, its definition, its volumes.
fn waiting_for(store: &Store, object: &ObjectRef, stored: &Stored) -> Vec<ObjectRef> {
    let mut found: Vec<ObjectRef> =
        stored.owners.iter().filter_map(|uid| store.find_by_uid(uid).cloned()).collect();
    if !stored.namespace().is_empty() {
        found.push(ObjectRef { table: "/namespaces".into(), key: stored.namespace().into() });
    }
    if let Some((group, plural)) = object.table.split_once('/')
        && group.contains('.')
    {
        found.push(ObjectRef { table: DEFINITIONS.into(), key: format!("{plural}.{group}").into() });
    }
    if &*object.table == "/pods" {
        let claims = store.all("/persistentvolumeclaims", Some(stored.namespace()));
        found.extend(
            claims
                .iter()
                .map(|claim| ObjectRef { table: "/persistentvolumeclaims".into(), key: claim.key.clone() }),
        );
    }
    found.retain(|waiting| store.get(&waiting.table, &waiting.key).is_some_and(|stored| stored.deleting));
    found
}

/// Returns whether the objects of a table are simulated.
pub(crate) fn is_simulated(table: &str) -> bool {
    matches!(
        table,
        "/pods"
            | "/persistentvolumeclaims"
            | "/services"
            | "/namespaces"
            | "/nodes"
            | "/replicationcontrollers"
            | "apps/deployments"
            | "apps/replicasets"
            | "apps/statefulsets"
            | "apps/daemonsets"
            | "batch/jobs"
    )
}

/// Returns the controllers that may own objects of a table.
fn controllers_of(table: &str) -> &'static [&'static str] {
    match table {
        "/pods" => &[
            "/replicationcontrollers",
            "apps/replicasets",
            "apps/statefulsets",
            "apps/daemonsets",
            "batch/jobs",
        ],
        "apps/replicasets" => &["apps/deployments"],
        "apps/controllerrevisions" => &["apps/statefulsets", "apps/daemonsets"],
        _ => &[],
    }
}

/// Returns the objects that must be looked at after a change: the object, its owners, and for an orphan the controllers
/// that may adopt it, or that wait for its name; for a node what may run on it.
fn affected(store: &Store, object: &ObjectRef, event: &Event) -> Vec<ObjectRef> {
    let mut found = Vec::new();
    if event.change != Change::Deleted && is_simulated(&object.table) {
        found.push(object.clone());
    }
    if &*object.table == "/nodes" && takes_others(event) {
        for table in ["/pods", "apps/daemonsets"] {
            found.extend(all_of(store, table, None));
        }
    }
    let controllers = controllers_of(&object.table);
    if controllers.is_empty() {
        return found;
    }
    let stored = &event.object;
    let owners = |stored: &Stored| -> Vec<ObjectRef> {
        stored.owners.iter().filter_map(|uid| store.find_by_uid(uid).cloned()).collect()
    };
    let present = owners(stored);
    let is_orphan = !present.iter().any(|owner| controllers.contains(&&*owner.table));
    found.extend(present);
    let is_news = match &event.previous {
        Some(previous) => {
            found.extend(owners(previous));
            event.change == Change::Deleted
                || previous.owners != stored.owners
                || previous.labels != stored.labels
        }
        None => true,
    };
    if is_orphan && is_news {
        for table in controllers {
            found.extend(all_of(store, table, Some(stored.namespace())));
        }
    }
    found
}

fn all_of(store: &Store, table: &'static str, namespace: Option<&str>) -> impl Iterator<Item = ObjectRef> {
    let items = store.all(table, namespace).into_iter();
    items.map(move |item| ObjectRef { table: table.into(), key: item.key.clone() })
}

/// Returns whether a change of a node is one of what it takes.
fn takes_others(event: &Event) -> bool {
    let shown = |node: &Stored| {
        let node = node.value();
        ["/metadata/labels", "/spec"].map(|path| node.pointer(path).cloned())
    };
    event
        .previous
        .as_ref()
        .is_none_or(|previous| event.change == Change::Deleted || shown(previous) != shown(&event.object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_once_and_by_one_worker() {
        let queue = WorkQueue::new(false);
        assert!(queue.is_idle() && !queue.start_worker());
        for uid in ["b", "a", "b"] {
            queue.add(Work::OwnerGone(uid.to_owned()));
        }
        assert!(queue.start_worker() && !queue.start_worker() && !queue.is_idle());
        assert_eq!(queue.next(), Some(Work::OwnerGone("a".to_owned())));
        assert_eq!(queue.next(), Some(Work::OwnerGone("b".to_owned())));
        assert!(!queue.is_idle());
        assert_eq!(queue.next(), None);
        assert!(queue.is_idle());
    }
}

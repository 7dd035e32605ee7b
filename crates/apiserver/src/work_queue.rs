//! What the server does on its own after a change: collecting garbage, emptying namespaces, simulating workloads.
//!
//! There is no loop that looks for work. A commit that makes work puts a chore into the queue; whoever finishes a
//! request starts a worker if there is none, and the worker ends when the queue is empty.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::cluster::{Cluster, lock};
use crate::store::{Change, Event, Place, Range, Store, Stored};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Chore {
    /// A simulated object has had its time.
    Due(Place),
    /// An object began to wait for its deletion.
    Deleting(Place),
    /// An object names owners: they must exist.
    Owned(Place),
    /// The object with this identity is gone: so are its dependents.
    OwnerGone(String),
    /// A simulated object changed.
    Simulate(Place),
}

/// The queue of chores.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    queue: Mutex<Queue>,
    idle: tokio::sync::Notify,
}

#[derive(Debug, Default)]
struct Queue {
    chores: BTreeSet<Chore>,
    working: bool,
}

impl Chores {
    /// Puts a chore into the queue unless it is there already.
    pub(crate) fn plan(&self, chore: Chore) {
        lock(&self.queue).chores.insert(chore);
    }

    pub(crate) fn is_idle(&self) -> bool {
        let queue = lock(&self.queue);
        !queue.working && queue.chores.is_empty()
    }

    /// Puts what follows from a change into the queue.
    pub(crate) fn notice(&self, store: &Store, place: &Place, event: &Event) {
        let object = &event.object;
        if event.change != Change::Deleted {
            if !object.owners.is_empty() && event.change == Change::Added {
                self.plan(Chore::Owned(place.clone()));
            }
            if object.deleting {
                self.plan(Chore::Deleting(place.clone()));
            }
            return;
        }
        if store.dependents_of(&object.uid).next().is_some() {
            self.plan(Chore::OwnerGone(object.uid.to_string()));
        }
        for waiting in waiting_for(store, place, object) {
            self.plan(Chore::Deleting(waiting));
        }
    }
}

/// Returns what may go now that `object` is gone: its owners, its namespace, its definition, its volumes.
fn waiting_for(store: &Store, place: &Place, object: &Stored) -> Vec<Place> {
    let mut found: Vec<Place> = object.owners.iter().filter_map(|uid| store.place_of(uid).cloned()).collect();
    if !object.namespace().is_empty() {
        found.push(Place { table: "/namespaces".into(), key: object.namespace().into() });
    }
    if let Some((group, plural)) = place.table.split_once('/')
        && group.contains('.')
    {
        found.push(Place { table: DEFINITIONS.into(), key: format!("{plural}.{group}").into() });
    }
    if &*place.table == "/pods" {
        let range = Range { namespace: Some(object.namespace().to_owned()), ..Range::default() };
        let claims = store.list("/persistentvolumeclaims", &range, None, &|claim| claim.deleting);
        let claims = claims.unwrap_or_default().items.into_iter();
        found.extend(claims.map(|c| Place { table: "/persistentvolumeclaims".into(), key: c.key.clone() }));
    }
    found.retain(|place| store.get(&place.table, &place.key).is_some_and(|waiting| waiting.deleting));
    found
}

/// The table of custom resource definitions.
pub(crate) const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// Starts a worker if there is something to do and nobody does it.
pub(crate) fn start(cluster: &Arc<Cluster>) {
    let mut queue = lock(&cluster.chores.queue);
    if queue.working || queue.chores.is_empty() {
        return;
    }
    queue.working = true;
    drop(queue);
    let cluster = Arc::clone(cluster);
    tokio::spawn(async move {
        while let Some(chore) = next(&cluster) {
            crate::controllers::garbage_collector::carry_out(&cluster, chore);
            tokio::task::yield_now().await;
        }
        cluster.chores.idle.notify_waiters();
    });
}

fn next(cluster: &Cluster) -> Option<Chore> {
    let mut queue = lock(&cluster.chores.queue);
    let chore = queue.chores.pop_first();
    queue.working = chore.is_some();
    chore
}

/// Waits until there is nothing to do.
pub(crate) async fn settled(cluster: &Arc<Cluster>) {
    loop {
        let idle = cluster.chores.idle.notified();
        tokio::pin!(idle);
        idle.as_mut().enable();
        start(cluster);
        if cluster.chores.is_idle() {
            return;
        }
        idle.await;
    }
}

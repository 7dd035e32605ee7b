//! The worker: carries out what is in the work queue.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::simulation::Later;
use super::{definition_finalizer, garbage_collector, namespace, simulation, volume_protection};
use crate::cluster::Cluster;
use crate::object_meta::finalizers;
use crate::registry::DEFINITIONS;
use crate::store::ObjectRef;
use crate::work_queue::Work;

/// Starts a worker if there is something to do and no worker yet.
pub(crate) fn start(cluster: &Arc<Cluster>) {
    if !cluster.work_queue.start_worker() {
        return;
    }
    let cluster = Arc::clone(cluster);
    tokio::spawn(async move {
        while let Some(work) = cluster.work_queue.next() {
            match carry_out(&cluster, work) {
                Some(Later::Soon(object_ref)) => start_later(&cluster, object_ref),
                Some(Later::At(object_ref, at)) => start_at(&cluster, object_ref, at),
                None => {}
            }
            tokio::task::yield_now().await;
        }
        cluster.work_queue.worker_ended();
    });
}

/// Waits until there is nothing to do.
pub(crate) async fn settled(cluster: &Arc<Cluster>) {
    loop {
        let idle = cluster.work_queue.idle();
        tokio::pin!(idle);
        idle.as_mut().enable();
        start(cluster);
        if cluster.work_queue.is_idle() {
            return;
        }
        idle.await;
    }
}

/// Carries out one piece of work. Work that cannot be carried out is dropped: the change that unblocks it adds it again.
///
/// Returns the object that must be looked at again.
fn carry_out(cluster: &Arc<Cluster>, work: Work) -> Option<Later> {
    match work {
        Work::Deleting(object_ref) => end_deletion(cluster, &object_ref),
        Work::Due(object_ref) => return simulation::due(cluster, object_ref),
        Work::Simulate(object_ref) => return simulation::step(cluster, object_ref),
        Work::Owned(object_ref) => garbage_collector::check_owners(cluster, &object_ref),
        Work::OwnerGone(uid) => {
            for dependent in cluster.storage.dependents_of(&uid) {
                garbage_collector::check_owners(cluster, &dependent);
            }
        }
    }
    None
}

/// Does what a deleted object waits for.
fn end_deletion(cluster: &Arc<Cluster>, object_ref: &ObjectRef) {
    let Some(object) = cluster.storage.get(object_ref).filter(|object| object.deleting) else {
        return;
    };
    let value = object.value();
    let waits_for = finalizers(&value);
    if waits_for.contains(&"orphan") {
        garbage_collector::orphan_dependents(cluster, object_ref, &object);
    }
    if waits_for.contains(&"foregroundDeletion") {
        garbage_collector::delete_dependents(cluster, object_ref, &object);
    }
    match &*object_ref.table {
        "/namespaces" => namespace::empty_namespace(cluster, object_ref, &object),
        DEFINITIONS => definition_finalizer::clean_up(cluster, object_ref, &value),
        "/persistentvolumeclaims" => volume_protection::release_claim(cluster, object_ref, &object),
        "/persistentvolumes" => volume_protection::release_volume(cluster, object_ref, &value),
        _ => {}
    }
}

/// Adds an object to the queue again after the time that simulated things take.
fn start_later(cluster: &Arc<Cluster>, object_ref: ObjectRef) {
    let delay = cluster.config.simulate.unwrap_or_default();
    cluster.work_queue.delay();
    let cluster = Arc::downgrade(cluster);
    tokio::spawn(async move {
        tokio::time::sleep(delay).await;
        if let Some(cluster) = cluster.upgrade() {
            cluster.work_queue.add_delayed(Work::Due(object_ref));
            start(&cluster);
        }
    });
}

/// The shortest time until a deadline is looked at again.
const SHORTEST: Duration = Duration::from_millis(100);

/// Adds an object to the queue again when a time has come. Nobody waits for that.
fn start_at(cluster: &Arc<Cluster>, object_ref: ObjectRef, at: Timestamp) {
    if !cluster.work_queue.arm(&object_ref, at) {
        return;
    }
    let wait = Duration::try_from(at.duration_since(cluster.now())).unwrap_or_default().max(SHORTEST);
    let cluster = Arc::downgrade(cluster);
    tokio::spawn(async move {
        tokio::time::sleep(wait).await;
        if let Some(cluster) = cluster.upgrade()
            && cluster.work_queue.disarm(&object_ref, at)
        {
            cluster.work_queue.add(Work::Simulate(object_ref));
            start(&cluster);
        }
    });
}

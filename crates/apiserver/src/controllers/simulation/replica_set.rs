//! Replica sets: as many pods as are asked for.

use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{Pods, create_pod, is_ready};
use super::status::{count, number, set_status, text};
use crate::cluster::Cluster;
use crate::store::ObjectRef;
use crate::write::loopback::remove;

/// At most so many pods are made for one object: nothing that is simulated needs more.
pub(super) const MOST: i64 = 1_000;

/// Makes or removes the pods of a replica set, and counts.
pub(super) fn step(cluster: &Arc<Cluster>, object_ref: &ObjectRef, set: &Value) {
    let wanted = number(set, "/spec/replicas", 1).clamp(0, MOST);
    let name = format!("{}-", text(set, "/metadata/name"));
    let pods = Pods::active(cluster, set);
    for _ in pods.count()..wanted {
        create_pod(cluster, set, &name, &[]);
    }
    remove_surplus(cluster, pods, wanted);
    let pods = Pods::active(cluster, set);
    let status = json!({
        "observedGeneration": number(set, "/metadata/generation", 1),
        "replicas": pods.count(),
        "fullyLabeledReplicas": count(pods.labelled_as(set)),
        "readyReplicas": count(pods.ready()),
        "availableReplicas": count(pods.ready()),
    });
    set_status(cluster, object_ref, &status);
}

/// Removes pods that are too many, those that are not ready first.
fn remove_surplus(cluster: &Arc<Cluster>, mut pods: Pods, wanted: i64) {
    let surplus = usize::try_from(pods.count() - wanted).unwrap_or(0);
    pods.0.sort_by_key(|(_, pod)| is_ready(pod));
    for (object_ref, _) in pods.0.iter().take(surplus) {
        remove(cluster, object_ref, None);
    }
}

//! Volumes and claims that are deleted: they stay while they are in use.

use serde_json::Value;

use super::finalizer::remove_finalizer;
use crate::cluster::Cluster;
use crate::store::{ObjectRef, Stored};

/// Removes the protection of a volume that no claim is bound to.
pub(super) fn release_volume(cluster: &Cluster, object_ref: &ObjectRef, volume: &Value) {
    if volume.pointer("/spec/claimRef").is_none() {
        remove_finalizer(cluster, object_ref, "kubernetes.io/pv-protection");
    }
}

/// Removes the protection of a claim that no pod uses.
pub(super) fn release_claim(cluster: &Cluster, object_ref: &ObjectRef, claim: &Stored) {
    let uses = |pod: &Value| {
        let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
        let mut names =
            volumes.into_iter().flatten().filter_map(|v| v.pointer("/persistentVolumeClaim/claimName"));
        names.any(|name| name == claim.name())
    };
    let pods = cluster.storage.all("/pods", Some(claim.namespace()));
    if !pods.iter().any(|pod| uses(&pod.value())) {
        remove_finalizer(cluster, object_ref, "kubernetes.io/pvc-protection");
    }
}

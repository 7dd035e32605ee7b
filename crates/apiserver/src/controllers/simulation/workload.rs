//! Replica sets, stateful sets and daemon sets: as many pods as are asked for.

use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{Pods, create_pod};
use super::status::{count, number, set_status, text};
use crate::cluster::Cluster;
use crate::store::ObjectRef;
use crate::write::loopback::{create, remove};

/// At most so many pods are made for one object: nothing that is simulated needs more.
const MOST: i64 = 1_000;

/// Makes or removes the pods of a replica set, and counts.
pub(super) fn replica_set(cluster: &Arc<Cluster>, object_ref: &ObjectRef, set: &Value) {
    let wanted = number(set, "/spec/replicas", 1).clamp(0, MOST);
    let name = format!("{}-", text(set, "/metadata/name"));
    let pods = Pods::of(cluster, text(set, "/metadata/uid"));
    for _ in pods.count()..wanted {
        create_pod(cluster, set, &name, &[]);
    }
    remove_surplus(cluster, &pods, wanted);
    let pods = Pods::of(cluster, text(set, "/metadata/uid"));
    let status = json!({
        "observedGeneration": number(set, "/metadata/generation", 1),
        "replicas": pods.count(),
        "fullyLabeledReplicas": count(pods.count()),
        "readyReplicas": count(pods.ready()),
        "availableReplicas": count(pods.ready()),
    });
    set_status(cluster, object_ref, &status);
}

fn remove_surplus(cluster: &Arc<Cluster>, pods: &Pods, wanted: i64) {
    let surplus = usize::try_from(pods.count() - wanted).unwrap_or(0);
    for (object_ref, _) in pods.0.iter().rev().take(surplus) {
        remove(cluster, object_ref, None);
    }
}

/// Makes or removes the pods of a stateful set in their order, with their claims, and counts.
pub(super) fn stateful_set(cluster: &Arc<Cluster>, object_ref: &ObjectRef, set: &Value) {
    let wanted = number(set, "/spec/replicas", 1).clamp(0, MOST);
    let (name, namespace) = (text(set, "/metadata/name"), text(set, "/metadata/namespace"));
    let uid = text(set, "/metadata/uid");
    let pods = Pods::of(cluster, uid);
    let revision = format!("{name}-{}", number(set, "/metadata/generation", 1));
    for ordinal in 0..wanted {
        let pod = format!("{name}-{ordinal}");
        if pods.0.iter().any(|(_, known)| text(known, "/metadata/name") == pod) {
            continue;
        }
        make_claims(cluster, set, namespace, &pod);
        let labels = [
            ("statefulset.kubernetes.io/pod-name", pod.as_str()),
            ("controller-revision-hash", revision.as_str()),
        ];
        create_pod(cluster, set, &pod, &labels);
    }
    for (object_ref, pod) in &pods.0 {
        let ordinal = text(pod, "/metadata/name").rsplit_once('-').and_then(|(_, n)| n.parse::<i64>().ok());
        if ordinal.is_none_or(|ordinal| ordinal >= wanted) {
            remove(cluster, object_ref, None);
        }
    }
    let pods = Pods::of(cluster, uid);
    let status = json!({
        "observedGeneration": number(set, "/metadata/generation", 1),
        "replicas": pods.count(),
        "readyReplicas": count(pods.ready()),
        "currentReplicas": count(pods.count()),
        "updatedReplicas": count(pods.count()),
        "availableReplicas": pods.ready(),
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
    });
    set_status(cluster, object_ref, &status);
}

fn make_claims(cluster: &Arc<Cluster>, set: &Value, namespace: &str, pod: &str) {
    let templates = set.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array);
    for template in templates.into_iter().flatten() {
        let claim = json!({
            "metadata": {
                "name": format!("{}-{pod}", text(template, "/metadata/name")),
                "labels": set.pointer("/spec/selector/matchLabels"),
            },
            "spec": template.get("spec"),
        });
        create(cluster, "v1", "persistentvolumeclaims", Some(namespace), claim);
    }
}

/// Makes the one pod of a daemon set on the one node, and counts.
pub(super) fn daemon_set(cluster: &Arc<Cluster>, object_ref: &ObjectRef, set: &Value) {
    let uid = text(set, "/metadata/uid");
    let pods = Pods::of(cluster, uid);
    if pods.count() == 0 {
        let name = format!("{}-", text(set, "/metadata/name"));
        create_pod(cluster, set, &name, &[]);
    }
    let pods = Pods::of(cluster, uid);
    let status = json!({
        "observedGeneration": number(set, "/metadata/generation", 1),
        "currentNumberScheduled": pods.count(),
        "desiredNumberScheduled": 1,
        "updatedNumberScheduled": count(pods.count()),
        "numberMisscheduled": 0,
        "numberReady": pods.ready(),
        "numberAvailable": count(pods.ready()),
        "numberUnavailable": count((1 - pods.ready()).max(0)),
    });
    set_status(cluster, object_ref, &status);
}

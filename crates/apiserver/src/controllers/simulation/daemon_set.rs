//! Daemon sets: one pod on the one node.

use std::sync::Arc;

use serde_json::{Value, json};

use super::node;
use super::pods::{Pods, create_pod_of, has_ended, is_ready};
use super::revisions::{HASH, History};
use super::status::{count, number, set_status, text};
use crate::cluster::Cluster;
use crate::store::ObjectRef;
use crate::write::loopback::remove;

/// Does the next step of a daemon set, and counts its pods.
pub(super) fn step(cluster: &Arc<Cluster>, object_ref: &ObjectRef, set: &Value) {
    let history = History::of(cluster, set, HASH);
    let Some(update) = history.update() else {
        return;
    };
    let prefix = format!("{}-", text(set, "/metadata/name"));
    let hash = update.name.strip_prefix(&prefix).unwrap_or_default();
    let uid = text(set, "/metadata/uid");
    let wanted = i64::from(node::takes(set.pointer("/spec/template/spec")));
    let pods = Pods::of(cluster, uid);
    let is_new = |pod: &Value| text(pod, "/metadata/labels/controller-revision-hash") == hash;
    let surges = !matches!(
        set.pointer("/spec/updateStrategy/rollingUpdate/maxSurge"),
        None | Some(Value::Null | Value::Number(_))
    ) || number(set, "/spec/updateStrategy/rollingUpdate/maxSurge", 0) > 0;
    let rolls = text(set, "/spec/updateStrategy/type") != "OnDelete";
    let new_ready = pods.0.iter().any(|(_, pod)| is_new(pod) && is_ready(pod));
    let mut left = 0;
    let mut has_new = false;
    for (object_ref, pod) in &pods.0 {
        let outdated = rolls && !is_new(pod) && (!surges || new_ready);
        if wanted == 0 || has_ended(pod) || outdated || (is_new(pod) && has_new) {
            remove(cluster, object_ref, None);
        } else {
            left += 1;
            has_new |= is_new(pod);
        }
    }
    if wanted > 0 && (left == 0 || (rolls && surges && !has_new)) {
        let generation = set.pointer("/metadata/annotations/deprecated.daemonset.template.generation");
        let generation = generation.and_then(Value::as_str).unwrap_or("1");
        let labels = [(HASH, hash), ("pod-template-generation", generation)];
        create_pod_of(cluster, set, &update.template, &prefix, &labels);
    }
    let pods = Pods::of(cluster, uid);
    let updated = pods.0.iter().filter(|(_, pod)| is_new(pod)).count();
    let ready = pods.ready().min(wanted);
    let status = json!({
        "observedGeneration": number(set, "/metadata/generation", 1),
        "currentNumberScheduled": pods.count().min(wanted),
        "desiredNumberScheduled": wanted,
        "updatedNumberScheduled": count(i64::try_from(updated).unwrap_or(0).min(wanted)),
        "numberMisscheduled": 0,
        "numberReady": ready,
        "numberAvailable": count(ready),
        "numberUnavailable": count(wanted - ready),
    });
    set_status(cluster, object_ref, &status);
    history.trim(cluster, set, |revision| {
        let hash = revision.name.strip_prefix(&prefix).unwrap_or_default();
        pods.0.iter().any(|(_, pod)| text(pod, "/metadata/labels/controller-revision-hash") == hash)
    });
}

//! Daemon sets: one pod on the one node.

use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{Pods, create_pod_of, has_ended, is_ready};
use super::revisions::{HASH, History};
use super::scheduler::{Node, UNSCHEDULABLE};
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
    let mut template = update.template.clone();
    tolerate(&mut template);
    let spec = template.get("spec").unwrap_or(&Value::Null);
    let node = Node::of(cluster);
    let stays = node.is_selected(spec) && node.is_tolerated(spec, &["NoExecute"]);
    let wanted = i64::from(stays && node.is_tolerated(spec, &["NoSchedule"]));
    let pods = Pods::of(cluster, set);
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
        if !stays || has_ended(pod) || outdated || (is_new(pod) && has_new) {
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
        create_pod_of(cluster, set, &template, &prefix, &labels);
    }
    let pods = Pods::of(cluster, set);
    let updated = pods.0.iter().filter(|(_, pod)| is_new(pod)).count();
    let ready = pods.ready().min(wanted);
    let status = json!({
        "observedGeneration": number(set, "/metadata/generation", 1),
        "currentNumberScheduled": pods.count().min(wanted),
        "desiredNumberScheduled": wanted,
        "updatedNumberScheduled": count(i64::try_from(updated).unwrap_or(0).min(wanted)),
        "numberMisscheduled": pods.count().min(1 - wanted),
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

/// What the pods of every daemon set tolerate: keys and effects.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    (UNSCHEDULABLE, "NoSchedule"),
];

/// Adds to a template what pods of daemon sets tolerate.
fn tolerate(template: &mut Value) {
    let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let on_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    let network = on_host.then_some(("node.kubernetes.io/network-unavailable", "NoSchedule"));
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if tolerations.is_null() {
        *tolerations = json!([]);
    }
    let Some(tolerations) = tolerations.as_array_mut() else {
        return;
    };
    for (key, effect) in TOLERATED.into_iter().chain(network) {
        let new = json!({"key": key, "operator": "Exists", "effect": effect});
        let is_same = |known: &&mut Value| {
            ["/key", "/operator", "/effect", "/value"].iter().all(|at| text(known, at) == text(&new, at))
        };
        match tolerations.iter_mut().find(is_same) {
            // Without an end.
            Some(known) => *known = new,
            None => tolerations.push(new),
        }
    }
}

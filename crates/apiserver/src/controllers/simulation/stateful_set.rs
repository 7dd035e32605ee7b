//! Stateful sets: pods in their order, each with its claims, and replaced from the last to the first.

use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{Pods, create_pod_of, has_ended, is_ready};
use super::replica_set::MOST;
use super::revisions::{HASH, History, Revision};
use super::status::{count, number, set_status, text};
use crate::cluster::Cluster;
use crate::store::ObjectRef;
use crate::write::loopback::{create, remove};

/// Does the next step of a stateful set, and counts its pods.
pub(super) fn step(cluster: &Arc<Cluster>, object_ref: &ObjectRef, set: &Value) {
    let history = History::of(cluster, set, "controller.kubernetes.io/hash");
    let Some(update) = history.update().cloned() else {
        return;
    };
    // A roll-out that has not ended still knows where it began.
    let current = history.find(text(set, "/status/currentRevision")).unwrap_or(&update).clone();
    let ordinals = Ordinals::of(set);
    let pods = Pods::members(cluster, set);
    if !place(cluster, set, &ordinals, &pods, (&current, &update)) {
        roll(cluster, set, &ordinals, &pods, &update);
    }
    tally(cluster, object_ref, set, (&current, &update));
    let pods = Pods::members(cluster, set);
    history.trim(cluster, set, |revision| {
        revision.name == current.name || pods.0.iter().any(|(_, pod)| revision_of(pod) == revision.name)
    });
}

fn revision_of(pod: &Value) -> &str {
    pod.pointer("/metadata/labels").and_then(|labels| labels.get(HASH)).and_then(Value::as_str).unwrap_or("")
}

/// The numbers of the pods of a set.
struct Ordinals {
    start: i64,
    end: i64,
    /// Pods before this one keep the current revision. The partition counts from the first pod, whatever its number is.
    partition: i64,
    parallel: bool,
    rolls: bool,
}

impl Ordinals {
    fn of(set: &Value) -> Ordinals {
        let start = number(set, "/spec/ordinals/start", 0);
        Ordinals {
            start,
            end: start + number(set, "/spec/replicas", 1).clamp(0, MOST),
            partition: start + number(set, "/spec/updateStrategy/rollingUpdate/partition", 0),
            parallel: text(set, "/spec/podManagementPolicy") == "Parallel",
            rolls: text(set, "/spec/updateStrategy/type") != "OnDelete",
        }
    }
}

/// Makes the pods that are missing and removes those that are too many. Returns whether it did, or waits for one.
fn place(
    cluster: &Arc<Cluster>,
    set: &Value,
    ordinals: &Ordinals,
    pods: &Pods,
    (current, update): (&Revision, &Revision),
) -> bool {
    let (name, namespace) = (text(set, "/metadata/name"), text(set, "/metadata/namespace"));
    let mut busy = false;
    for ordinal in ordinals.start..ordinals.end {
        let pod_name = format!("{name}-{ordinal}");
        let known = pods.0.iter().find(|(_, pod)| text(pod, "/metadata/name") == pod_name);
        let ready = match known {
            Some((object_ref, pod)) if has_ended(pod) => {
                remove(cluster, object_ref, None);
                busy = true;
                false
            }
            Some((_, pod)) => is_ready(pod),
            None => {
                make_claims(cluster, set, namespace, &pod_name);
                let keeps = ordinals.rolls && ordinal < ordinals.partition;
                let revision = if keeps { current } else { update };
                let labels = [
                    ("statefulset.kubernetes.io/pod-name", pod_name.as_str()),
                    ("apps.kubernetes.io/pod-index", &ordinal.to_string()),
                    (HASH, revision.name.as_str()),
                ];
                create_pod_of(cluster, set, &revision.template, &pod_name, &labels);
                busy = true;
                false
            }
        };
        // In their order, nothing goes on before each pod is ready: what is stuck stays so, whatever the template says.
        if !ready && !ordinals.parallel {
            return true;
        }
    }
    let mut surplus: Vec<(i64, &ObjectRef)> = pods
        .0
        .iter()
        .map(|(object_ref, pod)| (ordinal_of(pod), object_ref))
        .filter(|(ordinal, _)| !(ordinals.start..ordinals.end).contains(ordinal))
        .collect();
    surplus.sort_by(|a, b| b.cmp(a));
    for (_, object_ref) in surplus {
        remove(cluster, object_ref, None);
        busy = true;
        if !ordinals.parallel {
            break;
        }
    }
    busy
}

fn ordinal_of(pod: &Value) -> i64 {
    text(pod, "/metadata/name").rsplit_once('-').and_then(|(_, ordinal)| ordinal.parse().ok()).unwrap_or(-1)
}

/// Removes the last pod of an old revision, unless a later pod is not ready yet.
fn roll(cluster: &Arc<Cluster>, set: &Value, ordinals: &Ordinals, pods: &Pods, update: &Revision) {
    if !ordinals.rolls {
        return;
    }
    let name = text(set, "/metadata/name");
    for ordinal in (ordinals.partition..ordinals.end).rev() {
        let pod_name = format!("{name}-{ordinal}");
        let Some((object_ref, pod)) = pods.0.iter().find(|(_, pod)| text(pod, "/metadata/name") == pod_name)
        else {
            return;
        };
        if revision_of(pod) != update.name {
            remove(cluster, object_ref, None);
            return;
        }
        if !is_ready(pod) {
            return;
        }
    }
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

/// Writes the numbers of the pods into the status. When all are of the new revision, it is the current one.
fn tally(
    cluster: &Arc<Cluster>,
    object_ref: &ObjectRef,
    set: &Value,
    (current, update): (&Revision, &Revision),
) {
    let pods = Pods::members(cluster, set);
    let of = |revision: &Revision| {
        let found = pods.0.iter().filter(|(_, pod)| revision_of(pod) == revision.name);
        i64::try_from(found.count()).unwrap_or(i64::MAX)
    };
    let (updated, ready) = (of(update), pods.ready());
    let rolls = text(set, "/spec/updateStrategy/type") != "OnDelete";
    let wanted = number(set, "/spec/replicas", 1).clamp(0, MOST);
    let complete = rolls && [updated, ready, pods.count()].iter().all(|count| *count == wanted);
    let current = if complete { update } else { current };
    let status = json!({
        "observedGeneration": number(set, "/metadata/generation", 1),
        "replicas": pods.count(),
        "readyReplicas": count(ready),
        "currentReplicas": count(of(current)),
        "updatedReplicas": count(updated),
        "availableReplicas": ready,
        "currentRevision": current.name,
        "updateRevision": update.name,
        "collisionCount": 0,
    });
    set_status(cluster, object_ref, &status);
}

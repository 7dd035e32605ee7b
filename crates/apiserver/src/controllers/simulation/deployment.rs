//! Deployments: one replica set for each template.

use std::sync::Arc;

use objects::time::format_seconds;
use serde_json::{Value, json};

use super::pods;
use super::status::{CONTROLLER, condition, count, number, set_status, text};
use crate::cluster::{Cluster, Edit};
use crate::store::ObjectRef;
use crate::write::loopback::create;

const REVISION: &str = "deployment.kubernetes.io/revision";

/// Makes the replica set of the present template, empties the others, and counts.
pub(super) fn step(cluster: &Arc<Cluster>, object_ref: &ObjectRef, deployment: &Value) {
    let wanted = number(deployment, "/spec/replicas", 1);
    let hash = template_hash(deployment);
    let name = format!("{}-{hash}", text(deployment, "/metadata/name"));
    let sets = sets(cluster, text(deployment, "/metadata/uid"));
    let newest = sets.iter().map(|(_, set)| revision(set)).max().unwrap_or(0);
    let current = sets.iter().find(|(_, set)| text(set, "/metadata/name") == name);
    let number_of_set = match current {
        Some((_, set)) if revision(set) == newest => newest,
        Some(_) | None => newest + 1,
    };
    if current.is_none() {
        let namespace = text(deployment, "/metadata/namespace");
        create(cluster, "apps/v1", "replicasets", Some(namespace), new_set(deployment, &name, &hash, wanted));
    }
    for (set_ref, set) in &sets {
        let is_current = text(set, "/metadata/name") == name;
        let replicas = if is_current { wanted } else { 0 };
        adjust(cluster, set_ref, replicas, is_current.then_some(number_of_set));
    }
    annotate(cluster, object_ref, number_of_set);
    tally(cluster, object_ref, &name, wanted);
}

fn sets(cluster: &Cluster, uid: &str) -> Vec<(ObjectRef, Value)> {
    let store = cluster.storage.read();
    let refs = store.dependents_of(uid).filter(|object_ref| &*object_ref.table == "apps/replicasets");
    refs.filter_map(|object_ref| {
        Some((object_ref.clone(), store.get(&object_ref.table, &object_ref.key)?.value()))
    })
    .collect()
}

fn revision(set: &Value) -> i64 {
    let annotations = set.pointer("/metadata/annotations");
    annotations
        .and_then(|a| a.get(REVISION))
        .and_then(Value::as_str)
        .and_then(|r| r.parse().ok())
        .unwrap_or(0)
}

/// Returns ten characters that change with the template.
fn template_hash(deployment: &Value) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let template = deployment.pointer("/spec/template").map(Value::to_string).unwrap_or_default();
    let mut bits = crate::fingerprint::fingerprint(template.as_bytes());
    let size = ALPHABET.len() as u64;
    let mut hash = String::new();
    while hash.len() < 10 {
        let index = usize::try_from(bits % size).unwrap_or(0);
        hash.extend(ALPHABET.get(index).map(|&byte| char::from(byte)));
        bits /= size;
    }
    hash
}

fn new_set(deployment: &Value, name: &str, hash: &str, replicas: i64) -> Value {
    let mut template = deployment.pointer("/spec/template").cloned().unwrap_or_default();
    let mut selector = deployment.pointer("/spec/selector").cloned().unwrap_or_default();
    let add = |labels: Option<&mut Value>| {
        if let Some(labels) = labels.and_then(Value::as_object_mut) {
            labels.insert("pod-template-hash".into(), json!(hash));
        }
    };
    add(template.pointer_mut("/metadata/labels"));
    add(selector.pointer_mut("/matchLabels"));
    json!({
        "metadata": {
            "name": name,
            "labels": template.pointer("/metadata/labels"),
            "annotations": {REVISION: "1"},
            "ownerReferences": [pods::reference(deployment)],
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    })
}

fn adjust(cluster: &Cluster, object_ref: &ObjectRef, replicas: i64, revision: Option<i64>) {
    let Some(resource) = cluster.registry.of_table(&object_ref.table) else {
        return;
    };
    // A set that is gone meanwhile needs no replicas.
    let _ = cluster.modify(&resource, object_ref, CONTROLLER, |set| {
        let before = set.clone();
        if let Some(spec) = set.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("replicas".into(), json!(replicas));
        }
        if let (Some(revision), Some(metadata)) =
            (revision, set.get_mut("metadata").and_then(Value::as_object_mut))
        {
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.insert(REVISION.into(), json!(revision.to_string()));
            }
        }
        if before.get("spec") != set.get("spec")
            && let Some(metadata) = set.get_mut("metadata").and_then(Value::as_object_mut)
        {
            let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or(0);
            metadata.insert("generation".into(), json!(generation + 1));
        }
        if *set == before { Edit::Keep } else { Edit::Write }
    });
}

fn annotate(cluster: &Cluster, object_ref: &ObjectRef, revision: i64) {
    let Some(resource) = cluster.registry.of_table(&object_ref.table) else {
        return;
    };
    let _ = cluster.modify(&resource, object_ref, CONTROLLER, |deployment| {
        let Some(metadata) = deployment.get_mut("metadata").and_then(Value::as_object_mut) else {
            return Edit::Keep;
        };
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        let value = json!(revision.to_string());
        match annotations.as_object_mut() {
            Some(annotations) if annotations.get(REVISION) != Some(&value) => {
                annotations.insert(REVISION.into(), value);
                Edit::Write
            }
            Some(_) | None => Edit::Keep,
        }
    });
}

/// Writes the numbers of the replica sets into the status.
fn tally(cluster: &Arc<Cluster>, object_ref: &ObjectRef, current: &str, wanted: i64) {
    let Some(deployment) = cluster.storage.get(object_ref).map(|object| object.value()) else {
        return;
    };
    let sets = sets(cluster, text(&deployment, "/metadata/uid"));
    let sum = |path: &str| sets.iter().map(|(_, set)| number(set, path, 0)).sum::<i64>();
    let (total, ready, available) =
        (sum("/status/replicas"), sum("/status/readyReplicas"), sum("/status/availableReplicas"));
    let now_set = sets.iter().find(|(_, set)| text(set, "/metadata/name") == current);
    let updated = now_set.map_or(0, |(_, set)| number(set, "/status/replicas", 0));
    let updated_ready = now_set.map_or(0, |(_, set)| number(set, "/status/availableReplicas", 0));
    let now = format_seconds(cluster.now());
    let enough = available >= wanted.min(1.max(wanted - wanted / 4));
    let done = updated == wanted && updated_ready == wanted && total == wanted;
    let (status, reason, message) = if enough {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    let available_now = condition(&deployment, "Available", status, reason, message, &now);
    let (reason, message) = if done {
        ("NewReplicaSetAvailable", format!("ReplicaSet \"{current}\" has successfully progressed."))
    } else {
        ("ReplicaSetUpdated", format!("ReplicaSet \"{current}\" is progressing."))
    };
    let mut progressing = condition(&deployment, "Progressing", "True", reason, &message, &now);
    let mut available_now = available_now;
    for condition in [&mut progressing, &mut available_now] {
        let time = condition.get("lastTransitionTime").cloned().unwrap_or_default();
        if let Some(fields) = condition.as_object_mut() {
            fields.insert("lastUpdateTime".into(), time);
        }
    }
    let status = json!({
        "observedGeneration": number(&deployment, "/metadata/generation", 1),
        "replicas": count(total),
        "updatedReplicas": count(updated),
        "readyReplicas": count(ready),
        "availableReplicas": count(available),
        "unavailableReplicas": count((wanted - available).max(0)),
        "conditions": [available_now, progressing],
    });
    set_status(cluster, object_ref, &status);
}

//! The pods of a workload.

use std::sync::Arc;

use serde_json::{Value, json};

use super::node;
use super::status::text;
use crate::cluster::Cluster;
use crate::store::{ObjectRef, Stored};
use crate::write::loopback::create;

/// The pods that an object owns, decoded.
pub(super) struct Pods(pub(super) Vec<(ObjectRef, Value)>);

impl Pods {
    /// Returns how often containers were started again of pods that have not ended. Such pods do not fail themselves.
    pub(super) fn restarts(&self) -> i64 {
        self.0.iter().filter(|(_, pod)| !has_ended(pod)).map(|(_, pod)| node::restarts(pod)).sum()
    }

    /// Returns the pods that the object with this identity owns, without those that are being deleted.
    pub(super) fn of(cluster: &Cluster, uid: &str) -> Pods {
        let store = cluster.storage.read();
        let refs = store.dependents_of(uid).filter(|object_ref| &*object_ref.table == "/pods");
        let found: Vec<(ObjectRef, Arc<Stored>)> = refs
            .filter_map(|object_ref| {
                Some((object_ref.clone(), Arc::clone(store.get(&object_ref.table, &object_ref.key)?)))
            })
            .filter(|(_, pod)| !pod.deleting)
            .collect();
        drop(store);
        Pods(found.into_iter().map(|(object_ref, pod)| (object_ref, pod.value())).collect())
    }

    pub(super) fn count(&self) -> i64 {
        i64::try_from(self.0.len()).unwrap_or(i64::MAX)
    }

    pub(super) fn ready(&self) -> i64 {
        let ready = self.0.iter().filter(|(_, pod)| is_ready(pod));
        i64::try_from(ready.count()).unwrap_or(i64::MAX)
    }

    pub(super) fn in_phase(&self, phase: &str) -> i64 {
        let found = self.0.iter().filter(|(_, pod)| text(pod, "/status/phase") == phase);
        i64::try_from(found.count()).unwrap_or(i64::MAX)
    }
}

pub(super) fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|condition| text(condition, "/type") == "Ready" && text(condition, "/status") == "True")
}

/// Returns the reference of a dependent to its owner.
pub(super) fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner.get("apiVersion"),
        "kind": owner.get("kind"),
        "name": text(owner, "/metadata/name"),
        "uid": text(owner, "/metadata/uid"),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Returns whether a pod has come to its end.
pub(super) fn has_ended(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

/// Creates a pod from the template of its owner; `name` is whole, or ends with `-` and is completed.
pub(super) fn create_pod(cluster: &Arc<Cluster>, owner: &Value, name: &str, labels: &[(&str, &str)]) {
    let template = owner.pointer("/spec/template").cloned().unwrap_or_default();
    create_pod_of(cluster, owner, &template, name, labels);
}

/// Creates a pod from this template of its owner.
pub(super) fn create_pod_of(
    cluster: &Arc<Cluster>,
    owner: &Value,
    template: &Value,
    name: &str,
    labels: &[(&str, &str)],
) {
    let mut pod = json!({"metadata": template.get("metadata"), "spec": template.get("spec")});
    let Some(fields) = pod.as_object_mut() else {
        return;
    };
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("creationTimestamp");
        let key = if name.ends_with('-') { "generateName" } else { "name" };
        metadata.insert(key.into(), json!(name));
        metadata.insert("ownerReferences".into(), json!([reference(owner)]));
        let own = metadata.entry("labels").or_insert_with(|| json!({}));
        if let Some(own) = own.as_object_mut() {
            own.extend(labels.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
        }
    }
    create(cluster, "v1", "pods", Some(text(owner, "/metadata/namespace")), pod);
}

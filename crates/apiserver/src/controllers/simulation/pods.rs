//! The pods of a workload.

use std::sync::Arc;

use serde_json::{Value, json};

use super::node;
use super::ownership::{Wanted, claim, reference};
use super::pod_conditions::is_true;
use super::status::text;
use crate::cluster::Cluster;
use crate::store::ObjectRef;
use crate::write::loopback::create;

const TABLE: &str = "/pods";

/// The pods of a workload, decoded.
pub(super) struct Pods(pub(super) Vec<(ObjectRef, Value)>);

impl Pods {
    /// Returns how often containers were started again of pods that have not ended. Such pods do not fail themselves.
    pub(super) fn restarts(&self) -> i64 {
        self.0.iter().filter(|(_, pod)| !has_ended(pod)).map(|(_, pod)| node::restarts(pod)).sum()
    }

    /// Returns the pods of a workload, without those that are being deleted. Orphans that it selects are its own.
    pub(super) fn of(cluster: &Cluster, owner: &Value) -> Pods {
        Pods(claim(cluster, owner, &Wanted::all(TABLE)))
    }

    /// Returns the pods of a workload that have not ended. It does not look at others.
    pub(super) fn active(cluster: &Cluster, owner: &Value) -> Pods {
        let counts = |pod: &Value| !has_ended(pod);
        Pods(claim(cluster, owner, &Wanted { table: TABLE, fits: &|_| true, counts: &counts }))
    }

    /// Returns the pods of a stateful set, which are called by its name and their number.
    pub(super) fn members(cluster: &Cluster, set: &Value) -> Pods {
        let name = text(set, "/metadata/name");
        let fits = |pod: &str| {
            pod.rsplit_once('-').is_some_and(|(parent, ordinal)| {
                parent == name && !ordinal.is_empty() && ordinal.bytes().all(|byte| byte.is_ascii_digit())
            })
        };
        Pods(claim(cluster, set, &Wanted { table: TABLE, fits: &fits, counts: &|_| true }))
    }

    pub(super) fn count(&self) -> i64 {
        i64::try_from(self.0.len()).unwrap_or(i64::MAX)
    }

    pub(super) fn ready(&self) -> i64 {
        let ready = self.0.iter().filter(|(_, pod)| is_ready(pod));
        i64::try_from(ready.count()).unwrap_or(i64::MAX)
    }

    /// Returns how many have all labels that the template of their owner has now.
    pub(super) fn labelled_as(&self, owner: &Value) -> i64 {
        let wanted = || owner.pointer("/spec/template/metadata/labels").and_then(Value::as_object);
        let has = |pod: &Value, key: &str| {
            pod.pointer("/metadata/labels").and_then(|labels| labels.get(key)).cloned()
        };
        let fits = |pod: &Value| {
            wanted().into_iter().flatten().all(|(key, value)| has(pod, key).as_ref() == Some(value))
        };
        let labelled = self.0.iter().filter(|(_, pod)| fits(pod));
        i64::try_from(labelled.count()).unwrap_or(i64::MAX)
    }

    pub(super) fn in_phase(&self, phase: &str) -> i64 {
        let found = self.0.iter().filter(|(_, pod)| text(pod, "/status/phase") == phase);
        i64::try_from(found.count()).unwrap_or(i64::MAX)
    }
}

pub(super) fn is_ready(pod: &Value) -> bool {
    is_true(pod, "Ready")
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

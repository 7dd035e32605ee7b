//! Rules of deletions: how long an object waits, and what for.

use serde_json::{Value, json};

use crate::registry::Resource;
use crate::{definitions, object_meta};

/// Returns whether dependents stay when a deletion names no propagation policy.
pub(crate) fn orphans_by_default(resource: &Resource) -> bool {
    resource.is("batch", "jobs") || resource.is("", "replicationcontrollers")
}

/// Returns how many seconds an object waits before it is removed.
pub(crate) fn grace(resource: &Resource, object: &Value, asked: Option<i64>) -> i64 {
    if !resource.is("", "pods") {
        return 0;
    }
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let over = matches!(text("/status/phase"), "Succeeded" | "Failed");
    if text("/spec/nodeName").is_empty() || over {
        return 0;
    }
    let own = object.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    asked.or(own).unwrap_or(30).max(0)
}

/// Returns whether a deleted object must wait, for its grace or for others.
pub(crate) fn holds_back(resource: &Resource, object: &Value) -> bool {
    let waits_for_grace = resource.is("", "pods")
        && object
            .pointer("/metadata/deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            .is_some_and(|g| g > 0);
    waits_for_grace || waits_for_others(resource, object)
}

/// Returns whether a deleted object must wait for its finalizers.
pub(crate) fn waits_for_others(resource: &Resource, object: &Value) -> bool {
    let namespace = resource.is("", "namespaces")
        && object.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    namespace || !object_meta::finalizers(object).is_empty()
}

/// Writes into the status of an object that it waits for its deletion.
pub(crate) fn terminate(resource: &Resource, object: &mut Value, now: jiff::Timestamp) {
    if resource.is("", "namespaces")
        && let Some(fields) = object.as_object_mut()
    {
        let status = fields.entry("status").or_insert_with(|| json!({}));
        if let Some(status) = status.as_object_mut() {
            status.insert("phase".into(), json!("Terminating"));
        }
    }
    if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        definitions::terminate(object, now);
    }
}

//! Namespaces that are deleted: their contents first.

use std::sync::Arc;

use objects::time::format_seconds;
use serde_json::{Value, json};

use super::finalizer::edit;
use crate::cluster::{Cluster, Edit};
use crate::object_meta::finalizers;
use crate::store::{ObjectRef, Stored};
use crate::write::Propagation;
use crate::write::loopback::remove_now;

/// Deletes what is in a namespace, and removes its finalizer when nothing is left.
pub(super) fn empty_namespace(cluster: &Arc<Cluster>, object_ref: &ObjectRef, namespace: &Stored) {
    let left = contents(cluster, namespace.name());
    for object in &left {
        if cluster.storage.get(object).is_some_and(|object| !object.deleting || &*object_ref.table == "/pods")
        {
            // Pods are not waited for: no node runs them.
            remove_now(cluster, object, Some(Propagation::Background));
        }
    }
    let left = contents(cluster, namespace.name());
    if left.is_empty() {
        edit(cluster, object_ref, |object| {
            let spec = object.get_mut("spec").and_then(Value::as_object_mut);
            match spec.and_then(|spec| spec.remove("finalizers")) {
                Some(_) => Edit::Write,
                None => Edit::Keep,
            }
        });
        return;
    }
    let waiting = left.iter().filter_map(|object_ref| cluster.storage.get(object_ref));
    let mut names: Vec<String> = waiting
        .flat_map(|object| {
            finalizers(&object.value()).iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()
        })
        .collect();
    names.sort();
    names.dedup();
    let now = format_seconds(cluster.now());
    let message = format!("Some content in the namespace has finalizers remaining: {}", names.join(", "));
    edit(cluster, object_ref, |object| {
        let condition = json!({
            "type": "NamespaceFinalizersRemaining",
            "status": "True",
            "reason": "SomeFinalizersRemain",
            "message": message,
            "lastTransitionTime": now,
        });
        let status = object.get_mut("status").and_then(Value::as_object_mut);
        let known = status.as_ref().and_then(|status| status.get("conditions")).is_some();
        match status {
            Some(status) if !known => {
                status.insert("conditions".into(), json!([condition]));
                Edit::Write
            }
            Some(_) | None => Edit::Keep,
        }
    });
}

fn contents(cluster: &Cluster, namespace: &str) -> Vec<ObjectRef> {
    let store = cluster.storage.read();
    let mut found = Vec::new();
    for table in store.tables() {
        let objects = store.all(table, Some(namespace));
        found.extend(
            objects.iter().map(|stored| ObjectRef { table: Arc::clone(table), key: stored.key.clone() }),
        );
    }
    found
}

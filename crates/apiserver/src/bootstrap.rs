//! What a new cluster holds before the first request.

use std::sync::Arc;

use objects::time::format_seconds;
use serde_json::{Value, json};

use crate::admission::SYSTEM_NAMESPACES;
use crate::cluster::Cluster;
use crate::store::{Encoded, ObjectRef, Write, key_of};
use crate::write::loopback::create;

/// Creates what is missing.
pub(crate) fn fill(cluster: &Arc<Cluster>) {
    for name in SYSTEM_NAMESPACES {
        create(cluster, "v1", "namespaces", None, json!({"metadata": {"name": name}}));
    }
    let service = json!({
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.0.0.1",
            "clusterIPs": ["10.0.0.1"],
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
    });
    create(cluster, "v1", "services", Some("default"), service);
    for (name, value, description) in [
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    ] {
        let class = json!({"metadata": {"name": name}, "value": value, "description": description});
        create(cluster, "scheduling.k8s.io/v1", "priorityclasses", None, class);
    }
    let since = format_seconds(cluster.now());
    let since = since.split('T').next().unwrap_or_default();
    let map = json!({
        "metadata": {"name": "kube-apiserver-legacy-service-account-token-tracking"},
        "data": {"since": since},
    });
    create(cluster, "v1", "configmaps", Some("kube-system"), map);
    let now = format_seconds(cluster.now());
    for line in include_str!("../data/bootstrap.jsonl").lines() {
        if let Ok(object) = serde_json::from_str(&line.replace("NOW", &now)) {
            keep(cluster, object, &now);
        }
    }
}

/// Stores a recorded object as it is, unless it is there. It was checked when it was recorded.
fn keep(cluster: &Cluster, mut object: Value, now: &str) {
    let text = |object: &Value, path: &str| -> String {
        object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (version, kind) = (text(&object, "/apiVersion"), text(&object, "/kind"));
    let (group, number) = version.split_once('/').unwrap_or(("", &version));
    let Some(kind) = crate::kind::find_kind(group, number, &kind) else {
        return;
    };
    let Some(resource) = cluster.registry.resources().find(&version, &kind.plural).cloned() else {
        return;
    };
    let uid = cluster.random.uid();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("uid".into(), json!(uid));
        metadata.insert("creationTimestamp".into(), json!(now));
    }
    let (name, namespace) = (text(&object, "/metadata/name"), text(&object, "/metadata/namespace"));
    let namespace = kind.namespaced.then_some(namespace.as_str());
    let object_ref = ObjectRef { table: Arc::clone(&resource.table), key: key_of(namespace, &name) };
    if cluster.storage.get(&object_ref).is_some() {
        return;
    }
    if cluster.commit(&object_ref, Write::Create(Encoded::new(&object, &resource.fields))).is_err() {
        tracing::warn!(kind = &*kind.kind, name, "an object of the server could not be created");
    }
}

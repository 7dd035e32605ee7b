//! What a new cluster holds before the first request.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::call::Call;
use crate::cluster::Cluster;
use crate::decode::Node;
use crate::write::{SYSTEM_NAMESPACES, WriteOptions, create_object};

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
    let everything = json!({
        "metadata": {"name": "cluster-admin", "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
        "rules": [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ],
    });
    create(cluster, "rbac.authorization.k8s.io/v1", "clusterroles", None, everything);
}

/// Lets the simulated controllers and the node begin.
pub(crate) fn simulate(cluster: &Arc<Cluster>) {
    if cluster.config.simulate.is_some() {
        crate::simulate::register_node(cluster);
        crate::simulate::resume(cluster);
    }
}

/// Creates an object in the name of the server, unless it is there.
pub(crate) fn create(
    cluster: &Arc<Cluster>,
    group_version: &str,
    plural: &str,
    namespace: Option<&str>,
    object: Value,
) {
    let Some(resource) = cluster.registry().find(group_version, plural).cloned() else {
        return;
    };
    let call = Call::own(cluster, &resource, namespace);
    let body = Node::from(object);
    let options = WriteOptions::own("kube-apiserver");
    if let Err(error) = create_object(&call, body, None, &options, &mut Vec::new())
        && error.code() != 409
    {
        tracing::warn!(resource = plural, %error, "an object of the server could not be created");
    }
}

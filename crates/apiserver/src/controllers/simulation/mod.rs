//! Simulated controllers and one simulated node: workloads become ready after a short time although nothing runs.
//!
//! Each function looks at one object and does the next step towards what the object asks for; the changes that it
//! makes lead to the next steps. Images with `fail` in their name never start, those with `crash` end with the code 1.

mod claim;
mod daemon_set;
mod deployment;
mod job;
mod node;
mod ownership;
mod pod_conditions;
mod pod_failure_policy;
mod pods;
mod replica_set;
mod replica_sets;
mod revisions;
mod scheduler;
mod shares;
mod stateful_set;
mod status;
mod template;

use std::sync::Arc;

use jiff::Timestamp;
use objects::time::format_seconds;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Edit};
use crate::object_meta;
use crate::store::{ObjectRef, Stored};
use crate::work_queue::{Work, is_simulated};
use crate::write::loopback::create;
use status::{CONTROLLER, set_status, text};

/// An object that must be looked at again.
#[derive(Debug)]
pub(super) enum Later {
    /// After the delay of the simulation.
    Soon(ObjectRef),
    /// When this time has come: a deadline.
    At(ObjectRef, Timestamp),
}

/// Does the next step for an object. Returns it if another step follows.
pub(super) fn step(cluster: &Arc<Cluster>, object_ref: ObjectRef) -> Option<Later> {
    let object = cluster.storage.get(&object_ref)?;
    let value = object.value();
    if object.deleting && &*object_ref.table != "/pods" {
        return None;
    }
    let mut continues = false;
    match &*object_ref.table {
        "/pods" => return place(cluster, object_ref, &value),
        "/persistentvolumeclaims" => continues = claim::is_pending(&value),
        "/services" => claim::balance(cluster, &object_ref, &value),
        "/namespaces" => furnish(cluster, object.name()),
        "apps/deployments" => {
            return deployment::step(cluster, &object_ref, &value).map(|at| Later::At(object_ref, at));
        }
        "/nodes" => scheduler::taint(cluster, &object_ref),
        "/replicationcontrollers" | "apps/replicasets" => replica_set::step(cluster, &object_ref, &value),
        "apps/statefulsets" => stateful_set::step(cluster, &object_ref, &value),
        "apps/daemonsets" => daemon_set::step(cluster, &object_ref, &value),
        "batch/jobs" => {
            return job::step(cluster, &object_ref, &value).map(|at| Later::At(object_ref, at));
        }
        _ => {}
    }
    continues.then_some(Later::Soon(object_ref))
}

/// Puts a new pod onto the node if it takes it, looks after one that is there, or removes a deleted one.
fn place(cluster: &Arc<Cluster>, object_ref: ObjectRef, pod: &Value) -> Option<Later> {
    if object_meta::is_deleting(pod) {
        node::remove(cluster, &object_ref, pod);
        return None;
    }
    let is_taken = match text(pod, "/spec/nodeName") {
        "" => !scheduler::is_gated(pod) && scheduler::takes(cluster, &object_ref, pod),
        name => name == node::NODE,
    };
    if !is_taken {
        return None;
    }
    if node::accept(cluster, &object_ref, pod) {
        return Some(Later::Soon(object_ref));
    }
    node::look_after(cluster, &object_ref, pod).map(|at| Later::At(object_ref, at))
}

/// Does what follows after the delay. Returns the object if another step follows after another one.
pub(super) fn due(cluster: &Arc<Cluster>, object_ref: ObjectRef) -> Option<Later> {
    let value = cluster.storage.get(&object_ref)?.value();
    let mut continues = false;
    match &*object_ref.table {
        "/pods" => continues = node::advance(cluster, &object_ref, &value),
        "/persistentvolumeclaims" => claim::bind(cluster, &object_ref, &value),
        _ => {}
    }
    continues.then_some(Later::Soon(object_ref))
}

/// Registers the simulated node, and looks at every simulated object once: a state file may hold some that have not come
/// far.
pub(crate) fn start(cluster: &Arc<Cluster>) {
    register_node(cluster);
    let store = cluster.storage.read();
    for table in store.tables().filter(|table| is_simulated(table)) {
        for item in store.all(table, None) {
            let object_ref = ObjectRef { table: Arc::clone(table), key: item.key.clone() };
            if is_waiting_pod(&object_ref, &item) {
                cluster.work_queue.add(Work::Due(object_ref.clone()));
            }
            cluster.work_queue.add(Work::Simulate(object_ref));
        }
    }
}

/// Returns whether the object is a pod that is on the node.
fn is_waiting_pod(object_ref: &ObjectRef, item: &Stored) -> bool {
    &*object_ref.table == "/pods" && text(&item.value(), "/spec/nodeName") == node::NODE
}

fn register_node(cluster: &Arc<Cluster>) {
    let (node, status) = node::node(&format_seconds(cluster.now()));
    create(cluster, "v1", "nodes", None, node);
    let object_ref = ObjectRef { table: "/nodes".into(), key: node::NODE.into() };
    if let Some(resource) = cluster.registry.of_table(&object_ref.table) {
        // The simulated node takes pods at once.
        let _ = cluster.modify(&resource, &object_ref, CONTROLLER, |node| {
            let Some(spec) = node.get_mut("spec").and_then(Value::as_object_mut) else {
                return Edit::Keep;
            };
            let Some(taints) = spec.get_mut("taints").and_then(Value::as_array_mut) else {
                return Edit::Keep;
            };
            let before = taints.len();
            taints.retain(|taint| text(taint, "/key") != "node.kubernetes.io/not-ready");
            let (is_changed, is_empty) = (taints.len() != before, taints.is_empty());
            if is_empty {
                spec.remove("taints");
            }
            if is_changed { Edit::Write } else { Edit::Keep }
        });
    }
    set_status(cluster, &object_ref, &status);
}

/// Gives a namespace what controllers put into each.
fn furnish(cluster: &Arc<Cluster>, namespace: &str) {
    create(cluster, "v1", "serviceaccounts", Some(namespace), json!({"metadata": {"name": "default"}}));
    let map = json!({
        "metadata": {
            "name": "kube-root-ca.crt",
            "annotations": {"kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."},
        },
        "data": {"ca.crt": ""},
    });
    create(cluster, "v1", "configmaps", Some(namespace), map);
}

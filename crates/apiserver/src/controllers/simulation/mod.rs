//! Simulated controllers and one simulated node: workloads become ready after a short time although nothing runs.
//!
//! Each function looks at one object and does the next step towards what the object asks for; the changes that it
//! makes lead to the next steps. Images with `fail` in their name never start.

mod claim;
mod deployment;
mod job;
mod node;
mod pods;
mod workload;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::bootstrap::create;
use crate::cluster::Cluster;
use crate::store::{Change, Event, Place};
use crate::work_queue::{self, Chore};
use crate::write::{Edit, Hand, modify};

/// In whose name statuses are written.
const STATUS: Hand = Hand { manager: "kube-controller-manager", subresource: "status" };

/// In whose name objects are changed.
const CONTROLLER: Hand = Hand { manager: "kube-controller-manager", subresource: "" };

/// Tells whether the objects of a table are simulated.
pub(crate) fn is_simulated(table: &str) -> bool {
    matches!(
        table,
        "/pods"
            | "/persistentvolumeclaims"
            | "/services"
            | "/namespaces"
            | "apps/deployments"
            | "apps/replicasets"
            | "apps/statefulsets"
            | "apps/daemonsets"
            | "batch/jobs"
    )
}

/// Returns the object that must be looked at after a change: itself, or for pods and replica sets also their owner.
pub(crate) fn affected(store: &crate::store::Store, place: &Place, event: &Event) -> Vec<Place> {
    let mut found = Vec::new();
    if event.change != Change::Deleted {
        found.push(place.clone());
    }
    if matches!(&*place.table, "/pods" | "apps/replicasets") {
        found.extend(event.object.owners.iter().filter_map(|uid| store.place_of(uid).cloned()));
    }
    found
}

/// Does the next step for an object.
pub(crate) fn step(cluster: &Arc<Cluster>, place: &Place) {
    let Some(object) = cluster.at(place) else {
        return;
    };
    let value = object.value();
    if object.deleting && &*place.table != "/pods" {
        return;
    }
    match &*place.table {
        "/pods" => node::step(cluster, place, &value),
        "/persistentvolumeclaims" => claim::step(cluster, place, &value),
        "/services" => claim::balance(cluster, place, &value),
        "/namespaces" => furnish(cluster, object.name()),
        "apps/deployments" => deployment::step(cluster, place, &value),
        "apps/replicasets" => workload::replica_set(cluster, place, &value),
        "apps/statefulsets" => workload::stateful_set(cluster, place, &value),
        "apps/daemonsets" => workload::daemon_set(cluster, place, &value),
        "batch/jobs" => job::step(cluster, place, &value),
        _ => {}
    }
}

/// Does what follows after the time that simulated things take.
pub(crate) fn due(cluster: &Arc<Cluster>, place: &Place) {
    let Some(object) = cluster.at(place) else {
        return;
    };
    let value = object.value();
    match &*place.table {
        "/pods" => node::advance(cluster, place, &value),
        "/persistentvolumeclaims" => claim::bind(cluster, place, &value),
        _ => {}
    }
}

/// Looks at every simulated object once: a state file may hold some that have not come far.
pub(crate) fn resume(cluster: &Arc<Cluster>) {
    let store = cluster.read();
    for table in store.tables().filter(|table| is_simulated(table)) {
        let page = store.list(table, &crate::store::Range::default(), None, &|_| true).unwrap_or_default();
        for item in page.items {
            let place = Place { table: Arc::clone(table), key: item.key.clone() };
            if is_waiting_pod(&place, &item) {
                cluster.chores.plan(Chore::Due(place.clone()));
            }
            cluster.chores.plan(Chore::Simulate(place));
        }
    }
}

/// Tells whether a pod is on the node but has not started.
fn is_waiting_pod(place: &Place, item: &crate::store::Stored) -> bool {
    &*place.table == "/pods" && !text(&item.value(), "/spec/nodeName").is_empty()
}

/// Registers the simulated node.
pub(crate) fn register_node(cluster: &Arc<Cluster>) {
    let (node, status) = node::node(&crate::write::seconds(cluster.now()));
    create(cluster, "v1", "nodes", None, node);
    let place = Place { table: "/nodes".into(), key: node::NODE.into() };
    if let Some(resource) = cluster.resource_of(&place.table) {
        // The simulated node takes pods at once.
        let _ = modify(cluster, &resource, &place, CONTROLLER, |node| {
            let spec = node.get_mut("spec").and_then(Value::as_object_mut);
            if spec.and_then(|spec| spec.remove("taints")).is_some() { Edit::Write } else { Edit::Keep }
        });
    }
    set_status(cluster, &place, &status);
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

/// Looks at an object again after the time that simulated things take.
fn later(cluster: &Arc<Cluster>, place: &Place) {
    let delay = cluster.config.simulate.unwrap_or(Duration::ZERO);
    cluster.quiet.put_off();
    let (cluster, place) = (Arc::downgrade(cluster), place.clone());
    tokio::spawn(async move {
        tokio::time::sleep(delay).await;
        if let Some(cluster) = cluster.upgrade() {
            cluster.quiet.take_up();
            cluster.chores.plan(Chore::Due(place));
            work_queue::start(&cluster);
        }
    });
}

/// Puts fields into the status of an object; nulls remove them, what is there otherwise stays.
fn set_status(cluster: &Cluster, place: &Place, status: &Value) {
    let Some(resource) = cluster.resource_of(&place.table) else {
        return;
    };
    let written = modify(cluster, &resource, place, STATUS, |object| {
        let before = object.get("status").cloned().unwrap_or_default();
        let Some(fields) = object.as_object_mut() else {
            return Edit::Keep;
        };
        let own = fields.entry("status").or_insert_with(|| json!({}));
        if let (Some(own), Some(status)) = (own.as_object_mut(), status.as_object()) {
            for (name, value) in status {
                if value.is_null() {
                    own.remove(name);
                } else {
                    own.insert(name.clone(), value.clone());
                }
            }
        }
        if fields.get("status") == Some(&before) { Edit::Keep } else { Edit::Write }
    });
    if let Err(error) = written {
        tracing::warn!(table = %place.table, key = %place.key, %error, "a status could not be simulated");
    }
}

/// Returns a condition; one of the same kind and status keeps its time.
fn condition(object: &Value, kind: &str, status: &str, reason: &str, message: &str, now: &str) -> Value {
    let known = object.pointer("/status/conditions").and_then(Value::as_array);
    let known = known.into_iter().flatten().find(|c| c.get("type").is_some_and(|t| t == kind));
    let time = known
        .filter(|known| known.get("status").is_some_and(|s| s == status))
        .and_then(|known| known.get("lastTransitionTime"))
        .cloned()
        .unwrap_or_else(|| json!(now));
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time})
}

/// Returns a text of an object, empty if it is absent.
fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a number as statuses show it that leave zeros out.
fn count(number: i64) -> Value {
    if number == 0 { Value::Null } else { json!(number) }
}

fn number(object: &Value, path: &str, absent: i64) -> i64 {
    object.pointer(path).and_then(Value::as_i64).unwrap_or(absent)
}

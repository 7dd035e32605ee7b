//! Volumes are bound and load balancers get an address.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{CONTROLLER, later, set_status, text};
use crate::cluster::Cluster;
use crate::store::Place;
use crate::write::{Edit, modify};

/// Waits before a claim is bound.
pub(super) fn step(cluster: &Arc<Cluster>, place: &Place, claim: &Value) {
    if text(claim, "/status/phase") != "Bound" && text(claim, "/spec/volumeName").is_empty() {
        later(cluster, place);
    }
}

/// Binds a claim to a volume that nobody made.
pub(super) fn bind(cluster: &Arc<Cluster>, place: &Place, claim: &Value) {
    if text(claim, "/status/phase") == "Bound" {
        return;
    }
    let Some(resource) = cluster.resource_of(&place.table) else {
        return;
    };
    let volume = format!("pvc-{}", text(claim, "/metadata/uid"));
    let written = modify(cluster, &resource, place, CONTROLLER, |claim| {
        let modes = claim.pointer("/spec/accessModes").cloned();
        let capacity = claim.pointer("/spec/resources/requests").cloned();
        if let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) {
            spec.entry("volumeName").or_insert_with(|| json!(volume));
        }
        if let Some(fields) = claim.as_object_mut() {
            fields.insert(
                "status".into(),
                json!({"phase": "Bound", "accessModes": modes, "capacity": capacity}),
            );
        }
        Edit::Write
    });
    if let Err(error) = written {
        tracing::warn!(key = %place.key, %error, "a claim could not be bound");
    }
}

/// Gives a load balancer an address.
pub(super) fn balance(cluster: &Arc<Cluster>, place: &Place, service: &Value) {
    let balanced = service.pointer("/status/loadBalancer/ingress").is_some();
    if text(service, "/spec/type") == "LoadBalancer" && !balanced {
        let ingress = json!([{"ip": "127.0.0.1", "ipMode": "VIP"}]);
        set_status(cluster, place, &json!({"loadBalancer": {"ingress": ingress}}));
    }
}

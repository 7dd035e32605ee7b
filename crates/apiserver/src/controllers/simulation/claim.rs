//! Volumes are bound and load balancers get an address.

use std::sync::Arc;

use serde_json::{Value, json};

use super::status::{CONTROLLER, set_status, text};
use crate::cluster::{Cluster, Edit};
use crate::store::ObjectRef;

pub(super) fn is_pending(claim: &Value) -> bool {
    text(claim, "/status/phase") != "Bound" && text(claim, "/spec/volumeName").is_empty()
}

/// Binds a claim to a volume that does not exist.
pub(super) fn bind(cluster: &Arc<Cluster>, object_ref: &ObjectRef, claim: &Value) {
    if text(claim, "/status/phase") == "Bound" {
        return;
    }
    let Some(resource) = cluster.registry.of_table(&object_ref.table) else {
        return;
    };
    let volume = format!("pvc-{}", text(claim, "/metadata/uid"));
    let written = cluster.modify(&resource, object_ref, CONTROLLER, |claim| {
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
        tracing::warn!(key = %object_ref.key, %error, "a claim could not be bound");
    }
}

/// Gives a load balancer an address.
pub(super) fn balance(cluster: &Arc<Cluster>, object_ref: &ObjectRef, service: &Value) {
    let balanced = service.pointer("/status/loadBalancer/ingress").is_some();
    if text(service, "/spec/type") == "LoadBalancer" && !balanced {
        let ingress = json!([{"ip": "127.0.0.1", "ipMode": "VIP"}]);
        set_status(cluster, object_ref, &json!({"loadBalancer": {"ingress": ingress}}));
    }
}

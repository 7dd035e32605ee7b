//! How kinds differ, as data, and the status that new objects begin with.

use jiff::Timestamp;
use objects::decode;
use objects::time::format_seconds;
use serde_json::{Map, Value, json};

use crate::pod_resources;
use crate::registry::Resource;

/// How the objects of a kind behave where kinds differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of kinds, as data")]
pub(crate) struct Strategy {
    /// Changes of the specification are counted.
    pub(crate) has_generation: bool,
    /// A PUT makes an object that does not exist.
    pub(crate) creates_on_update: bool,
    /// A deletion shows the object instead of a bare success.
    pub(crate) shows_deleted: bool,
    /// A PUT must name the version that it changes.
    pub(crate) needs_revision: bool,
}

impl Strategy {
    pub(crate) fn of(resource: &Resource) -> Strategy {
        let kind = &resource.kind;
        if resource.custom.is_some() {
            return Strategy { has_generation: true, needs_revision: true, ..Strategy::default() };
        }
        let (group, plural) = (&*kind.group, &*kind.plural);
        Strategy {
            has_generation: matches!(
                (group, plural),
                ("apps", "daemonsets" | "deployments" | "replicasets" | "statefulsets")
                    | ("batch", "cronjobs" | "jobs")
                    | ("", "pods" | "podtemplates" | "replicationcontrollers")
                    | ("networking.k8s.io", "ingresses" | "ingressclasses" | "networkpolicies")
                    | ("policy", "poddisruptionbudgets")
                    | ("scheduling.k8s.io", "priorityclasses")
                    | (
                        "admissionregistration.k8s.io"
                            | "flowcontrol.apiserver.k8s.io"
                            | "apiextensions.k8s.io",
                        _
                    )
                    | ("discovery.k8s.io", "endpointslices")
                    | ("resource.k8s.io", "deviceclasses" | "resourceslices")
            ),
            creates_on_update: matches!(
                (group, plural),
                ("rbac.authorization.k8s.io" | "coordination.k8s.io" | "node.k8s.io" | "events.k8s.io", _)
                    | ("", "services" | "endpoints" | "events" | "limitranges")
            ),
            shows_deleted: matches!(
                (group, plural),
                (
                    "",
                    "pods"
                        | "services"
                        | "serviceaccounts"
                        | "persistentvolumes"
                        | "persistentvolumeclaims"
                        | "podtemplates"
                        | "resourcequotas"
                ) | (
                    "storage.k8s.io",
                    "csidrivers"
                        | "csinodes"
                        | "storageclasses"
                        | "volumeattachments"
                        | "volumeattributesclasses"
                ) | ("resource.k8s.io", _)
            ),
            needs_revision: matches!(
                (group, plural),
                (
                    "admissionregistration.k8s.io"
                        | "apiextensions.k8s.io"
                        | "apiregistration.k8s.io"
                        | "coordination.k8s.io"
                        | "node.k8s.io"
                        | "policy",
                    _
                ) | (
                    "storage.k8s.io",
                    "csidrivers" | "csinodes" | "csistoragecapacities" | "volumeattachments"
                )
            ),
        }
    }
}

/// Returns the status that a new object begins with, whatever the client sent.
pub(crate) fn first_status(
    resource: &Resource,
    object: &Map<String, Value>,
    now: Timestamp,
) -> Option<Value> {
    if resource.custom.is_some() {
        return None;
    }
    let mut status = decode::empty(&resource.shape).get("status").cloned()?;
    let fields = status.as_object_mut()?;
    match (&*resource.kind.group, &*resource.kind.plural) {
        ("", "pods") => {
            fields.insert("phase".into(), json!("Pending"));
            fields.insert(
                "qosClass".into(),
                json!(pod_resources::quality(object.get("spec").unwrap_or(&Value::Null))),
            );
            let gates = object.get("spec").and_then(|spec| spec.get("schedulingGates"));
            if gates.and_then(Value::as_array).is_some_and(|gates| !gates.is_empty()) {
                fields.insert(
                    "conditions".into(),
                    json!([{
                        "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                        "message": "Scheduling is blocked due to non-empty scheduling gates",
                        "lastProbeTime": null, "lastTransitionTime": format_seconds(now),
                    }]),
                );
            }
        }
        ("", "persistentvolumeclaims") => {
            fields.insert("phase".into(), json!("Pending"));
        }
        ("", "persistentvolumes") => {
            fields.insert("phase".into(), json!("Pending"));
            fields.insert("lastPhaseTransitionTime".into(), json!(format_seconds(now)));
        }
        ("", "nodes") => {
            let given = object.get("status").cloned().unwrap_or_default();
            let capacity = given.get("capacity").cloned();
            status = given;
            if let (Some(capacity), Some(fields)) = (capacity, status.as_object_mut()) {
                fields.entry("allocatable").or_insert(capacity);
            }
        }
        _ => {}
    }
    Some(status)
}

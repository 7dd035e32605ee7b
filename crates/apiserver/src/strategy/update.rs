//! Rules of changes: which part of an object a request may change, and which changes count.

use serde_json::{Value, json};

use super::kinds::Strategy;
use super::typing::settle_stored;
use crate::fields::{get, list};
use crate::object_meta;
use crate::registry::Resource;
use crate::status::{ApiError, Cause, Outcome};

/// Custom objects are changed only by clients that name the version they saw.
pub(crate) fn check_conditional(resource: &Resource, name: &str, conditional: bool) -> Outcome<()> {
    if conditional || (resource.custom.is_none() && !Strategy::of(resource).needs_revision) {
        return Ok(());
    }
    let cause = Cause {
        reason: "FieldValueInvalid".into(),
        message: "Invalid value: 0: must be specified for an update".into(),
        field: "metadata.resourceVersion".into(),
    };
    // Here the resource stands where otherwise the kind does.
    let resource = crate::kind::Kind { kind: resource.kind.plural.clone(), ..(*resource.kind).clone() };
    Err(ApiError::invalid(&resource, name, vec![cause]))
}

/// Takes the status from the stored version, or everything else if the status is what is written.
pub(crate) fn separate_status(resource: &Resource, subresource: Option<&str>, old: &Value, new: &mut Value) {
    let kind = &resource.kind;
    if subresource == Some("status") {
        let status = kept_status(resource, old, new.get("status").cloned());
        let managed = new.pointer("/metadata/managedFields").cloned();
        let metadata = new.get("metadata").cloned();
        *new = old.clone();
        set(new, "status", status);
        if let Some(fields) = new.get_mut("metadata") {
            set(fields, "managedFields", managed);
            if let Some(given) = metadata {
                for name in written_with_status(resource) {
                    set(fields, name, given.get(*name).cloned());
                }
            }
        }
    } else if let Some(part @ ("ephemeralcontainers" | "resize")) = subresource {
        separate_containers(part, old, new);
    } else if kind.has_status() && matches!(subresource, None | Some("finalize")) {
        set(new, "status", old.get("status").cloned());
    }
}

/// Puts back metadata that follows from the specification, when the status is written.
pub(crate) fn keep_implied(resource: &Resource, subresource: Option<&str>, old: &Value, new: &mut Value) {
    let Some(metadata) = new.get_mut("metadata").filter(|_| subresource == Some("status")) else { return };
    if resource.is("apps", "daemonsets") {
        let count = old.pointer("/metadata/annotations").and_then(|all| all.get(TEMPLATES)).cloned();
        let Some((count, fields)) = count.zip(metadata.as_object_mut()) else { return };
        if let Some(annotations) = fields.entry("annotations").or_insert_with(|| json!({})).as_object_mut() {
            annotations.insert(TEMPLATES.to_owned(), count);
        }
    }
    // A job without labels has those of its pods.
    if resource.is("batch", "jobs") && metadata.get("labels").is_none_or(Value::is_null) {
        set(metadata, "labels", old.pointer("/spec/template/metadata/labels").cloned());
    }
}

/// How often the template of a daemon set was changed.
const TEMPLATES: &str = "deprecated.daemonset.template.generation";

/// Returns the metadata that a request for the status writes as well.
fn written_with_status(resource: &Resource) -> &'static [&'static str] {
    match (&*resource.kind.group, &*resource.kind.plural) {
        _ if resource.custom.is_some() => &[],
        (
            "admissionregistration.k8s.io"
            | "apiregistration.k8s.io"
            | "flowcontrol.apiserver.k8s.io"
            | "storage.k8s.io",
            _,
        ) => &[],
        // Old nodes sent owners that they had misread.
        ("", "pods") => {
            &["annotations", "labels", "finalizers", "deletionTimestamp", "deletionGracePeriodSeconds"]
        }
        ("apps", "deployments") => &[
            "annotations",
            "finalizers",
            "ownerReferences",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ],
        _ => &[
            "annotations",
            "labels",
            "finalizers",
            "ownerReferences",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ],
    }
}

/// Returns a new status with what only the server says in it.
fn kept_status(resource: &Resource, old: &Value, status: Option<Value>) -> Option<Value> {
    let mut status = status?;
    let Some(fields) = status.as_object_mut() else {
        return Some(status);
    };
    let keeps = match (&*resource.kind.group, &*resource.kind.plural) {
        ("", "pods") => "qosClass",
        ("", "persistentvolumes") => "lastPhaseTransitionTime",
        ("apps", "deployments" | "replicasets") => {
            // Counted by servers only that were told to.
            fields.remove("terminatingReplicas");
            return Some(status);
        }
        ("resource.k8s.io", "resourceclaims") => {
            forget_devices(old, &mut status);
            return Some(status);
        }
        _ => return Some(status),
    };
    let is_empty = |value: &Value| value.is_null() || value.as_str() == Some("");
    if fields.get(keeps).is_none_or(is_empty)
        && let Some(value) = old.pointer(&format!("/status/{keeps}"))
    {
        fields.insert(keeps.to_owned(), value.clone());
    }
    Some(status)
}

/// Takes away what the new status of a claim tells of devices that the claim had and does not have any more.
fn forget_devices(old: &Value, status: &mut Value) {
    fn device(object: &Value) -> [&Value; 3] {
        ["driver", "pool", "device"].map(|field| get(object, field))
    }
    const RESULTS: &str = "allocation.devices.results";
    let has = |status: &Value, told: &Value| {
        list(status, RESULTS).iter().any(|result| device(result) == device(told))
    };
    let was = get(old, "status");
    let kept: Vec<Value> =
        list(status, "devices").iter().filter(|told| has(status, told) || !has(was, told)).cloned().collect();
    if kept.len() < list(status, "devices").len() {
        set(status, "devices", Some(kept).filter(|kept| !kept.is_empty()).map(Value::from));
    }
}

/// Takes from the new version nothing but the containers that this subresource of a pod writes.
fn separate_containers(part: &str, old: &Value, new: &mut Value) {
    let fields: &[&str] =
        if part == "resize" { &["containers", "initContainers"] } else { &["ephemeralContainers"] };
    let managed = new.pointer("/metadata/managedFields").cloned();
    let mut spec = new.get("spec").cloned().unwrap_or_default();
    *new = old.clone();
    if let Some(kept) = new.get_mut("spec") {
        for name in fields {
            if part == "resize" {
                keep_but_resources(kept.get(*name), spec.get_mut(*name));
            }
            set(kept, name, spec.get(*name).cloned());
        }
    }
    if let Some(kept) = new.get_mut("metadata") {
        set(kept, "managedFields", managed);
    }
}

/// Takes all but the resources of containers from the old version, unless others are in the list: those are refused.
fn keep_but_resources(old: Option<&Value>, new: Option<&mut Value>) {
    let (Some(old), Some(new)) = (old.and_then(Value::as_array), new.and_then(|new| new.as_array_mut()))
    else {
        return;
    };
    if !new.iter().map(|one| one.get("name")).eq(old.iter().map(|one| one.get("name"))) {
        return;
    }
    for (container, old) in new.iter_mut().zip(old) {
        let given = std::mem::replace(container, old.clone());
        for name in ["resources", "resizePolicy"] {
            set(container, name, given.get(name).cloned());
        }
    }
}

fn set(object: &mut Value, name: &str, value: Option<Value>) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    match value {
        Some(value) => fields.insert(name.to_owned(), value),
        None => fields.remove(name),
    };
}

/// Counts a change of anything but metadata and status. Who writes the status changes nothing that counts.
pub(crate) fn count_generation(
    resource: &Resource,
    subresource: Option<&str>,
    old: &Value,
    new: &mut Value,
) -> Outcome<()> {
    if subresource == Some("status") || !Strategy::of(resource).has_generation {
        return Ok(());
    }
    let counts_status = !resource.kind.has_status();
    let counted = |name: &str| match name {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => counts_status,
        _ => true,
    };
    let part = |object: &Value| -> Vec<(String, Value)> {
        let fields = object.as_object().into_iter().flatten();
        fields.filter(|(name, _)| counted(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let metadata_counts = |name: &str| {
        let path = format!("/metadata/{name}");
        old.pointer(&path) != new.pointer(&path)
    };
    let also = if resource.is("apps", "deployments") {
        metadata_counts("annotations")
    } else if resource.is("discovery.k8s.io", "endpointslices") {
        metadata_counts("labels")
    } else {
        false
    };
    // An empty list is no list.
    let is_changed = || {
        let mut settled = new.clone();
        settle_stored(resource, &mut settled);
        part(old) != part(&settled)
    };
    if also || (part(old) != part(new) && is_changed()) {
        let before = old.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
        object_meta::of_mut(new)?.insert("generation".into(), json!(before + 1));
    }
    Ok(())
}

/// Returns whether a change changes nothing but the time of managed fields.
pub(crate) fn is_same(old: &Value, new: &Value) -> bool {
    let managed = |object: &Value| -> Vec<Value> {
        let list = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        let mut list = list.cloned().unwrap_or_default();
        for entry in list.iter_mut().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        list
    };
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        object
    };
    managed(old) == managed(new) && rest(old) == rest(new)
}

//! Kinds that are shown in two groups or versions and stored in one.

use serde_json::{Map, Value, json};

use crate::fields::each;
use crate::registry::Resource;

/// Returns an object of the stored version in the version of `resource`.
pub(crate) fn from_stored(mut object: Value, resource: &Resource) -> Value {
    if resource.api_version == resource.stored_version && resource.custom.is_none() {
        return object;
    }
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".into(), json!(resource.api_version));
        if resource.custom.is_some() {
            fields.insert("kind".into(), json!(resource.kind.kind));
        }
        match resource.api_version.as_str() {
            "events.k8s.io/v1" => {
                rename(fields, EVENT_FIELDS);
                // A controller that is absent is left out here, and empty in the core group.
                let reports = ["reportingController", "reportingInstance"];
                fields.retain(|name, value| !reports.contains(&name.as_str()) || value.as_str() != Some(""));
            }
            "autoscaling/v1" => shrink_autoscaler(fields),
            _ => {}
        }
    }
    object
}

/// Returns how the bytes of a stored object of a kind and version begin.
pub(crate) fn head(kind: &str, api_version: &str) -> Vec<u8> {
    format!("{{\"kind\":{},\"apiVersion\":{},", json!(kind), json!(api_version)).into_bytes()
}

/// Returns whether an object was stored before its definition changed the version in which objects are stored.
pub(crate) fn is_stale(body: &[u8], resource: &Resource) -> bool {
    resource.custom.is_some() && !body.starts_with(&head(&resource.kind.kind, &resource.stored_version))
}

/// Lists that are always shown: group, resource and place. What is stored does not tell an empty one from none.
const SHOWN_LISTS: [(&str, &str, &str); 5] = [
    ("storage.k8s.io", "csinodes", "spec/drivers"),
    ("storage.k8s.io", "csinodes", "spec/drivers/*/topologyKeys"),
    ("resource.k8s.io", "resourceclaims", "spec/devices/requests"),
    ("resource.k8s.io", "resourceclaimtemplates", "spec/spec/devices/requests"),
    ("resource.k8s.io", "resourceslices", "spec/devices"),
];

/// Turns what is not told apart where it is stored into what is shown then.
pub(crate) fn settle(object: &mut Value, resource: &Resource) {
    for (_, _, place) in SHOWN_LISTS.iter().filter(|(group, plural, _)| resource.is(group, plural)) {
        each(object, place, &mut |fields, name| {
            if let Some(list) = fields.get_mut(name).filter(|list| list.as_array().is_some_and(Vec::is_empty))
            {
                *list = Value::Null;
            }
        });
    }
}

/// Turns an object of the version of `resource` into the stored version.
pub(crate) fn to_stored(object: &mut Value, resource: &Resource) {
    if resource.api_version == resource.stored_version {
        return;
    }
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".into(), json!(resource.stored_version));
        match resource.api_version.as_str() {
            "events.k8s.io/v1" => {
                let back: Vec<(&str, &str)> = EVENT_FIELDS.iter().map(|(core, own)| (*own, *core)).collect();
                rename(fields, &back);
                for name in ["reportingComponent", "reportingInstance"] {
                    fields.entry(name).or_insert_with(|| json!(""));
                }
            }
            "autoscaling/v1" => grow_autoscaler(fields),
            _ => {}
        }
    }
}

/// Names of fields of events: in the core group, in `events.k8s.io`.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
];

fn rename(fields: &mut Map<String, Value>, names: &[(&str, &str)]) {
    for (from, to) in names {
        if let Some(value) = fields.remove(*from) {
            fields.insert((*to).to_owned(), value);
        }
    }
}

const CPU: &str = "targetCPUUtilizationPercentage";

/// The older version knows only the use of processors.
fn shrink_autoscaler(fields: &mut Map<String, Value>) {
    let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(Value::Array(metrics)) = spec.remove("metrics") {
        let target = |metric: &Value| metric.pointer("/resource/target/averageUtilization").cloned();
        let is_cpu = |metric: &&Value| metric.pointer("/resource/name").is_some_and(|name| name == "cpu");
        if let Some(target) = metrics.iter().find(is_cpu).and_then(target) {
            spec.insert(CPU.into(), target);
        }
    }
    if let Some(status) = fields.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("currentMetrics");
        status.remove("conditions");
        status.entry("currentReplicas").or_insert(json!(0));
        status.entry("desiredReplicas").or_insert(json!(0));
    }
}

fn grow_autoscaler(fields: &mut Map<String, Value>) {
    if let Some(status) = fields.get_mut("status").and_then(Value::as_object_mut) {
        status.retain(|name, value| name != "currentReplicas" || value.as_i64() != Some(0));
        status.entry("currentMetrics").or_insert(Value::Null);
    }
    let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    // Without a target the use of processors is kept at 80 per cent.
    let target = spec.remove(CPU).filter(|target| !target.is_null()).unwrap_or(json!(80));
    let target = json!({"type": "Utilization", "averageUtilization": target});
    spec.insert(
        "metrics".into(),
        json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]),
    );
}

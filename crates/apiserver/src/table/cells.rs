//! Cells that need more than a path, found by their name in the table of columns.

use jiff::Timestamp;
use objects::time;
use serde_json::Value;

use super::age::{human_duration, since};
use super::text::{Cell, has_condition, joined, number};
use super::{network, pod, storage, workload};
use crate::fields::{get, list, map, text};

pub(super) fn find(name: &str) -> Option<Cell> {
    own(name)
        .or_else(|| pod::find(name))
        .or_else(|| workload::find(name))
        .or_else(|| network::find(name))
        .or_else(|| storage::find(name))
}

fn own(name: &str) -> Option<Cell> {
    Some(match name {
        "apiservice_available" => apiservice_available,
        "apiservice_service" => apiservice_service,
        "component_error" => |o, _| component(o, "error"),
        "component_message" => |o, _| component(o, "message"),
        "component_status" => component_status,
        "csr_condition" => csr_condition,
        "csr_duration" => csr_duration,
        "data_count" => data_count,
        "event_count" => event_count,
        "event_first" => |o, now| Value::from(event_first(o, now)),
        "event_last" => event_last,
        "event_message" => |o, _| Value::from(first_text(o, &["message", "note"]).trim()),
        "event_object" => event_object,
        "event_source" => event_source,
        "event_subobject" => {
            |o, _| Value::from(first_text(o, &["regarding.fieldPath", "involvedObject.fieldPath"]))
        }
        "missing_level" => missing_level,
        "node_external" => |o, _| node_address(o, "ExternalIP"),
        "node_internal" => |o, _| node_address(o, "InternalIP"),
        "node_roles" => node_roles,
        "node_status" => node_status,
        "param_kind" => param_kind,
        "param_ref" => param_ref,
        "quota_limit" => |o, _| quota(o, true),
        "quota_request" => |o, _| quota(o, false),
        "role_ref" => |o, _| Value::from(format!("{}/{}", text(o, "roleRef.kind"), text(o, "roleRef.name"))),
        "subject_accounts" => |o, _| subjects(o, "ServiceAccount"),
        "subject_groups" => |o, _| subjects(o, "Group"),
        "subject_users" => |o, _| subjects(o, "User"),
        _ => return None,
    })
}

fn first_text<'a>(object: &'a Value, paths: &[&str]) -> &'a str {
    paths.iter().map(|path| text(object, path)).find(|text| !text.is_empty()).unwrap_or_default()
}

fn data_count(object: &Value, _: Timestamp) -> Value {
    let count = |path| map(object, path).len();
    Value::from(count("data") + count("binaryData"))
}

fn component(object: &Value, field: &str) -> Value {
    let conditions = list(object, "conditions");
    let healthy = conditions.iter().find(|condition| text(condition, "type") == "Healthy");
    Value::from(healthy.map_or("", |condition| text(condition, field)))
}

fn component_status(object: &Value, _: Timestamp) -> Value {
    Value::from(match component(object, "status").as_str() {
        Some("True") => "Healthy",
        Some("") | None => "Unknown",
        Some(_) => "Unhealthy",
    })
}

fn apiservice_service(object: &Value, _: Timestamp) -> Value {
    let service = get(object, "spec.service");
    if service.is_null() {
        return Value::from("Local");
    }
    Value::from(format!("{}/{}", text(service, "namespace"), text(service, "name")))
}

fn apiservice_available(object: &Value, _: Timestamp) -> Value {
    let conditions = list(object, "status.conditions");
    let Some(condition) = conditions.iter().find(|c| text(c, "type") == "Available") else {
        return Value::from("Unknown");
    };
    let (status, reason) = (text(condition, "status"), text(condition, "reason"));
    if status == "True" { Value::from(status) } else { Value::from(format!("{status} ({reason})")) }
}

fn csr_duration(object: &Value, _: Timestamp) -> Value {
    let seconds = get(object, "spec.expirationSeconds").as_i64();
    Value::from(seconds.map_or_else(|| "<none>".to_owned(), human_duration))
}

fn csr_condition(object: &Value, _: Timestamp) -> Value {
    let has = |kind: &str| list(object, "status.conditions").iter().any(|c| text(c, "type") == kind);
    let mut parts = vec![if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }];
    parts.extend(has("Failed").then_some("Failed"));
    parts.extend((!text(object, "status.certificate").is_empty()).then_some("Issued"));
    Value::from(parts.join(","))
}

fn event_first(object: &Value, now: Timestamp) -> String {
    let first = first_text(object, &["firstTimestamp", "deprecatedFirstTimestamp", "eventTime"]);
    since(Some(first), now)
}

fn event_last(object: &Value, now: Timestamp) -> Value {
    if !get(object, "series").is_null() {
        return Value::from(since(get(object, "series.lastObservedTime").as_str(), now));
    }
    let last = first_text(object, &["lastTimestamp", "deprecatedLastTimestamp"]);
    if time::parse(last).is_some() {
        return Value::from(since(Some(last), now));
    }
    Value::from(event_first(object, now))
}

fn event_count(object: &Value, _: Timestamp) -> Value {
    if !get(object, "series").is_null() {
        return Value::from(number(object, "series.count"));
    }
    Value::from(number(object, "count").max(number(object, "deprecatedCount")).max(1))
}

fn event_object(object: &Value, _: Timestamp) -> Value {
    let kind = first_text(object, &["involvedObject.kind", "regarding.kind"]).to_lowercase();
    match first_text(object, &["involvedObject.name", "regarding.name"]) {
        "" => Value::from(kind),
        name => Value::from(format!("{kind}/{name}")),
    }
}

fn event_source(object: &Value, _: Timestamp) -> Value {
    let component =
        ["source.component", "deprecatedSource.component", "reportingComponent", "reportingController"];
    let component = first_text(object, &component);
    match first_text(object, &["source.host", "deprecatedSource.host", "reportingInstance"]) {
        "" => Value::from(component),
        host => Value::from(format!("{component}, {host}")),
    }
}

fn missing_level(object: &Value, _: Timestamp) -> Value {
    let conditions = list(object, "status.conditions");
    let dangling = conditions.iter().find(|condition| text(condition, "type") == "Dangling");
    Value::from(dangling.map_or("?", |condition| text(condition, "status")))
}

fn node_address(object: &Value, kind: &str) -> Value {
    let addresses = list(object, "status.addresses");
    let found = addresses.iter().find(|address| text(address, "type") == kind);
    Value::from(found.map_or("<none>", |address| text(address, "address")))
}

fn node_roles(object: &Value, _: Timestamp) -> Value {
    let mut roles = Vec::new();
    for (key, value) in map(object, "metadata.labels") {
        match key.strip_prefix("node-role.kubernetes.io/") {
            Some("") => {}
            Some(role) => roles.push(role),
            None if key == "kubernetes.io/role" => roles.extend(value.as_str().filter(|v| !v.is_empty())),
            None => {}
        }
    }
    roles.sort_unstable();
    roles.dedup();
    Value::from(joined(roles, ",", "<none>"))
}

fn node_status(object: &Value, _: Timestamp) -> Value {
    let known = list(object, "status.conditions").iter().any(|c| text(c, "type") == "Ready");
    let mut parts = vec![match (known, has_condition(object, "Ready")) {
        (true, true) => "Ready",
        (true, false) => "NotReady",
        (false, _) => "Unknown",
    }];
    if get(object, "spec.unschedulable") == &Value::Bool(true) {
        parts.push("SchedulingDisabled");
    }
    Value::from(parts.join(","))
}

fn param_kind(object: &Value, _: Timestamp) -> Value {
    let kind = get(object, "spec.paramKind");
    if kind.is_null() {
        return Value::from("<unset>");
    }
    Value::from(format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind")))
}

fn param_ref(object: &Value, _: Timestamp) -> Value {
    match (text(object, "spec.paramRef.namespace"), text(object, "spec.paramRef.name")) {
        (_, "") => Value::from("<unset>"),
        ("", name) => Value::from(format!("*/{name}")),
        (namespace, name) => Value::from(format!("{namespace}/{name}")),
    }
}

fn quota(object: &Value, limits: bool) -> Value {
    let used = map(object, "status.used");
    let parts: Vec<String> = map(object, "status.hard")
        .iter()
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = used.get(name).and_then(Value::as_str).unwrap_or("0");
            format!("{name}: {used}/{}", hard.as_str().unwrap_or_default())
        })
        .collect();
    Value::from(parts.join(", "))
}

fn subjects(object: &Value, kind: &str) -> Value {
    let wanted = list(object, "subjects").iter().filter(|subject| text(subject, "kind") == kind);
    let names: Vec<String> = wanted
        .map(|subject| match kind {
            // The slash stands there without a namespace, too.
            "ServiceAccount" => format!("{}/{}", text(subject, "namespace"), text(subject, "name")),
            _ => text(subject, "name").to_owned(),
        })
        .collect();
    Value::from(names.join(", "))
}

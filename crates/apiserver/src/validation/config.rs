//! Validation of config maps, secrets and the small kinds around them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use objects::names;
use serde_json::Value;

use super::container::not_negative;
use super::errors::{Report, at, key};
use crate::fields::{flag, get, int, map, text, texts};

/// A config map or secret may hold this many bytes.
const MAX_SIZE: usize = 1024 * 1024;

fn bytes_of(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    let padding = text.bytes().rev().take_while(|b| *b == b'=').count();
    text.len() / 4 * 3 - padding.min(text.len())
}

pub(super) fn config_map(object: &Value, report: &mut Report) {
    let (data, binary) = (map(object, "data"), map(object, "binaryData"));
    let mut size = 0;
    for (name, value) in data {
        let path = key("data", name);
        report.invalid_all(&path, name, names::config_key(name));
        if binary.contains_key(name) {
            report.invalid(&path, name.as_str(), "duplicate of key present in binaryData");
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (name, value) in binary {
        report.invalid_all(&key("binaryData", name), name, names::config_key(name));
        size += bytes_of(value);
    }
    if size > MAX_SIZE {
        report.too_long("[]", MAX_SIZE);
    }
}

pub(super) fn secret(object: &Value, report: &mut Report) {
    let data = map(object, "data");
    let mut size = 0;
    for (name, value) in data {
        report.invalid_all(&key("data", name), name, names::config_key(name));
        size += bytes_of(value);
    }
    if size > MAX_SIZE {
        report.too_long("data", MAX_SIZE);
    }
    let needed: &[&str] = match text(object, "type") {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/basic-auth" => {
            if !data.contains_key("username") && !data.contains_key("password") {
                report.required("data[username]", "");
                report.required("data[password]", "");
            }
            &[]
        }
        "kubernetes.io/service-account-token" => {
            let annotation = "kubernetes.io/service-account.name";
            if map(object, "metadata.annotations").get(annotation).is_none_or(|name| name == "") {
                report.required(&key("metadata.annotations", annotation), "");
            }
            &[]
        }
        _ => &[],
    };
    for name in needed {
        match data.get(*name) {
            None => report.required(&key("data", name), ""),
            Some(value) if name.starts_with(".docker") => json_inside(value, &key("data", name), report),
            Some(_) => {}
        }
    }
}

fn json_inside(value: &Value, path: &str, report: &mut Report) {
    let bytes = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
    if let Err(error) = objects::decode::parse(&bytes) {
        report.invalid(path, "<secret contents redacted>", &error.to_string());
    }
}

pub(super) fn update(new: &Value, old: &Value, fields: &[&str], report: &mut Report) {
    if get(new, "type") != get(old, "type") {
        report.invalid("type", get(new, "type").clone(), "field is immutable");
    }
    if !flag(old, "immutable") {
        return;
    }
    if !flag(new, "immutable") {
        report.forbidden("immutable", "field is immutable when `immutable` is set");
    }
    for field in fields {
        if get(new, field) != get(old, field) {
            report.forbidden(field, "field is immutable when `immutable` is set");
        }
    }
}

pub(super) fn lease(object: &Value, report: &mut Report) {
    if let Some(seconds) = int(object, "spec.leaseDurationSeconds").filter(|n| *n <= 0) {
        report.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0");
    }
    not_negative(get(object, "spec"), "leaseTransitions", "spec", report);
}

pub(super) fn event(object: &Value, group: &str, report: &mut Report) {
    let field = if group.is_empty() { "involvedObject" } else { "regarding" };
    let (about, own) = (text(get(object, field), "namespace"), text(object, "metadata.namespace"));
    let fits = about == own || (about.is_empty() && matches!(own, "" | "default"));
    if !fits {
        let path = at("involvedObject", "namespace");
        report.invalid(&path, about, "does not match event.namespace");
    }
    if group.is_empty() {
        return;
    }
    for field in ["reportingController", "reportingInstance", "action", "reason"] {
        if text(object, field).is_empty() {
            report.required(field, "");
        }
    }
    let kind = text(object, "type");
    if !matches!(kind, "Normal" | "Warning") {
        report.invalid("type", "", &format!("has invalid value: {kind}"));
    }
}

/// Checks that an event of the newer group stays what it was: only its series may go on.
pub(super) fn event_update(new: &Value, old: &Value, report: &mut Report) {
    // The fields have the names of the older group in texts.
    const FIXED: [(&str, &str); 13] = [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ];
    let series = get(new, "series");
    if series != get(old, "series") && !series.is_null() {
        if int(series, "count").unwrap_or_default() < 2 {
            report.invalid("series.count", "", "should be at least 2");
        }
        if text(series, "lastObservedTime").is_empty() {
            report.required("series.lastObservedTime", "");
        }
    }
    for (field, shown) in FIXED {
        let is = get(new, field);
        if is != get(old, field) {
            // The real server looks at the reason twice.
            for _ in 0..if field == "reason" { 2 } else { 1 } {
                report.invalid(shown, is.clone(), "field is immutable");
            }
        }
    }
}

pub(super) fn namespace(object: &Value, report: &mut Report) {
    for name in texts(object, "spec.finalizers") {
        finalizer(name, "spec.finalizers", report);
    }
}

/// Checks the name of a finalizer of a namespace: it is a known one, or says whose it is.
pub(super) fn finalizer(name: &str, path: &str, report: &mut Report) {
    report.invalid_all(path, name, names::qualified(name));
    if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        report.invalid(path, name, detail);
    }
}

/// Checks that a class of users is not more important than those of the system.
pub(super) fn priority_class(object: &Value, report: &mut Report) {
    const MOST: i64 = 1_000_000_000;
    let policy = text(object, "preemptionPolicy");
    report.one_of_or_empty("preemptionPolicy", policy, &["PreemptLowerPriority", "Never"]);
    let name = text(object, "metadata.name");
    let of_system = matches!(name, "system-cluster-critical" | "system-node-critical");
    if !of_system && name.starts_with("system-") {
        let detail = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system priority class"
        );
        report.forbidden("metadata.name", &detail);
    } else if !of_system && get(object, "value").as_i64().is_some_and(|value| value > MOST) {
        let detail = format!("maximum allowed value of a user defined priority is {MOST}");
        report.forbidden("value", &detail);
    }
}

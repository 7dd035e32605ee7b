//! Validation of what passes a group on to another server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use objects::names;
use serde_json::Value;

use super::errors::{Report, at, item};
use crate::fields::{flag, get, has, int, list, text};

/// Numbers of a service: the field and the largest one.
const PRIORITIES: [(&str, i64); 2] = [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)];

pub(super) fn api_service(object: &Value, report: &mut Report) {
    let spec = get(object, "spec");
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    for field in ["metadata.name", "metadata.generateName"] {
        name(text(object, field), field, &format!("{version}.{group}"), report);
    }
    if group.is_empty() {
        if version != "v1" {
            report.required("spec.group", "only v1 may have an empty group and it better be legacy kube");
        }
    } else {
        report.invalid_all("spec.group", group, names::subdomain(group));
    }
    report.invalid_all("spec.version", version, names::dns_1035(version));
    for (field, most) in PRIORITIES {
        let number = int(spec, field).unwrap_or_default();
        if !(1..=most).contains(&number) {
            let detail = format!("must be positive and less than {most}");
            report.invalid(&at("spec", field), number, &detail);
        }
    }
    if has(spec, "service") {
        remote(spec, report);
    } else {
        local(spec, report);
    }
}

/// Checks that a service is called as what it serves. What can be no part of a path is told elsewhere.
fn name(name: &str, field: &str, expected: &str, report: &mut Report) {
    if !name.is_empty() && name != expected && names::path_segment(name).is_empty() {
        report.invalid(field, name, &format!("must be `spec.version+\".\"+spec.group`: {expected:?}"));
    }
}

fn local(spec: &Value, report: &mut Report) {
    let bundle = STANDARD.decode(text(spec, "caBundle")).unwrap_or_default();
    if !bundle.is_empty() {
        let shown = format!("{} bytes", bundle.len());
        report.invalid("spec.caBundle", shown, "local APIServices may not have a caBundle");
    }
    if flag(spec, "insecureSkipTLSVerify") {
        let detail = "local APIServices may not have insecureSkipTLSVerify";
        report.invalid("spec.insecureSkipTLSVerify", true, detail);
    }
}

fn remote(spec: &Value, report: &mut Report) {
    for field in ["spec.service.namespace", "spec.service.name"] {
        let (_, inner) = field.split_at("spec.".len());
        if text(spec, inner).is_empty() {
            report.required(field, "");
        }
    }
    let port = int(spec, "service.port").unwrap_or_default();
    let wrong = names::port_number(port);
    if !wrong.is_empty() {
        let detail = format!("port is not valid: {}", wrong.join(", "));
        report.invalid("spec.service.port", port, &detail);
    }
    if flag(spec, "insecureSkipTLSVerify") && !text(spec, "caBundle").is_empty() {
        report.invalid("spec.insecureSkipTLSVerify", true, "may not be true if caBundle is present");
    }
}

/// Checks what a controller says of a service.
pub(super) fn status(status: &Value, report: &mut Report) {
    for (index, condition) in list(status, "conditions").iter().enumerate() {
        let path = at(&item("status.conditions", index), "status");
        report.one_of(&path, text(condition, "status"), &["True", "False", "Unknown"]);
    }
}

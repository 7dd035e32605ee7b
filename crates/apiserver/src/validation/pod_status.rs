//! Validation of what nodes say of pods: conditions, addresses, and containers that have ended.

use std::collections::BTreeSet;

use objects::names;
use serde_json::Value;

use super::container::user;
use super::errors::{Report, at, item};
use super::status::number;
use crate::fields::{get, has, int, list, text};

/// Checks what is said of a pod, and that it does not take back what was said.
pub(super) fn update(new: &Value, old: &Value, report: &mut Report) {
    let status = get(new, "status");
    let class = text(status, "qosClass");
    if class != text(old, "status.qosClass") {
        report.invalid("status.qosClass", class, "field is immutable");
    }
    pod_conditions(status, report);
    let node = text(status, "nominatedNodeName");
    if !node.is_empty() && node != text(old, "status.nominatedNodeName") {
        report.invalid_all("status.nominatedNodeName", node, names::subdomain(node));
    }
    if number(status, "observedGeneration") < 0 {
        let detail = "must be a non-negative integer";
        report.invalid("status.observedGeneration", number(status, "observedGeneration"), detail);
    }
    addresses(status, report);
    let was = get(old, "status");
    let ends = |policy: &[&str]| policy.contains(&text(new, "spec.restartPolicy"));
    let always: Vec<&str> = list(old, "spec.initContainers")
        .iter()
        .filter(|container| text(container, "restartPolicy") == "Always")
        .map(|container| text(container, "name"))
        .collect();
    for (field, restarted) in [("containerStatuses", &[][..]), ("initContainerStatuses", &always)] {
        if ends(&["Never", "OnFailure"]) {
            states(field, status, was, (ends(&["OnFailure"]), restarted), report);
        }
    }
    states("ephemeralContainerStatuses", status, was, (false, &[]), report);
    for field in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        users(field, status, report);
    }
    let claims: Vec<&str> =
        list(new, "spec.resourceClaims").iter().map(|claim| text(claim, "name")).collect();
    let mut seen = BTreeSet::new();
    for (index, claim) in list(status, "resourceClaimStatuses").iter().enumerate() {
        let path = at(&item("status.resourceClaimStatuses", index), "name");
        let (name, made) = (text(claim, "name"), text(claim, "resourceClaimName"));
        if !claims.contains(&name) {
            report.invalid(&path, name, "must match the name of an entry in `spec.resourceClaims`");
        }
        if !seen.insert(name) {
            report.duplicate(&path, name);
        }
        if !made.is_empty() {
            report.invalid_all(&path, made, names::subdomain(made));
        }
    }
}

/// Checks the conditions of a pod. What Kubernetes does not know has a name that says whose it is.
fn pod_conditions(status: &Value, report: &mut Report) {
    for (index, condition) in list(status, "conditions").iter().enumerate() {
        let path = item("status.conditions", index);
        let (kind, generation) = (text(condition, "type"), number(condition, "observedGeneration"));
        if generation < 0 {
            let detail = "must be a non-negative integer";
            report.invalid(&at(&path, "observedGeneration"), generation, detail);
        }
        report.invalid_all(&at(&path, "Type"), kind, names::qualified(kind));
    }
}

/// Checks as whom the containers run.
fn users(field: &str, status: &Value, report: &mut Report) {
    for (index, container) in list(status, field).iter().enumerate() {
        let path = at(&item(&at("status", field), index), "user.linux");
        let linux = get(container, "user.linux");
        user(linux, "uid", &path, report);
        user(linux, "gid", &path, report);
        for (index, group) in list(linux, "supplementalGroups").iter().enumerate() {
            let group = serde_json::json!({"group": group});
            let path = item(&at(&path, "supplementalGroups"), index);
            let before = report.errors.len();
            user(&group, "group", "", report);
            for error in report.errors.iter_mut().skip(before) {
                error.field.clone_from(&path);
            }
        }
    }
}

/// Checks the addresses of a pod and of its node.
fn addresses(status: &Value, report: &mut Report) {
    address_list(status, "podIPs", report);
    address_list(status, "hostIPs", report);
    let first = list(status, "hostIPs").first().map(|entry| text(entry, "ip"));
    if let Some(first) = first.filter(|first| *first != text(status, "hostIP")) {
        report.invalid("status.hostIPs[0].ip", first, "must be equal to `hostIP`");
    }
}

fn address_list(status: &Value, field: &str, report: &mut Report) {
    let found: Vec<&str> = list(status, field).iter().map(|entry| text(entry, "ip")).collect();
    let place = at("status", field);
    let before = report.errors.len();
    for (index, address) in found.iter().enumerate() {
        let path = item(&place, index);
        report.invalid_all(&path, address, names::older_ip(address));
        report.warn(&at(&path, "ip"), names::unusual_ip(address));
    }
    let shown = || {
        let shown: Vec<String> = found.iter().map(|address| format!("{{\"IP\":{address:?}}}")).collect();
        format!("[{}]", shown.join(","))
    };
    if report.errors.len() > before || found.len() < 2 {
        return;
    }
    let newer = found.iter().filter(|address| address.contains(':')).count();
    if found.len() > 2 || newer != 1 {
        let detail = "may specify no more than one IP for each IP family";
        report.invalid_shown(&place, &shown(), detail);
    }
}

/// A container that has ended for good does not run again: one that failed may be `retried`, and some run `always`.
fn states(field: &str, status: &Value, old: &Value, (retried, always): (bool, &[&str]), report: &mut Report) {
    for before in list(old, field).iter().filter(|before| has(before, "state.terminated")) {
        let failed = int(before, "state.terminated.exitCode").unwrap_or_default() != 0;
        if (failed && retried) || always.contains(&text(before, "name")) {
            continue;
        }
        for (index, now) in list(status, field).iter().enumerate() {
            if text(now, "name") == text(before, "name") && !has(now, "state.terminated") {
                let path = at(&item(&at("status", field), index), "state");
                report.forbidden(&path, "may not be transitioned to non-terminated state");
            }
        }
    }
}

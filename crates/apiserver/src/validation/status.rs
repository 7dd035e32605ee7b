//! Validation of statuses, which controllers write: numbers that fit each other, and steps that a thing can take.

use std::collections::BTreeSet;

use objects::names;
use objects::quantity::Quantity;
use serde_json::Value;

use super::errors::{Report, at, item, key};
use super::{api_service, flow, signing_request, storage};
use crate::fields::{get, has, int, list, map, text};
use crate::kind::Kind;
use crate::pod_resources;

/// The numbers in the status of a kind.
struct Counts {
    group: &'static str,
    plural: &'static str,
    /// These are not negative.
    counted: &'static [&'static str],
    /// These are not greater than `replicas`.
    parts: &'static [&'static str],
    /// How the text calls the number of ready replicas, which is not less than that of the available ones.
    ready: Option<&'static str>,
    /// Whether the count of collisions never becomes less.
    collides: bool,
}

const SET: &[&str] =
    &["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"];

const PARTS_OF_SET: &[&str] = &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];

const COUNTS: &[Counts] = &[
    Counts {
        group: "apps",
        plural: "deployments",
        counted: &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "collisionCount",
        ],
        parts: &["updatedReplicas", "readyReplicas", "availableReplicas"],
        ready: Some("readyReplicas"),
        collides: true,
    },
    Counts {
        group: "apps",
        plural: "replicasets",
        counted: SET,
        parts: PARTS_OF_SET,
        ready: Some("readyReplicas"),
        collides: false,
    },
    Counts {
        group: "",
        plural: "replicationcontrollers",
        counted: SET,
        parts: PARTS_OF_SET,
        ready: Some("readyReplicas"),
        collides: false,
    },
    Counts {
        group: "apps",
        plural: "statefulsets",
        counted: &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
        parts: &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
        ready: Some("status.readyReplicas"),
        collides: true,
    },
    Counts {
        group: "apps",
        plural: "daemonsets",
        counted: &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
        parts: &[],
        ready: None,
        collides: true,
    },
    Counts {
        group: "batch",
        plural: "jobs",
        counted: &["active", "succeeded", "failed", "ready", "terminating"],
        parts: &[],
        ready: None,
        collides: false,
    },
    Counts {
        group: "autoscaling",
        plural: "horizontalpodautoscalers",
        counted: &["currentReplicas", "desiredReplicas"],
        parts: &[],
        ready: None,
        collides: false,
    },
    Counts {
        group: "policy",
        plural: "poddisruptionbudgets",
        counted: &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"],
        parts: &[],
        ready: None,
        collides: false,
    },
];

/// Checks the status of a new version of an object.
pub(super) fn update(kind: &Kind, new: &Value, old: &Value, report: &mut Report) {
    let known = COUNTS.iter().find(|counts| counts.group == kind.group && counts.plural == kind.plural);
    if let Some(counts) = known {
        numbers(counts, get(new, "status"), get(old, "status"), report);
    }
    match (&*kind.group, &*kind.plural) {
        ("", "namespaces") => namespace(new, report),
        ("", "nodes") => node(get(new, "status"), report),
        ("", "persistentvolumeclaims") => claim(get(new, "status"), report),
        ("", "resourcequotas") => quota(get(new, "status"), report),
        ("", "services") => service(new, report),
        ("networking.k8s.io", "ingresses") => balancer(get(new, "status"), report),
        ("policy", "poddisruptionbudgets") => {
            conditions(get(new, "status"), "status.conditions", report);
        }
        ("flowcontrol.apiserver.k8s.io", _) => flow::status(get(new, "status"), report),
        ("storage.k8s.io", "volumeattachments") => storage::attachment_status(get(new, "status"), report),
        ("certificates.k8s.io", _) => signing_request::signed(new, old, report),
        ("apiregistration.k8s.io", _) => api_service::status(get(new, "status"), report),
        _ => {}
    }
}

/// Returns a number of a status, 0 if it is absent.
pub(super) fn number(status: &Value, field: &str) -> i64 {
    int(status, field).unwrap_or_default()
}

fn numbers(counts: &Counts, status: &Value, old: &Value, report: &mut Report) {
    for field in counts.counted {
        if number(status, field) < 0 {
            let detail = "must be greater than or equal to 0";
            report.invalid(&at("status", field), number(status, field), detail);
        }
    }
    for field in counts.parts {
        if number(status, field) > number(status, "replicas") {
            let detail = "cannot be greater than status.replicas";
            report.invalid(&at("status", field), number(status, field), detail);
        }
    }
    let available = number(status, "availableReplicas");
    if let Some(name) = counts.ready
        && available > number(status, "readyReplicas")
    {
        report.invalid("status.availableReplicas", available, &format!("cannot be greater than {name}"));
    }
    let count = number(status, "collisionCount");
    if counts.collides && int(old, "collisionCount").is_some_and(|before| before > count) {
        report.invalid("status.collisionCount", count, "cannot be decremented");
    }
}

fn namespace(new: &Value, report: &mut Report) {
    let (phase, deleting) = (text(new, "status.phase"), has(new, "metadata.deletionTimestamp"));
    let (expected, absence) = if deleting { ("Terminating", "not ") } else { ("Active", "") };
    if phase != expected {
        let detail = format!("may only be '{expected}' if `deletionTimestamp` is {absence}empty");
        report.invalid("status.Phase", phase, &detail);
    }
}

fn node(status: &Value, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for (index, address) in list(status, "addresses").iter().enumerate() {
        let (kind, address) = (text(address, "type"), text(address, "address"));
        if !seen.insert((kind, address)) {
            let shown = format!("{{\"Type\":{kind:?},\"Address\":{address:?}}}");
            report.duplicate_shown(&item("status.addresses", index), &shown);
        }
    }
    for field in ["capacity", "allocatable"] {
        for (name, amount) in map(status, field) {
            amount_of(name, amount, &at(&at("status", field), name), report);
        }
    }
}

/// Checks an amount of a resource, which is not negative and, for what is counted, whole.
fn amount_of(name: &str, amount: &Value, path: &str, report: &mut Report) {
    let Some(amount) = amount.as_str().and_then(|text| text.parse::<Quantity>().ok()) else {
        return;
    };
    if amount.nanos() < 0 {
        report.invalid(path, amount.to_string(), "must be greater than or equal to 0");
    }
    let counted =
        matches!(name, "pods" | "services" | "replicationcontrollers" | "resourcequotas" | "secrets")
            || matches!(name, "configmaps" | "persistentvolumeclaims" | "services.nodeports")
            || matches!(name, "services.loadbalancers")
            || name.starts_with("count/")
            || is_extended(name);
    if counted && amount.nanos() % 1_000_000_000 != 0 {
        report.invalid(path, amount.to_string(), "must be an integer");
    }
}

/// Returns whether a resource is one that somebody adds to nodes.
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

fn quota(status: &Value, report: &mut Report) {
    for field in ["hard", "used"] {
        quota_amounts(get(status, field), &at("status", field), report);
    }
}

/// Returns whether a quota counts pages of memory by this name.
pub(super) fn is_quota_of_pages(name: &str) -> bool {
    pod_resources::is_pages(name.strip_prefix("requests.").unwrap_or(name))
}

/// Checks the amounts of a quota.
pub(super) fn quota_amounts(amounts: &Value, path: &str, report: &mut Report) {
    const KNOWN: [&str; 18] = [
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "persistentvolumeclaims",
        "configmaps",
        "services.nodeports",
    ];
    for (name, amount) in amounts.as_object().into_iter().flatten() {
        let path = key(path, name);
        let is_known =
            KNOWN.contains(&name.as_str()) || name == "services.loadbalancers" || is_quota_of_pages(name);
        if !name.contains('/') && !is_known {
            report.invalid(&path, name.as_str(), "must be a standard resource type or fully qualified");
            report.invalid(&path, name.as_str(), "must be a standard resource for quota");
        }
        amount_of(name, amount, &path, report);
    }
}

fn claim(status: &Value, report: &mut Report) {
    const KNOWN: [&str; 5] = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    let negative = |amount: &Value| {
        amount.as_str().and_then(|text| text.parse::<Quantity>().ok()).filter(|amount| amount.nanos() < 0)
    };
    for field in ["capacity", "allocatedResources"] {
        for (name, amount) in map(status, field) {
            if field == "allocatedResources" && !is_of_claim(name, "status.allocatedResources", report) {
                continue;
            }
            if let Some(amount) = negative(amount) {
                let path = key(&at("status", field), name);
                report.invalid_shown(&path, &amount.to_string(), "must be a valid resource quantity");
            }
        }
    }
    for (name, state) in map(status, "allocatedResourceStatuses") {
        is_of_claim(name, "status.allocatedResourceStatuses", report);
        if !state.as_str().is_some_and(|state| KNOWN.contains(&state)) {
            report.unsupported("status.allocatedResourceStatuses", name.as_str(), &KNOWN);
        }
    }
}

/// Returns whether a claim can have a resource: storage, and what somebody adds.
fn is_of_claim(name: &str, path: &str, report: &mut Report) -> bool {
    let before = report.errors.len();
    report.invalid_all(path, name, names::qualified(name));
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    if report.errors.len() == before && native && name != "storage" {
        report.unsupported(path, name, &["storage"]);
    }
    report.errors.len() == before
}

fn service(new: &Value, report: &mut Report) {
    const PATH: &str = "status.loadBalancer.ingress";
    let entries = list(new, PATH);
    if text(new, "spec.type") != "LoadBalancer" {
        if !entries.is_empty() {
            report.forbidden(PATH, "may only be used when `spec.type` is 'LoadBalancer'");
        }
        return;
    }
    balancer(get(new, "status"), report);
    for (index, entry) in entries.iter().enumerate() {
        let path = at(&item(PATH, index), "ipMode");
        match (text(entry, "ip"), get(entry, "ipMode").as_str()) {
            ("", Some(_)) => report.forbidden(&path, "may not be specified when `ip` is not set"),
            (_, Some(mode)) => report.one_of(&path, mode, &["Proxy", "VIP"]),
            ("", None) => {}
            (_, None) => report.required(&path, "must be specified when `ip` is set"),
        }
    }
}

/// Checks where a load balancer is reached.
fn balancer(status: &Value, report: &mut Report) {
    for (index, entry) in list(status, "loadBalancer.ingress").iter().enumerate() {
        let path = item("status.loadBalancer.ingress", index);
        let (address, host) = (text(entry, "ip"), text(entry, "hostname"));
        if !address.is_empty() {
            report.invalid_all(&at(&path, "ip"), address, names::older_ip(address));
            // The real server leaves out which field it means.
            report.warn(&path, names::unusual_ip(address));
        }
        if !host.is_empty() {
            report.invalid_all(&at(&path, "hostname"), host, names::subdomain(host));
            if names::lenient_ip(host).is_some() {
                report.invalid(&at(&path, "hostname"), host, "must be a DNS name, not an IP address");
            }
        }
    }
}

/// Checks conditions of the form that newer kinds have.
pub(super) fn conditions(status: &Value, path: &str, report: &mut Report) {
    const LONGEST_REASON: usize = 1024;
    const LONGEST_MESSAGE: usize = 32 * 1024;
    let mut seen = BTreeSet::new();
    for (index, condition) in list(status, "conditions").iter().enumerate() {
        let path = item(path, index);
        let (kind, reason) = (text(condition, "type"), text(condition, "reason"));
        if !seen.insert(kind) {
            report.duplicate(&at(&path, "type"), kind);
        }
        report.invalid_all(&at(&path, "type"), kind, names::qualified(kind));
        let generation = number(condition, "observedGeneration");
        if generation < 0 {
            let detail = "must be greater than or equal to zero";
            report.invalid(&at(&path, "observedGeneration"), generation, detail);
        }
        if reason.len() > LONGEST_REASON {
            report.too_long(&at(&path, "reason"), LONGEST_REASON);
        }
        if text(condition, "message").len() > LONGEST_MESSAGE {
            report.too_long(&at(&path, "message"), LONGEST_MESSAGE);
        }
        report.one_of(&at(&path, "status"), text(condition, "status"), &["False", "True", "Unknown"]);
        if !has(condition, "lastTransitionTime") {
            report.required(&at(&path, "lastTransitionTime"), "");
        }
        if reason.is_empty() {
            report.required(&at(&path, "reason"), "");
        } else if !is_reason(reason) {
            let detail = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
            report.invalid(&at(&path, "reason"), reason, detail);
        }
    }
}

fn is_reason(reason: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_,:".contains(&byte);
    reason.bytes().all(inner)
        && reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && !reason.ends_with([',', ':'])
}

//! Validation of pods.

use std::collections::BTreeSet;

use objects::names;
use serde_json::Value;

use super::container::{Surroundings, containers, images, user};
use super::errors::{Report, at, item, key};
use super::{metadata, pod_resources};
use crate::fields::{get, has, int, list, map, text, texts};

/// Checks the specification of a pod; the defaults are in.
pub(super) fn spec(object: &Value, path: &str, report: &mut Report) {
    spec_with(object, path, std::iter::empty(), report);
}

/// Checks the specification of a pod itself, not that of a template.
pub(super) fn own_spec(object: &Value, report: &mut Report) {
    spec(object, "spec", report);
    for field in ["containers", "initContainers"] {
        images(list(object, field), &at("spec", field), report);
    }
}

/// Checks the specification of a pod that gets volumes from elsewhere, too.
pub(super) fn spec_with<'a>(
    spec: &'a Value,
    path: &str,
    more: impl Iterator<Item = &'a str>,
    report: &mut Report,
) {
    let grace = int(spec, "terminationGracePeriodSeconds");
    let mut around = Surroundings { grace, ..Surroundings::default() };
    volumes(spec, path, &mut around.volumes, report);
    around.volumes.extend(more);
    let place = at(path, "containers");
    if list(spec, "containers").is_empty() {
        report.required(&place, "");
    }
    containers(list(spec, "containers"), &place, false, &mut around, report);
    containers(list(spec, "initContainers"), &at(path, "initContainers"), true, &mut around, report);
    if !list(spec, "ephemeralContainers").is_empty() {
        report.forbidden(&at(path, "ephemeralContainers"), "cannot be set on create");
    }
    repeated_ports(spec, path, report);
    one_of(spec, "restartPolicy", &["Always", "OnFailure", "Never"], path, report);
    dns(spec, path, report);
    metadata::labels(get(spec, "nodeSelector"), &at(path, "nodeSelector"), report);
    for (label, _) in map(spec, "nodeSelector") {
        let detail = names::deprecated_label(label).map(str::to_owned);
        report.warn(&key(&at(path, "nodeSelector"), label), detail);
    }
    context(spec, path, report);
    for (index, secret) in list(spec, "imagePullSecrets").iter().enumerate() {
        if text(secret, "name").is_empty() {
            let place = at(&item(&at(path, "imagePullSecrets"), index), "name");
            report.warnings.push(format!("{place}: invalid empty name \"\""));
        }
    }
    affinity(get(spec, "affinity"), &at(path, "affinity"), report);
    names_in(spec, path, report);
    tolerations(spec, path, report);
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let place = item(&at(path, "hostAliases"), index);
        report.invalid_all(&at(&place, "ip"), text(alias, "ip"), names::older_ip(text(alias, "ip")));
        for (index, name) in texts(alias, "hostnames").enumerate() {
            report.invalid_all(&item(&at(&place, "hostnames"), index), name, names::subdomain(name));
        }
    }
    topology(spec, path, report);
    readiness(spec, path, report);
    pod_resources::pod_resources(spec, path, report);
    if let Some(seconds) = int(spec, "activeDeadlineSeconds")
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let detail = "must be between 1 and 2147483647, inclusive";
        report.invalid(&at(path, "activeDeadlineSeconds"), seconds, detail);
    }
}

fn one_of(object: &Value, field: &str, values: &[&str], path: &str, report: &mut Report) {
    let value = text(object, field);
    if value.is_empty() {
        report.required(&at(path, field), "");
    } else if !values.contains(&value) {
        report.unsupported(&at(path, field), value, values);
    }
}

/// Warns of ports that two containers announce.
fn repeated_ports(spec: &Value, path: &str, report: &mut Report) {
    let mut seen: Vec<(&Value, String)> = Vec::new();
    for (index, container) in list(spec, "containers").iter().enumerate() {
        for (at_port, port) in list(container, "ports").iter().enumerate() {
            let place = format!("{path}.containers[{index}].ports[{at_port}]");
            for (other, first) in &seen {
                if let Some(how) = collision(port, other) {
                    report.warnings.push(format!("{place}: {how} port definition with {first}"));
                }
            }
            seen.push((port, place));
        }
    }
}

/// Returns how two ports of a pod are in each other's way.
fn collision(port: &Value, other: &Value) -> Option<&'static str> {
    let inner = |port: &Value| (int(port, "containerPort"), text(port, "protocol").to_owned());
    if inner(port) != inner(other) {
        return None;
    }
    let host = |port: &Value| int(port, "hostPort").unwrap_or_default();
    let (here, there) = (text(port, "hostIP"), text(other, "hostIP"));
    match (host(port), host(other)) {
        (one, two) if one == two && here == there => Some("duplicate"),
        (one, two) if one == 0 || two == 0 => Some("overlapping"),
        (one, two) if one == two && (here.is_empty() || there.is_empty()) => Some("dangerously ambiguous"),
        _ => None,
    }
}

fn names_in(spec: &Value, path: &str, report: &mut Report) {
    let mut check = |field: &str, rule: fn(&str) -> Vec<String>| {
        let name = text(spec, field);
        if !name.is_empty() {
            report.invalid_all(&at(path, field), name, rule(name));
        }
    };
    check("serviceAccountName", names::subdomain);
    check("nodeName", names::subdomain);
    check("hostname", names::label);
    check("subdomain", names::label);
    check("priorityClassName", names::subdomain);
    check("runtimeClassName", names::subdomain);
}

fn dns(spec: &Value, path: &str, report: &mut Report) {
    const POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(spec, "dnsPolicy", &POLICIES, path, report);
    let config = at(path, "dnsConfig");
    if text(spec, "dnsPolicy") == "None" {
        if !has(spec, "dnsConfig") {
            report.required(&config, "must provide `dnsConfig` when `dnsPolicy` is None");
        } else if list(spec, "dnsConfig.nameservers").is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            report.required(&at(&config, "nameservers"), detail);
        }
    }
    for (index, server) in texts(spec, "dnsConfig.nameservers").enumerate() {
        report.invalid_all(&item(&at(&config, "nameservers"), index), server, names::older_ip(server));
    }
}

fn context(spec: &Value, path: &str, report: &mut Report) {
    let context = get(spec, "securityContext");
    let path = at(path, "securityContext");
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        user(context, field, &path, report);
    }
}

/// The first source of a volume stays, the others are too many.
const ORDER: [&str; 14] = [
    "emptyDir",
    "hostPath",
    "secret",
    "nfs",
    "iscsi",
    "persistentVolumeClaim",
    "rbd",
    "cephfs",
    "downwardAPI",
    "configMap",
    "projected",
    "csi",
    "ephemeral",
    "image",
];

const SOURCES: [(&str, &str); 6] = [
    ("secret", "secretName"),
    ("configMap", "name"),
    ("hostPath", "path"),
    ("persistentVolumeClaim", "claimName"),
    ("nfs", "server"),
    ("csi", "driver"),
];

fn volumes<'a>(spec: &'a Value, path: &str, known: &mut BTreeSet<&'a str>, report: &mut Report) {
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = item(&at(path, "volumes"), index);
        let name = text(volume, "name");
        let before = report.errors.len();
        let mut sources = 0;
        let mut kinds: Vec<(&String, &Value)> =
            volume.as_object().into_iter().flatten().filter(|(key, _)| *key != "name").collect();
        kinds.sort_by_key(|(kind, _)| ORDER.iter().position(|known| known == kind));
        for (kind, source) in kinds {
            sources += 1;
            if sources > 1 {
                let detail = "may not specify more than 1 volume type";
                report.forbidden(&at(&path, kind), detail);
                continue;
            }
            let needed = SOURCES.iter().find(|(known, _)| known == kind);
            if let Some((_, field)) = needed.filter(|(_, field)| text(source, field).is_empty()) {
                report.required(&at(&at(&path, kind), field), "");
            }
        }
        if sources == 0 {
            report.required(&path, "must specify a volume type");
        }
        if name.is_empty() {
            report.required(&at(&path, "name"), "");
        } else {
            let wrong = names::label(name);
            let valid = wrong.is_empty();
            report.invalid_all(&at(&path, "name"), name, wrong);
            if valid && known.contains(name) {
                report.duplicate(&at(&path, "name"), name);
            }
        }
        if report.errors.len() == before {
            known.insert(name);
        }
    }
}

pub(super) fn tolerations(spec: &Value, path: &str, report: &mut Report) {
    for (index, toleration) in list(spec, "tolerations").iter().enumerate() {
        let path = item(&at(path, "tolerations"), index);
        let field = |name: &str| text(toleration, name);
        if !field("key").is_empty() {
            report.invalid_all(&at(&path, "key"), field("key"), names::qualified(field("key")));
        }
        if field("key").is_empty() && field("operator") != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            report.invalid(&at(&path, "operator"), field("operator"), detail);
        }
        if has(toleration, "tolerationSeconds") && field("effect") != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            report.invalid(&at(&path, "effect"), field("effect"), detail);
        }
        match field("operator") {
            "" | "Equal" => {
                report.invalid_all(
                    &at(&path, "operator"),
                    field("value"),
                    names::label_value(field("value")),
                );
            }
            "Exists" if !field("value").is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                report.invalid(&at(&path, "operator"), field("value"), detail);
            }
            "Exists" => {}
            other => report.unsupported(&at(&path, "operator"), other, &["Equal", "Exists"]),
        }
        if !matches!(field("effect"), "" | "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
            let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            report.unsupported(&at(&path, "effect"), field("effect"), &effects);
        }
    }
}

/// Checks what a pod waits for, and the system that it is for.
fn readiness(spec: &Value, path: &str, report: &mut Report) {
    for (index, gate) in list(spec, "readinessGates").iter().enumerate() {
        let place = at(&item(&at(path, "readinessGates"), index), "conditionType");
        let kind = text(gate, "conditionType");
        report.invalid_all(&place, kind, names::qualified(kind));
    }
    let mut seen = BTreeSet::new();
    let gates = list(spec, "schedulingGates");
    for (index, gate) in gates.iter().enumerate() {
        let place = item(&at(path, "schedulingGates"), index);
        let name = text(gate, "name");
        report.invalid_all(&place, name, names::qualified(name));
        if !seen.insert(name) {
            report.duplicate(&place, name);
        }
    }
    if !gates.is_empty() && !text(spec, "nodeName").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        report.forbidden(&at(path, "nodeName"), detail);
    }
    let system = text(spec, "os.name");
    if has(spec, "os") && !system.is_empty() {
        report.one_of(&at(path, "os"), system, &["linux", "windows"]);
    }
}

/// Checks which nodes are selected.
pub(super) fn node_selector(selector: &Value, path: &str, report: &mut Report) {
    let place = at(path, "nodeSelectorTerms");
    if list(selector, "nodeSelectorTerms").is_empty() {
        report.required(&place, "must have at least one node selector term");
    }
    for (index, term) in list(selector, "nodeSelectorTerms").iter().enumerate() {
        node_term(term, &item(&place, index), report);
    }
}

fn node_term(term: &Value, path: &str, report: &mut Report) {
    for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
        let path = item(&at(path, "matchExpressions"), index);
        let (key, values) = (text(expression, "key"), list(expression, "values"));
        let place = at(&path, "values");
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                report.required(&place, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                report.forbidden(&place, detail);
            }
            "Gt" | "Lt" if values.len() != 1 => {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                report.required(&place, detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => report.invalid(&at(&path, "operator"), other, "not a valid selector operator"),
        }
        report.invalid_all(&at(&path, "key"), key, names::qualified(key));
        for (index, value) in texts(expression, "values").enumerate() {
            report.invalid_all(&item(&place, index), value, names::label_value(value));
        }
    }
    for (index, requirement) in list(term, "matchFields").iter().enumerate() {
        node_field(requirement, &item(&at(path, "matchFields"), index), report);
    }
}

/// Checks a requirement of a field of nodes: their name is the only one.
fn node_field(requirement: &Value, path: &str, report: &mut Report) {
    let place = at(path, "values");
    match text(requirement, "operator") {
        "In" | "NotIn" => {
            if list(requirement, "values").len() != 1 {
                let detail =
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                report.required(&place, detail);
            }
        }
        other => report.invalid(&at(path, "operator"), other, "not a valid selector operator"),
    }
    let key = text(requirement, "key");
    if key != "metadata.name" {
        return report.invalid(&at(path, "key"), key, "not a valid field selector key");
    }
    for (index, value) in texts(requirement, "values").enumerate() {
        report.invalid_all(&item(&place, index), value, names::subdomain(value));
    }
}

/// Warns of labels of nodes in the terms of a selector.
pub(super) fn warn_of_terms(selector: &Value, path: &str, report: &mut Report) {
    for (index, term) in list(selector, "nodeSelectorTerms").iter().enumerate() {
        warn_of_term(term, false, &item(&at(path, "nodeSelectorTerms"), index), report);
    }
}

/// Warns of labels of nodes that have another name by now, and of values that no label has.
pub(super) fn warn_of_term(term: &Value, has_values: bool, path: &str, report: &mut Report) {
    for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
        let path = item(&at(path, "matchExpressions"), index);
        let key = text(expression, "key");
        let detail = names::deprecated_label(key).map(|detail| format!("{key} is {detail}"));
        report.warn(&at(&path, "key"), detail);
        for (index, value) in texts(expression, "values").enumerate().filter(|_| has_values) {
            for wrong in names::label_value(value) {
                let detail = format!("{value} is invalid, {wrong}");
                report.warn(&item(&at(&path, "values"), index), Some(detail));
            }
        }
    }
}

fn affinity(affinity: &Value, path: &str, report: &mut Report) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let node = get(affinity, "nodeAffinity");
    if has(node, REQUIRED) {
        let place = format!("{path}.nodeAffinity.{REQUIRED}");
        node_selector(get(node, REQUIRED), &place, report);
        warn_of_terms(get(node, REQUIRED), &place, report);
    }
    for (index, term) in list(node, PREFERRED).iter().enumerate() {
        let place = at(&item(&format!("{path}.nodeAffinity.{PREFERRED}"), index), "preference");
        warn_of_term(get(term, "preference"), true, &place, report);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        for (index, term) in list(get(affinity, kind), REQUIRED).iter().enumerate() {
            let place = item(&format!("{path}.{kind}.{REQUIRED}"), index);
            metadata::selector(get(term, "labelSelector"), &at(&place, "labelSelector"), report);
            let key = text(term, "topologyKey");
            if key.is_empty() {
                report.required(&at(&place, "topologyKey"), "can not be empty");
            }
            report.invalid_all(&at(&place, "topologyKey"), key, names::qualified(key));
        }
    }
}

fn topology(spec: &Value, path: &str, report: &mut Report) {
    for (index, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let path = item(&at(path, "topologySpreadConstraints"), index);
        let skew = int(constraint, "maxSkew").unwrap_or_default();
        if skew <= 0 {
            report.invalid(&at(&path, "maxSkew"), skew, "must be greater than zero");
        }
        let label = text(constraint, "topologyKey");
        if label.is_empty() {
            report.required(&at(&path, "topologyKey"), "can not be empty");
        }
        let detail = names::deprecated_label(label).map(|detail| format!("{label} is {detail}"));
        report.warn(&at(&path, "topologyKey"), detail);
        let action = text(constraint, "whenUnsatisfiable");
        if !matches!(action, "DoNotSchedule" | "ScheduleAnyway") {
            let actions = ["DoNotSchedule", "ScheduleAnyway"];
            report.unsupported(&at(&path, "whenUnsatisfiable"), action, &actions);
        }
        metadata::selector(get(constraint, "labelSelector"), &at(&path, "labelSelector"), report);
    }
}

/// Warns of names that make bad host names.
pub(super) fn warn_of_name(object: &Value, what: &str, report: &mut Report) {
    let name = text(object, "metadata.name");
    let wrong = names::label(name);
    if !name.is_empty() && !wrong.is_empty() {
        let wrong = wrong.join(", ");
        report.warnings.push(format!(
            "metadata.name: this is used in {what}, which can result in surprising behavior; a DNS label is recommended: [{wrong}]"
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_are_in_each_others_way_as_their_hosts_say() {
        let port = |host: i64, ip: &str| json!({"containerPort": 80, "protocol": "TCP", "hostPort": host, "hostIP": ip});
        let check = |one: (i64, &str), two: (i64, &str)| collision(&port(one.0, one.1), &port(two.0, two.1));
        assert_eq!(check((0, ""), (0, "")), Some("duplicate"));
        assert_eq!(check((0, ""), (1, "")), Some("overlapping"));
        assert_eq!(check((2, "1.1.1.1"), (2, "")), Some("dangerously ambiguous"));
        assert_eq!(check((2, "1.1.1.1"), (2, "1.1.1.2")), None);
        assert_eq!(check((1, ""), (2, "")), None);
    }
}

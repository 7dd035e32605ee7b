//! Validation of containers.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use objects::names;
use objects::quantity::Quantity;
use serde_json::Value;

use super::errors::{Report, at, item, key};
use crate::fields::{flag, get, has, int, list, map, text};
use crate::pod_resources::{is_overcommitted, is_pages};

const GE_ZERO: &str = "must be greater than or equal to 0";

/// What a container may refer to and must differ from.
#[derive(Default)]
pub(super) struct Surroundings<'a> {
    pub(super) volumes: BTreeSet<&'a str>,
    pub(super) names: BTreeSet<&'a str>,
    /// How many seconds the pod has to end.
    pub(super) grace: Option<i64>,
}

/// Checks a list of containers; `init` is whether they run before the others.
pub(super) fn containers<'a>(
    containers: &'a [Value],
    path: &str,
    init: bool,
    around: &mut Surroundings<'a>,
    report: &mut Report,
) {
    let mut host_ports = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = item(path, index);
        let name = text(container, "name");
        let sidecar = text(container, "restartPolicy") == "Always";
        if name.is_empty() {
            report.required(&at(&path, "name"), "");
        } else {
            report.invalid_all(&at(&path, "name"), name, names::label(name));
            if !around.names.insert(name) {
                report.duplicate(&at(&path, "name"), name);
            }
        }
        image(container, &path, report);
        ports(container, &path, &mut host_ports, report);
        environment(container, &path, report);
        mounts(container, &path, &around.volumes, report);
        for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
            let place = at(&path, field);
            if !has(container, field) {
                continue;
            }
            if init && !sidecar {
                report.forbidden(&place, "may not be set for init containers without restartPolicy=Always");
            } else {
                probe(get(container, field), &place, field != "readinessProbe", report);
            }
        }
        lifecycle(container, &path, init && !sidecar, around.grace, report);
        hidden(container, &path, report);
        policies(container, &path, report);
        resources(get(container, "resources"), &at(&path, "resources"), report);
        security(get(container, "securityContext"), &at(&path, "securityContext"), report);
    }
}

fn image(container: &Value, path: &str, report: &mut Report) {
    if text(container, "image").is_empty() {
        report.required(&at(path, "image"), "");
    }
}

/// Checks what is asked of the images of pods, and not of templates.
pub(super) fn images(containers: &[Value], path: &str, report: &mut Report) {
    for (index, container) in containers.iter().enumerate() {
        let image = text(container, "image");
        if image.trim() != image {
            let place = at(&item(path, index), "image");
            report.invalid(&place, image, "must not have leading or trailing whitespace");
        }
    }
}

fn policies(container: &Value, path: &str, report: &mut Report) {
    let mut one_of = |field: &str, values: &[&str]| {
        let value = text(container, field);
        if !value.is_empty() && !values.contains(&value) {
            report.unsupported(&at(path, field), value, values);
        }
    };
    one_of("imagePullPolicy", &["Always", "IfNotPresent", "Never"]);
    one_of("terminationMessagePolicy", &["File", "FallbackToLogsOnError"]);
}

fn ports<'a>(container: &'a Value, path: &str, host_ports: &mut BTreeSet<String>, report: &mut Report) {
    let mut known: BTreeSet<&'a str> = BTreeSet::new();
    for (index, port) in list(container, "ports").iter().enumerate() {
        let path = item(&at(path, "ports"), index);
        let name = text(port, "name");
        if !name.is_empty() {
            let wrong = names::port_name(name);
            if wrong.is_empty() && !known.insert(name) {
                report.duplicate(&at(&path, "name"), name);
            }
            report.invalid_all(&at(&path, "name"), name, wrong);
        }
        match int(port, "containerPort").unwrap_or_default() {
            0 => report.required(&at(&path, "containerPort"), ""),
            number => invalid_number(&at(&path, "containerPort"), number, names::port_number(number), report),
        }
        let host = int(port, "hostPort").unwrap_or_default();
        let protocol = text(port, "protocol");
        if host != 0 {
            invalid_number(&at(&path, "hostPort"), host, names::port_number(host), report);
            let address = format!("{protocol}/{}/{host}", text(port, "hostIP"));
            if !host_ports.insert(address.clone()) {
                report.duplicate(&at(&path, "hostPort"), address);
            }
        }
        protocol_name(protocol, &at(&path, "protocol"), report);
    }
}

pub(super) fn protocol_name(protocol: &str, path: &str, report: &mut Report) {
    if protocol.is_empty() {
        report.required(path, "");
    } else if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
        report.unsupported(path, protocol, &["SCTP", "TCP", "UDP"]);
    }
}

pub(super) fn invalid_number(path: &str, number: i64, wrong: Vec<String>, report: &mut Report) {
    for detail in wrong {
        report.invalid(path, number, &detail);
    }
}

pub(super) fn not_negative(object: &Value, field: &str, path: &str, report: &mut Report) {
    if let Some(number) = int(object, field).filter(|number| *number < 0) {
        report.invalid(&at(path, field), number, GE_ZERO);
    }
}

fn environment(container: &Value, path: &str, report: &mut Report) {
    for (index, variable) in list(container, "env").iter().enumerate() {
        let name = text(variable, "name");
        let wrong = names::environment(name);
        // There are many variables, and most are right.
        if !name.is_empty() && wrong.is_empty() && !has(variable, "valueFrom") {
            continue;
        }
        let path = item(&at(path, "env"), index);
        if name.is_empty() {
            report.required(&at(&path, "name"), "");
        } else {
            report.invalid_all(&at(&path, "name"), name, wrong);
        }
        if has(variable, "valueFrom") {
            source(variable, &at(&path, "valueFrom"), report);
        }
    }
    for (index, from) in list(container, "envFrom").iter().enumerate() {
        let path = at(path, "envFrom");
        let (map, secret) = (has(from, "configMapRef"), has(from, "secretRef"));
        for (field, present) in [("configMapRef", map), ("secretRef", secret)] {
            let place = at(&at(&item(&path, index), field), "name");
            let name = text(get(from, field), "name");
            if present && name.is_empty() {
                report.required(&place, "");
            } else if present {
                report.invalid_all(&place, name, names::subdomain(name));
            }
        }
        match (map, secret) {
            (false, false) => report.invalid(&path, "", "must specify one of: `configMapRef` or `secretRef`"),
            (true, true) => report.invalid(&path, "", "may not have more than one field specified at a time"),
            (_, _) => {}
        }
    }
}

fn source(variable: &Value, path: &str, report: &mut Report) {
    let from = get(variable, "valueFrom");
    let mut count = 0;
    for field in ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"] {
        let reference = get(from, field);
        if reference.is_null() {
            continue;
        }
        count += 1;
        let place = at(path, field);
        match field {
            "fieldRef" => field_reference(reference, &place, report),
            "resourceFieldRef" => {
                if text(reference, "resource").is_empty() {
                    report.required(&at(&place, "resource"), "");
                }
            }
            _ => {
                let name = text(reference, "name");
                report.invalid_all(&at(&place, "name"), name, names::subdomain(name));
                match text(reference, "key") {
                    "" => report.required(&at(&place, "key"), ""),
                    key => report.invalid_all(&at(&place, "key"), key, names::config_key(key)),
                }
            }
        }
    }
    if !text(variable, "value").is_empty() {
        if count > 0 {
            report.invalid(path, "", "may not be specified when `value` is not empty");
        }
    } else if count == 0 {
        let detail =
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`";
        report.invalid(path, "", detail);
    } else if count > 1 {
        report.invalid(path, "", "may not have more than one field specified at a time");
    }
}

fn field_reference(reference: &Value, path: &str, report: &mut Report) {
    const KNOWN: [&str; 9] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    let field = text(reference, "fieldPath");
    if field.is_empty() {
        return report.required(&at(path, "fieldPath"), "");
    }
    let keyed = ["metadata.labels['", "metadata.annotations['"];
    let is_keyed = keyed.iter().any(|prefix| field.starts_with(prefix) && field.ends_with("']"));
    if !is_keyed && !KNOWN.contains(&field) {
        let detail = format!("error converting fieldPath: field label not supported: {field}");
        report.invalid(&at(path, "fieldPath"), field, &detail);
    }
}

fn mounts(container: &Value, path: &str, volumes: &BTreeSet<&str>, report: &mut Report) {
    let mut paths = BTreeSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let path = item(&at(path, "volumeMounts"), index);
        let (name, target) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            report.required(&at(&path, "name"), "");
        }
        if !volumes.contains(name) {
            report.not_found(&at(&path, "name"), name);
        }
        if target.is_empty() {
            report.required(&at(&path, "mountPath"), "");
        }
        if !paths.insert(target) {
            report.invalid(&at(&path, "mountPath"), target, "must be unique");
        }
        let sub = text(mount, "subPath");
        if sub.starts_with('/') {
            report.invalid(&at(&path, "subPath"), sub, "must be a relative path");
        } else if sub.split('/').any(|part| part == "..") {
            report.invalid(&at(&path, "subPath"), sub, "must not contain '..'");
        }
    }
}

fn probe(probe: &Value, path: &str, once: bool, report: &mut Report) {
    handler(probe, path, report);
    for field in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        not_negative(probe, field, path, report);
    }
    if once && int(probe, "successThreshold").is_some_and(|n| n != 1) {
        report.invalid(&at(path, "successThreshold"), int(probe, "successThreshold"), "must be 1");
    }
    if let Some(period) = int(probe, "terminationGracePeriodSeconds").filter(|n| *n <= 0) {
        report.invalid(&at(path, "terminationGracePeriodSeconds"), period, "must be greater than 0");
    }
}

fn handler(handler: &Value, path: &str, report: &mut Report) {
    let mut count = 0;
    for field in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        if !has(handler, field) {
            continue;
        }
        let (action, place) = (get(handler, field), at(path, field));
        if count > 0 {
            report.forbidden(&place, "may not specify more than 1 handler type");
            count += 1;
            continue;
        }
        count += 1;
        match field {
            "exec" if list(action, "command").is_empty() => {
                report.required(&at(&place, "command"), "");
            }
            "httpGet" => {
                if text(action, "path").is_empty() {
                    report.required(&at(&place, "path"), "");
                }
                port(get(action, "port"), &at(&place, "port"), report);
                let scheme = text(action, "scheme");
                report.one_of(&at(&place, "scheme"), scheme, &["HTTP", "HTTPS"]);
            }
            "tcpSocket" | "grpc" => port(get(action, "port"), &at(&place, "port"), report),
            _ => {}
        }
    }
    if count == 0 {
        report.required(path, "must specify a handler type");
    }
}

pub(super) fn port(port: &Value, path: &str, report: &mut Report) {
    match port {
        Value::String(name) => report.invalid_all(path, name, names::port_name(name)),
        other => {
            let number = other.as_i64().unwrap_or_default();
            invalid_number(path, number, names::port_number(number), report);
        }
    }
}

fn lifecycle(container: &Value, path: &str, forbidden: bool, grace: Option<i64>, report: &mut Report) {
    let lifecycle = get(container, "lifecycle");
    let path = at(path, "lifecycle");
    if lifecycle.is_null() {
        return;
    }
    if forbidden {
        return report.forbidden(&path, "may not be set for init containers without restartPolicy=Always");
    }
    for field in ["postStart", "preStop"] {
        if has(lifecycle, field) {
            let path = at(&path, field);
            handler(get(lifecycle, field), &path, report);
            sleep(get(lifecycle, field), grace, &path, report);
        }
    }
}

/// Checks that a pod ends before its time is over.
fn sleep(handler: &Value, grace: Option<i64>, path: &str, report: &mut Report) {
    let seconds = int(handler, "sleep.seconds").unwrap_or_default();
    if let Some(grace) = grace.filter(|grace| has(handler, "sleep") && !(0..=*grace).contains(&seconds)) {
        let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        report.invalid(&at(path, "sleep"), seconds, &detail);
    }
}

/// Warns of variables that have another value before, unless they build on it.
fn hidden(container: &Value, path: &str, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for (index, variable) in list(container, "env").iter().enumerate() {
        let (name, value) = (text(variable, "name"), text(variable, "value"));
        let reference = format!("$({name})");
        let builds = !has(variable, "valueFrom") && value != reference && value.contains(&reference);
        if !seen.insert(name) && !builds {
            let detail =
                format!("hides previous definition of {name:?}, which may be dropped when using apply");
            report.warn(&item(&at(path, "env"), index), Some(detail));
        }
    }
}

fn security(context: &Value, path: &str, report: &mut Report) {
    if flag(context, "privileged") && get(context, "allowPrivilegeEscalation") == &Value::Bool(false) {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        report.invalid(path, context.clone(), detail);
    }
    for field in ["runAsUser", "runAsGroup"] {
        user(context, field, path, report);
    }
}

/// Checks the number of a user or group.
pub(super) fn user(context: &Value, field: &str, path: &str, report: &mut Report) {
    if let Some(id) = int(context, field).filter(|id| !(0..=i64::from(i32::MAX)).contains(id)) {
        report.invalid(&at(path, field), id, "must be between 0 and 2147483647, inclusive");
    }
}

/// Returns whether every node has a resource.
pub(super) fn is_standard(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-")
}

pub(super) fn resource_name(name: &str, path: &str, report: &mut Report) {
    report.invalid_all(path, name, names::qualified(name));
    if !name.contains('/') && !is_standard(name) {
        if !matches!(name, "storage" | "pods" | "services" | "secrets" | "configmaps") {
            report.invalid(path, name, "must be a standard resource type or fully qualified");
        }
        report.invalid(path, name, "must be a standard resource for containers");
    }
}

/// Checks what a container asks for.
pub(super) fn resources(resources: &Value, path: &str, report: &mut Report) {
    requirements(resources, path, resource_name, report);
}

/// Checks amounts of resources, whose names `resource_name` checks.
pub(super) fn requirements(
    resources: &Value,
    path: &str,
    resource_name: fn(&str, &str, &mut Report),
    report: &mut Report,
) {
    let amount = |value: &Value| value.as_str().and_then(|text| text.parse::<Quantity>().ok());
    let limits = map(resources, "limits");
    for (name, value) in limits {
        let place = key(&at(path, "limits"), name);
        resource_name(name, &place, report);
        amount_of(name, value, &place, report);
    }
    let requests = map(resources, "requests");
    for (name, value) in requests {
        let place = key(&at(path, "requests"), name);
        resource_name(name, &place, report);
        amount_of(name, value, &place, report);
        if !limits.contains_key(name) && !is_overcommitted(name) {
            let detail = "Limit must be set for non overcommitable resources";
            report.required(&at(path, "limits"), detail);
        }
        let (Some(wanted), Some(limit)) = (amount(value), limits.get(name).and_then(amount)) else {
            continue;
        };
        if !is_overcommitted(name) && wanted.compare(limit).is_ne() {
            let detail = format!("must be equal to {name} limit of {limit}");
            report.invalid(&at(path, "requests"), wanted.to_string(), &detail);
        } else if wanted.compare(limit) == Ordering::Greater {
            let detail = format!("must be less than or equal to {name} limit of {limit}");
            report.invalid(&at(path, "requests"), wanted.to_string(), &detail);
        }
    }
    let mut names = limits.keys().chain(requests.keys());
    if names.clone().any(|name| is_pages(name))
        && !names.any(|name| matches!(name.as_str(), "cpu" | "memory"))
    {
        report.forbidden(path, "HugePages require cpu or memory");
    }
}

fn amount_of(name: &str, value: &Value, path: &str, report: &mut Report) {
    let shown = value.as_str().unwrap_or_default();
    let Ok(amount) = shown.parse::<Quantity>() else {
        return;
    };
    if amount.is_negative() {
        report.invalid(path, shown, GE_ZERO);
    }
    if name.contains('/') && !amount.is_integer() {
        report.invalid(path, shown, "must be an integer");
    }
    if matches!(name, "memory" | "ephemeral-storage") && !amount.is_integer() {
        let text = format!("{path}: fractional byte value {shown:?} is invalid, must be an integer");
        report.warnings.push(text);
    }
}

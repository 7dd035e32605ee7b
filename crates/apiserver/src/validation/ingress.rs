//! Validation of ingresses and their classes.

use std::net::IpAddr;

use objects::names;
use serde_json::Value;

use super::container::invalid_number;
use super::errors::{Report, at, item};
use crate::fields::{get, has, int, list, map, text, texts};

pub(super) fn ingress_class(object: &Value, report: &mut Report) {
    const LONGEST: usize = 250;
    let (controller, place) = (text(object, "spec.controller"), "spec.controller");
    if controller.len() > LONGEST {
        report.too_long(place, LONGEST);
    }
    report.domain_path(place, controller);
    let (parameters, path) = (get(object, "spec.parameters"), "spec.parameters");
    if parameters.is_null() {
        return;
    }
    if let Some(group) = get(parameters, "apiGroup").as_str() {
        report.invalid_all(&at(path, "apiGroup"), group, names::subdomain(group));
    }
    for field in ["kind", "name"] {
        match text(parameters, field) {
            "" => report.required(&at(path, field), ""),
            given => report.invalid_all(&at(path, field), given, names::path_segment(given)),
        }
    }
    let namespace = get(parameters, "namespace").as_str();
    let place = at(path, "namespace");
    match (text(parameters, "scope"), namespace) {
        ("Namespace", None) => report.required(&place, "`parameters.scope` is set to 'Namespace'"),
        ("Namespace", Some(name)) => report.invalid_all(&place, name, names::label(name)),
        ("Cluster", Some(_)) => report.forbidden(&place, "`parameters.scope` is set to 'Cluster'"),
        ("Cluster", None) => {}
        (other, _) => report.unsupported(&at(path, "scope"), other, &["Cluster", "Namespace"]),
    }
}

pub(super) fn ingress(object: &Value, report: &mut Report) {
    let spec = get(object, "spec");
    let rules = list(spec, "rules");
    if rules.is_empty() && !has(spec, "defaultBackend") {
        report.invalid("spec", Value::Null, "either `defaultBackend` or `rules` must be specified");
    }
    if has(spec, "defaultBackend") {
        backend(get(spec, "defaultBackend"), "spec.defaultBackend", report);
    }
    for (index, rule) in rules.iter().enumerate() {
        let path = item("spec.rules", index);
        host(text(rule, "host"), &at(&path, "host"), report);
        if has(rule, "http") {
            let place = at(&path, "http.paths");
            let paths = list(rule, "http.paths");
            if paths.is_empty() {
                report.required(&place, "");
            }
            for (index, entry) in paths.iter().enumerate() {
                ingress_path(entry, &item(&place, index), report);
            }
        }
    }
    for (index, tls) in list(spec, "tls").iter().enumerate() {
        let path = item("spec.tls", index);
        for (index, name) in texts(tls, "hosts").enumerate() {
            let wrong =
                if name.contains('*') { names::wildcard_subdomain(name) } else { names::subdomain(name) };
            report.invalid_all(&item(&at(&path, "hosts"), index), name, wrong);
        }
        let secret = text(tls, "secretName");
        if !secret.is_empty() {
            report.invalid_all(&at(&path, "secretName"), secret, names::subdomain(secret));
        }
    }
    if let Some(class) = get(spec, "ingressClassName").as_str() {
        report.invalid_all("spec.ingressClassName", class, names::subdomain(class));
        let annotation = map(object, "metadata.annotations").get("kubernetes.io/ingress.class");
        if let Some(annotation) = annotation.and_then(Value::as_str).filter(|a| *a != class) {
            let path = "annotations.kubernetes.io/ingress.class";
            report.invalid(path, annotation, "must match `ingressClassName` when both are specified");
        }
    }
}

fn host(host: &str, path: &str, report: &mut Report) {
    if host.is_empty() {
        return;
    }
    if host.parse::<IpAddr>().is_ok() {
        return report.invalid(path, host, "must be a DNS name, not an IP address");
    }
    let wrong = if host.contains('*') { names::wildcard_subdomain(host) } else { names::subdomain(host) };
    report.invalid_all(path, host, wrong);
}

fn ingress_path(entry: &Value, path: &str, report: &mut Report) {
    let value = text(entry, "path");
    let place = at(path, "path");
    let kind = get(entry, "pathType").as_str();
    match kind {
        None => report.required(&at(path, "pathType"), "pathType must be specified"),
        Some("Exact" | "Prefix") => {
            if !value.starts_with('/') {
                report.invalid(&place, value, "must be an absolute path");
            }
            for bad in ["//", "/./", "/../", "%2f", "%2F"] {
                if value.contains(bad) {
                    report.invalid(&place, value, &format!("must not contain '{bad}'"));
                }
            }
            for bad in ["/..", "/."] {
                if value.ends_with(bad) {
                    report.invalid(&place, value, &format!("cannot end with '{bad}'"));
                }
            }
        }
        Some("ImplementationSpecific") => {
            if !value.is_empty() && !value.starts_with('/') {
                report.invalid(&place, value, "must be an absolute path");
            }
        }
        Some(other) => {
            let kinds = ["Exact", "ImplementationSpecific", "Prefix"];
            report.unsupported(&at(path, "pathType"), other, &kinds);
        }
    }
    backend(get(entry, "backend"), &at(path, "backend"), report);
}

fn backend(backend: &Value, path: &str, report: &mut Report) {
    match (has(backend, "resource"), has(backend, "service")) {
        (true, true) => report.invalid(path, "", "cannot set both resource and service backends"),
        (false, false) => report.invalid(path, "", "resource or service backend is required"),
        (true, false) => {}
        (false, true) => {
            let name = text(backend, "service.name");
            let place = at(path, "service.name");
            if name.is_empty() {
                report.required(&place, "");
            } else {
                report.invalid_all(&place, name, names::dns_1035(name));
            }
            let port = get(backend, "service.port");
            match (text(port, "name"), int(port, "number").unwrap_or_default()) {
                ("", 0) => report.required(path, "port name or number is required"),
                ("", number) => {
                    invalid_number(
                        &at(path, "service.port.number"),
                        number,
                        names::port_number(number),
                        report,
                    );
                }
                (name, 0) => report.invalid_all(&at(path, "service.port.name"), name, names::port_name(name)),
                (_, _) => report.invalid(path, "", "cannot set both port name & port number"),
            }
        }
    }
}

//! Validation of services, ingresses and network policies.

use std::collections::BTreeSet;
use std::net::IpAddr;

use objects::names;
use serde_json::Value;

use super::container::{invalid_number, port, protocol_name};
use super::errors::{Report, at, item};
use super::metadata;
use crate::fields::{get, has, int, list, map, text, texts};

pub(super) fn service(object: &Value, report: &mut Report) {
    let spec = get(object, "spec");
    let kind = text(spec, "type");
    if has(spec, "selector") {
        metadata::labels(get(spec, "selector"), "spec.selector", report);
    }
    let headless = text(spec, "clusterIP") == "None";
    if list(spec, "ports").is_empty() && !headless && kind != "ExternalName" {
        report.required("spec.ports", "");
    }
    if kind == "ExternalName" {
        if !text(spec, "clusterIP").is_empty() || !list(spec, "clusterIPs").is_empty() {
            report.forbidden("spec.clusterIPs", "may not be set for ExternalName services");
        }
        match text(spec, "externalName") {
            "" => report.required("spec.externalName", ""),
            name => {
                report.invalid_all("spec.externalName", name, names::subdomain(name.trim_end_matches('.')));
            }
        }
    }
    service_ports(spec, kind, report);
    let affinity = text(spec, "sessionAffinity");
    report.one_of("spec.sessionAffinity", affinity, &["ClientIP", "None"]);
    if let Some(timeout) = int(spec, "sessionAffinityConfig.clientIP.timeoutSeconds")
        && !(1..=86_400).contains(&timeout)
    {
        let path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
        report.invalid(path, timeout, "must be greater than 0 and less than 86400");
    }
    addresses(spec, kind, report);
    report.one_of("spec.type", kind, &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    balancer(spec, kind, report);
    traffic(spec, kind, report);
}

fn service_ports(spec: &Value, kind: &str, report: &mut Report) {
    let ports = list(spec, "ports");
    let mut known = BTreeSet::new();
    for (index, entry) in ports.iter().enumerate() {
        let path = item("spec.ports", index);
        let name = text(entry, "name");
        if name.is_empty() {
            if ports.len() > 1 {
                report.required(&at(&path, "name"), "");
            }
        } else {
            report.invalid_all(&at(&path, "name"), name, names::label(name));
            if !known.insert(name) {
                report.duplicate(&at(&path, "name"), name);
            }
        }
        let number = int(entry, "port").unwrap_or_default();
        invalid_number(&at(&path, "port"), number, names::port_number(number), report);
        protocol_name(text(entry, "protocol"), &at(&path, "protocol"), report);
        port(get(entry, "targetPort"), &at(&path, "targetPort"), report);
        if let Some(protocol) = get(entry, "appProtocol").as_str() {
            report.invalid_all(&at(&path, "appProtocol"), protocol, names::qualified(protocol));
        }
    }
    if kind == "ClusterIP" {
        for (index, entry) in ports.iter().enumerate() {
            if int(entry, "nodePort").unwrap_or_default() != 0 {
                let path = at(&item("spec.ports", index), "nodePort");
                report.forbidden(&path, "may not be used when `type` is 'ClusterIP'");
            }
        }
    }
    let mut pairs = BTreeSet::new();
    let mut node_pairs = BTreeSet::new();
    for (index, entry) in ports.iter().enumerate() {
        let protocol = text(entry, "protocol");
        let (number, node) =
            (int(entry, "port").unwrap_or_default(), int(entry, "nodePort").unwrap_or_default());
        let shown = |port: i64, node: i64| {
            format!(
                "{{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\"Port\":{port},\"TargetPort\":0,\"NodePort\":{node}}}"
            )
        };
        if node != 0 && !node_pairs.insert((protocol, node)) {
            report.duplicate_shown(&at(&item("spec.ports", index), "nodePort"), &shown(0, node));
        }
        if !pairs.insert((protocol, number)) {
            report.duplicate_shown(&item("spec.ports", index), &shown(number, 0));
        }
    }
}

fn addresses(spec: &Value, kind: &str, report: &mut Report) {
    const PATH: &str = "spec.clusterIPs[0]";
    let listed = list(spec, "clusterIPs");
    match (text(spec, "clusterIP"), listed.first().and_then(Value::as_str)) {
        ("", Some(_)) => {
            let why = "must be empty when `clusterIP` is not specified";
            report.invalid("spec.clusterIPs", Value::Array(listed.to_vec()), why);
        }
        (address, Some(first)) if address != first => {
            let why = "first value must match `clusterIP`";
            report.invalid("spec.clusterIPs", Value::Array(listed.to_vec()), why);
        }
        _ => {}
    }
    match text(spec, "clusterIP") {
        "None" if matches!(kind, "NodePort" | "LoadBalancer") => {
            let detail = format!("may not be set to 'None' for {kind} services");
            report.invalid(PATH, "None", &detail);
        }
        "" | "None" => {}
        // Such a service has no addresses, which was told above.
        _ if kind == "ExternalName" => {}
        address => report.invalid_all(PATH, address, names::ip(address)),
    }
    for (index, address) in texts(spec, "externalIPs").enumerate() {
        let path = item("spec.externalIPs", index);
        match address.parse::<IpAddr>() {
            Err(_) => report.invalid_all(&path, address, names::ip(address)),
            Ok(parsed) if parsed.is_loopback() => {
                report.invalid(&path, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
            }
            Ok(parsed) if parsed.is_unspecified() => {
                report.invalid(&path, address, "may not be unspecified (0.0.0.0 or ::)");
            }
            Ok(_) => {}
        }
    }
    families(spec, report);
}

/// Checks the families of addresses: there is one, and only what has no address and selects nothing may have more.
fn families(spec: &Value, report: &mut Report) {
    let free = text(spec, "clusterIP") == "None" && map(spec, "selector").is_empty();
    let policy = text(spec, "ipFamilyPolicy");
    if policy == "RequireDualStack" && !free {
        let why = "this cluster is not configured for dual-stack services";
        report.invalid("spec.ipFamilyPolicy", policy, why);
    }
    for (index, family) in texts(spec, "ipFamilies").enumerate() {
        let path = item("spec.ipFamilies", index);
        if !matches!(family, "IPv4" | "IPv6") {
            report.unsupported(&path, family, &["IPv4", "IPv6"]);
        } else if family == "IPv6" && !free {
            report.invalid(&path, family, "not configured on this cluster");
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    report.one_of_or_empty("spec.ipFamilyPolicy", policy, &policies);
}

fn balancer(spec: &Value, kind: &str, report: &mut Report) {
    const PATH: &str = "spec.LoadBalancerSourceRanges";
    let ranges = list(spec, "loadBalancerSourceRanges");
    if !ranges.is_empty() {
        if kind != "LoadBalancer" {
            report.forbidden(PATH, "may only be used when `type` is 'LoadBalancer'");
        }
        for (index, range) in texts(spec, "loadBalancerSourceRanges").enumerate() {
            if names::network(range.trim()).is_none() {
                report.invalid(&item(PATH, index), range, names::CIDR);
            }
        }
    }
    for field in ["loadBalancerClass", "allocateLoadBalancerNodePorts"] {
        if kind != "LoadBalancer" && has(spec, field) {
            report.forbidden(&at("spec", field), "may only be used when `type` is 'LoadBalancer'");
        }
    }
}

fn traffic(spec: &Value, kind: &str, report: &mut Report) {
    let external = text(spec, "externalTrafficPolicy");
    let accessible = matches!(kind, "LoadBalancer" | "NodePort")
        || (kind == "ClusterIP" && !list(spec, "externalIPs").is_empty());
    if !accessible && !external.is_empty() {
        let detail = "may only be set for externally-accessible services";
        report.invalid("spec.externalTrafficPolicy", external, detail);
    } else if accessible && !matches!(external, "Cluster" | "Local") {
        report.unsupported("spec.externalTrafficPolicy", external, &["Cluster", "Local"]);
    }
    let distribution = text(spec, "trafficDistribution");
    let distributions = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    report.one_of_or_empty("spec.trafficDistribution", distribution, &distributions);
    let internal = text(spec, "internalTrafficPolicy");
    report.one_of_or_empty("spec.internalTrafficPolicy", internal, &["Cluster", "Local"]);
    if let Some(health) = int(spec, "healthCheckNodePort").filter(|port| *port != 0)
        && !(kind == "LoadBalancer" && external == "Local")
    {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        report.invalid("spec.healthCheckNodePort", health, detail);
    }
}

pub(super) fn service_update(new: &Value, old: &Value, report: &mut Report) {
    let (was, is) = (text(old, "spec.clusterIP"), text(new, "spec.clusterIP"));
    let both = |kind: &str| text(new, "spec.type") != kind && text(old, "spec.type") != kind;
    if both("ExternalName") && !was.is_empty() && was != is {
        let shown = list(new, "spec.clusterIPs").to_vec();
        report.invalid("spec.clusterIPs[0]", Value::Array(shown), "may not change once set");
    }
    let (was, is) = (get(old, "spec.loadBalancerClass"), get(new, "spec.loadBalancerClass"));
    let balances = |service: &Value| text(service, "spec.type") == "LoadBalancer";
    if balances(old) && balances(new) && was != is && !was.is_null() {
        report.invalid("spec.loadBalancerClass", is.clone(), "may not change once set");
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

pub(super) fn network_policy(object: &Value, report: &mut Report) {
    let spec = get(object, "spec");
    metadata::selector(get(spec, "podSelector"), "spec.podSelector", report);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in list(spec, direction).iter().enumerate() {
            let path = item(&at("spec", direction), index);
            for (index, entry) in list(rule, "ports").iter().enumerate() {
                policy_port(entry, &item(&at(&path, "ports"), index), report);
            }
            for (index, entry) in list(rule, peers).iter().enumerate() {
                peer(entry, &item(&at(&path, peers), index), report);
            }
        }
    }
    let types = list(spec, "policyTypes");
    if types.len() > 2 {
        let shown = Value::Array(types.to_vec());
        return report.invalid("spec.policyTypes", shown, "may not specify more than two policyTypes");
    }
    for (index, kind) in texts(spec, "policyTypes").enumerate() {
        report.one_of(&item("spec.policyTypes", index), kind, &["Ingress", "Egress"]);
    }
}

fn policy_port(entry: &Value, path: &str, report: &mut Report) {
    let protocol = text(entry, "protocol");
    report.one_of_or_empty(&at(path, "protocol"), protocol, &["TCP", "UDP", "SCTP"]);
    if has(entry, "port") {
        port(get(entry, "port"), &at(path, "port"), report);
    }
    let Some(end) = int(entry, "endPort") else {
        return;
    };
    let place = at(path, "endPort");
    match get(entry, "port") {
        Value::Null => report.invalid(&place, end, "may not be specified when `port` is not specified"),
        Value::String(_) => report.invalid(&place, end, "may not be specified when `port` is non-numeric"),
        start => {
            let start = start.as_i64().unwrap_or_default();
            if end < start {
                report.invalid(&place, start, "must be greater than or equal to `port`");
            }
            invalid_number(&place, end, names::port_number(end), report);
        }
    }
}

fn peer(peer: &Value, path: &str, report: &mut Report) {
    let mut others = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if has(peer, field) {
            others += 1;
            metadata::selector(get(peer, field), &at(path, field), report);
        }
    }
    let block = get(peer, "ipBlock");
    if !block.is_null() {
        let place = at(path, "ipBlock");
        match text(block, "cidr") {
            "" => report.required(&at(&place, "cidr"), ""),
            cidr => match names::network(cidr) {
                None => report.invalid(&at(&place, "cidr"), cidr, names::CIDR),
                Some(network) => exceptions(block, network, &at(&place, "except"), report),
            },
        }
    }
    match (block.is_null(), others) {
        (true, 0) => report.required(path, "must specify a peer"),
        (false, 1..) => report.forbidden(path, "may not specify both ipBlock and another peer"),
        (_, _) => {}
    }
}

fn exceptions(block: &Value, network: (IpAddr, u8), path: &str, report: &mut Report) {
    for (index, except) in texts(block, "except").enumerate() {
        let place = item(path, index);
        match names::network(except) {
            None => report.invalid(&place, except, names::CIDR),
            Some(inner) if !is_inside(inner, network) => {
                report.invalid(&place, except, "must be a strict subset of `cidr`");
            }
            Some(_) => {}
        }
    }
}

fn is_inside(inner: (IpAddr, u8), outer: (IpAddr, u8)) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => v6.to_bits(),
    };
    let shift = 128 - u32::from(outer.1);
    let prefix = |address| bits(address).checked_shr(shift).unwrap_or(0);
    inner.0.is_ipv4() == outer.0.is_ipv4() && inner.1 > outer.1 && prefix(inner.0) == prefix(outer.0)
}

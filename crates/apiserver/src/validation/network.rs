//! Validation of services and network policies.

use std::collections::BTreeSet;
use std::net::IpAddr;

use objects::names;
use serde_json::Value;

use super::container::{invalid_number, port, protocol_name};
use super::errors::{Report, at, item, key};
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
        for (field, is_set) in [
            ("spec.clusterIPs", !text(spec, "clusterIP").is_empty() || !list(spec, "clusterIPs").is_empty()),
            ("spec.ipFamilies", !list(spec, "ipFamilies").is_empty()),
            ("spec.ipFamilyPolicy", has(spec, "ipFamilyPolicy")),
        ] {
            if is_set {
                report.forbidden(field, "may not be set for ExternalName services");
            }
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
    annotated_ranges(object, kind, report);
    traffic(spec, kind, report);
    ignored(spec, kind, report);
}

/// Warns of fields that mean nothing for this type of service.
fn ignored(spec: &Value, kind: &str, report: &mut Report) {
    let headless = kind == "ClusterIP" && text(spec, "clusterIP") == "None";
    let outside = kind == "ExternalName";
    let has_addresses = !list(spec, "externalIPs").is_empty();
    for (is_ignored, warning) in [
        (
            headless && !text(spec, "loadBalancerIP").is_empty(),
            "spec.loadBalancerIP is ignored for headless services",
        ),
        (headless && has_addresses, "spec.externalIPs is ignored for headless services"),
        (
            headless && text(spec, "sessionAffinity") != "None",
            "spec.SessionAffinity is ignored for headless services",
        ),
        (outside && has_addresses, "spec.externalIPs is ignored when spec.type is \"ExternalName\""),
        (
            !outside && !text(spec, "externalName").is_empty(),
            "spec.externalName is ignored when spec.type is not \"ExternalName\"",
        ),
    ] {
        if is_ignored {
            report.warnings.push(warning.to_owned());
        }
    }
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
        let wrong = names::older_ip(address);
        let unreadable = !wrong.is_empty();
        report.invalid_all(&path, address, if unreadable { wrong } else { names::endpoint_ip(address) });
        report.warn(&path, names::unusual_ip(address));
    }
    // A service outside has none, which was told above.
    if kind != "ExternalName" {
        families(spec, report);
    }
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
            let path = item("spec.loadBalancerSourceRanges", index);
            report.warn(&path, names::unusual_network(range.trim()));
        }
    }
    if kind != "LoadBalancer" && has(spec, "allocateLoadBalancerNodePorts") {
        let detail = "may only be used when `type` is 'LoadBalancer'";
        report.forbidden("spec.allocateLoadBalancerNodePorts", detail);
    }
    balancer_class(spec, kind, report);
}

/// Checks the class of load balancers that shall serve a service.
fn balancer_class(spec: &Value, kind: &str, report: &mut Report) {
    const PATH: &str = "spec.loadBalancerClass";
    match get(spec, "loadBalancerClass").as_str() {
        Some(class) if kind == "LoadBalancer" => {
            report.invalid_all(PATH, class, names::qualified(class));
        }
        Some(_) => report.forbidden(PATH, "may only be used when `type` is 'LoadBalancer'"),
        None => {}
    }
}

/// Checks the ranges of addresses that may reach a service, in the annotation that was used before there was a field.
fn annotated_ranges(object: &Value, kind: &str, report: &mut Report) {
    const NAME: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
    let annotation = map(object, "metadata.annotations").get(NAME).and_then(Value::as_str);
    let Some(ranges) = annotation.filter(|_| list(object, "spec.loadBalancerSourceRanges").is_empty()) else {
        return;
    };
    let path = key("metadata.annotations", NAME);
    if kind != "LoadBalancer" {
        report.forbidden(&path, "may only be used when `type` is 'LoadBalancer'");
    }
    for range in ranges.split(',').map(str::trim).filter(|_| !ranges.trim().is_empty()) {
        if names::network(range).is_none() {
            report.invalid(&path, range, names::CIDR);
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
    if has(spec, "trafficDistribution") {
        report.one_of("spec.trafficDistribution", distribution, &distributions);
    }
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
    if balances(old) && balances(new) && was != is {
        report.invalid("spec.loadBalancerClass", is.clone(), "may not change once set");
    }
    balancer_class(get(new, "spec"), text(new, "spec.type"), report);
    let local = |service: &Value| balances(service) && text(service, "spec.externalTrafficPolicy") == "Local";
    let port = |service: &Value| int(service, "spec.healthCheckNodePort").unwrap_or_default();
    if local(old) && local(new) && port(old) != port(new) {
        report.forbidden("spec.healthCheckNodePort", "field is immutable");
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

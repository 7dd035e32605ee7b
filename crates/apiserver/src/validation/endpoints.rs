//! Validation of endpoints: where the pods of a service are reached.

use std::collections::BTreeSet;
use std::net::IpAddr;

use objects::names;
use serde_json::Value;

use super::container::{invalid_number, protocol_name};
use super::errors::{Report, at, item};
use crate::fields::{get, int, list, text, texts};

pub(super) fn endpoints(object: &Value, report: &mut Report) {
    for (index, subset) in list(object, "subsets").iter().enumerate() {
        let path = item("subsets", index);
        let fields = ["addresses", "notReadyAddresses"];
        if fields.iter().all(|field| list(subset, field).is_empty()) {
            report.required(&path, "must specify `addresses` or `notReadyAddresses`");
        }
        for field in fields {
            for (index, address) in list(subset, field).iter().enumerate() {
                self::address(address, &item(&at(&path, field), index), report);
            }
        }
        let ports = list(subset, "ports");
        for (index, port) in ports.iter().enumerate() {
            let path = item(&at(&path, "ports"), index);
            if text(port, "name").is_empty() && ports.len() > 1 {
                report.required(&at(&path, "name"), "");
            }
            let number = int(port, "port").unwrap_or_default();
            invalid_number(&at(&path, "port"), number, names::port_number(number), report);
            self::port(port, &path, report);
        }
    }
}

fn address(address: &Value, path: &str, report: &mut Report) {
    let (place, given) = (at(path, "ip"), text(address, "ip"));
    report.invalid_all(&place, given, names::older_ip(given));
    host(address, path, report);
    report.invalid_all(&place, given, names::endpoint_ip(given));
}

/// Checks the host and the node of an endpoint.
fn host(endpoint: &Value, path: &str, report: &mut Report) {
    let name = text(endpoint, "hostname");
    if !name.is_empty() {
        report.invalid_all(&at(path, "hostname"), name, names::label(name));
    }
    if let Some(node) = get(endpoint, "nodeName").as_str() {
        report.invalid_all(&at(path, "nodeName"), node, names::subdomain(node));
    }
}

/// Checks what ports of both kinds have.
fn port(port: &Value, path: &str, report: &mut Report) {
    let name = text(port, "name");
    if !name.is_empty() {
        report.invalid_all(&at(path, "name"), name, names::label(name));
    }
    protocol_name(text(port, "protocol"), &at(path, "protocol"), report);
    if let Some(protocol) = get(port, "appProtocol").as_str() {
        report.invalid_all(&at(path, "appProtocol"), protocol, names::qualified(protocol));
    }
}

pub(super) fn slice(object: &Value, report: &mut Report) {
    /// A slice has so many endpoints, addresses of one, and ports at most.
    const MOST: [usize; 3] = [1_000, 100, 20_000];
    let kind = text(object, "addressType");
    match kind {
        "" => report.required("addressType", ""),
        kind => report.one_of("addressType", kind, &["FQDN", "IPv4", "IPv6"]),
    }
    if kind == "FQDN" {
        report.warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let [most_endpoints, most_addresses, most_ports] = MOST;
    let (ports, endpoints) = (list(object, "ports"), list(object, "endpoints"));
    if ports.len() > most_ports {
        report.too_many("ports", ports.len(), most_ports);
    }
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().take(most_ports).enumerate() {
        let path = item("ports", index);
        self::port(port, &path, report);
        if !seen.insert(text(port, "name")) {
            report.duplicate(&at(&path, "name"), text(port, "name"));
        }
    }
    if endpoints.len() > most_endpoints {
        return report.too_many("endpoints", endpoints.len(), most_endpoints);
    }
    for (index, endpoint) in endpoints.iter().enumerate() {
        let path = item("endpoints", index);
        let (place, addresses) = (at(&path, "addresses"), list(endpoint, "addresses"));
        if addresses.is_empty() {
            report.required(&place, "must contain at least 1 address");
        } else if addresses.len() > most_addresses {
            report.too_many(&place, addresses.len(), most_addresses);
        }
        for (index, address) in texts(endpoint, "addresses").enumerate() {
            slice_address(kind, address, (&place, &item(&place, index)), report);
        }
        host(endpoint, &path, report);
    }
}

/// Checks one address, by the path of all of them and by its own.
fn slice_address(kind: &str, address: &str, (all, path): (&str, &str), report: &mut Report) {
    let fits: fn(&IpAddr) -> bool = match kind {
        "IPv4" => IpAddr::is_ipv4,
        "IPv6" => IpAddr::is_ipv6,
        _ => return,
    };
    let read = if kind == "IPv4" { names::lenient_ip(address) } else { address.parse().ok() };
    let Some(read) = read else {
        return report.invalid_all(path, address, names::ip(address));
    };
    if !fits(&read) {
        report.invalid(all, address, &format!("must be an {kind} address"));
    }
    report.invalid_all(path, address, names::endpoint_ip(address));
}

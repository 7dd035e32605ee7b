//! The cells of services and their kin.

use jiff::Timestamp;
use serde_json::Value;

use super::text::{Cell, first_of, joined, joined_list, number, three_of};
use crate::fields::{get, list, text};

pub(super) fn find(name: &str) -> Option<Cell> {
    Some(match name {
        "cidrs" => |o, _| Value::from(joined_list(o, "spec.cidrs", "")),
        "class_parameters" => class_parameters,
        "endpoints" => endpoints,
        "ingress_address" => |o, _| Value::from(balancer_addresses(o)),
        "ingress_hosts" => ingress_hosts,
        "ingress_ports" => |o, _| Value::from(if list(o, "spec.tls").is_empty() { "80" } else { "80, 443" }),
        "ip_parent" => ip_parent,
        "service_external" => service_external,
        "service_ip" => |o, _| {
            let first = list(o, "spec.clusterIPs").first().and_then(Value::as_str);
            Value::from(first.unwrap_or("<none>"))
        },
        "service_ports" => service_ports,
        "slice_endpoints" => slice_endpoints,
        "slice_ports" => slice_ports,
        _ => return None,
    })
}

fn balancer_addresses(object: &Value) -> String {
    let mut found: Vec<&str> = list(object, "status.loadBalancer.ingress")
        .iter()
        .map(|ingress| match text(ingress, "ip") {
            "" => text(ingress, "hostname"),
            ip => ip,
        })
        .filter(|address| !address.is_empty())
        .collect();
    found.sort_unstable();
    found.dedup();
    found.join(",")
}

fn service_external(service: &Value, _: Timestamp) -> Value {
    let external = joined_list(service, "spec.externalIPs", "");
    let or = |absent: &str| if external.is_empty() { absent.to_owned() } else { external.clone() };
    Value::from(match text(service, "spec.type") {
        "ClusterIP" | "NodePort" => or("<none>"),
        "LoadBalancer" => match (balancer_addresses(service), external.as_str()) {
            (addresses, "") if addresses.is_empty() => "<pending>".to_owned(),
            (addresses, "") => addresses,
            (addresses, external) if addresses.is_empty() => external.to_owned(),
            (addresses, external) => format!("{addresses},{external}"),
        },
        "ExternalName" => text(service, "spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    })
}

fn service_ports(service: &Value, _: Timestamp) -> Value {
    let ports: Vec<String> = list(service, "spec.ports")
        .iter()
        .map(|port| {
            let (number, node, protocol) =
                (number(port, "port"), number(port, "nodePort"), text(port, "protocol"));
            if node > 0 { format!("{number}:{node}/{protocol}") } else { format!("{number}/{protocol}") }
        })
        .collect();
    Value::from(joined(ports.iter().map(String::as_str), ",", "<none>"))
}

fn ingress_hosts(ingress: &Value, _: Timestamp) -> Value {
    let rules = list(ingress, "spec.rules");
    let hosts = rules.iter().map(|rule| text(rule, "host")).filter(|host| !host.is_empty());
    let hosts: Vec<String> = hosts.map(str::to_owned).collect();
    if hosts.is_empty() {
        return Value::from("*");
    }
    if hosts.len() >= 3 && rules.len() > 3 {
        let shown: Vec<&str> = hosts.iter().take(3).map(String::as_str).collect();
        return Value::from(format!("{} + {} more...", shown.join(","), rules.len() - 3));
    }
    Value::from(hosts.join(","))
}

fn class_parameters(class: &Value, _: Timestamp) -> Value {
    let parameters = get(class, "spec.parameters");
    if parameters.is_null() {
        return Value::from("<none>");
    }
    let group = get(parameters, "apiGroup").as_str();
    let group = group.map(|group| format!(".{group}")).unwrap_or_default();
    Value::from(format!("{}{group}/{}", text(parameters, "kind"), text(parameters, "name")))
}

fn ip_parent(address: &Value, _: Timestamp) -> Value {
    let parent = get(address, "spec.parentRef");
    if parent.is_null() {
        return Value::from("<none>");
    }
    let mut line = text(parent, "resource").to_lowercase();
    for (separator, part) in [(".", "group"), ("/", "namespace")] {
        if !text(parent, part).is_empty() {
            line = format!("{line}{separator}{}", text(parent, part));
        }
    }
    Value::from(format!("{line}/{}", text(parent, "name")))
}

fn endpoints(object: &Value, _: Timestamp) -> Value {
    let mut found = Vec::new();
    for subset in list(object, "subsets") {
        let addresses = list(subset, "addresses").iter().map(|address| text(address, "ip"));
        match list(subset, "ports") {
            [] => found.extend(addresses.map(str::to_owned)),
            ports => {
                for port in ports {
                    let port = number(port, "port");
                    found.extend(addresses.clone().map(|ip| {
                        if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
                    }));
                }
            }
        }
    }
    Value::from(if list(object, "subsets").is_empty() {
        "<none>".to_owned()
    } else {
        first_of(&found, 3, "")
    })
}

fn slice_ports(slice: &Value, _: Timestamp) -> Value {
    let ports = list(slice, "ports").iter().map(|port| match get(port, "port").as_i64() {
        Some(number) => number.to_string(),
        None => get(port, "name").as_str().unwrap_or("*").to_owned(),
    });
    three_of(&ports.collect::<Vec<_>>())
}

fn slice_endpoints(slice: &Value, _: Timestamp) -> Value {
    let addresses = list(slice, "endpoints").iter().flat_map(|endpoint| list(endpoint, "addresses"));
    let addresses = addresses.filter_map(Value::as_str).map(str::to_owned);
    three_of(&addresses.collect::<Vec<_>>())
}

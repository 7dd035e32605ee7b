//! Fields of services that depend on the type: which are removed when it changes, and which are kept although the client
//! leaves them out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

type Fields = Map<String, Value>;
/// Returns whether a service has a use for a field.
type Needs = fn(&Fields) -> bool;

fn kind(spec: &Fields) -> &str {
    spec.get("type").and_then(Value::as_str).unwrap_or("ClusterIP")
}

fn text<'a>(spec: &'a Fields, name: &str) -> &'a str {
    spec.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns whether a service of this type has a cluster address, which may be `None`.
pub(super) fn needs_address(spec: &Fields) -> bool {
    matches!(kind(spec), "ClusterIP" | "NodePort" | "LoadBalancer")
}

/// Returns whether the ports of a service are open on nodes.
pub(super) fn needs_node_ports(spec: &Fields) -> bool {
    match kind(spec) {
        "NodePort" => true,
        "LoadBalancer" => spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)),
        _ => false,
    }
}

/// Returns whether a load balancer asks nodes whether they have pods of the service.
pub(super) fn needs_health_port(spec: &Fields) -> bool {
    kind(spec) == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

fn balances(spec: &Fields) -> bool {
    kind(spec) == "LoadBalancer"
}

fn is_reached_from_outside(spec: &Fields) -> bool {
    let addresses = spec.get("externalIPs").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    matches!(kind(spec), "NodePort" | "LoadBalancer") || (kind(spec) == "ClusterIP" && addresses)
}

/// Returns the port of nodes that stands in a port of a service.
pub(super) fn node_port(port: &Value) -> Option<u32> {
    port.get("nodePort")?.as_u64().and_then(|port| u32::try_from(port).ok()).filter(|&port| port > 0)
}

fn ports(spec: &Fields) -> impl Iterator<Item = &Value> {
    spec.get("ports").and_then(Value::as_array).into_iter().flatten()
}

fn ports_mut(spec: &mut Fields) -> impl Iterator<Item = &mut Fields> {
    spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

fn node_ports(spec: &Fields) -> BTreeSet<u32> {
    ports(spec).filter_map(node_port).collect()
}

/// Takes away what only the old type of a service has, as far as the client left it as it was.
pub(super) fn drop_type_dependent_fields(old: &Fields, new: &mut Fields) {
    let same = |new: &Fields, name: &str| old.get(name) == new.get(name);
    if needs_address(old) && !needs_address(new) {
        if same(new, "clusterIP") && same(new, "clusterIPs") {
            new.remove("clusterIP");
            new.remove("clusterIPs");
        }
        for name in ["ipFamilies", "ipFamilyPolicy"] {
            if same(new, name) {
                new.remove(name);
            }
        }
    }
    if needs_node_ports(old) && !needs_node_ports(new) && node_ports(old) == node_ports(new) {
        for port in ports_mut(new) {
            port.remove("nodePort");
        }
    }
    let dependent: [(&str, Needs); 5] = [
        ("healthCheckNodePort", needs_health_port),
        ("allocateLoadBalancerNodePorts", balances),
        ("loadBalancerClass", balances),
        ("externalTrafficPolicy", is_reached_from_outside),
        ("internalTrafficPolicy", needs_address),
    ];
    for (name, needs) in dependent {
        if needs(old) && !needs(new) && same(new, name) {
            new.remove(name);
        }
    }
}

/// Makes the list of addresses follow the address where a client changed or left out one of the two.
///
/// What still differs then is refused.
pub(super) fn agree_on_address(old: &Fields, new: &mut Fields) {
    const LIST: &str = "clusterIPs";
    let addresses = |spec: &Fields| spec.get(LIST).and_then(Value::as_array).cloned().unwrap_or_default();
    let (was, before) = (text(old, "clusterIP").to_owned(), addresses(old));
    if text(new, "clusterIP").is_empty() && !was.is_empty() {
        new.insert("clusterIP".into(), json!(was));
    }
    let address = text(new, "clusterIP").to_owned();
    let listed = Some(addresses(new)).filter(|listed| !listed.is_empty()).unwrap_or_else(|| before.clone());
    let follows = address != was && listed == before && !address.is_empty();
    let listed = if follows { vec![json!(address)] } else { listed };
    if !listed.is_empty() {
        new.insert(LIST.into(), Value::Array(listed));
    }
}

/// Puts back the ports of nodes that were given to ports of the same name.
pub(super) fn keep_node_ports(old: &Fields, new: &mut Fields) {
    if needs_health_port(old) && needs_health_port(new) && !new.contains_key("healthCheckNodePort") {
        let port = old.get("healthCheckNodePort").cloned().unwrap_or_default();
        new.insert("healthCheckNodePort".into(), port);
    }
    if !needs_node_ports(old) || !needs_node_ports(new) {
        return;
    }
    let mut used: BTreeSet<u32> = node_ports(old).intersection(&node_ports(new)).copied().collect();
    let name = |port: &Value| port.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let given: BTreeMap<String, u32> =
        ports(old).filter_map(|port| Some((name(port), node_port(port)?))).collect();
    for port in ports_mut(new) {
        let own = port.get("nodePort").and_then(Value::as_u64).unwrap_or(0);
        let called = port.get("name").and_then(Value::as_str).unwrap_or_default();
        if let (0, Some(before)) = (own, given.get(called))
            && used.insert(*before)
        {
            port.insert("nodePort".into(), json!(before));
        }
    }
}

/// Forgets the addresses of a load balancer that is none any more.
pub(super) fn drop_balancer_status(service: &mut Value) {
    let balances = service.pointer("/spec/type").is_some_and(|kind| kind == "LoadBalancer");
    if let (false, Some(status)) = (balances, service.get_mut("status").and_then(Value::as_object_mut)) {
        status.insert("loadBalancer".into(), json!({}));
    }
}

/// Sets the families of addresses of a service that names none.
///
/// One without address and without selector may have endpoints of all families.
pub(super) fn set_families(spec: &mut Fields) {
    let headless = text(spec, "clusterIP") == "None";
    let selects = spec.get("selector").and_then(Value::as_object).is_some_and(|labels| !labels.is_empty());
    let says = |name: &str| spec.get(name).is_some_and(|value| !value.is_null());
    if headless && !selects && !says("ipFamilyPolicy") && !says("ipFamilies") {
        spec.insert("ipFamilies".into(), json!(["IPv4", "IPv6"]));
        spec.insert("ipFamilyPolicy".into(), json!("RequireDualStack"));
        return;
    }
    spec.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
    spec.entry("ipFamilyPolicy").or_insert_with(|| json!("SingleStack"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: Value) -> Fields {
        let Value::Object(fields) = value else { panic!() };
        fields
    }

    #[test]
    fn a_service_of_another_type_loses_what_the_old_one_needed() {
        let old = fields(json!({"type": "LoadBalancer", "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"],
            "externalTrafficPolicy": "Local", "internalTrafficPolicy": "Cluster", "healthCheckNodePort": 30001,
            "allocateLoadBalancerNodePorts": true, "ports": [{"port": 80, "nodePort": 30002}]}));
        let mut new = old.clone();
        new.insert("type".into(), json!("ExternalName"));
        drop_type_dependent_fields(&old, &mut new);
        assert_eq!(Value::Object(new), json!({"type": "ExternalName", "ports": [{"port": 80}]}));
    }

    #[test]
    fn ports_keep_the_node_ports_of_their_names() {
        let old = fields(
            json!({"type": "NodePort", "ports": [{"name": "a", "nodePort": 30001}, {"name": "b", "nodePort": 30002}]}),
        );
        let mut new = fields(
            json!({"type": "NodePort", "ports": [{"name": "b"}, {"name": "c"}, {"name": "a", "nodePort": 30002}]}),
        );
        keep_node_ports(&old, &mut new);
        assert_eq!(
            new.get("ports"),
            Some(&json!([{"name": "b"}, {"name": "c"}, {"name": "a", "nodePort": 30002}]))
        );
        new.insert("ports".into(), json!([{"name": "b"}, {"name": "a"}]));
        keep_node_ports(&old, &mut new);
        assert_eq!(
            new.get("ports"),
            Some(&json!([{"name": "b", "nodePort": 30002}, {"name": "a", "nodePort": 30001}]))
        );
    }
}

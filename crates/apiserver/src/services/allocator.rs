//! Cluster addresses and node ports of services.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Mutex;

use serde_json::{Map, Value, json};

use super::type_fields::{self, node_port};
use crate::object_meta;
use crate::random::Random;
use crate::status::{ApiError, Cause, Outcome};
use crate::storage::Storage;
use crate::sync::lock;

/// The first address of the range of services, 10.0.0.0/16.
const BASE: u32 = 0x0a00_0000;
const SIZE: u32 = 1 << 16;
/// The range of node ports.
const PORTS: std::ops::Range<u32> = 30_000..32_768;

/// Allocates addresses and ports. What is in use is read from the services themselves.
#[derive(Debug, Default)]
pub(crate) struct ServiceAllocator {
    /// Where the search begins. The lock is held while an address is chosen, so that two services do not get the same one.
    next: Mutex<u32>,
}

impl ServiceAllocator {
    /// Gives a service its addresses and ports, keeping those that `old` has.
    ///
    /// A dry run of a new service sets no families of addresses unless there is an address, and accepts ports outside of
    /// the range.
    pub(crate) fn allocate(
        &self,
        storage: &Storage,
        random: &Random,
        old: Option<&Value>,
        service: &mut Value,
        is_dry_run: bool,
    ) -> Outcome<()> {
        let mut next = lock(&self.next);
        let name = object_meta::text(service, "name").to_owned();
        let is_new = old.is_none();
        let old = old.and_then(|old| old.get("spec")).and_then(Value::as_object);
        if old.is_some() {
            type_fields::drop_balancer_status(service);
        }
        let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else {
            return Ok(());
        };
        if let Some(old) = old {
            type_fields::drop_type_dependent_fields(old, spec);
            type_fields::keep_node_ports(old, spec);
        }
        if !type_fields::needs_address(spec) {
            return Ok(());
        }
        let in_use = InUse::of(storage);
        allocate_address(spec, old, &in_use, &mut next, &name)?;
        if (is_new && !is_dry_run) || spec.contains_key("clusterIP") {
            type_fields::set_families(spec);
        }
        check_ports(spec, old, &in_use, is_dry_run).map_err(|cause| refuse(&name, cause))?;
        if type_fields::needs_node_ports(spec) {
            allocate_ports(spec, &in_use, random);
        }
        if type_fields::needs_health_port(spec) && spec.get("healthCheckNodePort").is_none_or(Value::is_null)
        {
            let chosen = free_port(&in_use.ports, random);
            spec.insert("healthCheckNodePort".into(), json!(chosen));
        }
        Ok(())
    }
}

#[derive(Default)]
struct InUse {
    addresses: BTreeSet<String>,
    ports: BTreeSet<u32>,
}

impl InUse {
    fn of(storage: &Storage) -> InUse {
        let mut in_use = InUse::default();
        for service in storage.all("/services", None) {
            // The address is the first selectable field of services.
            if let Some(address) = service.fields.first() {
                in_use.addresses.insert(address.to_string());
            }
            // Only these have node ports, and there are few of them.
            let has_ports =
                service.fields.get(1).is_some_and(|t| matches!(&**t, "NodePort" | "LoadBalancer"));
            if !has_ports {
                continue;
            }
            let value = service.value();
            let ports = value.pointer("/spec/ports").and_then(Value::as_array);
            in_use.ports.extend(ports.into_iter().flatten().filter_map(node_port));
            let health = value.pointer("/spec/healthCheckNodePort").and_then(Value::as_u64);
            in_use.ports.extend(health.and_then(|port| u32::try_from(port).ok()));
        }
        in_use
    }
}

fn allocate_address(
    spec: &mut Map<String, Value>,
    old: Option<&Map<String, Value>>,
    in_use: &InUse,
    next: &mut u32,
    name: &str,
) -> Outcome<()> {
    if let Some(old) = old {
        type_fields::agree_on_address(old, spec);
    }
    let given = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default().to_owned();
    let before = old.and_then(|old| old.get("clusterIP")).and_then(Value::as_str).unwrap_or_default();
    let listed = spec.get("clusterIPs").and_then(Value::as_array).and_then(|list| list.first());
    if listed.is_some_and(|first| *first != given.as_str()) {
        // Validation refuses that.
        return Ok(());
    }
    let address = if !given.is_empty() {
        if given != "None" && given != before && in_use.addresses.contains(&given) {
            return Err(refuse(name, taken(&given)));
        }
        given
    } else if !before.is_empty() {
        before.to_owned()
    } else {
        let free = (0..SIZE)
            .map(|step| {
                let offset = 2 + (*next + step) % (SIZE - 3);
                (offset, Ipv4Addr::from_bits(BASE + offset).to_string())
            })
            .find(|(_, address)| !in_use.addresses.contains(address));
        let (offset, address) =
            free.ok_or_else(|| ApiError::internal("range of service addresses is full"))?;
        *next = offset - 1;
        address
    };
    spec.insert("clusterIP".into(), json!(address));
    spec.insert("clusterIPs".into(), json!([address]));
    Ok(())
}

fn taken(address: &str) -> Cause {
    Cause {
        reason: "FieldValueInvalid".into(),
        message: format!(
            "Invalid value: [{address:?}]: failed to allocate IP {address}: provided IP is already allocated"
        ),
        field: "spec.clusterIPs".into(),
    }
}

/// Refuses node ports that are out of the range or belong to another service.
///
/// A dry run is not checked against the range, as it allocates no port.
fn check_ports(
    spec: &Map<String, Value>,
    old: Option<&Map<String, Value>>,
    in_use: &InUse,
    tries: bool,
) -> Result<(), Cause> {
    let listed = |spec: Option<&Value>| -> Vec<u32> {
        spec.and_then(Value::as_array).into_iter().flatten().filter_map(node_port).collect()
    };
    let own = listed(old.and_then(|old| old.get("ports")));
    for (index, port) in spec.get("ports").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let Some(number) = node_port(port).filter(|number| !own.contains(number)) else {
            continue;
        };
        let why = if !PORTS.contains(&number) && !tries {
            let (first, last) = (PORTS.start, PORTS.end - 1);
            format!("provided port is not in the valid range. The range of valid ports is {first}-{last}")
        } else if in_use.ports.contains(&number) {
            "provided port is already allocated".to_owned()
        } else {
            continue;
        };
        return Err(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!("Invalid value: {number}: {why}"),
            field: format!("spec.ports[{index}].nodePort"),
        });
    }
    Ok(())
}

fn refuse(name: &str, cause: Cause) -> ApiError {
    match crate::kind::find("", "v1", "services") {
        Some(kind) => ApiError::invalid(kind, name, vec![cause]),
        None => ApiError::bad_request(cause.message),
    }
}

fn free_port(taken: &BTreeSet<u32>, random: &Random) -> Option<u32> {
    let start = u32::try_from(random.next() % 2_768).unwrap_or(0);
    let span = PORTS.end - PORTS.start;
    (0..span).map(|step| PORTS.start + (start + step) % span).find(|port| !taken.contains(port))
}

fn allocate_ports(spec: &mut Map<String, Value>, in_use: &InUse, random: &Random) {
    let mut taken = in_use.ports.clone();
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter(|port| node_port(port).is_none()) {
        if let (Some(chosen), Some(port)) = (free_port(&taken, random), port.as_object_mut()) {
            taken.insert(chosen);
            port.insert("nodePort".into(), json!(chosen));
        }
    }
}

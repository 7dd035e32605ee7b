//! The cells of volumes and their kin.

use jiff::Timestamp;
use serde_json::Value;

use super::text::{Cell, joined, joined_list};
use crate::fields::{get, list, map, text};

pub(super) fn find(name: &str) -> Option<Cell> {
    Some(match name {
        "claim_capacity" => |o, _| {
            let bound = !text(o, "spec.volumeName").is_empty();
            let capacity = get(o, "status.capacity.storage").as_str().unwrap_or("0");
            Value::from(if bound { capacity } else { "" })
        },
        "claim_class" => claim_class,
        "claim_modes" => |o, _| {
            let bound = !text(o, "spec.volumeName").is_empty();
            Value::from(if bound { modes(o, "status.accessModes") } else { String::new() })
        },
        "claim_state" => claim_state,
        "driver_modes" => |o, _| Value::from(joined_list(o, "spec.volumeLifecycleModes", "<none>")),
        "phase" => |o, _| {
            let deleted = !get(o, "metadata.deletionTimestamp").is_null();
            Value::from(if deleted { "Terminating" } else { text(o, "status.phase") })
        },
        "storage_class_name" => storage_class_name,
        "token_requests" => token_requests,
        "volume_claim" => |o, _| {
            let claim = get(o, "spec.claimRef");
            Value::from(if claim.is_null() {
                String::new()
            } else {
                format!("{}/{}", text(claim, "namespace"), text(claim, "name"))
            })
        },
        "volume_modes" => |o, _| Value::from(modes(o, "spec.accessModes")),
        _ => return None,
    })
}

/// Returns the modes in short, each once, in a fixed order.
fn modes(object: &Value, path: &str) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| list(object, path).iter().any(|known| known.as_str() == Some(mode));
    joined(known.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short), ",", "")
}

fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    map(object, "metadata.annotations").get(name).and_then(Value::as_str).unwrap_or_default()
}

fn claim_class(object: &Value, _: Timestamp) -> Value {
    Value::from(match annotation(object, "volume.beta.kubernetes.io/storage-class") {
        "" => text(object, "spec.storageClassName"),
        class => class,
    })
}

fn storage_class_name(class: &Value, _: Timestamp) -> Value {
    let name = text(class, "metadata.name");
    let names =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    let default = names.iter().any(|name| annotation(class, name) == "true");
    Value::from(if default { format!("{name} (default)") } else { name.to_owned() })
}

fn token_requests(driver: &Value, _: Timestamp) -> Value {
    if get(driver, "spec.tokenRequests").is_null() {
        return Value::from("<unset>");
    }
    let audiences = list(driver, "spec.tokenRequests").iter().map(|request| text(request, "audience"));
    Value::from(joined(audiences, ",", ""))
}

fn claim_state(claim: &Value, _: Timestamp) -> Value {
    let deleted = !get(claim, "metadata.deletionTimestamp").is_null();
    let allocated = !get(claim, "status.allocation").is_null();
    let mut states = Vec::new();
    states.extend(deleted.then_some("deleted"));
    if allocated {
        states.push("allocated");
        states.extend((!list(claim, "status.reservedFor").is_empty()).then_some("reserved"));
    } else if !deleted {
        states.push("pending");
    }
    Value::from(states.join(","))
}

//! What a call costs when it runs.

use super::{REGULAR, TRAVERSAL, scaled};
use crate::library::format_length;
use crate::value::{Opaque, Value};

/// Returns what a call costs as far as its values say it.
pub(crate) fn before(function: &str, values: &[Value]) -> u64 {
    let size = |index: usize| values.get(index).map_or(0, Value::size);
    let traversal = |size: u64| scaled(size, TRAVERSAL);
    match function {
        "check" => 350_000,
        "fieldSelector" | "labelSelector" => {
            let length = size(1);
            10_u64.saturating_add(traversal(length)).saturating_add(scaled(scaled(length, 0.5), 50.0))
        }
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => values.first().map_or(0, visited),
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR"
        | "quantity" | "isQuantity" | "semver" | "isSemver" | "startsWith" | "endsWith" | "strings.quote" => {
            traversal(size(0))
        }
        "format" | "bytes" => traversal(size(0)),
        "string" if matches!(values.first(), Some(Value::Bytes(_))) => traversal(size(0)),
        "ip" => match values.first() {
            Some(Value::String(_)) => traversal(size(0)),
            _ => 1,
        },
        "replace" | "split" | "ip.isCanonical" => scaled(size(0), 2.0 * TRAVERSAL),
        // Its result says it.
        "join" => 0,
        "find" | "findAll" | "matches" => {
            traversal(size(0).saturating_add(1)).saturating_mul(scaled(size(1), REGULAR))
        }
        "contains" => traversal(size(0)).saturating_mul(traversal(size(1))),
        "containsIP" => {
            let parsed = if matches!(values.get(1), Some(Value::String(_))) { traversal(size(1)) } else { 0 };
            traversal(size(0) * 2).saturating_add(parsed)
        }
        "containsCIDR" => {
            let parsed = if matches!(values.get(1), Some(Value::String(_))) { traversal(size(1)) } else { 0 };
            traversal(size(0) * 2).saturating_add(traversal(size(0))).saturating_add(1).saturating_add(parsed)
        }
        "validate" => match values {
            [Value::Opaque(Opaque::Format(name)), Value::String(_)] => {
                let length = scaled(format_length(name), REGULAR);
                traversal(size(1).saturating_add(1)).saturating_mul(length)
            }
            _ => 1,
        },
        "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" => match values {
            [Value::Opaque(_), _] => 1,
            _ => traversal(size(0).min(size(1))),
        },
        "@in" => match values.get(1) {
            Some(Value::List(_)) => size(1),
            _ => 1,
        },
        "_+_" => match values.first() {
            Some(Value::String(_) | Value::Bytes(_)) => traversal(size(0).saturating_add(size(1))),
            // The real server has a cost of 1, as it copies nothing.
            Some(Value::List(_)) => scaled(size(0).saturating_add(size(1)), REGULAR).saturating_add(1),
            _ => 1,
        },
        _ => 1,
    }
}

/// Returns what a call costs beside that, as its result has this size.
pub(crate) fn after(function: &str, size: u64) -> u64 {
    if function == "join" { scaled(size, 2.0 * TRAVERSAL) } else { 0 }
}

/// Returns what it costs to visit everything in a value once.
fn visited(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64 / 10,
        Value::Bytes(bytes) => bytes.len() as u64 / 10,
        Value::List(list) => list.items.iter().map(visited).fold(0, u64::saturating_add),
        Value::Map(map) => {
            map.values().map(|value| visited(value).saturating_add(1)).fold(0, u64::saturating_add)
        }
        _ => 1,
    }
}

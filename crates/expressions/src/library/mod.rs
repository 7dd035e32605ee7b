//! The functions of expressions.

mod access;
mod called;
mod conversions;
mod formatting;
mod lists;
mod named_formats;
mod net;
mod operators;
mod optionals;
mod quantity;
mod semver;
mod strings;
mod time;
mod url;

use called::Called;

use crate::activation::Activation;
use crate::failure::Failure;
use crate::value::Value;

pub(crate) use named_formats::length as format_length;
pub(crate) use optionals::optional_item;

/// Converts a value.
pub(crate) fn converted(function: &str, value: &Value) -> Result<Value, Failure> {
    conversions::call(function, std::slice::from_ref(value))
        .unwrap_or_else(|| Err(Failure::no_such_overload(function, vec![value.type_name().to_owned()])))
}

/// How many bytes a text may have that a function makes.
const MAX_TEXT: u64 = 16 << 20;

/// Returns whether the result of a function would be larger than anything may be.
pub(crate) fn is_too_large(function: &str, values: &[Value]) -> bool {
    let size = |value: Option<&Value>| value.map_or(0, weight);
    let bytes = match (function, values) {
        ("replace", [text, old, new, ..]) => {
            let places = weight(text) / weight(old).max(1) + 1;
            places.saturating_mul(weight(new)).saturating_add(weight(text))
        }
        ("join", [Value::List(list), separator @ ..]) => {
            let gaps = size(separator.first()).saturating_mul(list.items.len() as u64);
            list.items.iter().map(weight).fold(gaps, u64::saturating_add)
        }
        ("format", [_, args]) => weight(args).saturating_mul(2),
        _ => 0,
    };
    bytes > MAX_TEXT
}

/// Returns about how many bytes a value has as a text.
fn weight(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        Value::List(list) => list.items.iter().map(weight).fold(2, u64::saturating_add),
        Value::Map(map) => {
            map.values().map(|value| weight(value).saturating_add(32)).fold(2, u64::saturating_add)
        }
        _ => 32,
    }
}

/// Calls a function. Its target, if it has one, is the first of the values.
pub(crate) fn call(function: &str, values: &[Value], activation: &dyn Activation) -> Result<Value, Failure> {
    const PARTS: [fn(&str, &[Value]) -> Called; 12] = [
        operators::call,
        strings::call,
        lists::call,
        conversions::call,
        optionals::call,
        time::call,
        quantity::call,
        net::call,
        url::call,
        semver::call,
        named_formats::call,
        formatting::call,
    ];
    let found = PARTS.iter().find_map(|part| part(function, values));
    found.or_else(|| access::call(function, values, activation)).unwrap_or_else(|| {
        let types = values.iter().map(|value| value.type_name().to_owned()).collect();
        Err(Failure::no_such_overload(function, types))
    })
}

//! Amounts of resources.

use objects::quantity::Quantity;

use super::called::Called;
use crate::failure::Failure;
use crate::value::{Opaque, Value};

const UNIT: i128 = 1_000_000_000;

pub(super) fn call(function: &str, values: &[Value]) -> Called {
    let amount = |nanos: i128| Ok(Value::Opaque(Opaque::Quantity(nanos)));
    Some(match (function, values) {
        ("quantity", [Value::String(text)]) => match text.parse::<Quantity>() {
            Ok(quantity) => amount(quantity.nanos()),
            Err(error) => Err(Failure::other(error.to_string())),
        },
        ("isQuantity", [Value::String(text)]) => Ok(Value::Bool(text.parse::<Quantity>().is_ok())),
        (_, [Value::Opaque(Opaque::Quantity(own)), rest @ ..]) => match (function, rest) {
            ("sign", []) => Ok(Value::Int(i64::try_from(own.signum()).unwrap_or_default())),
            ("isInteger", []) => Ok(Value::Bool(whole(*own).is_some())),
            ("asInteger", []) => {
                whole(*own).map(Value::Int).ok_or_else(|| Failure::other("cannot convert value to integer"))
            }
            ("asApproximateFloat", []) => Ok(Value::Double(approximate(*own))),
            ("add", [other]) => amount(own.saturating_add(nanos(other)?)),
            ("sub", [other]) => amount(own.saturating_sub(nanos(other)?)),
            ("isLessThan", [Value::Opaque(Opaque::Quantity(other))]) => Ok(Value::Bool(own < other)),
            ("isGreaterThan", [Value::Opaque(Opaque::Quantity(other))]) => Ok(Value::Bool(own > other)),
            ("compareTo", [Value::Opaque(Opaque::Quantity(other))]) => Ok(Value::Int(own.cmp(other) as i64)),
            _ => return None,
        },
        _ => return None,
    })
}

fn nanos(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some(i128::from(*number) * UNIT),
        Value::Opaque(Opaque::Quantity(nanos)) => Some(*nanos),
        _ => None,
    }
}

fn whole(nanos: i128) -> Option<i64> {
    if nanos % UNIT == 0 { i64::try_from(nanos / UNIT).ok() } else { None }
}

#[expect(clippy::cast_precision_loss, reason = "the number is an approximate one")]
fn approximate(nanos: i128) -> f64 {
    if nanos % UNIT == 0 { (nanos / UNIT) as f64 } else { nanos as f64 / UNIT as f64 }
}

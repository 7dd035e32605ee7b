//! Equality of JSON values: numbers are equal if they mean the same.

use serde_json::Value;

use super::decimal::Decimal;

/// Returns whether the two are the same: 7 is 7.0.
pub fn equal(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => Decimal::of(one).order(Decimal::of(two)).is_eq(),
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| equal(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            one.len() == two.len()
                && one.iter().all(|(name, value)| two.get(name).is_some_and(|other| equal(value, other)))
        }
        (
            Value::Null
            | Value::Bool(_)
            | Value::String(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_),
            _,
        ) => one == two,
    }
}

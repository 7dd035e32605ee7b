//! Numbers of JSON.

use serde_json::{Number, Value};

use crate::strconv::format_float;

/// The magnitude from which a number is written with an exponent.
const LARGE: f64 = 1e21;

/// The magnitude below which a number is written with an exponent.
const SMALL: f64 = 1e-6;

/// Writes `number` as `encoding/json` does: no point when it is whole, an
/// exponent only below 10⁻⁶ and from 10²¹ on.
///
/// Returns `None` when JSON has no such number.
pub fn format_number(number: f64) -> Option<String> {
    if !number.is_finite() {
        return None;
    }
    let magnitude = number.abs();
    if magnitude == 0.0 || (SMALL..LARGE).contains(&magnitude) {
        return Some(format_float(number, 'f', None));
    }
    let text = format_float(number, 'e', None);
    // An exponent of one digit is written as one digit: e-09 becomes e-9.
    Some(match text.split_once("e-0") {
        Some((mantissa, digit)) => format!("{mantissa}e-{digit}"),
        None => text,
    })
}

/// Returns `number` as JSON holds it: a whole number becomes an integer when it
/// fits 64 bits, as it would by a journey through Go's JSON.
///
/// Returns `None` when JSON has no such number.
pub fn number(number: f64) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() != 0.0 || !number.is_finite() || (number == 0.0 && number.is_sign_negative()) {
        return Number::from_f64(number);
    }
    if number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "the number is whole and below 2^53")]
        return Some(Number::from(number as i64));
    }
    let text = format_float(number, 'f', None);
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Number::from(whole));
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Some(Number::from(whole));
    }
    Number::from_f64(number)
}

/// Makes every whole floating-point number of `value` an integer, as
/// [`number()`] does, so that `1.0` and `1` compare equal.
pub fn normalize(value: &mut Value) {
    match value {
        Value::Number(float) if float.is_f64() => {
            if let Some(whole) = float.as_f64().and_then(number) {
                *float = whole;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::Object(map) => map.values_mut().for_each(normalize),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

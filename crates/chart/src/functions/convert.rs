//! Making numbers of anything, as sprig's casts do: what is no number is 0.

use golang::strconv::{atoi_closest, parse_int};

use super::args::{ANY, FLOAT, INT, INT64, STRING, any, string};
use super::format;
use crate::value::{Function, Text, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("atoi", &[STRING], INT, |_, args| Ok(Value::Int(atoi_closest(&string(args, 0))))),
    Function::new("float64", &[ANY], FLOAT, |_, args| Ok(Value::Float(to_f64(any(args, 0))))),
    Function::new("int", &[ANY], INT, |_, args| Ok(Value::Int(to_i64(any(args, 0))))),
    Function::new("int64", &[ANY], INT64, |_, args| Ok(Value::Int64(to_i64(any(args, 0))))),
    Function::new("toDecimal", &[ANY], INT64, |_, args| {
        let text = format::plain(any(args, 0))?;
        let number = std::str::from_utf8(&text).ok().and_then(|text| i64::from_str_radix(text, 8).ok());
        Ok(Value::Int64(number.unwrap_or_default()))
    }),
];

/// Returns the integer that `value` stands for.
pub(super) fn to_i64(value: &Value) -> i64 {
    match value {
        Value::Bool(truth) => i64::from(*truth),
        Value::Int(n) | Value::Int64(n) | Value::Small(_, n) => *n,
        Value::Uint(_, n) => n.cast_signed(),
        Value::Float(n) => float_to_int(*n),
        Value::Text(text) => text_to_int(text),
        Value::Object(object) => object
            .underlying()
            .filter(|_| matches!(object.type_name(), "time.Month" | "time.Weekday"))
            .map_or(0, |value| to_i64(&value)),
        Value::Nil | Value::Complex(..) | Value::Bytes(_) | Value::List(_) | Value::Map(_) => 0,
    }
}

/// Cuts a float; what does not fit becomes the smallest number, as on amd64.
#[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
pub(super) fn float_to_int(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

/// Returns the float that `value` stands for.
#[expect(clippy::cast_precision_loss, reason = "Go loses the same digits")]
pub(super) fn to_f64(value: &Value) -> f64 {
    match value {
        Value::Bool(truth) => f64::from(u8::from(*truth)),
        Value::Int(n) | Value::Int64(n) | Value::Small(_, n) => *n as f64,
        Value::Uint(_, n) => *n as f64,
        Value::Float(n) => *n,
        Value::Text(text) => text.as_str().and_then(parse_float).unwrap_or_default(),
        Value::Object(_) => to_i64(value) as f64,
        Value::Nil | Value::Complex(..) | Value::Bytes(_) | Value::List(_) | Value::Map(_) => 0.0,
    }
}

/// A text is a number with an optional `0x`, `0o`, `0b` or `0` before; `.0` at its end is cut.
fn text_to_int(text: &Text) -> i64 {
    let Some(text) = text.as_str() else {
        return 0;
    };
    let zeros = text.trim_end_matches('0');
    let text = match zeros.strip_suffix('.') {
        Some(whole) if zeros.len() < text.len() => whole,
        Some(_) | None => text,
    };
    parse_int(text).unwrap_or_default()
}

/// Reads a float: decimal or hexadecimal, `Inf` and `NaN` in any case.
fn parse_float(text: &str) -> Option<f64> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    match unsigned.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => Some(sign * f64::INFINITY),
        "nan" => Some(f64::NAN),
        _ => golang::strconv::parse_float(text),
    }
}

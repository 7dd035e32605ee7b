//! Making numbers of anything, as sprig's casts do: what is no number is 0.

use super::args::{ANY, FLOAT, INT, INT64, STRING, any, string};
use super::shown;
use crate::call::Function;
use crate::value::{Text, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("atoi", &[STRING], INT, |_, args| {
        Ok(Value::Int(parse_decimal(&string(args, 0)).unwrap_or_default()))
    }),
    Function::new("float64", &[ANY], FLOAT, |_, args| Ok(Value::Float(to_f64(any(args, 0))))),
    Function::new("int", &[ANY], INT, |_, args| Ok(Value::Int(to_i64(any(args, 0))))),
    Function::new("int64", &[ANY], INT64, |_, args| Ok(Value::Int64(to_i64(any(args, 0))))),
    Function::new("toDecimal", &[ANY], INT64, |_, args| {
        let text = shown::plain(any(args, 0))?;
        let number = std::str::from_utf8(&text).ok().and_then(|text| parse_signed(text, 8));
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
    parse_prefixed(text).unwrap_or_default()
}

/// Reads an integer whose base its prefix tells, with `_` between digits.
pub(super) fn parse_prefixed(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, number, prefixed) = match lower.get(..2) {
        Some("0x") => (16, lower.get(2..)?, true),
        Some("0o") => (8, lower.get(2..)?, true),
        Some("0b") => (2, lower.get(2..)?, true),
        Some(_) if lower.starts_with('0') => (8, lower.get(1..)?, true),
        Some(_) | None => (10, lower.as_str(), false),
    };
    let number = without_underscores(number, prefixed)?;
    parse_signed(&format!("{sign}{number}"), base)
}

/// Drops underscores, each of which must stand between two digits or behind a prefix.
fn without_underscores(number: &str, prefixed: bool) -> Option<String> {
    if !number.contains('_') {
        return Some(number.to_owned());
    }
    let is_hex = prefixed && number.contains(|c: char| c.is_ascii_hexdigit());
    let is_digit = |c: char| c.is_ascii_digit() || (is_hex && c.is_ascii_hexdigit());
    let mut after_digit = prefixed;
    let mut after_underscore = false;
    for c in number.chars() {
        let fits = if c == '_' { after_digit } else { !after_underscore || is_digit(c) };
        if !fits {
            return None;
        }
        after_digit = is_digit(c);
        after_underscore = c == '_';
    }
    (!after_underscore).then(|| number.replace('_', ""))
}

fn parse_decimal(text: &str) -> Option<i64> {
    parse_signed(text, 10)
}

/// Reads an integer of this base with an optional sign.
pub(super) fn parse_signed(text: &str, base: u32) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.starts_with(['+', '-']) {
        return None;
    }
    i64::from_str_radix(text, base).ok()
}

/// Reads a float: decimal or hexadecimal, `Inf` and `NaN` in any case.
pub(super) fn parse_float(text: &str) -> Option<f64> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = unsigned.to_ascii_lowercase();
    let number = match lower.as_str() {
        "inf" | "infinity" => f64::INFINITY,
        "nan" => f64::NAN,
        hex if hex.starts_with("0x") => hex_float(&without_underscores(hex.get(2..)?, true)?)?,
        decimal => {
            let decimal = without_underscores(decimal, false)?;
            if !decimal.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
                return None;
            }
            decimal.parse().ok().filter(|n: &f64| n.is_finite())?
        }
    };
    Some(if negative { -number } else { number })
}

/// Reads what stands behind `0x`: hexadecimal digits, a point perhaps, and `p` with an exponent.
#[expect(clippy::cast_precision_loss, reason = "at most 60 bits are kept, rounding once")]
fn hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p')?;
    let mut exponent: i32 = parse_signed(exponent, 10)?.clamp(-100_000, 100_000).try_into().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut number: u64 = 0;
    let mut digits = 0;
    for (index, c) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = c.to_digit(16)?;
        digits += 1;
        if number >> 56 == 0 {
            number = number << 4 | u64::from(digit);
            exponent -= if index >= whole.len() { 4 } else { 0 };
        } else if index < whole.len() {
            exponent += 4;
        }
    }
    let scaled = number as f64 * 2_f64.powi(exponent);
    (digits > 0 && scaled.is_finite()).then_some(scaled)
}

//! Numbers as Go's `strconv` and `encoding/json` write them.

use serde_json::{Number, Value};

/// The exponent from which the shortest `g` form is written with an exponent.
const SHORTEST_EXPONENT: i32 = 6;

/// The magnitude from which JSON written by Go uses an exponent.
const JSON_LARGE: f64 = 1e21;

/// The magnitude below which JSON written by Go uses an exponent.
const JSON_SMALL: f64 = 1e-6;

/// A finite number taken apart: `0.d₁d₂d₃… × 10^point`.
struct Decimal {
    negative: bool,
    digits: String,
    point: i32,
}

impl Decimal {
    /// Takes apart what Rust's `{:e}` wrote.
    fn from_scientific(text: &str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mut digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let zero = digits.bytes().all(|digit| digit == b'0');
        if zero {
            digits.truncate(1);
        }
        Self { negative, digits, point: if zero { 0 } else { exponent + 1 } }
    }

    /// Returns the fewest digits that read back as `number`.
    fn shortest(number: f64) -> Self {
        let mut decimal = Self::from_scientific(&format!("{number:e}"));
        decimal.trim_zeros();
        decimal
    }

    /// Drops zeros at the end; a zero itself keeps no digit.
    fn trim_zeros(&mut self) {
        let kept = self.digits.trim_end_matches('0').len();
        self.digits.truncate(kept);
    }

    fn sign(&self) -> &'static str {
        if self.negative { "-" } else { "" }
    }

    /// Returns the digit at `index`, or a zero behind the last one.
    fn digit(&self, index: usize) -> char {
        self.digits.as_bytes().get(index).map_or('0', |byte| char::from(*byte))
    }

    /// Writes `d.ddde±dd` with `precision` digits behind the point.
    fn exponential(&self, precision: usize) -> String {
        let mut out = String::from(self.sign());
        out.push(self.digit(0));
        if precision > 0 {
            out.push('.');
            out.extend((1..=precision).map(|index| self.digit(index)));
        }
        let exponent = if self.digits.trim_end_matches('0').is_empty() { 0 } else { self.point - 1 };
        let sign = if exponent < 0 { '-' } else { '+' };
        let magnitude = exponent.unsigned_abs();
        format!("{out}e{sign}{magnitude:02}")
    }

    /// Writes `ddd.ddd` with `precision` digits behind the point.
    fn fixed(&self, precision: usize) -> String {
        let mut out = String::from(self.sign());
        let point = i64::from(self.point);
        if point > 0 {
            out.extend((0..point).map(|index| self.digit_at(index)));
        } else {
            out.push('0');
        }
        if precision > 0 {
            out.push('.');
            let precision = i64::try_from(precision).unwrap_or(i64::MAX);
            out.extend((0..precision).map(|index| self.digit_at(point + index)));
        }
        out
    }

    /// Returns the digit at a position that may lie before the first one.
    fn digit_at(&self, index: i64) -> char {
        usize::try_from(index).map_or('0', |index| self.digit(index))
    }
}

/// Returns what Go writes for a number that is not finite.
fn special(number: f64) -> Option<String> {
    if number.is_nan() {
        Some("NaN".to_owned())
    } else if number.is_infinite() {
        Some(if number < 0.0 { "-Inf" } else { "+Inf" }.to_owned())
    } else {
        None
    }
}

/// Writes `number` like Go's `e` format: one digit, the point, an exponent of
/// at least two digits.
///
/// `precision` is the number of digits behind the point; `None` asks for the
/// fewest that read back as the same number.
pub fn format_e(number: f64, precision: Option<usize>) -> String {
    if let Some(text) = special(number) {
        return text;
    }
    if let Some(precision) = precision {
        let rounded = Decimal::from_scientific(&format!("{number:.precision$e}"));
        return rounded.exponential(precision);
    }
    let decimal = Decimal::shortest(number);
    decimal.exponential(decimal.digits.len().saturating_sub(1))
}

/// Writes `number` like Go's `f` format: digits and a point, no exponent.
///
/// `precision` is the number of digits behind the point; `None` asks for the
/// fewest that read back as the same number.
pub fn format_f(number: f64, precision: Option<usize>) -> String {
    if let Some(text) = special(number) {
        return text;
    }
    if let Some(precision) = precision {
        return format!("{number:.precision$}");
    }
    let decimal = Decimal::shortest(number);
    let length = i64::try_from(decimal.digits.len()).unwrap_or(0);
    let behind = length - i64::from(decimal.point);
    decimal.fixed(usize::try_from(behind).unwrap_or(0))
}

/// Writes `number` like Go's `g` format: `e` for large and small exponents,
/// `f` for the others.
///
/// `precision` is the number of significant digits, zeros at the end dropped;
/// `None` asks for the fewest digits that read back as the same number, with an
/// exponent below 10⁻⁴ and from 10⁶ on, as `strconv` and `%v` write it.
pub fn format_g(number: f64, precision: Option<usize>) -> String {
    if let Some(text) = special(number) {
        return text;
    }
    let (decimal, limit) = match precision {
        Some(precision) => {
            let significant = precision.max(1);
            let behind = significant - 1;
            let mut decimal = Decimal::from_scientific(&format!("{number:.behind$e}"));
            decimal.trim_zeros();
            let length = decimal.digits.len();
            let point = usize::try_from(decimal.point).unwrap_or(0);
            let limit = if significant > length && length >= point { length } else { significant };
            (decimal, i32::try_from(limit).unwrap_or(i32::MAX))
        }
        None => (Decimal::shortest(number), SHORTEST_EXPONENT),
    };
    general(&decimal, limit)
}

/// Writes `number` like [`format_g`], with the fewest digits that tell it from
/// its neighbours of 32 bits.
pub(crate) fn format_g_single(number: f32) -> String {
    if let Some(text) = special(f64::from(number)) {
        return text;
    }
    let mut decimal = Decimal::from_scientific(&format!("{number:e}"));
    decimal.trim_zeros();
    general(&decimal, SHORTEST_EXPONENT)
}

/// Writes `decimal` with an exponent when that is below -4 or at least `limit`.
fn general(decimal: &Decimal, limit: i32) -> String {
    let exponent = decimal.point - 1;
    let length = decimal.digits.len();
    if length > 0 && (exponent < -4 || exponent >= limit) {
        return decimal.exponential(length.saturating_sub(1));
    }
    let behind = i64::try_from(length).unwrap_or(0) - i64::from(decimal.point);
    decimal.fixed(usize::try_from(behind).unwrap_or(0))
}

/// Writes `number` as Go's `encoding/json` does: no point when it is whole, an
/// exponent only below 10⁻⁶ and from 10²¹ on.
///
/// Returns `None` when JSON has no such number.
pub fn format_json(number: f64) -> Option<String> {
    if !number.is_finite() {
        return None;
    }
    let magnitude = number.abs();
    if magnitude == 0.0 || (JSON_SMALL..JSON_LARGE).contains(&magnitude) {
        return Some(format_f(number, None));
    }
    let text = format_e(number, None);
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
pub fn from_f64(number: f64) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() != 0.0 || !number.is_finite() || (number == 0.0 && number.is_sign_negative()) {
        return Number::from_f64(number);
    }
    if number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "the number is whole and below 2^53")]
        return Some(Number::from(number as i64));
    }
    let text = format_f(number, None);
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Number::from(whole));
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Some(Number::from(whole));
    }
    Number::from_f64(number)
}

/// Makes every whole floating-point number of `value` an integer, as
/// [`from_f64`] does, so that `1.0` and `1` compare equal.
pub fn normalize(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(whole) = number.as_f64().and_then(from_f64) {
                *number = whole;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::Object(map) => map.values_mut().for_each(normalize),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

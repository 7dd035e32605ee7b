//! Numbers out of text: `strconv.ParseInt` and its kin, with base 0.

use std::num::IntErrorKind;

/// Returns the float that is nearest to `uint`.
#[expect(clippy::cast_precision_loss, reason = "Go rounds here too")]
pub fn uint_to_float(uint: u64) -> f64 {
    uint as f64
}

/// Reads a signed integer with Go's prefixes and underscores.
pub fn parse_int(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let magnitude = parse_uint(digits)?;
    if negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Reads an unsigned integer with Go's prefixes and underscores.
pub fn parse_uint(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let (radix, digits) = match bytes {
        [b'0', b'x' | b'X', ..] => (16, text.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, text.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, text.get(2..)?),
        [b'0', _, ..] => (8, text.get(1..)?),
        _ => (10, text),
    };
    if text.contains('_') && !underscores_fit(text) {
        return None;
    }
    let digits = digits.replace('_', "");
    if digits.is_empty() || digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(&digits, radix).ok()
}

/// Reports whether every underscore stands between digits or behind a prefix.
fn underscores_fit(text: &str) -> bool {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mut before, body, hex) = match body.as_bytes() {
        [b'0', b'x' | b'X', ..] => ('0', body.get(2..).unwrap_or_default(), true),
        [b'0', b'o' | b'O' | b'b' | b'B', ..] => ('0', body.get(2..).unwrap_or_default(), false),
        _ => ('^', body, false),
    };
    for rune in body.chars() {
        before = if rune.is_ascii_digit() || (hex && rune.is_ascii_hexdigit()) {
            '0'
        } else if rune == '_' {
            if before != '0' {
                return false;
            }
            '_'
        } else {
            if before == '_' {
                return false;
            }
            '!'
        };
    }
    before != '_'
}

/// Reads a float as Go does: underscores, hexadecimal mantissas; not what overflows.
pub fn parse_float(text: &str) -> Option<f64> {
    if text.contains('_') && !underscores_fit(text) {
        return None;
    }
    let plain = text.replace('_', "");
    // Underscores are allowed only in numbers with a base prefix.
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    if unsigned.starts_with("0x") || unsigned.starts_with("0X") {
        let magnitude = parse_hex_float(unsigned.get(2..)?)?;
        return Some(if plain.starts_with('-') { -magnitude } else { magnitude });
    }
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let value: f64 = plain.parse().ok()?;
    value.is_finite().then_some(value)
}

/// Reads `1f.8p-2` without its prefix.
fn parse_hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let mut exponent: i64 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    let mut sticky = false;
    for (index, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(digit.to_digit(16)?);
        let in_fraction = index >= whole.len();
        if value >> 59 == 0 {
            value = value << 4 | digit;
            if in_fraction {
                exponent = exponent.checked_sub(4)?;
            }
        } else {
            sticky |= digit != 0;
            if !in_fraction {
                exponent = exponent.checked_add(4)?;
            }
        }
    }
    if sticky {
        value |= 1;
    }
    let exponent = i32::try_from(exponent.clamp(-5_000, 5_000)).ok()?;
    let mut float = uint_to_float(value);
    // In two steps: the power alone may not be a float.
    float *= 2.0_f64.powi(exponent / 2);
    float *= 2.0_f64.powi(exponent - exponent / 2);
    float.is_finite().then_some(float)
}

/// Reads a decimal number with an optional sign: the closest one there is for one that is too large, zero for anything else.
pub fn atoi_closest(text: &str) -> i64 {
    match text.parse::<i64>() {
        Ok(number) => number,
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => i64::MAX,
        Err(error) if *error.kind() == IntErrorKind::NegOverflow => i64::MIN,
        Err(_) => 0,
    }
}

/// Reads a decimal number with an optional sign; the error is in Go's words.
pub fn atoi(text: &str) -> Result<i64, String> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let why = if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        "invalid syntax"
    } else {
        match text.parse() {
            Ok(number) => return Ok(number),
            Err(_) => "value out of range",
        }
    };
    Err(format!("strconv.Atoi: parsing {}: {why}", super::quote(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{parse_float, parse_int, parse_uint};
    use crate::strconv::format_float;

    #[test]
    fn integers_are_read_with_prefixes_and_underscores() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("0x1F", Some(31)),
            ("-0b11", Some(-3)),
            ("0o17", Some(15)),
            ("017", Some(15)),
            ("08", None),
            ("0x_1F", Some(31)),
            ("1_000", Some(1_000)),
            ("1__0", None),
            ("_1", None),
            ("1_", None),
            ("0_7", Some(7)),
            ("", None),
            ("+", None),
            ("+-1", None),
        ] {
            assert_eq!(parse_int(text), expected, "{text}");
        }
        assert_eq!(parse_uint("18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_uint("-1"), None);
    }

    #[test]
    fn floats_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("1e3", Some(1000.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("0x1p-2", Some(0.25)),
            ("-0x1.8p1", Some(-3.0)),
            ("0x1", None),
            ("0x.p1", None),
            ("1e999", None),
            ("1_0.5", Some(10.5)),
            ("inf", None),
            ("", None),
            ("e5", None),
        ] {
            assert_eq!(parse_float(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn printed_floats_are_read_back(bits: u64) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            for verb in ['g', 'e', 'x'] {
                prop_assert_eq!(parse_float(&format_float(number, verb, None)), Some(number));
            }
        }
    }
}

//! Texts made of a format and values: `'%s has %d'.format([a, b])`.

use super::called::Called;
use crate::failure::Failure;
use crate::times;
use crate::value::{List, Value};

/// The most digits that a fraction may be asked for.
const MAX_PRECISION: usize = 100;

/// How many digits a fraction has that nobody asks for.
const PRECISION: usize = 6;

pub(super) fn call(function: &str, values: &[Value]) -> Called {
    match (function, values) {
        ("format", [Value::String(format), Value::List(args)]) => Some(formatted(format, args)),
        _ => None,
    }
}

fn formatted(format: &str, args: &List) -> Result<Value, Failure> {
    let mut text = String::new();
    let mut args = args.items.iter().enumerate();
    let mut taken = 0;
    let mut rest = format.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        if rest.peek() == Some(&'%') {
            rest.next();
            text.push('%');
            continue;
        }
        let mut precision = None;
        if rest.peek() == Some(&'.') {
            rest.next();
            let mut digits = String::new();
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            let asked = digits.parse().ok().filter(|asked| *asked <= MAX_PRECISION);
            precision = Some(asked.ok_or_else(|| {
                Failure::other("error while parsing precision: error while converting precision to integer")
            })?);
        }
        let Some(clause) = rest.next() else {
            return Err(Failure::other("could not parse formatting clause: unexpected end of string"));
        };
        if !"sdfebxXo".contains(clause) {
            let problem =
                format!("could not parse formatting clause: unrecognized formatting clause \"{clause}\"");
            return Err(Failure::other(problem));
        }
        let Some((_, arg)) = args.next() else {
            return Err(Failure::other(format!("index {taken} out of range")));
        };
        taken += 1;
        text.push_str(&one(clause, precision, arg)?);
    }
    Ok(Value::text(text))
}

fn one(clause: char, precision: Option<usize>, arg: &Value) -> Result<String, Failure> {
    let wrong = |wanted: &str| {
        let message = format!("error during formatting: {wanted}, was given {}", arg.type_name());
        Err(Failure::other(message))
    };
    match (clause, arg) {
        ('s', _) => shown(arg),
        ('d', Value::Int(number)) => Ok(number.to_string()),
        ('d', Value::Uint(number)) => Ok(number.to_string()),
        ('d', _) => wrong("decimal clause can only be used on integers"),
        ('f' | 'e', _) => {
            let clause_name = if clause == 'f' { "fixed-point" } else { "scientific" };
            match double(arg) {
                Some(number) if !number.is_finite() => Ok(not_finite(number, "∞", "-∞")),
                Some(number) => {
                    let precision = precision.unwrap_or(PRECISION);
                    // The real server writes no fewer digits of a mantissa.
                    let precision = if clause == 'e' { precision.max(PRECISION) } else { precision };
                    let text = golang::strconv::format_float(number, clause, Some(precision));
                    Ok(if clause == 'e' { with_power(&text) } else { grouped(&text) })
                }
                None => wrong(&format!("{clause_name} clause can only be used on doubles")),
            }
        }
        ('b', Value::Bool(value)) => Ok(u8::from(*value).to_string()),
        ('b', Value::Int(number)) => Ok(signed(*number, |number| format!("{number:b}"))),
        ('b', Value::Uint(number)) => Ok(format!("{number:b}")),
        ('b', _) => wrong("only integers and bools can be formatted as binary"),
        ('o', Value::Int(number)) => Ok(signed(*number, |number| format!("{number:o}"))),
        ('o', Value::Uint(number)) => Ok(format!("{number:o}")),
        ('o', _) => wrong("octal clause can only be used on integers"),
        (_, Value::Int(number)) => Ok(cased(clause, &signed(*number, |number| format!("{number:x}")))),
        (_, Value::Uint(number)) => Ok(cased(clause, &format!("{number:x}"))),
        (_, Value::String(text)) => Ok(cased(clause, &hexadecimal(text.as_bytes()))),
        (_, Value::Bytes(bytes)) => Ok(cased(clause, &hexadecimal(bytes))),
        _ => wrong("only integers, byte buffers, and strings can be formatted as hex"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the language rounds, too")]
fn double(arg: &Value) -> Option<f64> {
    match arg {
        Value::Double(number) => Some(*number),
        Value::Int(number) => Some(*number as f64),
        Value::Uint(number) => Some(*number as f64),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// Returns `1.5e+03` as `1.5×10⁰³`.
fn with_power(text: &str) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let Some((mantissa, power)) = text.split_once('e') else { return text.to_owned() };
    let raised = power.chars().filter_map(|character| match character {
        '-' => Some('⁻'),
        digit => DIGITS.get(usize::try_from(digit.to_digit(10)?).ok()?).copied(),
    });
    format!("{mantissa}×10{}", raised.collect::<String>())
}

fn not_finite(number: f64, above: &str, below: &str) -> String {
    let text = if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        above
    } else {
        below
    };
    text.to_owned()
}

fn signed(number: i64, digits: impl Fn(u64) -> String) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", digits(number.unsigned_abs()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 15];
    bytes.iter().flat_map(digits).filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

fn cased(clause: char, digits: &str) -> String {
    if clause == 'X' { digits.to_uppercase() } else { digits.to_owned() }
}

/// Returns a value as `%s` shows it.
fn shown(value: &Value) -> Result<String, Failure> {
    Ok(match value {
        Value::String(text) => text.to_string(),
        Value::Type(name) => name.to_string(),
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) if !number.is_finite() => not_finite(*number, "+Inf", "-Inf"),
        Value::Double(number) => golang::strconv::format_float(*number, 'f', None),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Timestamp(nanos) => times::format_timestamp(*nanos),
        Value::Duration(nanos) => times::format_duration(*nanos),
        Value::List(list) => {
            let items = list.items.iter().map(nested).collect::<Result<Vec<_>, _>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for (key, value) in map.iter() {
                entries.push(format!("{}:{}", nested(&key.value())?, nested(value)?));
            }
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Optional(_) | Value::Opaque(_) => {
            let message = format!(
                "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given {}",
                value.type_name()
            );
            return Err(Failure::other(message));
        }
    })
}

/// Returns a value in a list or a map: as an expression would write it.
fn nested(value: &Value) -> Result<String, Failure> {
    let quoted = |text: &str| golang::strconv::quote(text.as_bytes());
    Ok(match value {
        Value::String(text) => quoted(text),
        Value::Bytes(_) => format!("b{}", quoted(&shown(value)?)),
        Value::Timestamp(_) => format!("timestamp({})", quoted(&shown(value)?)),
        Value::Duration(_) => format!("duration({})", quoted(&shown(value)?)),
        Value::Double(number) if !number.is_finite() => quoted(&shown(value)?),
        Value::Double(number) => golang::strconv::format_float(*number, 'f', Some(PRECISION)),
        _ => return shown(value),
    })
}

/// Returns digits with a comma between thousands: `12,345.5`.
fn grouped(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (whole, fraction) =
        digits.split_once('.').map_or((digits, None), |(whole, rest)| (whole, Some(rest)));
    let mut shown = sign.to_owned();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            shown.push(',');
        }
        shown.push(digit);
    }
    if let Some(fraction) = fraction {
        shown.push('.');
        shown.push_str(fraction);
    }
    shown
}

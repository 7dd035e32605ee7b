//! Conversions between types.

use super::called::Called;
use crate::failure::Failure;
use crate::times;
use crate::value::{Opaque, Value};

pub(super) fn call(function: &str, values: &[Value]) -> Called {
    let [value] = values else { return None };
    match function {
        "int" => int(value),
        "uint" => uint(value),
        "double" => double(value),
        "string" => string(value),
        "bool" => match value {
            Value::Bool(_) => Some(Ok(value.clone())),
            Value::String(text) => Some(match &**text {
                "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Value::Bool(true)),
                "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Value::Bool(false)),
                _ => Err(no_conversion("string", "bool")),
            }),
            _ => None,
        },
        "bytes" => match value {
            Value::Bytes(_) => Some(Ok(value.clone())),
            Value::String(text) => Some(Ok(Value::Bytes(text.as_bytes().into()))),
            _ => None,
        },
        "duration" | "timestamp"
            if matches!(value, Value::Bool(_) | Value::Uint(_) | Value::Double(_))
                || matches!((function, value), ("duration", Value::Int(_))) =>
        {
            let to = if function == "duration" { "Duration" } else { "Timestamp" };
            Some(Err(no_conversion(value.type_name(), &format!("google.protobuf.{to}"))))
        }
        "duration" => match value {
            Value::Duration(_) => Some(Ok(value.clone())),
            Value::String(text) => Some(
                times::parse_duration(text)
                    .map(Value::Duration)
                    .ok_or_else(|| no_conversion("string", "google.protobuf.Duration")),
            ),
            _ => None,
        },
        "timestamp" => timestamp(value),
        "dyn" => Some(Ok(value.clone())),
        "type" => Some(Ok(Value::Type(value.type_name().into()))),
        _ => None,
    }
}

fn no_conversion(from: &str, to: &str) -> Failure {
    Failure::other(format!("type conversion error from '{from}' to '{to}'"))
}

fn timestamp(value: &Value) -> Called {
    match value {
        Value::Timestamp(_) => Some(Ok(value.clone())),
        Value::Int(seconds) => {
            Some(times::checked_timestamp(i128::from(*seconds) * 1_000_000_000).map(Value::Timestamp))
        }
        Value::String(text) => Some(
            times::parse_timestamp(text)
                .map(Value::Timestamp)
                .ok_or_else(|| no_conversion("string", "google.protobuf.Timestamp")),
        ),
        _ => None,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
fn int(value: &Value) -> Called {
    let overflow = || Failure::other("integer overflow");
    Some(match value {
        Value::Int(_) => Ok(value.clone()),
        Value::Uint(number) => i64::try_from(*number).map(Value::Int).map_err(|_| overflow()),
        Value::Double(number)
            if *number > -9.223_372_036_854_775e18 && *number < 9.223_372_036_854_775e18 =>
        {
            Ok(Value::Int(*number as i64))
        }
        Value::Double(_) => Err(overflow()),
        Value::String(text) => {
            let number = golang::strconv::parse_int(text).filter(|_| !text.contains('_'));
            number.map(Value::Int).ok_or_else(|| no_conversion("string", "int"))
        }
        Value::Timestamp(nanos) => {
            i64::try_from(nanos.div_euclid(1_000_000_000)).map(Value::Int).map_err(|_| overflow())
        }
        Value::Duration(nanos) => Ok(Value::Int(*nanos)),
        _ => return None,
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked before")]
fn uint(value: &Value) -> Called {
    let overflow = || Failure::other("unsigned integer overflow");
    Some(match value {
        Value::Uint(_) => Ok(value.clone()),
        Value::Int(number) => u64::try_from(*number).map(Value::Uint).map_err(|_| overflow()),
        Value::Double(number) if *number >= 0.0 && *number < 1.844_674_407_370_955e19 => {
            Ok(Value::Uint(*number as u64))
        }
        Value::Double(_) => Err(overflow()),
        Value::String(text) => {
            golang::strconv::parse_uint(text).map(Value::Uint).ok_or_else(|| no_conversion("string", "uint"))
        }
        _ => return None,
    })
}

#[expect(clippy::cast_precision_loss, reason = "the language rounds, too")]
fn double(value: &Value) -> Called {
    Some(match value {
        Value::Double(_) => Ok(value.clone()),
        Value::Int(number) => Ok(Value::Double(*number as f64)),
        Value::Uint(number) => Ok(Value::Double(*number as f64)),
        Value::String(text) => {
            let number = match text.to_ascii_lowercase().as_str() {
                "nan" => Some(f64::NAN),
                "inf" | "+inf" | "infinity" | "+infinity" => Some(f64::INFINITY),
                "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
                _ => golang::strconv::parse_float(text),
            };
            number.map(Value::Double).ok_or_else(|| no_conversion("string", "double"))
        }
        _ => return None,
    })
}

fn string(value: &Value) -> Called {
    Some(Ok(Value::text(match value {
        Value::String(_) => return Some(Ok(value.clone())),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => golang::strconv::format_float(*number, 'g', None),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Some(Err(Failure::other("invalid UTF-8 in bytes, cannot convert to string"))),
        },
        Value::Timestamp(nanos) => times::format_timestamp(*nanos),
        Value::Duration(nanos) => times::format_duration(*nanos),
        Value::Opaque(Opaque::Ip(address)) => address.to_string(),
        Value::Opaque(Opaque::Cidr(address, length)) => format!("{address}/{length}"),
        _ => return None,
    })))
}

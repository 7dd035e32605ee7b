//! Functions of semantic versions.

use std::sync::Arc;

use super::called::Called;
use crate::failure::Failure;
use crate::semver::{Semver, read, read_as};
use crate::value::{Opaque, Value};

pub(super) fn call(function: &str, values: &[Value]) -> Called {
    let made = |version: Result<Semver, String>| match version {
        Ok(version) => Ok(Value::Opaque(Opaque::Semver(Arc::new(version)))),
        Err(problem) => Err(Failure::other(problem)),
    };
    Some(match (function, values) {
        ("semver", [Value::String(text)]) => made(read(text)),
        ("semver", [Value::String(text), Value::Bool(normalizes)]) => made(read_as(text, *normalizes)),
        ("isSemver", [Value::String(text)]) => Ok(Value::Bool(read(text).is_ok())),
        ("isSemver", [Value::String(text), Value::Bool(normalizes)]) => {
            Ok(Value::Bool(read_as(text, *normalizes).is_ok()))
        }
        (_, [Value::Opaque(Opaque::Semver(own)), rest @ ..]) => {
            let [major, minor, patch] = own.numbers;
            let number = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
            Ok(match (function, rest) {
                ("major", []) => number(major),
                ("minor", []) => number(minor),
                ("patch", []) => number(patch),
                (_, [Value::Opaque(Opaque::Semver(other))]) => match function {
                    "isLessThan" => Value::Bool(own.compare(other).is_lt()),
                    "isGreaterThan" => Value::Bool(own.compare(other).is_gt()),
                    "compareTo" => Value::Int(own.compare(other) as i64),
                    _ => return None,
                },
                _ => return None,
            })
        }
        _ => return None,
    })
}

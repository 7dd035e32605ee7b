//! Operators: arithmetic, comparisons, indexes.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::called::Called;
use super::optionals::optional_item;
use crate::failure::{Failure, FailureKind};
use crate::times::checked_timestamp;
use crate::value::{Key, Map, Value};

pub(super) fn call(function: &str, values: &[Value]) -> Called {
    match (function, values) {
        ("_==_", [a, b]) => a.equality(b).map(|equal| Ok(Value::Bool(equal))),
        ("_!=_", [a, b]) => Some(Ok(Value::Bool(!a.equals(b)))),
        ("_<_", [a, b]) => compared(a, b, Ordering::is_lt),
        ("_<=_", [a, b]) => compared(a, b, Ordering::is_le),
        ("_>_", [a, b]) => compared(a, b, Ordering::is_gt),
        ("_>=_", [a, b]) => compared(a, b, Ordering::is_ge),
        ("_+_", [a, b]) => plus(a, b),
        ("_-_", [a, b]) => minus(a, b),
        ("_*_" | "_/_" | "_%_", [a, b]) => times(function, a, b),
        ("!_", [Value::Bool(value)]) => Some(Ok(Value::Bool(!value))),
        ("-_", [Value::Int(number)]) => Some(int(number.checked_neg())),
        ("-_", [Value::Double(number)]) => Some(Ok(Value::Double(-number))),
        ("@in", [item, Value::List(list)]) => {
            Some(Ok(Value::Bool(list.items.iter().any(|other| item.equals(other)))))
        }
        ("@in", [item, Value::Map(map)]) => {
            Some(Ok(Value::Bool(Key::of(item).is_some_and(|key| map.contains_key(&key)))))
        }
        ("_[_]", [of, index]) => indexed(of, index),
        ("_[?_]" | "_?._", [Value::Optional(of), index]) => Some(optional_item(of.as_deref(), index)),
        ("_[?_]" | "_?._", [of, index]) => Some(optional_item(Some(of), index)),
        ("cel.@mapInsert", [Value::Map(map), rest @ ..]) => inserted(map, rest),
        _ => None,
    }
}

fn compared(a: &Value, b: &Value, holds: fn(Ordering) -> bool) -> Called {
    let is_number = |value: &Value| matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_));
    match a.compare(b) {
        Some(order) => Some(Ok(Value::Bool(holds(order)))),
        None if is_number(a) && is_number(b) => Some(Err(Failure::other("NaN values cannot be ordered"))),
        None => None,
    }
}

fn int(number: Option<i64>) -> Result<Value, Failure> {
    number.map(Value::Int).ok_or_else(|| Failure::other("integer overflow"))
}

fn uint(number: Option<u64>) -> Result<Value, Failure> {
    number.map(Value::Uint).ok_or_else(|| Failure::other("unsigned integer overflow"))
}

fn duration(nanos: Option<i64>) -> Result<Value, Failure> {
    nanos.map(Value::Duration).ok_or_else(|| Failure::other("duration overflow"))
}

fn timestamp(nanos: i128) -> Result<Value, Failure> {
    checked_timestamp(nanos).map(Value::Timestamp)
}

fn plus(a: &Value, b: &Value) -> Called {
    Some(match (a, b) {
        (Value::Int(a), Value::Int(b)) => int(a.checked_add(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_add(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::String(a), Value::String(b)) => Ok(Value::text(format!("{a}{b}"))),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(Value::Bytes([&**a, &**b].concat().into())),
        (Value::List(a), Value::List(b)) => Ok(Value::List(Arc::new(a.plus(b)))),
        (Value::Duration(a), Value::Duration(b)) => duration(a.checked_add(*b)),
        (Value::Timestamp(a), Value::Duration(b)) | (Value::Duration(b), Value::Timestamp(a)) => {
            timestamp(a + i128::from(*b))
        }
        _ => return None,
    })
}

fn minus(a: &Value, b: &Value) -> Called {
    Some(match (a, b) {
        (Value::Int(a), Value::Int(b)) => int(a.checked_sub(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_sub(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a - b)),
        (Value::Duration(a), Value::Duration(b)) => duration(a.checked_sub(*b)),
        (Value::Timestamp(a), Value::Duration(b)) => timestamp(a - i128::from(*b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => duration(i64::try_from(a - b).ok()),
        _ => return None,
    })
}

fn times(operator: &str, a: &Value, b: &Value) -> Called {
    let by_zero = || {
        let text = if operator == "_/_" { "division by zero" } else { "modulus by zero" };
        Err(Failure { kind: FailureKind::DivisionByZero, text: text.to_owned() })
    };
    Some(match (operator, a, b) {
        ("_*_", Value::Int(a), Value::Int(b)) => int(a.checked_mul(*b)),
        ("_*_", Value::Uint(a), Value::Uint(b)) => uint(a.checked_mul(*b)),
        ("_*_", Value::Double(a), Value::Double(b)) => Ok(Value::Double(a * b)),
        ("_/_" | "_%_", Value::Int(_), Value::Int(0)) | ("_/_" | "_%_", Value::Uint(_), Value::Uint(0)) => {
            by_zero()
        }
        ("_/_", Value::Int(a), Value::Int(b)) => int(a.checked_div(*b)),
        ("_/_", Value::Uint(a), Value::Uint(b)) => uint(a.checked_div(*b)),
        ("_/_", Value::Double(a), Value::Double(b)) => Ok(Value::Double(a / b)),
        ("_%_", Value::Int(a), Value::Int(b)) => int(a.checked_rem(*b)),
        ("_%_", Value::Uint(a), Value::Uint(b)) => uint(a.checked_rem(*b)),
        _ => return None,
    })
}

fn indexed(of: &Value, index: &Value) -> Called {
    Some(match of {
        Value::List(list) => {
            let Some(Key::Number(place)) = Key::of(index) else {
                let of = index.type_name();
                return Some(Err(Failure::other(format!("unsupported index type '{of}' in list"))));
            };
            let found = usize::try_from(place).ok().and_then(|place| list.items.get(place)).cloned();
            found.ok_or_else(|| Failure::other(format!("index out of bounds: {place}")))
        }
        Value::Map(map)
            if !matches!(index, Value::String(_)) && matches!(map.keys().next(), Some(Key::String(_))) =>
        {
            return None;
        }
        Value::Map(map) => {
            let found = Key::of(index).and_then(|key| map.get(&key)).cloned();
            found.ok_or_else(|| {
                let shown =
                    Key::of(index).map_or_else(|| index.type_name().to_owned(), |key| key.to_string());
                Failure::no_such_key(&shown)
            })
        }
        Value::Optional(inner) => optional_item(inner.as_deref(), index),
        _ => Err(Failure::no_such_key(&Key::of(index)?.to_string())),
    })
}

fn inserted(map: &Map, rest: &[Value]) -> Called {
    let mut map = BTreeMap::clone(map);
    let new: Vec<(Key, Value)> = match rest {
        [key, value] => vec![(Key::of(key)?, value.clone())],
        [Value::Map(other)] => other.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        _ => return None,
    };
    for (key, value) in new {
        if map.contains_key(&key) {
            return Some(Err(Failure::other(format!("insert failed: key {key} already exists"))));
        }
        map.insert(key, value);
    }
    Some(Ok(Value::map(map)))
}

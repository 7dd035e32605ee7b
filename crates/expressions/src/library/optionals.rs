//! Values that may be missing.

use std::sync::Arc;

use super::called::Called;
use crate::failure::Failure;
use crate::value::{Key, Value};

pub(super) fn call(function: &str, values: &[Value]) -> Called {
    Some(Ok(match (function, values) {
        ("optional.of", [value]) => Value::some(value.clone()),
        ("optional.ofNonZeroValue", [value]) => {
            if is_zero(value) {
                Value::Optional(None)
            } else {
                Value::some(value.clone())
            }
        }
        ("optional.none", []) => Value::Optional(None),
        ("optional.unwrap" | "unwrapOpt", [Value::List(list)]) => {
            let items = list.items.iter().filter_map(|item| match item {
                Value::Optional(inner) => inner.as_deref().cloned(),
                other => Some(other.clone()),
            });
            Value::list(items.collect())
        }
        ("hasValue", [Value::Optional(value)]) => Value::Bool(value.is_some()),
        ("value", [Value::Optional(value)]) => match value {
            Some(value) => (**value).clone(),
            None => return Some(Err(Failure::other("optional.none() dereference"))),
        },
        ("first", [Value::List(list)]) => {
            list.items.first().cloned().map_or(Value::Optional(None), Value::some)
        }
        ("last", [Value::List(list)]) => {
            list.items.last().cloned().map_or(Value::Optional(None), Value::some)
        }
        _ => return None,
    }))
}

/// Returns whether a value is the one that its type begins with.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) | Value::Uint(0) | Value::Duration(0) => true,
        Value::Double(number) => *number == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.items.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Optional(value) => value.is_none(),
        _ => false,
    }
}

/// Returns an item of a value that may be missing. What is there has to have items.
pub(crate) fn optional_item(value: Option<&Value>, index: &Value) -> Result<Value, Failure> {
    let found = match value {
        None => None,
        Some(Value::Map(map)) => Key::of(index).and_then(|key| map.get(&key)).cloned(),
        Some(Value::List(list)) => match Key::of(index) {
            Some(Key::Number(place)) => {
                usize::try_from(place).ok().and_then(|place| list.items.get(place)).cloned()
            }
            _ => None,
        },
        Some(Value::Optional(inner)) => return optional_item(inner.as_deref(), index),
        Some(_) => {
            let shown = Key::of(index).map_or_else(|| index.type_name().to_owned(), |key| key.to_string());
            return Err(Failure::no_such_key(&shown));
        }
    };
    Ok(Value::Optional(found.map(Arc::new)))
}

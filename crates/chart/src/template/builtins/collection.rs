//! `index`; `len` is the executor's, and Helm's `slice` hides that of the language.

use crate::value::{CallError, Context, Function, Type, UintType, Value};

pub(super) const FUNCTIONS: &[Function] =
    &[Function::variadic("index", &[Type::Reflect, Type::Reflect], Type::Any, index)];

fn index(_: &mut dyn Context, args: &[Value]) -> Result<Value, CallError> {
    let Some((item, indexes)) = args.split_first().filter(|(item, _)| !item.is_nil()) else {
        return Err(CallError::new("index of untyped nil"));
    };
    let mut item = item.clone();
    for index in indexes {
        if item.is_nil() {
            return Err(CallError::new("index of nil pointer"));
        }
        item = at(&item.underlying(), index)?;
    }
    Ok(item)
}

fn at(item: &Value, index: &Value) -> Result<Value, CallError> {
    match item {
        Value::List(list) => {
            let index = position(index, list.len())?;
            list.get(index).ok_or_else(|| CallError::new("reflect: slice index out of range"))
        }
        Value::Text(text) => byte(text, index, "string"),
        Value::Bytes(bytes) => byte(bytes, index, "slice"),
        Value::Map(map) => match index {
            Value::Text(key) => Ok(map.get(&key.lossy()).unwrap_or_else(|| map.class().element.zero())),
            Value::Nil => Err(CallError::new("value is nil; should be of type string")),
            Value::Bool(_)
            | Value::Int(_)
            | Value::Int64(_)
            | Value::Small(..)
            | Value::Uint(..)
            | Value::Float(_)
            | Value::Complex(..)
            | Value::Bytes(_)
            | Value::List(_)
            | Value::Map(_)
            | Value::Object(_) => {
                Err(CallError::new(format!("value has type {}; should be string", index.type_name())))
            }
        },
        Value::Nil
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Int64(_)
        | Value::Small(..)
        | Value::Uint(..)
        | Value::Float(_)
        | Value::Complex(..)
        | Value::Object(_) => Err(CallError::new(format!("can't index item of type {}", item.type_name()))),
    }
}

fn byte(bytes: &[u8], index: &Value, what: &str) -> Result<Value, CallError> {
    let index = position(index, bytes.len())?;
    match bytes.get(index) {
        Some(byte) => Ok(Value::Uint(UintType::Uint8, u64::from(*byte))),
        None => Err(CallError::new(format!("reflect: {what} index out of range"))),
    }
}

/// Returns an index that is not above `length`.
fn position(index: &Value, length: usize) -> Result<usize, CallError> {
    if index.is_nil() {
        return Err(CallError::new("cannot index slice/array with nil"));
    }
    let Some(number) = index.as_i64() else {
        let name = index.type_name();
        return Err(CallError::new(format!("cannot index slice/array with type {name}")));
    };
    usize::try_from(number)
        .ok()
        .filter(|index| *index <= length)
        .ok_or_else(|| CallError::new(format!("index out of range: {number}")))
}

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
    if let Value::List(list) = item {
        let index = position(index, list.len())?;
        list.get(index).ok_or_else(|| CallError::new("reflect: slice index out of range"))
    } else if let Value::Text(text) = item {
        byte(text, index, "string")
    } else if let Value::Bytes(bytes) = item {
        byte(bytes, index, "slice")
    } else if let Value::Map(map) = item {
        if index.is_nil() {
            return Err(CallError::new("value is nil; should be of type string"));
        }
        let Some(key) = index.as_text() else {
            return Err(CallError::new(format!("value has type {}; should be string", index.type_name())));
        };
        Ok(map.get(&key.lossy()).unwrap_or_else(|| map.class().element.zero()))
    } else {
        Err(CallError::new(format!("can't index item of type {}", item.type_name())))
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

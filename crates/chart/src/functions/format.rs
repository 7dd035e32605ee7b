//! Values as text.

use golang::fmt;

use crate::value::{CallError, Context, MAX_NESTING, Text, Value};

/// Returns what `%v` prints.
pub(super) fn plain(value: &Value) -> Result<Vec<u8>, CallError> {
    let mut out = Vec::new();
    fmt::print(&mut out, value).map_err(|error| CallError::new(error.to_string()))?;
    Ok(out)
}

/// Returns the text that a value stands for: strings and bytes as they are, what has a
/// `String` method as that says, all else as `%v`.
pub(super) fn text(value: &Value) -> Result<Text, CallError> {
    if let Value::Text(text) = value {
        return Ok(text.clone());
    }
    if let Value::Bytes(bytes) = value {
        return Ok(Text::from(bytes));
    }
    Ok(plain(value)?.into())
}

/// Returns the text in double quotes, escaped.
pub(super) fn quoted(text: &[u8]) -> Vec<u8> {
    golang::strconv::quote(text).into_bytes()
}

/// Counts what writing the value will make at least, before it is written: a value that
/// contains another one twice, which contains another one twice and so on, is small in
/// memory and endless on paper.
pub(super) fn charge(context: &mut dyn Context, value: &Value) -> Result<(), CallError> {
    weigh(context, value, 0)
}

fn weigh(context: &mut dyn Context, value: &Value, depth: usize) -> Result<(), CallError> {
    if depth > MAX_NESTING {
        return Err(CallError::new(format!(
            "value is nested more than {MAX_NESTING} levels deep or holds itself"
        )));
    }
    context.charge(1)?;
    if let Value::Text(text) = value {
        context.charge(text.len())?;
    } else if let Value::Bytes(bytes) = value {
        context.charge(bytes.len())?;
    } else if let Value::List(list) = value {
        for item in list.items().iter() {
            weigh(context, item, depth + 1)?;
        }
    } else if let Value::Map(map) = value {
        for (key, value) in map.entries().iter() {
            context.charge(key.len())?;
            weigh(context, value, depth + 1)?;
        }
    }
    Ok(())
}

//! `eq`, `ne`, `lt`, `le`, `gt`, `ge` and `not`: by kind, as Go compares.

use std::cmp::Ordering;

use golang::fmt::sprintf;

use crate::value::{CallError, Context, Function, Type, Value};

const PAIR: &[Type] = &[Type::Reflect; 2];

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("eq", PAIR, Type::Bool, eq),
    Function::new("ne", PAIR, Type::Bool, |_, args| pair(args, |a, b| Ok(!equal(a, b)?))),
    Function::new("lt", PAIR, Type::Bool, |_, args| pair(args, less)),
    Function::new("le", PAIR, Type::Bool, |_, args| pair(args, less_or_equal)),
    Function::new("gt", PAIR, Type::Bool, |_, args| pair(args, |a, b| Ok(!less_or_equal(a, b)?))),
    Function::new("ge", PAIR, Type::Bool, |_, args| pair(args, |a, b| Ok(!less(a, b)?))),
    Function::new("not", &[Type::Reflect], Type::Bool, |_, args| {
        Ok(Value::Bool(!args.first().is_some_and(Value::truth)))
    }),
];

/// A value of a kind that can be compared.
enum Basic {
    Bool(bool),
    Complex(f64, f64),
    Float(f64),
    Int(i64),
    Text(crate::value::Text),
    Uint(u64),
}

fn basic(value: &Value) -> Option<Basic> {
    Some(match value {
        Value::Bool(truth) => Basic::Bool(*truth),
        Value::Int(n) | Value::Int64(n) | Value::Small(_, n) => Basic::Int(*n),
        Value::Uint(_, n) => Basic::Uint(*n),
        Value::Float(n) => Basic::Float(*n),
        Value::Complex(re, im) => Basic::Complex(*re, *im),
        Value::Text(text) => Basic::Text(text.clone()),
        Value::Object(object) => return basic(&object.underlying()?),
        Value::Nil | Value::Bytes(_) | Value::List(_) | Value::Map(_) => return None,
    })
}

fn incompatible(a: &Value, b: &Value) -> CallError {
    let (a, b) = (a.type_name(), b.type_name());
    CallError::new(format!("incompatible types for comparison: {a} and {b}"))
}

/// Returns how `format` prints a value in an error.
fn shown(format: &str, value: &Value) -> String {
    let text = sprintf(format.as_bytes(), std::slice::from_ref(value)).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

#[expect(clippy::float_cmp, reason = "Go compares floats exactly")]
fn equal(a: &Value, b: &Value) -> Result<bool, CallError> {
    match (basic(a), basic(b)) {
        (Some(Basic::Bool(a)), Some(Basic::Bool(b))) => Ok(a == b),
        (Some(Basic::Complex(ar, ai)), Some(Basic::Complex(br, bi))) => Ok(ar == br && ai == bi),
        (Some(Basic::Float(a)), Some(Basic::Float(b))) => Ok(a == b),
        (Some(Basic::Int(a)), Some(Basic::Int(b))) => Ok(a == b),
        (Some(Basic::Text(a)), Some(Basic::Text(b))) => Ok(a == b),
        (Some(Basic::Uint(a)), Some(Basic::Uint(b))) => Ok(a == b),
        (Some(Basic::Int(int)), Some(Basic::Uint(uint)))
        | (Some(Basic::Uint(uint)), Some(Basic::Int(int))) => {
            Ok(u64::try_from(int).is_ok_and(|int| int == uint))
        }
        (None, None) => equal_whole(a, b),
        (Some(_), Some(_)) => Err(incompatible(a, b)),
        (Some(_), None) | (None, Some(_)) => {
            if a.is_nil() || b.is_nil() {
                Ok(false)
            } else {
                Err(incompatible(a, b))
            }
        }
    }
}

/// Compares values of other kinds, which can be done for few.
fn equal_whole(a: &Value, b: &Value) -> Result<bool, CallError> {
    if a.kind() != b.kind() && !a.is_nil() && !b.is_nil() {
        let message = format!(
            "non-comparable types {}: {}, {}: {}",
            shown("%s", a),
            a.type_name(),
            b.type_name(),
            shown("%v", b)
        );
        return Err(CallError::new(message));
    }
    let nil = |value: &Value| {
        value.is_nil()
            || value.as_list().is_some_and(crate::value::List::is_nil)
            || value.as_map().is_some_and(crate::value::Map::is_nil)
    };
    if nil(a) || nil(b) {
        return Ok(nil(a) == nil(b));
    }
    if matches!(b, Value::List(_) | Value::Map(_) | Value::Bytes(_)) {
        return Err(CallError::new(format!("non-comparable type {}: {}", shown("%s", b), b.type_name())));
    }
    // Pointers are equal if they point to the same.
    if let (Value::Object(a), Value::Object(b)) = (a, b)
        && a.type_name().starts_with('*')
    {
        return Ok(std::rc::Rc::ptr_eq(a, b));
    }
    Ok(a.deep_equal(b))
}

/// Orders two values; `None` for floats of which one is not a number.
fn order(a: &Value, b: &Value) -> Result<Option<Ordering>, CallError> {
    let invalid = || CallError::new("invalid type for comparison");
    let left = basic(a).ok_or_else(invalid)?;
    let right = basic(b).ok_or_else(invalid)?;
    match (left, right) {
        (Basic::Int(a), Basic::Int(b)) => Ok(Some(a.cmp(&b))),
        (Basic::Uint(a), Basic::Uint(b)) => Ok(Some(a.cmp(&b))),
        (Basic::Int(a), Basic::Uint(b)) => Ok(Some(i128::from(a).cmp(&i128::from(b)))),
        (Basic::Uint(a), Basic::Int(b)) => Ok(Some(i128::from(a).cmp(&i128::from(b)))),
        (Basic::Float(a), Basic::Float(b)) => Ok(a.partial_cmp(&b)),
        (Basic::Text(a), Basic::Text(b)) => Ok(Some(a.cmp(&b))),
        (Basic::Bool(_), Basic::Bool(_)) | (Basic::Complex(..), Basic::Complex(..)) => Err(invalid()),
        _ => Err(incompatible(a, b)),
    }
}

fn less(a: &Value, b: &Value) -> Result<bool, CallError> {
    Ok(order(a, b)? == Some(Ordering::Less))
}

fn less_or_equal(a: &Value, b: &Value) -> Result<bool, CallError> {
    Ok(less(a, b)? || equal(a, b)?)
}

fn eq(_: &mut dyn Context, args: &[Value]) -> Result<Value, CallError> {
    let Some((first, others)) = args.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Err(CallError::new("missing argument for comparison"));
    };
    for other in others {
        if equal(first, other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

/// Applies a comparison to the two arguments.
fn pair(
    args: &[Value],
    compare: impl Fn(&Value, &Value) -> Result<bool, CallError>,
) -> Result<Value, CallError> {
    match args {
        [a, b] => compare(a, b).map(Value::Bool),
        _ => Ok(Value::Bool(false)),
    }
}

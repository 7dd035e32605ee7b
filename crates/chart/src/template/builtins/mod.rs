//! The functions of the language itself, and those that need the executor.

mod collection;
mod compare;
mod escape;
mod helm;
mod print;

use super::ast::Callee;
use crate::functions;
use crate::value::{Function, Kind, Value};

const GROUPS: &[&[Function]] =
    &[helm::FUNCTIONS, compare::FUNCTIONS, collection::FUNCTIONS, print::FUNCTIONS, escape::FUNCTIONS];

/// Returns what `name` calls; the functions of Helm hide those of the language.
pub(super) fn lookup(name: &str) -> Option<Callee> {
    if let Some(function) = functions::lookup(name) {
        return Some(Callee::Function(function));
    }
    match name {
        "and" => Some(Callee::And),
        "or" => Some(Callee::Or),
        "call" => Some(Callee::Call),
        "len" => Some(Callee::Len),
        _ => GROUPS
            .iter()
            .flat_map(|group| group.iter())
            .find(|function| function.name == name)
            .map(Callee::Function),
    }
}

/// Returns what Go's `reflect.Value.String` answers.
pub(super) fn reflected(value: &Value) -> String {
    match value {
        Value::Text(text) => text.lossy().into_owned(),
        Value::Nil => "<invalid Value>".to_owned(),
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
        | Value::Object(_) => format!("<{} Value>", value.type_name()),
    }
}

/// Returns the length of `value`, or Go's words for why it has none.
///
/// `boxed` says that a nil is behind an `interface {}`.
pub(super) fn length(value: &Value, boxed: bool) -> Result<Value, String> {
    let length = match value {
        Value::Nil if boxed => return Err("len of nil pointer".to_owned()),
        Value::Nil => return Err("reflect: call of reflect.Value.Type on zero Value".to_owned()),
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        Value::Object(object) => match object.underlying() {
            Some(value) if matches!(value.kind(), Kind::Slice | Kind::Map | Kind::String) => {
                return length(&value, boxed);
            }
            Some(_) | None => {
                let name = value.type_name();
                return Err(format!("len of type {}", name.strip_prefix('*').unwrap_or(name)));
            }
        },
        Value::Bool(_)
        | Value::Int(_)
        | Value::Int64(_)
        | Value::Small(..)
        | Value::Uint(..)
        | Value::Float(_)
        | Value::Complex(..) => return Err(format!("len of type {}", value.type_name())),
    };
    Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

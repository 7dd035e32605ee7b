//! The functions of the language itself, and those that need the executor.

mod collection;
mod compare;
mod escape;
mod helm;
mod print;

use super::ast::Callee;
use crate::functions;
use crate::value::{Function, Value};

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
    match value.as_text() {
        Some(text) => text.lossy().into_owned(),
        None if value.is_nil() => "<invalid Value>".to_owned(),
        None => format!("<{} Value>", value.type_name()),
    }
}

/// Returns the length of `value`, or Go's words for why it has none.
///
/// `boxed` says that a nil is behind an `interface {}`.
pub(super) fn length(value: &Value, boxed: bool) -> Result<Value, String> {
    let underlying = value.underlying();
    let length = if let Value::Text(text) = &underlying {
        text.len()
    } else if let Value::Bytes(bytes) = &underlying {
        bytes.len()
    } else if let Value::List(list) = &underlying {
        list.len()
    } else if let Value::Map(map) = &underlying {
        map.len()
    } else if value.is_nil() && boxed {
        return Err("len of nil pointer".to_owned());
    } else if value.is_nil() {
        return Err("reflect: call of reflect.Value.Type on zero Value".to_owned());
    } else {
        let name = value.type_name();
        return Err(format!("len of type {}", name.strip_prefix('*').unwrap_or(name)));
    };
    Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

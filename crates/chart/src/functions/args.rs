//! What the bodies of functions take out of their arguments.
//!
//! The caller has checked number and types against the signature; where an
//! argument is still not what was asked for, its zero value is taken.

use std::borrow::Cow;

use crate::value::{CallError, ListType, Map, MapType, Text, Type, Value};

pub(super) const ANY: Type = Type::Any;
pub(super) const BOOL: Type = Type::Bool;
pub(super) const FLOAT: Type = Type::Float64;
pub(super) const INT: Type = Type::Int;
pub(super) const INT64: Type = Type::Int64;
pub(super) const LIST: Type = Type::List(&ListType::ANY);
pub(super) const MAP: Type = Type::Map(&MapType::ANY);
pub(super) const STRING: Type = Type::String;
pub(super) const STRINGS: Type = Type::List(&ListType::STRINGS);
pub(super) const TIME: Type = Type::Named("time.Time");

/// What a body returns.
pub(super) type Answer = Result<Value, CallError>;

/// Returns the argument at `index`.
pub(super) fn any(args: &[Value], index: usize) -> &Value {
    const NIL: &Value = &Value::Nil;
    args.get(index).unwrap_or(NIL)
}

/// Returns the bytes of the string at `index`.
pub(super) fn bytes(args: &[Value], index: usize) -> &[u8] {
    any(args, index).as_text().map_or(&[], Text::as_bytes)
}

/// Returns the string at `index`, with U+FFFD for what is not UTF-8.
pub(super) fn string(args: &[Value], index: usize) -> Cow<'_, str> {
    any(args, index).as_text().map(Text::lossy).unwrap_or_default()
}

/// Returns the `int` at `index`.
pub(super) fn int(args: &[Value], index: usize) -> i64 {
    any(args, index).as_i64().unwrap_or_default()
}

/// Returns the map at `index`, a nil one if it is not given.
pub(super) fn map(args: &[Value], index: usize) -> Map {
    any(args, index).as_map().cloned().unwrap_or_else(|| Map::nil(&MapType::ANY))
}

/// Returns the arguments from `index` on.
pub(super) fn from(args: &[Value], index: usize) -> &[Value] {
    args.get(index..).unwrap_or_default()
}

/// Returns the error of a nil that was looked into.
pub(super) fn nil_dereference() -> CallError {
    CallError::new("runtime error: invalid memory address or nil pointer dereference")
}

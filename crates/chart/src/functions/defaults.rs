//! Choosing between values: what counts as empty, and what stands in for it.

use super::args::{ANY, BOOL, any, from};
use crate::value::{Function, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("all", &[ANY], BOOL, |_, args| Ok(args.iter().all(|v| !is_empty(v)).into())),
    Function::variadic("any", &[ANY], BOOL, |_, args| Ok(args.iter().any(|v| !is_empty(v)).into())),
    Function::variadic("coalesce", &[ANY], ANY, |_, args| {
        Ok(args.iter().find(|v| !is_empty(v)).cloned().unwrap_or_default())
    }),
    Function::variadic("default", &[ANY, ANY], ANY, |_, args| {
        let given = from(args, 1).first().filter(|given| !is_empty(given));
        Ok(given.unwrap_or(any(args, 0)).clone())
    }),
    Function::new("empty", &[ANY], BOOL, |_, args| Ok(is_empty(any(args, 0)).into())),
    Function::new("ternary", &[ANY, ANY, BOOL], ANY, |_, args| {
        let index = usize::from(!matches!(any(args, 2), Value::Bool(true)));
        Ok(any(args, index).clone())
    }),
];

/// Reports whether the value is zero, false, nil or has no elements; structs never are.
pub(super) fn is_empty(value: &Value) -> bool {
    !value.truth()
}

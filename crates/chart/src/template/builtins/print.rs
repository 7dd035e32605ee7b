//! `print`, `printf` and `println`.

use golang::fmt;

use crate::value::{CallError, Context, Function, Type, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("print", &[Type::Any], Type::String, print),
    Function::variadic("printf", &[Type::String, Type::Any], Type::String, printf),
    Function::variadic("println", &[Type::Any], Type::String, println),
];

fn text(context: &mut dyn Context, printed: Result<Vec<u8>, fmt::PrintError>) -> Result<Value, CallError> {
    let text = printed.map_err(|error| CallError::new(error.to_string()))?;
    context.charge(text.len())?;
    Ok(Value::text(text))
}

fn print(context: &mut dyn Context, args: &[Value]) -> Result<Value, CallError> {
    text(context, fmt::sprint(args))
}

fn printf(context: &mut dyn Context, args: &[Value]) -> Result<Value, CallError> {
    let Some((Value::Text(format), values)) = args.split_first() else {
        return Ok(Value::Nil);
    };
    text(context, fmt::sprintf(format, values))
}

fn println(context: &mut dyn Context, args: &[Value]) -> Result<Value, CallError> {
    text(context, fmt::sprintln(args))
}

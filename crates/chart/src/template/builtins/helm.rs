//! `include`, `tpl`, `required` and `fail`.

use crate::call::{CallError, Function};
use crate::template::Context;
use crate::value::{Text, Type, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("include", &[Type::String, Type::Any], Type::String, include),
    Function::new("tpl", &[Type::String, Type::Any], Type::String, tpl),
    Function::new("required", &[Type::String, Type::Any], Type::Any, required),
    Function::new("fail", &[Type::String], Type::String, fail),
];

fn include(context: &mut Context<'_>, args: &[Value]) -> Result<Value, CallError> {
    let [Value::Text(name), data] = args else {
        return Ok(Value::Nil);
    };
    context.execute_template(&name.lossy(), data).map(Value::Text)
}

fn tpl(context: &mut Context<'_>, args: &[Value]) -> Result<Value, CallError> {
    let [Value::Text(text), data] = args else {
        return Ok(Value::Nil);
    };
    context.parse_and_execute(text, data).map(Value::Text)
}

fn required(_: &mut Context<'_>, args: &[Value]) -> Result<Value, CallError> {
    let [Value::Text(message), value] = args else {
        return Ok(Value::Nil);
    };
    let missing = value.is_nil() || value.as_text().is_some_and(Text::is_empty);
    if missing { Err(refused(message)) } else { Ok(value.clone()) }
}

fn fail(_: &mut Context<'_>, args: &[Value]) -> Result<Value, CallError> {
    match args {
        [Value::Text(message)] => Err(refused(message)),
        _ => Ok(Value::Nil),
    }
}

fn refused(message: &Text) -> CallError {
    let message = message.lossy().into_owned();
    CallError::Refused { text: message.clone(), message }
}

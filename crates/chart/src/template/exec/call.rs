//! Calls of functions and methods.

use super::super::ast::{Callee, Expr};
use super::super::builtins;
use super::super::error::ExecError;
use super::super::location::Location;
use super::{Exec, Item};
use crate::value::{CallError, Method, Signature, Type, Value};

/// What a function or method is called with.
pub(super) struct Call<'t, 'd> {
    /// The dot that the arguments are evaluated with.
    pub(super) dot: &'d Item,
    /// The node that is blamed if the function fails.
    pub(super) blamed: Location<'t>,
    pub(super) args: &'t [Expr],
    /// The result of the command before, which is the last argument.
    pub(super) last: Option<Item>,
}

impl<'t> Exec<'t, '_, '_> {
    pub(super) fn call_function(&mut self, callee: Callee, call: Call<'t, '_>) -> Result<Item, ExecError> {
        match callee {
            Callee::And => self.until("and", false, call),
            Callee::Or => self.until("or", true, call),
            Callee::Call => self.call_value(call),
            Callee::Len => self.length(call),
            Callee::Function(function) => {
                let blamed = call.blamed;
                let args = self.arguments(function.name, &function.signature, call)?;
                self.context.step().map_err(|error| self.call_error(error))?;
                let result = (function.body)(self.context, &args);
                self.result(function.name, &function.signature, blamed, result)
            }
        }
    }

    pub(super) fn call_method(
        &mut self,
        method: &'static Method,
        receiver: &Value,
        call: Call<'t, '_>,
    ) -> Result<Item, ExecError> {
        let blamed = call.blamed;
        let args = self.arguments(method.name, &method.signature, call)?;
        self.context.step().map_err(|error| self.call_error(error))?;
        let result = (method.body)(self.context, receiver, &args);
        self.result(method.name, &method.signature, blamed, result)
    }

    fn result(
        &mut self,
        name: &str,
        signature: &Signature,
        blamed: Location<'t>,
        result: Result<Value, CallError>,
    ) -> Result<Item, ExecError> {
        match result {
            Ok(value) => Ok(Item { value, boxed: signature.result.is_interface() }),
            Err(error) => {
                self.at = Some(blamed);
                let tell = |text: &str| {
                    super::tell(self.template, self.at, &format!("error calling {name}: {text}"))
                };
                Err(ExecError::from_call(error, tell))
            }
        }
    }

    /// Evaluates the arguments of a call and checks their number and types.
    fn arguments(
        &mut self,
        name: &str,
        signature: &Signature,
        call: Call<'t, '_>,
    ) -> Result<Vec<Value>, ExecError> {
        let given = call.args.len() + usize::from(call.last.is_some());
        let params = signature.params.len();
        if signature.variadic {
            let least = params.saturating_sub(1);
            if given < least {
                let given = call.args.len();
                let message = format!("wrong number of args for {name}: want at least {least} got {given}");
                return Err(self.error(&message));
            }
        } else if given != params {
            return Err(self.error(&format!("wrong number of args for {name}: want {params} got {given}")));
        }
        let mut values = Vec::with_capacity(given);
        for (index, arg) in call.args.iter().enumerate() {
            let wanted = signature.param(index);
            values.push(self.argument(call.dot, wanted, arg)?.value);
        }
        if let Some(last) = call.last {
            values.push(self.checked(last, signature.param(given - 1))?.value);
        }
        Ok(values)
    }

    /// Evaluates arguments until one is as true as `wanted`, and returns the last one.
    fn until(&mut self, name: &str, wanted: bool, call: Call<'t, '_>) -> Result<Item, ExecError> {
        if call.args.is_empty() && call.last.is_none() {
            return Err(self.error(&format!("wrong number of args for {name}: want at least 1 got 0")));
        }
        let mut item = Item::none();
        for arg in call.args {
            item = self.argument(call.dot, Some(Type::Reflect), arg)?;
            if item.value.truth() == wanted {
                return Ok(item);
            }
        }
        Ok(call.last.unwrap_or(item))
    }

    fn length(&mut self, call: Call<'t, '_>) -> Result<Item, ExecError> {
        let given = call.args.len() + usize::from(call.last.is_some());
        let item = match (call.args, call.last) {
            ([arg], None) => self.argument(call.dot, Some(Type::Reflect), arg)?,
            ([], Some(last)) => last,
            _ => return Err(self.error(&format!("wrong number of args for len: want 1 got {given}"))),
        };
        match builtins::length(&item.value, item.boxed) {
            Ok(length) => Ok(Item::bare(length)),
            Err(message) => {
                self.at = Some(call.blamed);
                Err(self.error(&format!("error calling len: {message}")))
            }
        }
    }

    /// `call`: no value of a chart is a function, so this can only fail.
    fn call_value(&mut self, call: Call<'t, '_>) -> Result<Item, ExecError> {
        let name = match (call.args.first(), &call.last) {
            (Some(arg), _) => Location::Expr(arg).text(self.tree),
            (None, Some(item)) => builtins::reflected(&item.value),
            (None, None) => {
                return Err(self.error("wrong number of args for call: want at least 1 got 0"));
            }
        };
        let blamed = call.blamed;
        let mut values = Vec::new();
        for arg in call.args {
            values.push(self.argument(call.dot, Some(Type::Reflect), arg)?.value);
        }
        values.extend(call.last.map(|item| item.value));
        self.at = Some(blamed);
        let function = values.first().cloned().unwrap_or_default();
        Err(self.error(&if function.is_nil() {
            "error calling call: call of nil".to_owned()
        } else {
            format!("error calling call: non-function {name} of type {}", function.type_name())
        }))
    }
}

//! Fields of structs, keys of maps, and methods.

use std::sync::Arc;

use super::super::error::ExecError;
use super::call::Call;
use super::{Exec, Item};
use crate::value::{Method, Value};

impl<'t> Exec<'t, '_, '_> {
    /// Follows `fields` from `item`; only the last one may get arguments.
    pub(super) fn field_chain(
        &mut self,
        mut item: Item,
        fields: &'t [Arc<str>],
        call: Call<'t, '_>,
    ) -> Result<Item, ExecError> {
        let Some((last, before)) = fields.split_last() else {
            return Ok(item);
        };
        for field in before {
            let plain = Call { dot: call.dot, blamed: call.blamed, args: &[], last: None };
            item = self.field(&item, field, plain)?;
        }
        self.field(&item, last, call)
    }

    fn field(&mut self, item: &Item, name: &str, call: Call<'t, '_>) -> Result<Item, ExecError> {
        if !item.is_valid() {
            if self.context.is_strict() {
                return Err(self.error(&format!("nil data; no entry for key {name:?}")));
            }
            return Ok(Item::none());
        }
        if item.value.is_nil() {
            return Err(self.error(&format!("nil pointer evaluating {}.{name}", item.type_name())));
        }
        if let Some(method) = methods(&item.value).iter().find(|method| method.name == name) {
            return self.call_method(method, &item.value, call);
        }
        let has_arguments = !call.args.is_empty() || call.last.is_some();
        let value = match &item.value {
            Value::Object(object) => match object.field(name) {
                Some(_) if has_arguments => {
                    let message = format!("{name} has arguments but cannot be invoked as function");
                    return Err(self.error(&message));
                }
                Some(value) => return Ok(Item { value, boxed: object.field_is_interface(name) }),
                None => object.underlying().unwrap_or_default(),
            },
            Value::Map(_) => item.value.clone(),
            Value::Nil
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Int64(_)
            | Value::Small(..)
            | Value::Uint(..)
            | Value::Float(_)
            | Value::Complex(..)
            | Value::Text(_)
            | Value::Bytes(_)
            | Value::List(_) => Value::Nil,
        };
        let Value::Map(map) = value else {
            return Err(self.error(&format!("can't evaluate field {name} in type {}", item.type_name())));
        };
        if has_arguments {
            return Err(self.error(&format!("{name} is not a method but has arguments")));
        }
        let element = map.class().element;
        match map.get(name) {
            Some(value) => Ok(Item { value, boxed: element.is_interface() }),
            None if self.context.is_strict() => {
                Err(self.error(&format!("map has no entry for key {name:?}")))
            }
            None => Ok(Item { value: element.zero(), boxed: element.is_interface() }),
        }
    }
}

/// Returns the methods of a value's type.
fn methods(value: &Value) -> &'static [Method] {
    match value {
        Value::List(list) => list.class().methods,
        Value::Map(map) => map.class().methods,
        Value::Object(object) => object.methods(),
        Value::Nil
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Int64(_)
        | Value::Small(..)
        | Value::Uint(..)
        | Value::Float(_)
        | Value::Complex(..)
        | Value::Text(_)
        | Value::Bytes(_) => &[],
    }
}

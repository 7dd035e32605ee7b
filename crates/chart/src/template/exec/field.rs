//! Fields of structs, keys of maps, and methods.

use super::super::ast::Span;
use super::super::error::ExecError;
use super::call::Call;
use super::{Exec, Item};
use crate::value::{Method, Value};

impl<'t> Exec<'t, '_, '_> {
    /// Follows `fields` from `item`; only the last one may get arguments.
    pub(super) fn field_chain(
        &mut self,
        mut item: Item,
        fields: Span,
        call: Call<'t, '_>,
    ) -> Result<Item, ExecError> {
        let mut fields = self.tree.fields(fields);
        let Some(mut field) = fields.next() else {
            return Ok(item);
        };
        for next in fields {
            let plain = Call { dot: call.dot, blamed: call.blamed, args: &[], last: None };
            item = self.field(&item, field, plain)?;
            field = next;
        }
        self.field(&item, field, call)
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
        if let Some(method) = method(&item.value, name) {
            return self.call_method(method, &item.value, call);
        }
        let has_arguments = !call.args.is_empty() || call.last.is_some();
        if let Value::Object(object) = &item.value
            && let Some(value) = object.field(name)
        {
            if has_arguments {
                let message = format!("{name} has arguments but cannot be invoked as function");
                return Err(self.error(&message));
            }
            return Ok(Item { value, boxed: object.field_is_interface(name) });
        }
        let Value::Map(map) = item.value.underlying() else {
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

/// Returns the method `name` of a value's type.
fn method(value: &Value, name: &str) -> Option<&'static Method> {
    if let Value::Object(object) = value {
        return object.method(name);
    }
    let methods = value.as_list().map(|list| list.class().methods);
    let methods = methods.or_else(|| value.as_map().map(|map| map.class().methods));
    methods.unwrap_or_default().iter().find(|method| method.name == name)
}

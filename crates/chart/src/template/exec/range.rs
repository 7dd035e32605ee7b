//! Loops.

use golang::fmt::sprint;

use super::super::ast::Branch;
use super::super::error::ExecError;
use super::{Exec, Flow, Item};
use crate::value::{IntType, UintType, Value};

impl<'t> Exec<'t, '_, '_> {
    pub(super) fn range(&mut self, dot: &Item, at: u32) -> Result<Flow, ExecError> {
        let Some(branch) = self.tree.branch(at) else { return Ok(Flow::Next) };
        self.context.check_stack().map_err(|error| self.call_error(error))?;
        let scope = self.variables.len();
        let item = self.pipeline(dot, &branch.pipe)?;
        let some = self.iterate(&item.value.underlying(), branch)?;
        let flow = match (branch.otherwise, some) {
            (Some(otherwise), false) => self.list(dot, otherwise)?,
            (Some(_) | None, _) => Flow::Next,
        };
        self.variables.truncate(scope);
        Ok(flow)
    }

    /// Executes the body for each element; returns whether there was one.
    fn iterate(&mut self, value: &Value, branch: &'t Branch) -> Result<bool, ExecError> {
        match value {
            Value::Nil => Ok(false),
            Value::Int(count) => self.count(*count, branch, Value::Int),
            Value::Int64(count) => self.count(*count, branch, Value::Int64),
            Value::Small(kind, count) => {
                let kind: IntType = *kind;
                self.count(*count, branch, |n| Value::Small(kind, n))
            }
            Value::Uint(kind, count) => {
                let kind: UintType = *kind;
                let count = i64::try_from(*count).unwrap_or(i64::MAX);
                self.count(count, branch, |n| Value::Uint(kind, n.unsigned_abs()))
            }
            Value::List(list) => {
                let boxed = list.class().element.is_interface();
                let items = list.items();
                for (index, item) in items.iter().enumerate() {
                    let index = Item::bare(Value::Int(i64::try_from(index).unwrap_or(i64::MAX)));
                    if self.once(branch, index, &Item { value: item.clone(), boxed })? == Flow::Break {
                        break;
                    }
                }
                Ok(!items.is_empty())
            }
            Value::Bytes(bytes) => {
                for (index, byte) in bytes.iter().enumerate() {
                    let index = Item::bare(Value::Int(i64::try_from(index).unwrap_or(i64::MAX)));
                    let byte = Item::bare(Value::Uint(UintType::Uint8, u64::from(*byte)));
                    if self.once(branch, index, &byte)? == Flow::Break {
                        break;
                    }
                }
                Ok(!bytes.is_empty())
            }
            Value::Map(map) => {
                let boxed = map.class().element.is_interface();
                let entries = map.entries();
                for (key, value) in entries.iter() {
                    let key = Item::bare(Value::text(&**key));
                    if self.once(branch, key, &Item { value: value.clone(), boxed })? == Flow::Break {
                        break;
                    }
                }
                Ok(!entries.is_empty())
            }
            Value::Bool(_) | Value::Float(_) | Value::Complex(..) | Value::Text(_) | Value::Object(_) => {
                let shown = sprint(std::slice::from_ref(value)).unwrap_or_default();
                let shown = String::from_utf8_lossy(&shown);
                Err(self.error(&format!("range can't iterate over {shown}")))
            }
        }
    }

    fn count(
        &mut self,
        count: i64,
        branch: &'t Branch,
        number: impl Fn(i64) -> Value,
    ) -> Result<bool, ExecError> {
        if branch.pipe.variables.names().len() > 1 {
            return Err(self.error(&format!("can't use {count} to iterate over more than one variable")));
        }
        for n in 0..count {
            if self.once(branch, Item::none(), &Item::bare(number(n)))? == Flow::Break {
                break;
            }
        }
        Ok(count > 0)
    }

    /// Executes the body of a `range` for one element.
    fn once(&mut self, branch: &'t Branch, index: Item, element: &Item) -> Result<Flow, ExecError> {
        self.context.step().map_err(|error| self.call_error(error))?;
        let mark = self.variables.len();
        match (branch.pipe.variables.names(), branch.pipe.assign) {
            ([], _) => {}
            ([only], true) => self.assign(*only, element.clone())?,
            ([first, second, ..], true) => {
                self.assign(*first, index)?;
                self.assign(*second, element.clone())?;
            }
            (declared, false) => {
                let mut last = self.variables.iter_mut().rev();
                if let Some((_, variable)) = last.next() {
                    *variable = element.clone();
                }
                if declared.len() > 1
                    && let Some((_, variable)) = last.next()
                {
                    *variable = index;
                }
            }
        }
        let flow = self.list(element, branch.then)?;
        self.variables.truncate(mark);
        Ok(flow)
    }
}

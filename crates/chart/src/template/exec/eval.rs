//! Pipelines, commands and arguments.

use super::super::ast::{Callee, Command, Expr, Pipe, Span};
use super::super::error::ExecError;
use super::super::location::Location;
use super::super::number::Number;
use super::call::Call;
use super::{Exec, Item};
use crate::value::{IntType, Text, Type, UintType, Value};

impl<'t> Exec<'t, '_, '_> {
    pub(super) fn pipeline(&mut self, dot: &Item, pipe: &'t Pipe) -> Result<Item, ExecError> {
        self.at = Some(Location::Pipe(pipe));
        let mut last = None;
        for command in self.tree.commands(pipe.commands) {
            let mut item = self.command(dot, command, last)?;
            // What is behind an interface comes out of it.
            item.boxed = false;
            last = Some(item);
        }
        let item = last.unwrap_or_default();
        for variable in pipe.variables.names() {
            if pipe.assign {
                self.assign(*variable, item.clone())?;
            } else {
                self.variables.push((*variable, item.clone()));
            }
        }
        Ok(item)
    }

    fn command(&mut self, dot: &Item, command: &'t Command, last: Option<Item>) -> Result<Item, ExecError> {
        let Some((first, args)) = self.tree.operands(command) else {
            return Ok(Item::none());
        };
        let has_arguments = !args.is_empty() || last.is_some();
        let call = Call { dot, blamed: Location::Expr(first), args, last };
        match first {
            Expr::Field { fields, .. } => {
                self.at = Some(Location::Expr(first));
                self.field_chain(dot.clone(), *fields, call)
            }
            Expr::Chain { base, fields, .. } => self.chain(first, *base, *fields, call),
            Expr::Function { callee, .. } => {
                self.function(first, *callee, Call { blamed: Location::Command(command), ..call })
            }
            Expr::Pipe(pipe) => {
                self.refuse_arguments(first, has_arguments)?;
                self.nested(dot, pipe)
            }
            Expr::Variable { name, fields, .. } => {
                self.at = Some(Location::Expr(first));
                let item = self.variable(*name)?.clone();
                if fields.is_empty() {
                    self.refuse_arguments(first, has_arguments)?;
                }
                self.field_chain(item, *fields, call)
            }
            Expr::Bool { .. }
            | Expr::Dot { .. }
            | Expr::Nil { .. }
            | Expr::Number { .. }
            | Expr::Text { .. } => {
                self.at = Some(Location::Expr(first));
                self.refuse_arguments(first, has_arguments)?;
                self.constant(dot, first)
            }
        }
    }

    /// Evaluates a pipeline in parentheses.
    fn nested(&mut self, dot: &Item, pipe: &'t Pipe) -> Result<Item, ExecError> {
        self.context.check_stack().map_err(|error| self.call_error(error))?;
        self.context.step().map_err(|error| self.call_error(error))?;
        self.pipeline(dot, pipe)
    }

    fn refuse_arguments(&self, first: &'t Expr, has_arguments: bool) -> Result<(), ExecError> {
        if !has_arguments {
            return Ok(());
        }
        let first = Location::Expr(first).text(self.tree);
        Err(self.error(&format!("can't give argument to non-function {first}")))
    }

    fn constant(&mut self, dot: &Item, expr: &'t Expr) -> Result<Item, ExecError> {
        Ok(match expr {
            Expr::Bool { value, .. } => Item::bare(Value::Bool(*value)),
            Expr::Dot { .. } => dot.clone(),
            Expr::Nil { .. } => return Err(self.error("nil is not a command")),
            Expr::Number { number, .. } => match self.tree.number(*number) {
                Some(number) => Item::bare(self.ideal(number)?),
                None => Item::none(),
            },
            Expr::Text { text, quoted, .. } => {
                Item::bare(Value::Text(Text::from(&self.tree.literal(*text, *quoted))))
            }
            Expr::Chain { .. }
            | Expr::Field { .. }
            | Expr::Function { .. }
            | Expr::Pipe(_)
            | Expr::Variable { .. } => {
                let text = Location::Expr(expr).text(self.tree);
                return Err(self.error(&format!("can't evaluate command {text:?}")));
            }
        })
    }

    /// Returns the value of a number where nothing asks for a type.
    fn ideal(&self, number: &Number) -> Result<Value, ExecError> {
        if let Some((re, im)) = number.complex {
            return Ok(Value::Complex(re, im));
        }
        if let Some(float) = number.float.filter(|_| number.looks_like_float()) {
            return Ok(Value::Float(float));
        }
        match number.int {
            Some(int) => Ok(Value::Int(int)),
            None => Err(self.error(&format!("{} overflows int", number.text))),
        }
    }

    fn chain(
        &mut self,
        chain: &'t Expr,
        base: u32,
        fields: Span,
        call: Call<'t, '_>,
    ) -> Result<Item, ExecError> {
        self.at = Some(Location::Expr(chain));
        let item = match self.tree.expr(base) {
            Some(base) => self.argument(call.dot, None, base)?,
            None => Item::none(),
        };
        self.field_chain(item, fields, call)
    }

    pub(super) fn function(
        &mut self,
        expr: &'t Expr,
        callee: Callee,
        call: Call<'t, '_>,
    ) -> Result<Item, ExecError> {
        self.at = Some(Location::Expr(expr));
        self.call_function(callee, call)
    }

    /// Evaluates an argument; without a type it may be anything.
    pub(super) fn argument(
        &mut self,
        dot: &Item,
        wanted: Option<Type>,
        expr: &'t Expr,
    ) -> Result<Item, ExecError> {
        self.at = Some(Location::Expr(expr));
        let call = Call { dot, blamed: Location::Expr(expr), args: &[], last: None };
        let item = match expr {
            Expr::Dot { .. } => dot.clone(),
            Expr::Nil { .. } => {
                let wanted = wanted.unwrap_or(Type::Any);
                return match nil_of(wanted) {
                    Some(item) => Ok(item),
                    None => Err(self.error(&format!("cannot assign nil to {}", wanted.name()))),
                };
            }
            Expr::Field { fields, .. } => self.field_chain(dot.clone(), *fields, call)?,
            Expr::Variable { name, fields, .. } => {
                let item = self.variable(*name)?.clone();
                self.field_chain(item, *fields, call)?
            }
            Expr::Pipe(pipe) => self.nested(dot, pipe)?,
            Expr::Function { callee, .. } => self.function(expr, *callee, call)?,
            Expr::Chain { base, fields, .. } => self.chain(expr, *base, *fields, call)?,
            Expr::Bool { .. } | Expr::Number { .. } | Expr::Text { .. } => {
                return self.literal(dot, wanted.unwrap_or(Type::Any), expr).map(Item::bare);
            }
        };
        self.checked(item, wanted)
    }

    /// Evaluates a literal as the type that is asked for.
    fn literal(&mut self, dot: &Item, wanted: Type, expr: &'t Expr) -> Result<Value, ExecError> {
        let number = if let Expr::Number { number, .. } = expr { self.tree.number(*number) } else { None };
        let int = number.and_then(|number| number.int);
        let uint = number.and_then(|number| number.uint);
        let found = match wanted {
            Type::Any | Type::Reflect => return Ok(self.constant(dot, expr)?.value),
            Type::Bool => {
                if let Expr::Bool { value, .. } = expr {
                    Some(Value::Bool(*value))
                } else {
                    None
                }
            }
            Type::String => {
                if let Expr::Text { text, quoted, .. } = expr {
                    Some(Value::Text(Text::from(&self.tree.literal(*text, *quoted))))
                } else {
                    None
                }
            }
            Type::Int => int.map(Value::Int),
            Type::Int32 => int.map(|int| Value::Small(IntType::Int32, int << 32 >> 32)),
            Type::Int64 | Type::Named("time.Duration") => int.map(Value::Int64),
            // A number that is too great loses its upper bits.
            Type::Uint8 => uint.map(|uint| Value::Uint(UintType::Uint8, uint & u64::from(u8::MAX))),
            Type::Uint32 => uint.map(|uint| Value::Uint(UintType::Uint32, uint & u64::from(u32::MAX))),
            Type::Uint64 => uint.map(|uint| Value::Uint(UintType::Uint64, uint)),
            Type::Float64 => number.and_then(|number| number.float).map(Value::Float),
            Type::Bytes | Type::List(_) | Type::Map(_) | Type::Named(_) => None,
        };
        if let Some(value) = found {
            return Ok(value);
        }
        let text = Location::Expr(expr).text(self.tree);
        let message = match wanted {
            Type::Bool => format!("expected bool; found {text}"),
            Type::String => format!("expected string; found {text}"),
            Type::Int | Type::Int32 | Type::Int64 => format!("expected integer; found {text}"),
            Type::Uint8 | Type::Uint32 | Type::Uint64 => format!("expected unsigned integer; found {text}"),
            Type::Float64 => format!("expected float; found {text}"),
            Type::Any | Type::Reflect | Type::Bytes | Type::List(_) | Type::Map(_) | Type::Named(_) => {
                format!("can't handle {text} for arg of type {}", wanted.name())
            }
        };
        Err(self.error(&message))
    }

    /// Returns `item` as the type that is asked for.
    pub(super) fn checked(&self, item: Item, wanted: Option<Type>) -> Result<Item, ExecError> {
        let Some(wanted) = wanted else {
            return Ok(item);
        };
        if !item.is_valid() {
            return match nil_of(wanted) {
                Some(nil) => Ok(nil),
                None => Err(self.error(&format!("invalid value; expected {}", wanted.name()))),
            };
        }
        if matches!(wanted, Type::Any | Type::Reflect) {
            return Ok(item);
        }
        if !item.value.is_nil() && wanted.accepts(&item.value) {
            return Ok(Item::bare(assigned(item.value, wanted)));
        }
        let got = if item.value.is_nil() { item.type_name() } else { item.value.type_name() };
        Err(self.error(&format!("wrong type for value; expected {}; got {got}", wanted.name())))
    }
}

/// Returns `value` as it is after an assignment: a named map type is lost.
fn assigned(value: Value, wanted: Type) -> Value {
    match (value, wanted) {
        (Value::Map(map), Type::Map(class)) if map.class().name != class.name => {
            Value::Map(map.as_class(class))
        }
        (value, _) => value,
    }
}

/// Returns the nil of a type, if it has one.
fn nil_of(wanted: Type) -> Option<Item> {
    match wanted {
        Type::Any => Some(Item { value: Value::Nil, boxed: true }),
        Type::Reflect | Type::Bytes | Type::List(_) | Type::Map(_) => Some(Item::bare(wanted.zero())),
        Type::Named(name) if name.starts_with('*') => Some(Item::none()),
        Type::Bool
        | Type::Int
        | Type::Int32
        | Type::Int64
        | Type::Uint8
        | Type::Uint32
        | Type::Uint64
        | Type::Float64
        | Type::String
        | Type::Named(_) => None,
    }
}

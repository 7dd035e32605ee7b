//! Evaluates an expression, and counts what it costs.

use std::sync::Arc;

use crate::activation::Activation;
use crate::check;
use crate::cost::actual;
use crate::escape::RESERVED;
use crate::failure::Failure;
use crate::library;
use crate::tree::{Entry, Fold, Kind, Node};
use crate::value::{Key, List, Value};

/// One run of an expression.
pub(crate) struct Run<'a> {
    activation: &'a dyn Activation,
    /// The variables of loops, the innermost last.
    scopes: Vec<(Arc<str>, Value)>,
    limit: u64,
    pub(crate) cost: u64,
}

type Evaluated = Result<Value, Failure>;

impl<'a> Run<'a> {
    pub(crate) fn new(activation: &'a dyn Activation, limit: u64) -> Self {
        Self { activation, scopes: Vec::new(), limit, cost: 0 }
    }

    /// Adds to the cost.
    fn pay(&mut self, cost: u64) -> Result<(), Failure> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(Failure::cost()) } else { Ok(()) }
    }

    pub(crate) fn node(&mut self, node: &Node) -> Evaluated {
        match &node.kind {
            Kind::Literal(value) => Ok(value.clone()),
            Kind::Ident(name) => {
                self.pay(1)?;
                self.ident(name)
            }
            Kind::Select { operand, field, is_test } => self.select(node, operand, field, *is_test),
            Kind::Call { function, target, args } => self.call(node, function, target.as_deref(), args),
            Kind::List { items, optional } => self.list(items, optional),
            Kind::Map(entries) => self.map(entries),
            Kind::Struct { name, .. } => Err(Failure::other(format!("unknown type '{name}'"))),
            Kind::Fold(fold) => self.fold(fold),
        }
    }

    fn ident(&self, name: &Arc<str>) -> Evaluated {
        if let Some((_, value)) = self.scopes.iter().rev().find(|(variable, _)| variable == name) {
            return Ok(value.clone());
        }
        if let Some(value) = self.activation.variable(name) {
            return Ok(value);
        }
        let named = check::named(name).map(|_| Value::Type(Arc::clone(name)));
        named.ok_or_else(|| Failure::undeclared(name))
    }

    fn select(&mut self, node: &Node, operand: &Node, field: &Arc<str>, is_test: bool) -> Evaluated {
        if let Kind::Ident(name) = &operand.kind
            && !self.scopes.iter().any(|(variable, _)| variable == name)
        {
            if &**name == "variables"
                && let Some(value) = self.activation.composed(field)
            {
                self.pay(2)?;
                return if is_test { Ok(Value::Bool(true)) } else { value };
            }
            if let Some(value) = self.activation.variable(&format!("{name}.{field}")) {
                self.pay(1)?;
                return Ok(value);
            }
        }
        if let Some(name) = check::qualified(node)
            && check::named(&name).is_some()
        {
            return Ok(Value::Type(name.into()));
        }
        let value = self.node(operand)?;
        let key = Key::String(Arc::clone(field));
        if is_test {
            return Ok(Value::Bool(match &value {
                Value::Map(map) => map.contains_key(&key),
                Value::Optional(Some(value)) => matches!(&**value, Value::Map(map) if map.contains_key(&key)),
                _ => false,
            }));
        }
        self.pay(1)?;
        match &value {
            Value::Map(map) => {
                // Fields whose names the language keeps for itself have another name in objects.
                let escaped = || RESERVED.contains(&&**field).then(|| Key::text(&format!("__{field}__")));
                let found = map.get(&key).or_else(|| map.get(&escaped()?));
                found.cloned().ok_or_else(|| Failure::no_such_key(field))
            }
            Value::Optional(inner) => {
                library::optional_item(inner.as_deref(), &Value::String(Arc::clone(field)))
            }
            _ => Err(Failure::no_such_key(field)),
        }
    }

    fn call(&mut self, _node: &Node, function: &str, target: Option<&Node>, args: &[Node]) -> Evaluated {
        match (function, target, args) {
            ("_&&_", None, [a, b]) => return self.both(a, b, false),
            ("_||_", None, [a, b]) => return self.both(a, b, true),
            ("_?_:_", None, [condition, yes, no]) => {
                return match self.node(condition)? {
                    Value::Bool(true) => self.node(yes),
                    Value::Bool(false) => self.node(no),
                    other => Err(Failure::no_such_overload(function, vec![other.type_name().to_owned()])),
                };
            }
            ("@not_strictly_false", None, [condition]) => {
                self.pay(1)?;
                return match self.node(condition) {
                    Err(failure) if failure.ends_all() => Err(failure),
                    value => Ok(Value::Bool(!matches!(value, Ok(Value::Bool(false))))),
                };
            }
            ("or" | "orValue", Some(target), [other]) => {
                let value = self.node(target)?;
                self.pay(1)?;
                return match value {
                    Value::Optional(None) => self.node(other),
                    Value::Optional(Some(inner)) if function == "orValue" => Ok((*inner).clone()),
                    Value::Optional(_) => Ok(value),
                    other => Err(Failure::no_such_overload(function, vec![other.type_name().to_owned()])),
                };
            }
            ("_+_", None, [Node { kind: Kind::Ident(name), .. }, added]) => return self.add(name, added),
            _ => {}
        }
        let values = target.into_iter().chain(args).map(|arg| self.node(arg));
        let values = values.collect::<Result<Vec<Value>, Failure>>()?;
        self.apply(function, &values)
    }

    fn apply(&mut self, function: &str, values: &[Value]) -> Evaluated {
        // What can be known before is paid before, so that nothing large is made that can't be paid.
        self.pay(actual::before(function, values))?;
        if library::is_too_large(function, values) {
            return Err(Failure::cost());
        }
        let result = library::call(function, values, self.activation);
        let size = result.as_ref().map_or(1, Value::size);
        self.pay(actual::after(function, size))?;
        result
    }

    /// Adds to a variable. The list that a loop makes grows in its place.
    fn add(&mut self, name: &Arc<str>, added: &Node) -> Evaluated {
        self.pay(1)?;
        let own = self.scopes.iter().rposition(|(variable, _)| variable == name && is_result(variable));
        let Some(own) = own else {
            let values = [self.ident(name)?, self.node(added)?];
            return self.apply("_+_", &values);
        };
        let added = self.node(added)?;
        let before = self.scopes.get_mut(own).map(|(_, value)| std::mem::replace(value, Value::Null));
        match (before, added) {
            (Some(Value::List(list)), Value::List(new)) if list.kind == crate::value::ListKind::Atomic => {
                self.pay(1)?;
                let mut list = Arc::try_unwrap(list).unwrap_or_else(|shared| List::clone(&shared));
                list.items.extend(new.items.iter().cloned());
                Ok(Value::List(Arc::new(list)))
            }
            (before, added) => self.apply("_+_", &[before.unwrap_or(Value::Null), added]),
        }
    }

    /// `&&` and `||`: an error counts only if the other side does not decide.
    fn both(&mut self, a: &Node, b: &Node, decides: bool) -> Evaluated {
        let is_decided = |value: &Evaluated| matches!(value, Ok(Value::Bool(value)) if *value == decides);
        let first = self.node(a);
        if is_decided(&first) || first.as_ref().is_err_and(Failure::ends_all) {
            return first;
        }
        let second = self.node(b);
        if is_decided(&second) || second.as_ref().is_err_and(Failure::ends_all) {
            return second;
        }
        match (first?, second?) {
            (Value::Bool(_), Value::Bool(_)) => Ok(Value::Bool(!decides)),
            (a, b) => {
                let function = if decides { "_||_" } else { "_&&_" };
                let types = vec![a.type_name().to_owned(), b.type_name().to_owned()];
                Err(Failure::no_such_overload(function, types))
            }
        }
    }

    fn list(&mut self, items: &[Node], optional: &[usize]) -> Evaluated {
        self.pay(10)?;
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let value = self.node(item)?;
            match value {
                Value::Optional(inner) if optional.contains(&index) => {
                    list.extend(inner.map(|inner| (*inner).clone()));
                }
                value => list.push(value),
            }
        }
        Ok(Value::list(list))
    }

    fn map(&mut self, entries: &[Entry]) -> Evaluated {
        self.pay(30)?;
        let mut map = std::collections::BTreeMap::new();
        for entry in entries {
            let key = self.node(&entry.key)?;
            let key = Key::of(&key)
                .ok_or_else(|| Failure::other(format!("unsupported key type: {}", key.type_name())))?;
            let value = match self.node(&entry.value)? {
                Value::Optional(None) if entry.is_optional => continue,
                Value::Optional(Some(inner)) if entry.is_optional => (*inner).clone(),
                value => value,
            };
            map.insert(key, value);
        }
        Ok(Value::map(map))
    }

    fn fold(&mut self, fold: &Fold) -> Evaluated {
        let range = self.node(&fold.range)?;
        let init = self.node(&fold.init)?;
        let depth = self.scopes.len();
        self.scopes.push((Arc::clone(&fold.accumulator), init));
        let result = self.steps(fold, &range, depth);
        self.scopes.truncate(depth + 1);
        let result = result.and_then(|()| self.node(&fold.result));
        self.scopes.truncate(depth);
        result
    }

    fn steps(&mut self, fold: &Fold, range: &Value, depth: usize) -> Result<(), Failure> {
        let pairs: Box<dyn Iterator<Item = (Value, Value)> + '_> =
            match range {
                Value::List(list) => Box::new(list.items.iter().enumerate().map(|(index, item)| {
                    (Value::Int(i64::try_from(index).unwrap_or(i64::MAX)), item.clone())
                })),
                Value::Map(map) => Box::new(map.iter().map(|(key, value)| (key.value(), value.clone()))),
                other => {
                    let message = format!("got '{}', expected iterable type", go_name(other));
                    return Err(Failure::other(message));
                }
            };
        let is_list = matches!(range, Value::List(_));
        for (key, value) in pairs {
            match &fold.second {
                Some(second) => {
                    self.scopes.push((Arc::clone(&fold.variable), key));
                    self.scopes.push((Arc::clone(second), value));
                }
                None => self.scopes.push((Arc::clone(&fold.variable), if is_list { value } else { key })),
            }
            let goes_on = match self.node(&fold.condition) {
                Err(failure) if failure.ends_all() => return Err(failure),
                goes_on => !matches!(goes_on, Ok(Value::Bool(false))),
            };
            if !goes_on {
                break;
            }
            let step = self.node(&fold.step);
            self.scopes.truncate(depth + 1);
            let is_quantifier = matches!(&fold.step.kind, Kind::Call { function, .. } if matches!(&**function, "_&&_" | "_||_"));
            match step {
                Ok(value) => self.set(depth, value),
                // A later item may still decide.
                Err(failure) if is_quantifier && !failure.ends_all() => {
                    return self.undecided(fold, range, depth, failure);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Goes on with `all` and `exists` behind an error, which counts unless an item decides.
    fn undecided(
        &mut self,
        fold: &Fold,
        range: &Value,
        depth: usize,
        failure: Failure,
    ) -> Result<(), Failure> {
        let Kind::Call { function, args, .. } = &fold.step.kind else { return Err(failure) };
        let decides = &**function == "_||_";
        let Some(predicate) = args.last() else { return Err(failure) };
        let pairs: Vec<(Value, Value)> = match range {
            Value::List(list) => {
                let index = |index: usize| Value::Int(i64::try_from(index).unwrap_or(i64::MAX));
                list.items.iter().enumerate().map(|(at, item)| (index(at), item.clone())).collect()
            }
            Value::Map(map) => map.iter().map(|(key, value)| (key.value(), value.clone())).collect(),
            _ => return Err(failure),
        };
        let is_list = matches!(range, Value::List(_));
        for (key, value) in pairs {
            match &fold.second {
                Some(second) => {
                    self.scopes.push((Arc::clone(&fold.variable), key));
                    self.scopes.push((Arc::clone(second), value));
                }
                None => self.scopes.push((Arc::clone(&fold.variable), if is_list { value } else { key })),
            }
            self.pay(2)?;
            let found = self.node(predicate);
            self.scopes.truncate(depth + 1);
            match found {
                Ok(Value::Bool(found)) if found == decides => {
                    self.set(depth, Value::Bool(decides));
                    return Ok(());
                }
                Err(failure) if failure.ends_all() => return Err(failure),
                _ => {}
            }
        }
        Err(failure)
    }

    fn set(&mut self, place: usize, value: Value) {
        if let Some((_, slot)) = self.scopes.get_mut(place) {
            *slot = value;
        }
    }
}

/// Returns the name that the real server has for the type of a value that is no list and no map.
fn go_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::String(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Duration(_) => "types.Duration",
        _ => "types.Optional",
    }
}

fn is_result(name: &str) -> bool {
    name == crate::tree::RESULT
}

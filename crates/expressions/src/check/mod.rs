//! Checks the types of an expression before anything is evaluated, and finds out which forms of functions it calls.

mod declarations;
mod literals;
mod substitution;

use std::sync::Arc;

pub(crate) use declarations::is_function;
pub(crate) use literals::{parts, unusable};

use self::declarations::{MAX_PARAMS, overloads};
use self::substitution::Substitution;
use crate::environment::Environment;
use crate::tree::{Entry, Fold, Kind, Node, Tree};
use crate::types::Type;
use crate::value::{Opaque, Value};

/// What is known about an expression whose types fit.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    /// The type of each node, by its id.
    pub(crate) types: Vec<Type>,
    /// The forms that each call may have, by the id of its node.
    pub(crate) overloads: Vec<Vec<&'static str>>,
    pub(crate) output: Type,
}

/// Checks an expression. An error is the text that people get: each problem with its place.
pub(crate) fn check(tree: &Tree, environment: &Environment) -> Result<Checked, String> {
    let mut checker = Checker {
        environment,
        scopes: Vec::new(),
        substitution: Substitution::default(),
        types: vec![Type::Error; tree.ids],
        overloads: vec![Vec::new(); tree.ids],
        problems: Vec::new(),
    };
    checker.node(&tree.root);
    if checker.problems.is_empty() {
        let Checker { types, substitution, problems, .. } = &mut checker;
        let of = |node: &Node| types.get(node.id).map_or(Type::Error, |of| substitution.resolved(of));
        literals::problems(&tree.root, &of, problems);
        if problems.is_empty() {
            literals::mixed(&tree.root, &of, problems);
        }
    }
    if !checker.problems.is_empty() {
        let mut problems = checker.problems;
        problems.sort_by_key(|(at, _)| *at);
        let lines: Vec<String> = problems.iter().map(|(at, message)| tree.problem(*at, message)).collect();
        return Err(lines.join("\n"));
    }
    let types: Vec<Type> = checker.types.iter().map(|of| checker.substitution.resolved(of)).collect();
    let output = types.get(tree.root.id).cloned().unwrap_or(Type::Error);
    Ok(Checked { types, overloads: checker.overloads, output })
}

struct Checker<'a> {
    environment: &'a Environment,
    /// The variables of loops, the innermost last.
    scopes: Vec<(Arc<str>, Type)>,
    substitution: Substitution,
    types: Vec<Type>,
    overloads: Vec<Vec<&'static str>>,
    /// Where something is wrong, and what.
    problems: Vec<(usize, String)>,
}

impl Checker<'_> {
    fn node(&mut self, node: &Node) -> Type {
        let of = match &node.kind {
            Kind::Literal(value) => of_literal(value),
            Kind::Ident(name) => self.ident(node, name),
            Kind::Select { operand, field, is_test } => self.select(node, operand, field, *is_test),
            Kind::Call { function, target, args } => self.call(node, function, target.as_deref(), args),
            Kind::List { items, optional } => self.list(items, optional),
            Kind::Map(entries) => self.map(entries),
            Kind::Struct { name, fields } => {
                for field in fields {
                    self.node(&field.value);
                }
                self.undeclared(node, name)
            }
            Kind::Fold(fold) => self.fold(fold),
        };
        if let Some(slot) = self.types.get_mut(node.id) {
            *slot = of.clone();
        }
        of
    }

    fn problem(&mut self, node: &Node, message: String) -> Type {
        self.problems.push((node.at, message));
        Type::Error
    }

    fn undeclared(&mut self, node: &Node, name: &str) -> Type {
        self.problem(node, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn ident(&mut self, node: &Node, name: &Arc<str>) -> Type {
        if let Some((_, of)) = self.scopes.iter().rev().find(|(variable, _)| variable == name) {
            return of.clone();
        }
        if let Some(of) = self.environment.variable(name) {
            return of.clone();
        }
        match named(name) {
            Some(of) => Type::Type(of.into()),
            None => self.undeclared(node, name),
        }
    }

    fn select(&mut self, node: &Node, operand: &Node, field: &str, is_test: bool) -> Type {
        if let Some(of) = qualified(node).as_deref().and_then(named)
            && !is_test
        {
            return Type::Type(of.into());
        }
        let variable = qualified(node).and_then(|name| self.environment.variable(&name).cloned());
        if let Some(of) = variable {
            return of;
        }
        let of = self.node(operand);
        let of = self.field(node, &of, field);
        if is_test { Type::Bool } else { of }
    }

    /// Returns the type of a field of a value.
    fn field(&mut self, node: &Node, of: &Type, field: &str) -> Type {
        match self.substitution.resolved(of) {
            Type::Error => Type::Error,
            Type::Dyn | Type::Param(_) => Type::Dyn,
            Type::Map(_, value) => (*value).clone(),
            Type::Object(object) => match object.field(field) {
                Some(of) => of.clone(),
                None => self.problem(node, format!("undefined field '{field}'")),
            },
            Type::Optional(value) => Type::optional(self.field(node, &value, field)),
            Type::Opaque(library) if library.starts_with("kubernetes.") => {
                self.problem(node, format!("unexpected failed resolution of '{library}'"))
            }
            other => self.problem(node, format!("type '{other}' does not support field selection")),
        }
    }

    fn call(&mut self, node: &Node, function: &str, target: Option<&Node>, args: &[Node]) -> Type {
        if function == "_?._" {
            return self.optional_field(node, args);
        }
        if let ("_&&_" | "_||_", [a, b]) = (function, args) {
            for arg in [a, b] {
                let of = self.node(arg);
                self.expect(arg, &Type::Bool, &of);
            }
            let id = if function == "_&&_" { "logical_and" } else { "logical_or" };
            self.overloads.get_mut(node.id).into_iter().for_each(|found| found.push(id));
            return Type::Bool;
        }
        let types: Vec<Type> = target.into_iter().chain(args).map(|arg| self.node(arg)).collect();
        if !is_function(function) {
            return self.undeclared(node, function);
        }
        let mut result: Option<Type> = None;
        for overload in overloads(function) {
            if overload.is_member != target.is_some() || overload.params.len() != types.len() {
                continue;
            }
            let first = self.substitution.open(MAX_PARAMS);
            let params: Vec<Type> =
                overload.params.iter().map(|param| substitution::shifted(param, first)).collect();
            if !self.substitution.accepts_all(&types, &params) {
                continue;
            }
            if let Some(found) = self.overloads.get_mut(node.id) {
                found.push(overload.id);
            }
            let of = self.substitution.resolved(&substitution::shifted(&overload.result, first));
            result = Some(match result {
                Some(known) if known != of => Type::Dyn,
                _ => of,
            });
        }
        result.unwrap_or_else(|| {
            let shown: Vec<String> =
                types.iter().map(|of| self.substitution.resolved(of).to_string()).collect();
            let signature = match shown.split_first() {
                Some((of, rest)) if target.is_some() => format!("{of}.({})", rest.join(", ")),
                _ => format!("({})", shown.join(", ")),
            };
            let message = format!("found no matching overload for '{function}' applied to '{signature}'");
            self.problem(node, message)
        })
    }

    fn optional_field(&mut self, node: &Node, args: &[Node]) -> Type {
        let [operand, Node { kind: Kind::Literal(Value::String(field)), .. }] = args else {
            return self.problem(node, "unsupported optional field selection".to_owned());
        };
        let of = self.node(operand);
        let of = match self.substitution.resolved(&of) {
            Type::Optional(value) => (*value).clone(),
            of => of,
        };
        if let Some(found) = self.overloads.get_mut(node.id) {
            found.push("select_optional_field");
        }
        Type::optional(self.field(node, &of, field))
    }

    fn list(&mut self, items: &[Node], optional: &[usize]) -> Type {
        let mut element = None;
        for (index, item) in items.iter().enumerate() {
            let of = self.node(item);
            let of = if optional.contains(&index) { self.unwrapped(item, &of) } else { of };
            element = Some(self.joined(element, of));
        }
        Type::list(element.unwrap_or_else(|| self.substitution.fresh()))
    }

    fn map(&mut self, entries: &[Entry]) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            let key = self.node(&entry.key);
            keys = Some(self.joined(keys, key));
            let value = self.node(&entry.value);
            let value = if entry.is_optional { self.unwrapped(&entry.value, &value) } else { value };
            values = Some(self.joined(values, value));
        }
        let key = keys.unwrap_or_else(|| self.substitution.fresh());
        let value = values.unwrap_or_else(|| self.substitution.fresh());
        Type::map(key, value)
    }

    /// Returns the type of what a value that may be missing holds.
    fn unwrapped(&mut self, node: &Node, of: &Type) -> Type {
        match self.substitution.resolved(of) {
            Type::Optional(value) => (*value).clone(),
            Type::Dyn => Type::Dyn,
            other => {
                let expected = Type::optional(other.clone());
                self.problem(node, format!("expected type '{expected}' but found '{other}'"))
            }
        }
    }

    /// Returns the type that the items before and this one have together.
    fn joined(&mut self, before: Option<Type>, of: Type) -> Type {
        let Some(before) = before else { return of };
        if self.substitution.accepts(&of, &before) {
            let (a, b) = (self.substitution.resolved(&before), self.substitution.resolved(&of));
            return if substitution::is_open(&b) { b } else { a };
        }
        // What is mixed is told when all else fits.
        Type::Dyn
    }

    fn fold(&mut self, fold: &Fold) -> Type {
        let range = self.node(&fold.range);
        let accumulator = self.node(&fold.init);
        let (key, value) = match self.substitution.resolved(&range) {
            Type::List(element) => (Type::Int, (*element).clone()),
            Type::Map(key, value) => ((*key).clone(), (*value).clone()),
            Type::Dyn | Type::Error | Type::Param(_) => (Type::Dyn, Type::Dyn),
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.problem(&fold.range, message);
                (Type::Error, Type::Error)
            }
        };
        let is_list = matches!(self.substitution.resolved(&range), Type::List(_));
        let depth = self.scopes.len();
        self.scopes.push((Arc::clone(&fold.accumulator), accumulator.clone()));
        match &fold.second {
            Some(second) => {
                self.scopes.push((Arc::clone(&fold.variable), key));
                self.scopes.push((Arc::clone(second), value));
            }
            None => self.scopes.push((Arc::clone(&fold.variable), if is_list { value } else { key })),
        }
        let condition = self.node(&fold.condition);
        self.expect(&fold.condition, &Type::Bool, &condition);
        let step = self.node(&fold.step);
        self.expect(&fold.step, &accumulator, &step);
        self.scopes.truncate(depth + 1);
        let result = self.node(&fold.result);
        self.scopes.truncate(depth);
        self.substitution.resolved(&result)
    }

    fn expect(&mut self, node: &Node, expected: &Type, found: &Type) {
        if !self.substitution.accepts(found, expected) {
            let (expected, found) = (self.substitution.resolved(expected), self.substitution.resolved(found));
            self.problem(node, format!("expected type '{expected}' but found '{found}'"));
        }
    }
}

fn of_literal(value: &Value) -> Type {
    match value {
        Value::Bool(_) => Type::Bool,
        Value::Int(_) => Type::Int,
        Value::Uint(_) => Type::Uint,
        Value::Double(_) => Type::Double,
        Value::String(_) => Type::String,
        Value::Bytes(_) => Type::Bytes,
        Value::Opaque(Opaque::Quantity(_)) => Type::Opaque("kubernetes.Quantity"),
        _ => Type::Null,
    }
}

/// Returns the type that a name stands for in an expression.
pub(crate) fn named(name: &str) -> Option<Type> {
    const LIBRARIES: [&str; 7] = [
        "kubernetes.URL",
        "kubernetes.Quantity",
        "kubernetes.Semver",
        "kubernetes.NamedFormat",
        "kubernetes.authorization.Authorizer",
        "net.IP",
        "net.CIDR",
    ];
    Some(match name {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "null_type" => Type::Null,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "type" => Type::Type(Type::Dyn.into()),
        "optional_type" => Type::optional(Type::Dyn),
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        _ => Type::Opaque(LIBRARIES.into_iter().find(|library| *library == name)?),
    })
}

/// Returns the name that names and fields behind each other spell.
pub(crate) fn qualified(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Ident(name) => Some(name.to_string()),
        Kind::Select { operand, field, is_test: false } => {
            qualified(operand).map(|prefix| format!("{prefix}.{field}"))
        }
        _ => None,
    }
}

//! Reads the text of an expression into a tree, with the macros that Kubernetes has.

use std::sync::{Arc, LazyLock};

use cel::Env;
use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, SourceInfo};

use crate::check::is_function;
use crate::escape::RESERVED;
use crate::macros;
use crate::placed::shown;
use crate::tree::{Entry, Fold, Kind, Node, Tree};
use crate::value::Value;

/// How many bytes an expression may have.
const MAX_BYTES: usize = 16 << 10;

/// How many operators an expression may have. They can follow each other in such a way that the tree has as many levels.
const MAX_OPERATORS: usize = 1_000;

/// How many levels a tree may have, as in the real server.
const MAX_LEVELS: usize = 250;

static ENVIRONMENT: LazyLock<Env> = LazyLock::new(macros::environment);

static BINDING: LazyLock<Env> = LazyLock::new(macros::binding_environment);

/// Reads an expression. An error is the text that people get, with the place.
pub(crate) fn parse(text: &str) -> Result<Tree, String> {
    parse_in(&ENVIRONMENT, text)
}

/// Like [`parse`], for expressions in which values can be given names.
pub(crate) fn parse_binding(text: &str) -> Result<Tree, String> {
    parse_in(&BINDING, text)
}

fn parse_in(environment: &Env, text: &str) -> Result<Tree, String> {
    if text.len() > MAX_BYTES {
        let message = format!(
            "expression code point size exceeds limit: size: {}, limit {MAX_BYTES}",
            text.chars().count()
        );
        return Err(shown(text, 1, 0, &message));
    }
    if text.matches(['+', '-', '*', '/', '%', '.', '[', '(', '!', '=', '<', '>', '?']).count() > MAX_OPERATORS
    {
        return Err(shown(text, 1, 0, &format!("expression has more than {MAX_OPERATORS} operators")));
    }
    let parsed = environment.parser().parse_with_source_info(text);
    let (root, source) = parsed.map_err(|errors| {
        let lines: Vec<String> = errors.errors.iter().map(|error| problem(text, error)).collect();
        lines.join("\n")
    })?;
    let mut reading = Reading { source: &source, next: 0, reserved: Vec::new() };
    let root = reading
        .node(root, MAX_LEVELS)
        .ok_or_else(|| shown(text, 1, 0, &format!("expression recursion limit exceeded: {MAX_LEVELS}")))?;
    let (ids, reserved) = (reading.next, reading.reserved);
    let tree = Tree { text: text.into(), root, ids };
    if reserved.is_empty() {
        return Ok(tree);
    }
    let problem = |(at, name): &(usize, String)| tree.problem(*at, &format!("reserved identifier: {name}"));
    Err(reserved.iter().map(problem).collect::<Vec<_>>().join("\n"))
}

fn problem(text: &str, error: &cel::ParseError) -> String {
    const GRAMMAR: [&str; 5] = [
        "mismatched input",
        "extraneous input",
        "no viable alternative",
        "token recognition error",
        "missing ",
    ];
    let is_grammar = GRAMMAR.iter().any(|phrase| error.msg.starts_with(phrase));
    let message = if is_grammar { format!("Syntax error: {}", error.msg) } else { error.msg.clone() };
    let column = usize::try_from(error.pos.1 - 1).unwrap_or_default();
    shown(text, usize::try_from(error.pos.0).unwrap_or(1).max(1), column, &message)
}

/// Makes our nodes of those of the parser.
struct Reading<'a> {
    source: &'a SourceInfo,
    next: usize,
    /// Names that the language keeps for itself, and where they are.
    reserved: Vec<(usize, String)>,
}

impl Reading<'_> {
    fn node(&mut self, from: IdedExpr, levels: usize) -> Option<Node> {
        let levels = levels.checked_sub(1)?;
        let at = self.source.offset_for(from.id).map_or(0, |(start, _)| start as usize);
        let kind = match from.expr {
            Expr::Unspecified => return None,
            Expr::Literal(literal) => Kind::Literal(value(literal)),
            Expr::Ident(name) => {
                if RESERVED.contains(&name.as_str()) {
                    self.reserved.push((at, name.clone()));
                }
                Kind::Ident(name.into())
            }
            Expr::Select(select) => Kind::Select {
                operand: self.boxed(*select.operand, levels)?,
                field: select.field.into(),
                is_test: select.test,
            },
            Expr::Call(call) => {
                let qualified = call.target.as_deref().and_then(qualified);
                let qualified = qualified.map(|name| format!("{name}.{}", call.func_name));
                let args = self.all(call.args, levels)?;
                match (call.target, qualified.filter(|name| is_function(name))) {
                    (Some(_), Some(function)) => Kind::Call { function: function.into(), target: None, args },
                    (Some(target), None) => {
                        let target = Some(self.boxed(*target, levels)?);
                        Kind::Call { function: call.func_name.into(), target, args }
                    }
                    (None, _) => Kind::Call { function: call.func_name.into(), target: None, args },
                }
            }
            Expr::List(list) => {
                let optional = list.optional_indices;
                Kind::List { items: self.all(list.elements, levels)?, optional }
            }
            Expr::Map(map) => {
                let entries = map.entries.into_iter().map(|entry| self.entry(entry, levels));
                Kind::Map(entries.collect::<Option<_>>()?)
            }
            Expr::Struct(made) => {
                let fields = made.entries.into_iter().map(|entry| self.entry(entry, levels));
                Kind::Struct { name: made.type_name.into(), fields: fields.collect::<Option<_>>()? }
            }
            Expr::Comprehension(fold) => Kind::Fold(Box::new(Fold {
                range: self.node(fold.iter_range, levels)?,
                variable: fold.iter_var.into(),
                second: fold.iter_var2.map(Into::into),
                accumulator: fold.accu_var.into(),
                init: self.node(fold.accu_init, levels)?,
                condition: self.node(fold.loop_cond, levels)?,
                step: self.node(fold.loop_step, levels)?,
                result: self.node(fold.result, levels)?,
            })),
        };
        let id = self.next;
        self.next += 1;
        Some(Node { id, at, kind })
    }

    fn boxed(&mut self, from: IdedExpr, levels: usize) -> Option<Box<Node>> {
        self.node(from, levels).map(Box::new)
    }

    fn all(&mut self, from: Vec<IdedExpr>, levels: usize) -> Option<Vec<Node>> {
        from.into_iter().map(|item| self.node(item, levels)).collect()
    }

    fn entry(&mut self, from: IdedEntryExpr, levels: usize) -> Option<Entry> {
        Some(match from.expr {
            EntryExpr::StructField(field) => Entry {
                key: Node { id: self.take(), at: 0, kind: Kind::Literal(Value::text(field.field)) },
                value: self.node(field.value, levels)?,
                is_optional: field.optional,
            },
            EntryExpr::MapEntry(entry) => Entry {
                key: self.node(entry.key, levels)?,
                value: self.node(entry.value, levels)?,
                is_optional: entry.optional,
            },
        })
    }

    fn take(&mut self) -> usize {
        let id = self.next;
        self.next += 1;
        id
    }
}

fn value(literal: LiteralValue) -> Value {
    match literal {
        LiteralValue::Boolean(value) => Value::Bool(value.into_inner()),
        LiteralValue::Bytes(bytes) => Value::Bytes(bytes.into_inner().into()),
        LiteralValue::Double(number) => Value::Double(number.into_inner()),
        LiteralValue::Int(number) => Value::Int(number.into_inner()),
        LiteralValue::Null => Value::Null,
        LiteralValue::String(text) => Value::String(Arc::from(text.into_inner())),
        LiteralValue::UInt(number) => Value::Uint(number.into_inner()),
    }
}

/// Returns the name that names and fields behind each other spell.
fn qualified(from: &IdedExpr) -> Option<String> {
    match &from.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            qualified(&select.operand).map(|prefix| format!("{prefix}.{}", select.field))
        }
        _ => None,
    }
}

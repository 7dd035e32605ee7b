//! The tree of an expression.

use std::sync::Arc;

use crate::placed::shown;
use crate::value::Value;

/// An expression that was read.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) text: Arc<str>,
    pub(crate) root: Node,
    /// How many nodes there are: their ids are smaller.
    pub(crate) ids: usize,
}

impl Tree {
    /// Returns an error with the place of a node.
    pub(crate) fn problem(&self, at: usize, message: &str) -> String {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|character| *character != '\n').count();
        shown(&self.text, line, column, message)
    }
}

/// One part of an expression.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) id: usize,
    /// Where it is in the text, in bytes.
    pub(crate) at: usize,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Literal(Value),
    Ident(Arc<str>),
    Select { operand: Box<Node>, field: Arc<str>, is_test: bool },
    Call { function: Arc<str>, target: Option<Box<Node>>, args: Vec<Node> },
    List { items: Vec<Node>, optional: Vec<usize> },
    Map(Vec<Entry>),
    Struct { name: Arc<str>, fields: Vec<Entry> },
    Fold(Box<Fold>),
}

/// An entry of a map.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Node,
    pub(crate) value: Node,
    pub(crate) is_optional: bool,
}

/// A loop over a list or a map, which macros make.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) range: Node,
    pub(crate) variable: Arc<str>,
    pub(crate) second: Option<Arc<str>>,
    pub(crate) accumulator: Arc<str>,
    pub(crate) init: Node,
    pub(crate) condition: Node,
    pub(crate) step: Node,
    pub(crate) result: Node,
}

/// The accumulator of macros that loop.
pub(crate) const RESULT: &str = "@result";

impl Fold {
    /// Returns whether it only gives a value a name.
    pub(crate) fn is_binding(&self) -> bool {
        let is_empty = matches!(&self.range.kind, Kind::List { items, .. } if items.is_empty());
        let never = matches!(&self.condition.kind, Kind::Literal(Value::Bool(false)));
        is_empty && never && &*self.accumulator != RESULT
    }
}

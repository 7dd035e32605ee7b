//! The parsed form of a template, shared between renders.

use std::sync::Arc;

use crate::value::Function;

/// A text that was parsed, kept to show places in errors.
#[derive(Debug)]
pub(super) struct Source {
    /// The name of the file, or whatever stands for it.
    pub(super) name: Arc<str>,
    /// The text.
    pub(super) text: Box<[u8]>,
}

impl Source {
    /// Returns what stands at a place.
    pub(super) fn at(&self, span: Span) -> &[u8] {
        self.text.get(span.start..span.end).unwrap_or_default()
    }
}

/// A part of a source, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The names of a path, which equal paths of a source share.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields(Option<Arc<[Arc<str>]>>);

impl Fields {
    pub(super) fn new(names: Vec<Arc<str>>) -> Self {
        Self(if names.is_empty() { None } else { Some(names.into()) })
    }
}

impl std::ops::Deref for Fields {
    type Target = [Arc<str>];

    fn deref(&self) -> &[Arc<str>] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// A named template: a file or a `define` in it.
#[derive(Debug)]
pub struct Template {
    pub(super) name: Arc<str>,
    pub(super) source: Arc<Source>,
    pub(super) body: Box<[Node]>,
}

impl Template {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reports whether there is nothing but space and comments in it.
    pub fn is_empty(&self) -> bool {
        let is_space = |span: Span| self.source.at(span).trim_ascii().is_empty();
        self.body.iter().all(|node| matches!(node, Node::Text(span) if is_space(*span)))
    }
}

/// Something that is executed.
#[derive(Debug)]
pub(super) enum Node {
    Text(Span),
    Action(Box<Pipe>),
    // Most nodes are text: a large variant would make each of them as large.
    If(Box<Branch>),
    With(Box<Branch>),
    Range(Box<Branch>),
    Template { pos: usize, name: Arc<str>, pipe: Option<Box<Pipe>> },
    Break,
    Continue,
}

/// A control structure with an optional `else`.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) pipe: Pipe,
    pub(super) then: Box<[Node]>,
    pub(super) otherwise: Option<Box<[Node]>>,
}

/// Commands, each of which gets the result of the one before as its last argument.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) pos: usize,
    /// Whether variables are assigned, not declared.
    pub(super) assign: bool,
    pub(super) variables: Vec<Arc<str>>,
    pub(super) commands: Box<[Command]>,
}

/// A function, method or value with its arguments.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) pos: usize,
    pub(super) first: Expr,
    pub(super) args: Box<[Expr]>,
}

/// An operand.
#[derive(Debug)]
pub(super) enum Expr {
    Bool {
        pos: usize,
        value: bool,
    },
    Chain {
        pos: usize,
        base: Box<Expr>,
        fields: Fields,
    },
    Dot {
        pos: usize,
    },
    Field {
        pos: usize,
        fields: Fields,
    },
    Function {
        pos: usize,
        callee: Callee,
    },
    Nil {
        pos: usize,
    },
    Number {
        pos: usize,
        number: Box<super::number::Number>,
    },
    Pipe(Box<Pipe>),
    /// A string; it is as long as `length` as it is written, with its quotes.
    Text {
        pos: usize,
        length: usize,
        text: Arc<[u8]>,
    },
    Variable {
        pos: usize,
        name: Arc<str>,
        fields: Fields,
    },
}

impl Expr {
    pub(super) fn pos(&self) -> usize {
        match self {
            Self::Bool { pos, .. }
            | Self::Chain { pos, .. }
            | Self::Dot { pos }
            | Self::Field { pos, .. }
            | Self::Function { pos, .. }
            | Self::Nil { pos }
            | Self::Number { pos, .. }
            | Self::Text { pos, .. }
            | Self::Variable { pos, .. } => *pos,
            Self::Pipe(pipe) => pipe.pos,
        }
    }
}

/// What a name stands for; found when the template is parsed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Callee {
    /// `and`, which evaluates its arguments one by one.
    And,
    /// `or`, likewise.
    Or,
    /// `call`, which wants to know how its first argument reads.
    Call,
    /// `len`, which distinguishes a nil behind an interface from nothing.
    Len,
    /// Any other function.
    Function(&'static Function),
}

impl Callee {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::And => "and",
            Self::Or => "or",
            Self::Call => "call",
            Self::Len => "len",
            Self::Function(function) => function.name,
        }
    }
}

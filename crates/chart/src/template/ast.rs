//! The parsed form of a template, shared between renders.
//!
//! What a source was parsed to lies in a few lists, and its parts name each other by their places in these: most of the
//! time of parsing would go into making each part a piece of memory of its own.

use std::sync::{Arc, OnceLock};

use super::number::Number;
use crate::value::Function;

/// A text that was parsed, kept to show places in errors.
#[derive(Debug)]
pub(super) struct Source {
    /// The name of the file, or whatever stands for it.
    pub(super) name: Arc<str>,
    /// The text.
    pub(super) text: Arc<[u8]>,
}

/// A named template: a file or a `define` in it.
#[derive(Debug)]
pub struct Template {
    pub(super) name: Arc<str>,
    pub(super) tree: Arc<Tree>,
    pub(super) body: Span,
    pub(super) is_empty: bool,
}

impl Template {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reports whether there is nothing but space and comments in it.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }
}

/// A part of a source, or of a list of a tree; no source has more than 4 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    pub(super) fn new(start: usize, end: usize) -> Self {
        Self { start: place(start), end: place(end) }
    }

    pub(super) fn is_empty(self) -> bool {
        self.start == self.end
    }

    pub(super) fn of<T>(self, list: &[T]) -> &[T] {
        list.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// Returns a place in a source or a list; a parser refuses sources that have more.
pub(super) fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// What a source was parsed to.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) source: Source,
    pub(super) nodes: Vec<Node>,
    pub(super) branches: Vec<Branch>,
    pub(super) commands: Vec<Command>,
    pub(super) exprs: Vec<Expr>,
    pub(super) numbers: Vec<Number>,
    /// What string literals stand for; of those without escapes it is known when one is needed.
    pub(super) texts: Vec<OnceLock<Arc<[u8]>>>,
    /// The names of variables, the first of which is `$`.
    pub(super) variables: Vec<Box<str>>,
    /// The names that `template` and `block` execute.
    pub(super) templates: Vec<Arc<str>>,
}

impl Tree {
    pub(super) fn text(&self, span: Span) -> &[u8] {
        span.of(&self.source.text)
    }

    pub(super) fn nodes(&self, span: Span) -> &[Node] {
        span.of(&self.nodes)
    }

    pub(super) fn commands(&self, span: Span) -> &[Command] {
        span.of(&self.commands)
    }

    /// Returns the operand that a command begins with and its arguments.
    pub(super) fn operands(&self, command: &Command) -> Option<(&Expr, &[Expr])> {
        command.operands.of(&self.exprs).split_first()
    }

    pub(super) fn expr(&self, at: u32) -> Option<&Expr> {
        self.exprs.get(at as usize)
    }

    pub(super) fn branch(&self, at: u32) -> Option<&Branch> {
        self.branches.get(at as usize)
    }

    pub(super) fn number(&self, at: u32) -> Option<&Number> {
        self.numbers.get(at as usize)
    }

    pub(super) fn variable(&self, name: Variable) -> &str {
        self.variables.get(name.0 as usize).map_or("", |name| &**name)
    }

    pub(super) fn template(&self, at: u32) -> &str {
        self.templates.get(at as usize).map_or("", |name| &**name)
    }

    /// Returns what the string literal at `quoted` stands for.
    pub(super) fn literal(&self, at: u32, quoted: Span) -> Arc<[u8]> {
        let inner = || match self.text(quoted) {
            [_, inner @ .., _] => inner.into(),
            [] | [_] => Arc::default(),
        };
        self.texts.get(at as usize).map_or_else(inner, |text| Arc::clone(text.get_or_init(inner)))
    }

    /// Returns the names of fields, which are written as `.a.b`.
    pub(super) fn fields(&self, span: Span) -> Fields<'_> {
        Fields(str::from_utf8(self.text(span)).unwrap_or_default())
    }
}

/// Names of fields, each behind a dot.
pub(super) struct Fields<'t>(&'t str);

impl<'t> Iterator for Fields<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let rest = self.0.strip_prefix('.')?;
        let end = rest.bytes().position(|byte| byte == b'.').unwrap_or(rest.len());
        let (field, rest) = rest.split_at_checked(end)?;
        self.0 = rest;
        Some(field)
    }
}

/// A variable, by the place of its name among those of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Variable(pub(super) u32);

/// `$`, which every template has.
pub(super) const DOLLAR: Variable = Variable(0);

/// Something that is executed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    Text(Span),
    Action(Pipe),
    // Most nodes are text: a large variant would make each of them as large.
    If(u32),
    With(u32),
    Range(u32),
    Template { pos: u32, name: u32, pipe: Option<Pipe> },
    Break,
    Continue,
}

/// A control structure with an optional `else`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branch {
    pub(super) pipe: Pipe,
    pub(super) then: Span,
    pub(super) otherwise: Option<Span>,
}

/// Commands, each of which gets the result of the one before as its last argument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipe {
    pub(super) pos: u32,
    /// Whether variables are assigned, not declared.
    pub(super) assign: bool,
    pub(super) variables: Variables,
    pub(super) commands: Span,
}

/// The variables of a pipe, of which there are two at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variables {
    count: u8,
    names: [Variable; 2],
}

impl Variables {
    pub(super) const NONE: Self = Self { count: 0, names: [DOLLAR; 2] };

    /// Adds a variable; a third one is refused by the parser.
    pub(super) fn push(&mut self, name: Variable) {
        if let Some(place) = self.names.get_mut(usize::from(self.count)) {
            *place = name;
            self.count += 1;
        }
    }

    pub(super) fn names(&self) -> &[Variable] {
        self.names.get(..usize::from(self.count)).unwrap_or_default()
    }
}

/// A function, method or value, the first of its operands, with its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    pub(super) pos: u32,
    pub(super) operands: Span,
}

/// An operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expr {
    Bool { pos: u32, value: bool },
    Chain { pos: u32, base: u32, fields: Span },
    Dot { pos: u32 },
    Field { pos: u32, fields: Span },
    Function { pos: u32, callee: Callee },
    Nil { pos: u32 },
    Number { pos: u32, number: u32 },
    Pipe(Pipe),
    Text { pos: u32, quoted: Span, text: u32 },
    Variable { pos: u32, name: Variable, fields: Span },
}

impl Expr {
    pub(super) fn pos(&self) -> u32 {
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

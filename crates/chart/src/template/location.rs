//! How nodes read in error messages.

use golang::strconv::quote;

use super::ast::{Command, Expr, Node, Pipe, Span, Tree};

/// The node that is being executed, for errors.
#[derive(Clone, Copy)]
pub(super) enum Location<'t> {
    Node(&'t Node),
    Pipe(&'t Pipe),
    Command(&'t Command),
    Expr(&'t Expr),
}

impl Location<'_> {
    /// Returns the offset of the node in its source.
    pub(super) fn pos(&self, tree: &Tree) -> usize {
        let pos = match self {
            Self::Node(node) => match node {
                Node::Action(pipe) => pipe.pos,
                Node::If(at) | Node::With(at) | Node::Range(at) => {
                    tree.branch(*at).map_or(0, |branch| branch.pipe.pos)
                }
                Node::Template { pos, .. } => *pos,
                Node::Text(_) | Node::Break | Node::Continue => 0,
            },
            Self::Pipe(pipe) => pipe.pos,
            Self::Command(command) => command.pos,
            Self::Expr(expr) => expr.pos(),
        };
        pos as usize
    }

    /// Returns the text of the node.
    pub(super) fn text(&self, tree: &Tree) -> String {
        let mut shown = Shown { tree, out: String::new() };
        match self {
            Self::Node(node) => shown.node(node),
            Self::Pipe(pipe) => shown.pipe(pipe),
            Self::Command(command) => shown.command(command),
            Self::Expr(expr) => shown.expr(expr),
        }
        shown.out
    }
}

/// A node that is being written.
struct Shown<'t> {
    tree: &'t Tree,
    out: String,
}

impl Shown<'_> {
    fn node(&mut self, node: &Node) {
        match node {
            Node::Action(pipe) => {
                self.out.push_str("{{");
                self.pipe(pipe);
                self.out.push_str("}}");
            }
            Node::If(at) => self.head("if", *at),
            Node::With(at) => self.head("with", *at),
            Node::Range(at) => self.head("range", *at),
            Node::Template { name, pipe, .. } => {
                self.out.push_str("{{template ");
                self.out.push_str(&quote(self.tree.template(*name).as_bytes()));
                if let Some(pipe) = pipe {
                    self.out.push(' ');
                    self.pipe(pipe);
                }
                self.out.push_str("}}");
            }
            Node::Text(text) => self.source(*text),
            Node::Break => self.out.push_str("{{break}}"),
            Node::Continue => self.out.push_str("{{continue}}"),
        }
    }

    fn source(&mut self, span: Span) {
        self.out.push_str(&String::from_utf8_lossy(self.tree.text(span)));
    }

    /// Errors never point at a whole control structure, so its body is left out.
    fn head(&mut self, word: &str, at: u32) {
        let Some(branch) = self.tree.branch(at) else { return };
        self.out.push_str("{{");
        self.out.push_str(word);
        self.out.push(' ');
        self.pipe(&branch.pipe);
        self.out.push_str("}}");
    }

    fn pipe(&mut self, pipe: &Pipe) {
        let variables = pipe.variables.names();
        for (index, variable) in variables.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.out.push_str(self.tree.variable(*variable));
        }
        if !variables.is_empty() {
            self.out.push_str(if pipe.assign { " = " } else { " := " });
        }
        for (index, command) in self.tree.commands(pipe.commands).iter().enumerate() {
            if index > 0 {
                self.out.push_str(" | ");
            }
            self.command(command);
        }
    }

    fn command(&mut self, command: &Command) {
        let Some((first, args)) = self.tree.operands(command) else { return };
        self.operand(first);
        for arg in args {
            self.out.push(' ');
            self.operand(arg);
        }
    }

    /// A pipeline is put in parentheses where it is an operand, and only there.
    fn operand(&mut self, expr: &Expr) {
        if let Expr::Pipe(pipe) = expr {
            self.out.push('(');
            self.pipe(pipe);
            self.out.push(')');
        } else {
            self.expr(expr);
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Bool { value, .. } => self.out.push_str(if *value { "true" } else { "false" }),
            Expr::Chain { base, fields, .. } => {
                if let Some(base) = self.tree.expr(*base) {
                    self.operand(base);
                }
                self.source(*fields);
            }
            Expr::Dot { .. } => self.out.push('.'),
            Expr::Field { fields, .. } => self.source(*fields),
            Expr::Function { callee, .. } => self.out.push_str(callee.name()),
            Expr::Nil { .. } => self.out.push_str("nil"),
            Expr::Number { number, .. } => {
                self.out.push_str(self.tree.number(*number).map_or("", |number| &number.text));
            }
            Expr::Pipe(pipe) => self.pipe(pipe),
            Expr::Text { quoted, .. } => self.source(*quoted),
            Expr::Variable { name, fields, .. } => {
                self.out.push_str(self.tree.variable(*name));
                self.source(*fields);
            }
        }
    }
}

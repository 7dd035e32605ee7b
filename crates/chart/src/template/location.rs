//! How nodes read in error messages.

use std::sync::Arc;

use golang::strconv::quote;

use super::ast::{Command, Expr, Node, Pipe, Source, Span};

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
    pub(super) fn pos(&self) -> usize {
        match self {
            Self::Node(node) => match node {
                Node::Action(pipe) => pipe.pos,
                Node::If(branch) | Node::With(branch) | Node::Range(branch) => branch.pipe.pos,
                Node::Template { pos, .. } => *pos,
                Node::Text(_) | Node::Break | Node::Continue => 0,
            },
            Self::Pipe(pipe) => pipe.pos,
            Self::Command(command) => command.pos,
            Self::Expr(expr) => expr.pos(),
        }
    }

    /// Returns the text of the node, which stands in `source`.
    pub(super) fn text(&self, source: &Source) -> String {
        let mut out = String::new();
        match self {
            Self::Node(node) => show_node(node, source, &mut out),
            Self::Pipe(pipe) => show_pipe(pipe, source, &mut out),
            Self::Command(command) => show_command(command, source, &mut out),
            Self::Expr(expr) => show_expr(expr, source, &mut out),
        }
        out
    }
}

fn show_node(node: &Node, source: &Source, out: &mut String) {
    match node {
        Node::Action(pipe) => {
            out.push_str("{{");
            show_pipe(pipe, source, out);
            out.push_str("}}");
        }
        Node::If(branch) => show_head("if", &branch.pipe, source, out),
        Node::With(branch) => show_head("with", &branch.pipe, source, out),
        Node::Range(branch) => show_head("range", &branch.pipe, source, out),
        Node::Template { name, pipe, .. } => {
            out.push_str("{{template ");
            out.push_str(&quote(name.as_bytes()));
            if let Some(pipe) = pipe {
                out.push(' ');
                show_pipe(pipe, source, out);
            }
            out.push_str("}}");
        }
        Node::Text(span) => out.push_str(&String::from_utf8_lossy(source.at(*span))),
        Node::Break => out.push_str("{{break}}"),
        Node::Continue => out.push_str("{{continue}}"),
    }
}

/// Errors never point at a whole control structure, so its body is left out.
fn show_head(word: &str, pipe: &Pipe, source: &Source, out: &mut String) {
    out.push_str("{{");
    out.push_str(word);
    out.push(' ');
    show_pipe(pipe, source, out);
    out.push_str("}}");
}

fn show_pipe(pipe: &Pipe, source: &Source, out: &mut String) {
    for (index, variable) in pipe.variables.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        out.push_str(variable);
    }
    if !pipe.variables.is_empty() {
        out.push_str(if pipe.assign { " = " } else { " := " });
    }
    for (index, command) in pipe.commands.iter().enumerate() {
        if index > 0 {
            out.push_str(" | ");
        }
        show_command(command, source, out);
    }
}

fn show_command(command: &Command, source: &Source, out: &mut String) {
    show_operand(&command.first, source, out);
    for arg in &command.args {
        out.push(' ');
        show_operand(arg, source, out);
    }
}

/// A pipeline is put in parentheses where it is an operand, and only there.
fn show_operand(expr: &Expr, source: &Source, out: &mut String) {
    if let Expr::Pipe(pipe) = expr {
        out.push('(');
        show_pipe(pipe, source, out);
        out.push(')');
    } else {
        show_expr(expr, source, out);
    }
}

fn show_expr(expr: &Expr, source: &Source, out: &mut String) {
    match expr {
        Expr::Bool { value, .. } => out.push_str(if *value { "true" } else { "false" }),
        Expr::Chain { base, fields, .. } => {
            show_operand(base, source, out);
            show_fields(fields, out);
        }
        Expr::Dot { .. } => out.push('.'),
        Expr::Field { fields, .. } => show_fields(fields, out),
        Expr::Function { callee, .. } => out.push_str(callee.name()),
        Expr::Nil { .. } => out.push_str("nil"),
        Expr::Number { number, .. } => out.push_str(&number.text),
        Expr::Pipe(pipe) => show_pipe(pipe, source, out),
        Expr::Text { pos, length, .. } => {
            let quoted = source.at(Span { start: *pos, end: pos + length });
            out.push_str(&String::from_utf8_lossy(quoted));
        }
        Expr::Variable { name, fields, .. } => {
            out.push_str(name);
            show_fields(fields, out);
        }
    }
}

fn show_fields(fields: &[Arc<str>], out: &mut String) {
    for field in fields {
        out.push('.');
        out.push_str(field);
    }
}

//! Executes templates.

mod call;
mod eval;
mod field;
mod range;
mod renderer;

use golang::fmt::print_dereferenced;
use golang::strconv::quote;

pub use renderer::Renderer;

use super::ast::{DOLLAR, Node, Pipe, Span, Template, Tree, Variable};
use super::error::ExecError;
use super::location::Location;
use crate::value::{CallError, Context as _, Value};

/// Executes `template` with `data` as its dot and appends what it prints to `out`.
fn execute(
    context: &mut Renderer<'_>,
    template: &Template,
    data: &Value,
    out: &mut Vec<u8>,
) -> Result<(), ExecError> {
    Exec::run(context, template, &Item::bare(data.clone()), out, None)
}

/// A value and how Go's executor holds it.
#[derive(Clone, Default)]
struct Item {
    value: Value,
    /// Whether it is behind an `interface {}`, as elements of lists and maps are:
    /// error messages then do not know its type, and its nil is a value.
    boxed: bool,
}

impl Item {
    fn bare(value: Value) -> Self {
        Self { value, boxed: false }
    }

    /// Returns nothing at all, Go's invalid value.
    fn none() -> Self {
        Self::default()
    }

    fn is_valid(&self) -> bool {
        self.boxed || !self.value.is_nil()
    }

    fn type_name(&self) -> &str {
        if self.boxed { "interface {}" } else { self.value.type_name() }
    }
}

/// How a list of nodes ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// The execution of one template.
struct Exec<'t, 'c, 'w> {
    context: &'c mut Renderer<'w>,
    out: &'c mut Vec<u8>,
    template: &'t Template,
    tree: &'t Tree,
    /// The node that an error is blamed on: the one that was begun last.
    at: Option<Location<'t>>,
    /// Variables, the innermost last.
    variables: Vec<(Variable, Item)>,
}

impl<'t, 'w> Exec<'t, '_, 'w> {
    /// Executes a template within another one.
    fn run(
        context: &mut Renderer<'w>,
        template: &Template,
        data: &Item,
        out: &mut Vec<u8>,
        caller: Option<(&Template, Location<'_>)>,
    ) -> Result<(), ExecError> {
        if let Err(error) = context.enter() {
            context.leave();
            let (blamed, at) = match caller {
                Some((template, at)) => (template, Some(at)),
                None => (template, None),
            };
            return Err(ExecError::from_call(error, |text| tell(blamed, at, text)));
        }
        let variables = vec![(DOLLAR, data.clone())];
        let mut exec = Exec { context, out, template, tree: &template.tree, at: None, variables };
        let executed = exec.list(data, template.body);
        exec.context.leave();
        executed.map(|_| ())
    }

    /// Returns an error that is blamed on the node that was begun last.
    fn error(&self, message: &str) -> ExecError {
        ExecError::new(tell(self.template, self.at, message))
    }

    fn call_error(&self, error: CallError) -> ExecError {
        ExecError::from_call(error, |text| tell(self.template, self.at, text))
    }

    fn list(&mut self, dot: &Item, nodes: Span) -> Result<Flow, ExecError> {
        for node in self.tree.nodes(nodes) {
            let flow = self.node(dot, node)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn node(&mut self, dot: &Item, node: &'t Node) -> Result<Flow, ExecError> {
        if let Node::Text(text) = node {
            self.write(self.tree.text(*text))?;
            return Ok(Flow::Next);
        }
        self.at = Some(Location::Node(node));
        self.context.step().map_err(|error| self.call_error(error))?;
        match node {
            Node::Text(_) => {}
            Node::Action(pipe) => {
                let item = self.pipeline(dot, pipe)?;
                if pipe.variables.names().is_empty() {
                    self.at = Some(Location::Node(node));
                    self.print(&item.value)?;
                }
            }
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
            Node::If(at) => return self.branch(dot, *at, false),
            Node::With(at) => return self.branch(dot, *at, true),
            Node::Range(at) => return self.range(dot, *at),
            Node::Template { name, pipe, .. } => {
                self.template(dot, node, self.tree.template(*name), pipe.as_ref())?;
            }
        }
        Ok(Flow::Next)
    }

    fn write(&mut self, text: &[u8]) -> Result<(), ExecError> {
        self.context.charge(text.len()).map_err(|error| self.call_error(error))?;
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn print(&mut self, value: &Value) -> Result<(), ExecError> {
        if let Value::Text(text) = value {
            return self.write(text);
        }
        if value.is_nil() {
            return self.write(b"<no value>");
        }
        let before = self.out.len();
        let printed = print_dereferenced(self.out, value);
        let written = self.out.len().saturating_sub(before);
        self.context.charge(written).map_err(|error| self.call_error(error))?;
        printed.map_err(|error| self.error(&error.to_string()))
    }

    /// Executes `if` and `with`, of which only the latter moves the dot.
    fn branch(&mut self, dot: &Item, at: u32, moves: bool) -> Result<Flow, ExecError> {
        let Some(branch) = self.tree.branch(at) else { return Ok(Flow::Next) };
        self.context.check_stack().map_err(|error| self.call_error(error))?;
        let scope = self.variables.len();
        let item = self.pipeline(dot, &branch.pipe)?;
        let flow = if item.value.truth() {
            self.list(if moves { &item } else { dot }, branch.then)?
        } else if let Some(otherwise) = branch.otherwise {
            self.list(dot, otherwise)?
        } else {
            Flow::Next
        };
        self.variables.truncate(scope);
        Ok(flow)
    }

    fn template(
        &mut self,
        dot: &Item,
        node: &'t Node,
        name: &str,
        pipe: Option<&'t Pipe>,
    ) -> Result<(), ExecError> {
        let Some(template) = self.context.template(name) else {
            return Err(self.error(&format!("template {} not defined", quote(name.as_bytes()))));
        };
        let data = match pipe {
            Some(pipe) => self.pipeline(dot, pipe)?,
            None => Item::none(),
        };
        let caller = Some((self.template, Location::Node(node)));
        Exec::run(self.context, &template, &data, self.out, caller)
    }

    fn assign(&mut self, name: Variable, item: Item) -> Result<(), ExecError> {
        let found = self.variables.iter_mut().rev().find(|(variable, _)| *variable == name);
        match found {
            Some((_, variable)) => {
                *variable = item;
                Ok(())
            }
            None => Err(self.error(&format!("undefined variable: {}", self.tree.variable(name)))),
        }
    }

    fn variable(&self, name: Variable) -> Result<&Item, ExecError> {
        let found = self.variables.iter().rev().find(|(variable, _)| *variable == name);
        match found {
            Some((_, item)) => Ok(item),
            None => Err(self.error(&format!("undefined variable: {}", self.tree.variable(name)))),
        }
    }
}

/// Returns `message` with the place that it happened at.
fn tell(template: &Template, at: Option<Location<'_>>, message: &str) -> String {
    let Some(at) = at else {
        return format!("template: {}: {message}", template.name);
    };
    let source = &template.tree.source;
    let before = source.text.get(..at.pos(&template.tree)).unwrap_or_default();
    let line = before.split(|byte| *byte == b'\n').count();
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count();
    let name = quote(template.name.as_bytes());
    format!(
        "template: {}:{line}:{column}: executing {name} at <{}>: {message}",
        source.name,
        at.text(&template.tree)
    )
}

//! What the parser has made of a source so far.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::ast::{Branch, Command, DOLLAR, Expr, Node, Source, Span, Template, Tree, Variable, place};
use super::number::Number;

/// How many bytes of a source there are for each node, command or operand, about.
const BYTES_OF_A_PART: usize = 32;

/// The templates found so far, and the lists that their parts are in.
pub(super) struct TreeSet<'a> {
    name: Arc<str>,
    text: &'a [u8],
    trees: Vec<Definition>,
    nodes: Vec<Node>,
    branches: Vec<Branch>,
    commands: Vec<Command>,
    exprs: Vec<Expr>,
    numbers: Vec<Number>,
    texts: Vec<OnceLock<Arc<[u8]>>>,
    variables: BTreeMap<&'a [u8], Variable>,
    templates: Vec<Arc<str>>,
    pending: Pending,
}

/// The parts of lists that have not ended yet, the innermost list last.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) nodes: Vec<Node>,
    pub(super) commands: Vec<Command>,
    pub(super) exprs: Vec<Expr>,
}

struct Definition {
    name: Arc<str>,
    body: Span,
    is_empty: bool,
}

impl<'a> TreeSet<'a> {
    pub(super) fn new(name: &str, text: &'a [u8]) -> Self {
        // About as many as most sources have: a list that grows is copied each time.
        let usual = text.len() / BYTES_OF_A_PART;
        Self {
            name: name.into(),
            text,
            trees: Vec::new(),
            nodes: Vec::with_capacity(usual),
            branches: Vec::new(),
            commands: Vec::with_capacity(usual),
            exprs: Vec::with_capacity(usual),
            numbers: Vec::new(),
            texts: Vec::new(),
            variables: [(b"$".as_slice(), DOLLAR)].into(),
            templates: Vec::new(),
            pending: Pending::default(),
        }
    }

    /// Returns the templates, that of the source first; nothing of them has room for more.
    pub(super) fn into_templates(self, text: &Arc<[u8]>) -> Vec<Arc<Template>> {
        let mut variables = vec![Box::default(); self.variables.len()];
        for (name, Variable(at)) in &self.variables {
            if let Some(place) = variables.get_mut(*at as usize) {
                *place = String::from_utf8_lossy(name).into();
            }
        }
        let tree = Arc::new(Tree {
            source: Source { name: Arc::clone(&self.name), text: Arc::clone(text) },
            nodes: without_room(self.nodes),
            branches: without_room(self.branches),
            commands: without_room(self.commands),
            exprs: without_room(self.exprs),
            numbers: without_room(self.numbers),
            texts: without_room(self.texts),
            variables,
            templates: without_room(self.templates),
        });
        let (main, defined): (Vec<_>, Vec<_>) =
            self.trees.into_iter().partition(|tree| tree.name == self.name);
        let template = |Definition { name, body, is_empty }| {
            Arc::new(Template { name, tree: Arc::clone(&tree), body, is_empty })
        };
        main.into_iter().chain(defined).map(template).collect()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn text(&self, span: Span) -> &'a [u8] {
        span.of(self.text)
    }

    pub(super) fn pending(&mut self) -> &mut Pending {
        &mut self.pending
    }

    /// Ends the list of nodes that began when `mark` of them were pending.
    pub(super) fn end_nodes(&mut self, mark: usize) -> Span {
        ended(&mut self.pending.nodes, mark, &mut self.nodes)
    }

    pub(super) fn end_commands(&mut self, mark: usize) -> Span {
        ended(&mut self.pending.commands, mark, &mut self.commands)
    }

    pub(super) fn end_exprs(&mut self, mark: usize) -> Span {
        ended(&mut self.pending.exprs, mark, &mut self.exprs)
    }

    pub(super) fn add_branch(&mut self, branch: Branch) -> u32 {
        added(&mut self.branches, branch)
    }

    pub(super) fn add_expr(&mut self, expr: Expr) -> u32 {
        added(&mut self.exprs, expr)
    }

    pub(super) fn add_number(&mut self, number: Number) -> u32 {
        added(&mut self.numbers, number)
    }

    pub(super) fn number(&self, at: u32) -> Option<&Number> {
        self.numbers.get(at as usize)
    }

    /// Adds a literal; of one that stands for what is between its quotes, nothing need be known yet.
    pub(super) fn add_text(&mut self, text: Option<Vec<u8>>) -> u32 {
        added(&mut self.texts, text.map_or_else(OnceLock::new, |text| OnceLock::from(Arc::from(text))))
    }

    pub(super) fn add_template(&mut self, name: Arc<str>) -> u32 {
        added(&mut self.templates, name)
    }

    /// Returns the variable `name`, whether it is declared or not.
    pub(super) fn variable(&mut self, name: &'a [u8]) -> Variable {
        let next = Variable(place(self.variables.len()));
        *self.variables.entry(name).or_insert(next)
    }

    /// Returns a list of one node.
    pub(super) fn lone_node(&mut self, node: Node) -> Span {
        let start = self.nodes.len();
        self.nodes.push(node);
        Span::new(start, self.nodes.len())
    }

    pub(super) fn begins_with_constant(&self, command: &Command) -> bool {
        matches!(
            self.exprs.get(command.operands.start as usize),
            Some(
                Expr::Bool { .. }
                    | Expr::Dot { .. }
                    | Expr::Nil { .. }
                    | Expr::Number { .. }
                    | Expr::Text { .. }
            )
        )
    }

    /// Keeps a template; a second one of the same name only if one of them is empty. Returns the name otherwise.
    pub(super) fn define(&mut self, name: Arc<str>, body: Span) -> Result<(), Arc<str>> {
        let is_empty = self.is_empty(body);
        let template = Definition { name, body, is_empty };
        match self.trees.iter_mut().find(|tree| tree.name == template.name) {
            None => self.trees.push(template),
            Some(before) if before.is_empty => *before = template,
            Some(_) if template.is_empty => {}
            Some(_) => return Err(template.name),
        }
        Ok(())
    }

    fn is_empty(&self, body: Span) -> bool {
        body.of(&self.nodes).iter().all(|node| match node {
            Node::Text(span) => span.of(self.text).trim_ascii().is_empty(),
            Node::Action(_)
            | Node::If(_)
            | Node::With(_)
            | Node::Range(_)
            | Node::Template { .. }
            | Node::Break
            | Node::Continue => false,
        })
    }
}

/// Moves what is pending since `mark` to the end of `list`, and returns where it is.
fn ended<T: Copy>(pending: &mut Vec<T>, mark: usize, list: &mut Vec<T>) -> Span {
    let start = list.len();
    list.extend_from_slice(pending.get(mark..).unwrap_or_default());
    pending.truncate(mark);
    Span::new(start, list.len())
}

/// Adds to a list, and returns the place.
fn added<T>(list: &mut Vec<T>, item: T) -> u32 {
    list.push(item);
    place(list.len() - 1)
}

fn without_room<T>(mut list: Vec<T>) -> Vec<T> {
    list.shrink_to_fit();
    list
}

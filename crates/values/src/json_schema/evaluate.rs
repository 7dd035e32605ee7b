//! Checking a value against a schema.

mod arrays;
mod conditions;
mod objects;
mod scalars;
mod unevaluated;

use std::cell::Cell;
use std::collections::BTreeMap;

use serde_json::Value;

use super::address::escaped;
use super::compile::Compiled;
use super::draft::Draft;
use super::equal::equal;
use super::finding::Finding;
use super::message;
use super::metaschema;
use super::node::{Id, Node};
use unevaluated::Unevaluated;

/// How much one check of a value may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many schemas may be entered within each other. Each takes some kilobytes of the stack.
    pub depth: usize,
    /// How many schemas may be entered in all: references can multiply them without end.
    pub visits: u64,
}

impl Limits {
    /// For a thread with a large stack, on which nobody waits.
    pub const WIDE: Self = Self { depth: 4_000, visits: u64::MAX };
    /// For a thread that others wait for.
    pub const NARROW: Self = Self { depth: 128, visits: 200_000 };
}

/// One check of a value.
pub(super) struct Evaluation<'s> {
    compiled: &'s Compiled,
    limits: Limits,
    /// How many schemas may still be entered.
    left: Cell<u64>,
    /// The value is a schema, and these parts of it are of drafts of their own.
    resources: Option<&'s BTreeMap<String, Draft>>,
}

/// Where in the value the check is.
#[derive(Clone, Copy)]
struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    segment: Segment<'p>,
}

#[derive(Clone, Copy)]
enum Segment<'p> {
    Start,
    Name(&'p str),
    Index(usize),
}

/// Which schemas were entered on the way here.
struct Scope<'p> {
    node: Id,
    /// The keyword, if it was a reference.
    keyword: Option<&'static str>,
    /// How many steps into the value.
    level: usize,
    depth: usize,
    parent: Option<&'p Scope<'p>>,
}

/// One schema and one value.
struct Visit<'p, 'v> {
    evaluation: &'p Evaluation<'p>,
    node: &'p Node,
    value: &'v Value,
    path: &'p Path<'p>,
    scope: &'p Scope<'p>,
    /// Only whether there are findings matters.
    quick: bool,
    unevaluated: Unevaluated<'v>,
    found: Vec<Finding>,
}

type Outcome<'v> = Result<Unevaluated<'v>, Finding>;

impl<'s> Evaluation<'s> {
    /// Checks values.
    pub(super) fn of_values(compiled: &'s Compiled, limits: Limits) -> Self {
        Self { compiled, limits, left: Cell::new(limits.visits), resources: None }
    }

    /// Checks a schema against a schema of schemas.
    pub(super) fn of_schema(compiled: &'s Compiled, resources: &'s BTreeMap<String, Draft>) -> Self {
        let limits = Limits::WIDE;
        Self { compiled, limits, left: Cell::new(limits.visits), resources: Some(resources) }
    }

    /// Returns what is wrong with `value`.
    pub(super) fn run(&self, value: &Value) -> Result<(), Finding> {
        let start = Path { parent: None, segment: Segment::Start };
        let outcome = self.enter(0, value, &start, None);
        // What was left out may have been wrong, or right where it was to be wrong.
        if self.left.get() == 0 { Err(too_much(&start)) } else { outcome }
    }

    /// Counts `visits` of schemas, or as much work. Returns whether they may be made.
    fn spend(&self, visits: u64) -> bool {
        self.left.set(self.left.get().saturating_sub(visits));
        self.left.get() > 0
    }

    fn enter(
        &self,
        node: Id,
        value: &Value,
        path: &Path<'_>,
        level: Option<&Scope<'_>>,
    ) -> Result<(), Finding> {
        let depth = level.map_or(0, |scope| scope.depth + 1);
        let scope = Scope { node, keyword: None, level: 0, depth, parent: None };
        self.visit(value, path, &scope, false, false).map(|_| ())
    }

    fn visit<'v>(
        &self,
        value: &'v Value,
        path: &Path<'_>,
        scope: &Scope<'_>,
        quick: bool,
        asked: bool,
    ) -> Outcome<'v> {
        let Some(node) = self.compiled.nodes.get(scope.node) else { return Ok(Unevaluated::default()) };
        if !self.spend(1) {
            return Err(too_much(path));
        }
        let unevaluated = Unevaluated::of(value, node, asked);
        if let Some(draft) = self.other_draft(scope, node, path)
            && let (Some(compiled), Some(resources)) = (metaschema::of(draft), self.resources)
        {
            let evaluation = Evaluation::of_schema(compiled, resources);
            return evaluation.enter(0, value, path, Some(scope)).map(|()| unevaluated);
        }
        let visit =
            Visit { evaluation: self, node, value, path, scope, quick, unevaluated, found: Vec::new() };
        visit.run()
    }

    /// Returns the draft of a part of a schema that has one of its own.
    fn other_draft(&self, scope: &Scope<'_>, node: &Node, path: &Path<'_>) -> Option<Draft> {
        let resources = self.resources.filter(|_| scope.node == 0 && scope.parent.is_some())?;
        if resources.len() < 2 {
            return None;
        }
        resources.get(&path.pointer()).copied().filter(|draft| *draft != node.draft)
    }
}

fn too_much(path: &Path<'_>) -> Finding {
    Finding::new(path.pointer(), "the check takes too many steps".to_owned(), Vec::new())
}

impl Path<'_> {
    fn pointer(&self) -> String {
        let mut segments = Vec::new();
        let mut path = Some(self);
        while let Some(Path { parent, segment }) = path {
            match segment {
                Segment::Start => {}
                Segment::Name(name) => segments.push(escaped(name)),
                Segment::Index(index) => segments.push(index.to_string()),
            }
            path = *parent;
        }
        segments.iter().rev().fold(String::new(), |pointer, segment| format!("{pointer}/{segment}"))
    }
}

impl Scope<'_> {
    /// Returns the scope in which the same schema was entered with the same value.
    fn cycle(&self) -> Option<&Self> {
        let mut scope = self.parent;
        while let Some(outer) = scope.filter(|outer| outer.level == self.level) {
            if outer.node == self.node {
                return Some(outer);
            }
            scope = outer.parent;
        }
        None
    }

    /// Returns the keywords on the way from the first schema to this.
    fn keywords(&self, nodes: &[Node]) -> String {
        let location = |id: Id| nodes.get(id).map(|node| node.location.as_str()).unwrap_or_default();
        let mut keywords = String::new();
        let mut scope = self;
        while let Some(parent) = scope.parent {
            let step = match scope.keyword {
                Some(keyword) => format!("/{}", escaped(keyword)),
                None => {
                    location(scope.node).get(location(parent.node).len()..).unwrap_or_default().to_owned()
                }
            };
            keywords.insert_str(0, &step);
            scope = parent;
        }
        keywords
    }
}

impl<'p, 'v> Visit<'p, 'v> {
    fn run(mut self) -> Outcome<'v> {
        match self.node.always {
            Some(true) => return Ok(self.unevaluated),
            Some(false) => return Err(self.finding(|| "false schema".to_owned())),
            None => {}
        }
        if let Some(finding) = self.ends_here() {
            return Err(finding);
        }
        if let Some(id) = self.node.references.plain {
            let failed = self.follow(id, "$ref").err();
            if self.node.draft < Draft::Nineteen {
                return failed.map_or(Ok(self.unevaluated), Err);
            }
            self.found.extend(failed);
        }
        match self.value {
            Value::Object(members) => self.check_object(members),
            Value::Array(items) => self.check_array(items),
            Value::String(text) => self.check_text(text),
            Value::Number(number) => self.check_number(number),
            Value::Null | Value::Bool(_) => {}
        }
        if self.found.is_empty() || !self.quick {
            self.follow_others();
            self.check_conditions();
            self.check_unevaluated();
        }
        let path = self.path;
        match Finding::group(|| path.pointer(), self.found) {
            Some(finding) => Err(finding),
            None => Ok(self.unevaluated),
        }
    }

    /// Checks what makes all other keywords of the schema irrelevant.
    fn ends_here(&self) -> Option<Finding> {
        let node = self.node;
        if self.scope.depth > self.evaluation.limits.depth {
            return Some(self.finding(|| "the schema refers to itself too often".to_owned()));
        }
        if let Some(outer) = self.scope.cycle() {
            let nodes = &self.evaluation.compiled.nodes;
            return Some(self.finding(|| {
                message::cycle(&self.scope.keywords(nodes), &outer.keywords(nodes), &node.location)
            }));
        }
        if !node.types.is_empty() && !message::is_one_of(self.value, &node.types) {
            return Some(self.finding(|| message::wrong_type(self.value, &node.types)));
        }
        if let Some(constant) = node.constant.as_ref().filter(|constant| !equal(self.value, constant)) {
            return Some(self.finding(|| message::constant(constant)));
        }
        if let Some(options) = &node.options
            && !options.iter().any(|option| equal(self.value, option))
        {
            return Some(self.finding(|| message::enumeration(options)));
        }
        let (format, text) = (node.format?, self.value.as_str()?);
        let problem = format.problem(text)?;
        Some(self.finding(|| message::format(text, format.name(), &problem)))
    }

    fn finding(&self, text: impl FnOnce() -> String) -> Finding {
        self.finding_with(text, Vec::new())
    }

    fn finding_with(&self, text: impl FnOnce() -> String, causes: Vec<Finding>) -> Finding {
        if self.quick { Finding::any() } else { Finding::new(self.path.pointer(), text(), causes) }
    }

    fn report(&mut self, text: impl FnOnce() -> String) {
        let finding = self.finding(text);
        self.found.push(finding);
    }

    /// Nothing more has to be found.
    fn is_over(&self) -> bool {
        self.quick && !self.found.is_empty()
    }

    /// Checks the same value against another schema.
    fn same(&mut self, node: Id, keyword: Option<&'static str>, quick: bool) -> Result<(), Finding> {
        let scope = Scope {
            node,
            keyword,
            level: self.scope.level,
            depth: self.scope.depth + 1,
            parent: Some(self.scope),
        };
        let asked = !self.unevaluated.is_empty();
        let rest = self.evaluation.visit(self.value, self.path, &scope, self.quick || quick, asked)?;
        self.unevaluated.keep(&rest);
        Ok(())
    }

    /// Checks a part of the value.
    fn part(&self, node: Id, value: &Value, segment: Segment<'_>) -> Result<(), Finding> {
        let path = Path { parent: Some(self.path), segment };
        let scope = Scope {
            node,
            keyword: None,
            level: self.scope.level + 1,
            depth: self.scope.depth + 1,
            parent: Some(self.scope),
        };
        self.evaluation.visit(value, &path, &scope, self.quick, false).map(|_| ())
    }

    fn check_part(&mut self, node: Id, value: &Value, segment: Segment<'_>) {
        let failed = self.part(node, value, segment).err();
        self.found.extend(failed);
    }

    fn check_same(&mut self, node: Id) {
        let failed = self.same(node, None, false).err();
        self.found.extend(failed);
    }

    fn follow(&mut self, node: Id, keyword: &'static str) -> Result<(), Finding> {
        self.same(node, Some(keyword), false)
            .map_err(|finding| Finding::reference(self.path.pointer(), finding))
    }

    /// Follows the references of the later drafts.
    fn follow_others(&mut self) {
        let references = &self.node.references;
        if let Some(id) = references.recursive {
            let target = self.recursive_target(id);
            let failed = self.follow(target, "$recursiveRef").err();
            self.found.extend(failed);
        }
        if let Some(id) = references.dynamic {
            let target = references.dynamic_name.as_ref().map_or(id, |name| self.dynamic_target(name, id));
            let failed = self.follow(target, "$dynamicRef").err();
            self.found.extend(failed);
        }
    }

    fn node(&self, id: Id) -> Option<&'p Node> {
        self.evaluation.compiled.nodes.get(id)
    }

    /// Returns the outermost schema that `$recursiveRef` may mean.
    fn recursive_target(&self, id: Id) -> Id {
        if !self.node(id).is_some_and(|node| node.references.is_recursive_anchor) {
            return id;
        }
        let mut target = id;
        let mut scope = Some(self.scope);
        while let Some(outer) = scope {
            let resource = self.node(outer.node).and_then(|node| self.node(node.resource));
            if resource.is_some_and(|resource| resource.references.is_recursive_anchor) {
                target = outer.node;
            }
            scope = outer.parent;
        }
        target
    }

    /// Returns the outermost schema that `$dynamicRef` may mean.
    fn dynamic_target(&self, name: &str, id: Id) -> Id {
        let anchor = self.node(id).and_then(|node| node.references.dynamic_anchor.as_deref());
        if anchor != Some(name) {
            return id;
        }
        let mut target = id;
        let mut scope = Some(self.scope);
        while let Some(outer) = scope {
            let resource = self.node(outer.node).and_then(|node| self.node(node.resource));
            if let Some(found) = resource.and_then(|node| node.references.dynamic_anchors.get(name)) {
                target = *found;
            }
            scope = outer.parent;
        }
        target
    }
}

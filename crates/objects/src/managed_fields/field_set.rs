//! Sets of paths through an object, and their form as `fieldsV1`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::path_element::PathElement;

/// A set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    nodes: BTreeMap<PathElement, Node>,
}

/// A step of paths: whether one ends here, and how others go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// Whether the path that ends here is in the set.
    pub(super) member: bool,
    pub(super) below: FieldSet,
}

impl Node {
    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }

    fn put_in(&mut self, rest: &[PathElement]) {
        if rest.is_empty() {
            self.member = true;
        } else {
            self.below.insert(rest);
        }
    }
}

impl FieldSet {
    /// Returns whether there is no path in the set.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a path; the empty one is left out.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        // Steps are not cheap to copy, and most are there already.
        if let Some(node) = self.nodes.get_mut(first) {
            node.put_in(rest);
        } else {
            let mut node = Node::default();
            node.put_in(rest);
            self.nodes.insert(first.clone(), node);
        }
    }

    /// Adds what begins with a step, if there is something.
    pub(super) fn put(&mut self, step: PathElement, node: Node) {
        if !node.is_empty() {
            self.nodes.insert(step, node);
        }
    }

    /// Returns whether the path of one step is in the set.
    pub fn has(&self, step: &PathElement) -> bool {
        self.nodes.get(step).is_some_and(|node| node.member)
    }

    /// Returns whether a path is in the set.
    pub fn has_path(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self.below(first).is_some_and(|set| set.has_path(rest)),
        }
    }

    /// Returns the paths that start with a step, without it.
    pub fn below(&self, step: &PathElement) -> Option<&FieldSet> {
        self.nodes.get(step).map(|node| &node.below).filter(|set| !set.is_empty())
    }

    /// Returns what is known of the path of one step and of those that start with it.
    pub(super) fn node(&self, step: &PathElement) -> Option<&Node> {
        self.nodes.get(step)
    }

    fn collect(nodes: impl Iterator<Item = (PathElement, Node)>) -> FieldSet {
        FieldSet { nodes: nodes.filter(|(_, node)| !node.is_empty()).collect() }
    }

    /// Returns the paths of either set.
    #[must_use]
    pub fn union(mut self, other: FieldSet) -> FieldSet {
        if self.nodes.is_empty() {
            return other;
        }
        for (step, node) in other.nodes {
            match self.nodes.get_mut(&step) {
                Some(ours) => {
                    ours.member |= node.member;
                    ours.below = std::mem::take(&mut ours.below).union(node.below);
                }
                None => {
                    self.nodes.insert(step, node);
                }
            }
        }
        self
    }

    /// Returns the paths of both sets.
    #[must_use]
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        Self::collect(self.nodes.iter().filter_map(|(step, node)| {
            let theirs = other.nodes.get(step)?;
            let member = node.member && theirs.member;
            Some((step.clone(), Node { member, below: node.below.intersection(&theirs.below) }))
        }))
    }

    /// Returns the paths of this set that are not in the other.
    #[must_use]
    pub fn difference(mut self, other: &FieldSet) -> FieldSet {
        self.reduce(other, &mut |ours, theirs| {
            ours.member &= !theirs.member;
            ours.below = std::mem::take(&mut ours.below).difference(&theirs.below);
        });
        self
    }

    /// Returns the paths of this set that neither are in the other nor start with one of its paths.
    #[must_use]
    pub fn without(mut self, other: &FieldSet) -> FieldSet {
        self.reduce(other, &mut |ours, theirs| {
            if theirs.member {
                *ours = Node::default();
            } else {
                ours.below = std::mem::take(&mut ours.below).without(&theirs.below);
            }
        });
        self
    }

    /// Changes what begins with the same steps in both sets, and drops what is empty then.
    fn reduce(&mut self, other: &FieldSet, change: &mut dyn FnMut(&mut Node, &Node)) {
        if self.nodes.is_empty() {
            return;
        }
        for (step, theirs) in &other.nodes {
            let Some(ours) = self.nodes.get_mut(step) else {
                continue;
            };
            change(ours, theirs);
            if ours.is_empty() {
                self.nodes.remove(step);
            }
        }
    }

    /// Returns the set with the paths added that `named` says are there whenever something below them is.
    pub(super) fn with_parents<T: Copy>(
        &self,
        type_ref: T,
        named: &impl Fn(T, &PathElement) -> (bool, T),
    ) -> FieldSet {
        Self::collect(self.nodes.iter().map(|(step, node)| {
            let (is_field, inner) = named(type_ref, step);
            let below = node.below.with_parents(inner, named);
            (step.clone(), Node { member: node.member || (is_field && !node.below.is_empty()), below })
        }))
    }

    /// Calls `visit` with every path: those that end at a level before those that go on.
    pub fn each(&self, visit: &mut impl FnMut(&[PathElement])) {
        self.each_below(&mut Vec::new(), visit);
    }

    fn each_below(&self, path: &mut Vec<PathElement>, visit: &mut impl FnMut(&[PathElement])) {
        for (step, _) in self.nodes.iter().filter(|(_, node)| node.member) {
            path.push(step.clone());
            visit(path);
            path.pop();
        }
        for (step, node) in &self.nodes {
            path.push(step.clone());
            node.below.each_below(path, visit);
            path.pop();
        }
    }

    /// Returns the set as `fieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(self.to_map())
    }

    fn to_map(&self) -> Map<String, Value> {
        let mut out = Map::new();
        for (step, node) in &self.nodes {
            let mut inner = node.below.to_map();
            if node.member && !inner.is_empty() {
                inner.insert(".".to_owned(), Value::Object(Map::new()));
            }
            out.insert(step.to_key(), Value::Object(inner));
        }
        out
    }

    /// Reads `fieldsV1`; nothing if a key has none of the known forms.
    pub fn from_fields_v1(fields: &Value) -> Option<FieldSet> {
        let mut set = FieldSet::default();
        for (key, inner) in fields.as_object()? {
            if key == "." {
                continue;
            }
            let inner_map = inner.as_object()?;
            let node = Node {
                member: inner_map.is_empty() || inner_map.contains_key("."),
                below: FieldSet::from_fields_v1(inner)?,
            };
            set.nodes.insert(PathElement::from_key(key)?, node);
        }
        Some(set)
    }

    /// Returns the set of these paths of fields, written with dots.
    pub fn of_fields(paths: &[&str]) -> FieldSet {
        let mut set = FieldSet::default();
        for path in paths {
            let path: Vec<PathElement> =
                path.split('.').map(|step| PathElement::FieldName(step.to_owned())).collect();
            set.insert(&path);
        }
        set
    }
}

/// Returns a path as conflicts write it: `.spec.containers[name="a"].image`.
pub fn path_text(path: &[PathElement]) -> String {
    path.iter().map(PathElement::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(fields: &Value) -> FieldSet {
        FieldSet::from_fields_v1(fields).unwrap()
    }

    #[test]
    fn fields_v1_survives_a_round_trip() {
        let fields = json!({
            "f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}, "f:replicas": {}},
            "f:metadata": {"f:finalizers": {".": {}, "v:\"x\"": {}}},
        });
        let set = set(&fields);
        assert_eq!(set.to_fields_v1(), fields);
        let mut paths = Vec::new();
        set.each(&mut |path| paths.push(path_text(path)));
        assert_eq!(
            paths,
            [
                ".metadata.finalizers",
                ".metadata.finalizers[=\"x\"]",
                ".spec.replicas",
                ".spec.containers[name=\"a\"]",
                ".spec.containers[name=\"a\"].image",
            ]
        );
    }

    #[test]
    fn sets_are_combined() {
        let a = set(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
        let b = set(&json!({"f:a": {}, "f:d": {}}));
        assert_eq!(
            a.clone().union(b.clone()).to_fields_v1(),
            json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}, "f:d": {}})
        );
        assert_eq!(a.intersection(&b).to_fields_v1(), json!({"f:a": {}}));
        assert_eq!(a.clone().difference(&b).to_fields_v1(), json!({"f:a": {"f:b": {}}, "f:c": {}}));
        assert_eq!(a.without(&b).to_fields_v1(), json!({"f:c": {}}));
    }
}

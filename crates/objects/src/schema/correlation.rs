//! What a part of a value was before, as far as kube-apiserver finds that out.
//!
//! Maps are compared key by key, and lists with keys item by item. Other lists have changed if anything in them has, and so has
//! what the schema does not know.

use serde_json::Value;

use super::finding::Step;
use super::node::{Node, Schema};

/// A part of a value, and what it was.
#[derive(Clone, Copy)]
pub(super) struct Correlated<'a> {
    schema: &'a Schema,
    node: &'a Node,
    old: &'a Value,
    new: &'a Value,
}

impl<'a> Correlated<'a> {
    pub(super) fn new(schema: &'a Schema, node: &'a Node, (old, new): (&'a Value, &'a Value)) -> Self {
        Self { schema, node, old, new }
    }

    /// Returns the part at the end of a path; nothing if it cannot be found in what was.
    pub(super) fn at(self, path: &[Step<'_>]) -> Option<Self> {
        path.iter().try_fold(self, |part, step| match step {
            Step::Property(name) => part.property(name),
            Step::Item(index) | Step::Position(index) => part.item(*index),
        })
    }

    pub(super) fn property(self, name: &str) -> Option<Self> {
        let node = self.schema.property(self.node, name)?;
        let (old, new) = (self.old.as_object()?.get(name)?, self.new.as_object()?.get(name)?);
        Some(Self { node, old, new, ..self })
    }

    fn item(self, index: usize) -> Option<Self> {
        let new = self.new.as_array()?.get(index)?;
        let (node, old) = (self.schema.item(self.node)?, self.counterpart(new)?);
        Some(Self { node, old, new, ..self })
    }

    /// Returns what an item of a list with keys was: the first one that had its keys.
    fn counterpart(self, item: &Value) -> Option<&'a Value> {
        let keys = self.keys().filter(|keys| !keys.is_empty())?;
        let is_scalar = |value: &Value| !matches!(value, Value::Null | Value::Array(_) | Value::Object(_));
        let has_key = |old: &Value, key: &String| {
            let key = old.get(key).filter(|key| is_scalar(key)).zip(item.get(key));
            key.is_some_and(|(old, new)| old == new)
        };
        self.old.as_array()?.iter().find(|old| keys.iter().all(|key| has_key(old, key)))
    }

    /// Returns the keys of the items of a list that has some.
    fn keys(self) -> Option<&'a [String]> {
        let extensions = &self.node.extensions;
        (extensions.list_type == "map").then_some(&extensions.list_map_keys)
    }

    /// Returns whether it is as it was.
    pub(super) fn is_same(self) -> bool {
        match (self.old, self.new) {
            (Value::Array(old), Value::Array(new)) if self.keys().is_some() => {
                let is_same = |index| self.item(index).is_some_and(Self::is_same);
                old.len() == new.len() && (0..new.len()).all(is_same)
            }
            (Value::Object(old), Value::Object(new)) => {
                let is_same = |name: &String| self.property(name).is_some_and(Self::is_same);
                old.len() == new.len() && new.keys().all(is_same)
            }
            (old, new) => old == new,
        }
    }
}

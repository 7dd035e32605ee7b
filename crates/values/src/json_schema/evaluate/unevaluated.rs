//! Members and items that no keyword has looked at yet.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::json_schema::node::Node;

/// What no keyword has looked at; empty also if nobody asks.
#[derive(Default)]
pub(super) struct Unevaluated<'v> {
    pub(super) members: BTreeSet<&'v str>,
    pub(super) items: BTreeSet<usize>,
}

impl<'v> Unevaluated<'v> {
    /// Returns what the plain keywords of `node` leave; `asked` if a schema outside wants to know.
    pub(super) fn of(value: &'v Value, node: &Node, asked: bool) -> Self {
        let mut rest = Self::default();
        let (objects, arrays) = (&node.objects, &node.arrays);
        match value {
            Value::Object(members) if asked || objects.unevaluated.is_some() => {
                if objects.additional.is_none() {
                    rest.members.extend(members.keys().map(String::as_str));
                }
            }
            Value::Array(items) if asked || arrays.unevaluated.is_some() => {
                if arrays.rest.is_none() {
                    rest.items.extend(arrays.first.len()..items.len());
                }
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => {}
        }
        rest
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.items.is_empty()
    }

    /// Drops what another schema has looked at.
    pub(super) fn keep(&mut self, rest: &Self) {
        self.members.retain(|name| rest.members.contains(name));
        self.items.retain(|index| rest.items.contains(index));
    }
}

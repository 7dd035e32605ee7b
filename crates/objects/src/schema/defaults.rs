//! Filling in the defaults of a schema.

use serde_json::Value;

use super::node::{Node, Schema};
use crate::memory;

/// How deeply defaults may be put into defaults: a schema that leads into itself
/// may ask for it without end.
const MAX_NESTED_DEFAULTS: usize = 16;

/// How much memory defaults may take that are put into one value, in bytes: each item of a list may get its own.
const MAX_DEFAULTS: usize = 16 << 20;

impl Schema {
    /// Puts defaults into `value` where properties are missing, as go-openapi does.
    ///
    /// Returns whether all of them were put. Once 16 MiB are, those that are left are not.
    pub fn complete(&self, value: &mut Value) -> bool {
        let mut left = Some(MAX_DEFAULTS);
        if let Some(root) = self.root() {
            self.complete_level(root, value, 0, &mut left);
        }
        left.is_some()
    }

    /// Completes one level, which lies `inside` so many defaults; `left` is how much memory defaults may still take, and
    /// nothing once one did not find room.
    fn complete_level(&self, node: &Node, value: &mut Value, inside: usize, left: &mut Option<usize>) {
        match value {
            Value::Object(map) => {
                for (name, id) in &node.properties {
                    let Some(property) = self.node(*id) else {
                        continue;
                    };
                    let mut inside = inside;
                    if let Some(default) = &property.default
                        && !map.contains_key(name)
                        && inside < MAX_NESTED_DEFAULTS
                    {
                        let block = if map.is_empty() { memory::BLOCK } else { 0 };
                        if take(left, block + memory::ENTRY + name.len() + memory::estimate(default)) {
                            map.insert(name.clone(), default.clone());
                            inside += 1;
                        }
                    }
                    if let Some(value) = map.get_mut(name) {
                        self.complete_level(property, value, inside, left);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(node) = self.item(node) {
                    for item in items {
                        self.complete_level(node, item, inside, left);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Puts defaults into `value` where properties are missing or null and may not be, as kube-apiserver does. Nulls without a
    /// default go, unless `keeps_nulls`.
    ///
    /// Returns whether all of them were put. Once 16 MiB are, those that are left are not.
    pub(super) fn complete_structural(&self, value: &mut Value, keeps_nulls: bool) -> bool {
        let mut left = Some(MAX_DEFAULTS);
        if let Some(root) = self.root() {
            self.complete_structural_level(root, value, keeps_nulls, &mut left);
        }
        left.is_some()
    }

    fn complete_structural_level(
        &self,
        node: &Node,
        value: &mut Value,
        keeps_nulls: bool,
        left: &mut Option<usize>,
    ) {
        match value {
            Value::Object(fields) => {
                fields.retain(|key, part| {
                    let inner = self.property(node, key);
                    let may_be = |inner: &Node| {
                        let is_kept = keeps_nulls && inner.default.is_none();
                        inner.nullable || inner.types.is_empty() || is_kept
                    };
                    !part.is_null() || inner.is_none_or(may_be)
                });
                for (key, id) in &node.properties {
                    let default = self.node(*id).and_then(|inner| inner.default.as_ref());
                    let Some(default) = default.filter(|_| !fields.contains_key(key)) else { continue };
                    let block = if fields.is_empty() { memory::BLOCK } else { 0 };
                    if take(left, block + memory::ENTRY + key.len() + memory::estimate(default)) {
                        fields.insert(key.clone(), default.clone());
                    }
                }
                for (key, part) in fields {
                    if let Some(inner) = self.property(node, key) {
                        self.complete_structural_level(inner, part, keeps_nulls, left);
                    }
                }
            }
            Value::Array(items) => {
                let Some(inner) = self.item(node) else {
                    return;
                };
                for item in items {
                    if item.is_null()
                        && !inner.nullable
                        && let Some(default) = &inner.default
                        && take(left, memory::estimate(default))
                    {
                        *item = default.clone();
                    }
                    self.complete_structural_level(inner, item, keeps_nulls, left);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Takes so many bytes of what is left for defaults. Returns whether there was room; after a default that found none there
/// is none for any other.
fn take(left: &mut Option<usize>, bytes: usize) -> bool {
    *left = left.and_then(|room| room.checked_sub(bytes));
    left.is_some()
}

//! Filling in the defaults of a schema.

use serde_json::Value;

use super::node::{Node, Schema};

/// How deeply defaults may be put into defaults: a schema that leads into itself
/// may ask for it without end.
const MAX_NESTED_DEFAULTS: usize = 16;

/// How many defaults are put into one value.
const MAX_DEFAULTS: usize = 1_000_000;

impl Schema {
    /// Puts defaults into `value` where properties are missing, as go-openapi does.
    pub fn complete(&self, value: &mut Value) {
        if let Some(root) = self.root() {
            let mut left = MAX_DEFAULTS;
            self.complete_level(root, value, 0, &mut left);
        }
    }

    /// Completes one level, which lies `inside` so many defaults; `left` is how
    /// many defaults may still be put.
    fn complete_level(&self, node: &Node, value: &mut Value, inside: usize, left: &mut usize) {
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
                        && *left > 0
                    {
                        map.insert(name.clone(), default.clone());
                        inside += 1;
                        *left -= 1;
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

    /// Puts defaults into `value` where properties are missing or null and may not be, as kube-apiserver does.
    pub(super) fn complete_structural(&self, value: &mut Value) {
        if let Some(root) = self.root() {
            self.complete_structural_level(root, value);
        }
    }

    fn complete_structural_level(&self, node: &Node, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|key, part| {
                    let inner = self.property(node, key);
                    !part.is_null() || inner.is_none_or(|inner| inner.nullable || inner.types.is_empty())
                });
                for (key, id) in &node.properties {
                    let default = self.node(*id).and_then(|inner| inner.default.as_ref());
                    if let Some(default) = default.filter(|_| !fields.contains_key(key)) {
                        fields.insert(key.clone(), default.clone());
                    }
                }
                for (key, part) in fields {
                    if let Some(inner) = self.property(node, key) {
                        self.complete_structural_level(inner, part);
                    }
                }
            }
            Value::Array(items) => {
                let Some(inner) = self.item(node) else {
                    return;
                };
                for item in items {
                    if item.is_null() && !inner.nullable {
                        *item = inner.default.clone().unwrap_or(Value::Null);
                    }
                    self.complete_structural_level(inner, item);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

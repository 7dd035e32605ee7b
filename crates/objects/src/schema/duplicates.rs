//! Items that come again in lists whose items must differ.

use serde_json::Value;

use super::finding::{Finding, Step, Words};
use super::node::{Node, Schema};

/// Returns the items of sets and of lists with keys that come again in a value.
pub(super) fn duplicates<W: Words>(schema: &Schema, value: &Value, words: &W) -> Vec<W::Message> {
    let mut search = Search { schema, words, path: Vec::new(), found: Vec::new() };
    if let Some(root) = schema.root().filter(|_| value.is_object()) {
        search.level(root, value);
    }
    search.found
}

struct Search<'a, W: Words> {
    schema: &'a Schema,
    words: &'a W,
    path: Vec<Step<'a>>,
    found: Vec<W::Message>,
}

impl<'a, W: Words> Search<'a, W> {
    fn level(&mut self, node: &'a Node, value: &'a Value) {
        let schema = self.schema;
        match value {
            Value::Object(map) => {
                for (name, part) in map {
                    if let Some(inner) = schema.property(node, name) {
                        self.path.push(Step::Property(name));
                        self.level(inner, part);
                        self.path.pop();
                    }
                }
            }
            Value::Array(items) => {
                let Some(inner) = schema.item(node) else {
                    return;
                };
                let mut seen: Vec<Value> = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    self.path.push(Step::Item(index));
                    if let Some(identity) = identity(node, item) {
                        if seen.contains(&identity) && self.found.len() < W::MOST {
                            let finding = Finding::Duplicate(identity.clone());
                            self.words.report(&mut self.found, &self.path, item, &finding);
                        }
                        seen.push(identity);
                    }
                    self.level(inner, item);
                    self.path.pop();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Returns what the items of a list must differ in; nothing if they need not.
fn identity(node: &Node, item: &Value) -> Option<Value> {
    match node.extensions.list_type.as_str() {
        "set" => Some(item.clone()),
        "map" => {
            let keys = node.extensions.list_map_keys.iter();
            let parts = keys.filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
            Some(Value::Object(parts.collect()))
        }
        _ => None,
    }
}

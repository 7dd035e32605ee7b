//! Removing what a structural schema does not know.

use serde_json::{Map, Value};

use super::node::{Node, Schema};
use super::shape;
use crate::decode;

/// What every object has, and objects inside of objects, too.
const HEADER: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prunes a whole object; returns the paths of what was removed, sorted.
pub(super) fn prune(schema: &Schema, object: &mut Value) -> Vec<String> {
    let mut pruning = Pruning { schema, unknown: Vec::new() };
    if let (Value::Object(fields), Some(root)) = (object, schema.root()) {
        pruning.fields(fields, root, "", true);
    }
    pruning.unknown.sort();
    pruning.unknown
}

struct Pruning<'s> {
    schema: &'s Schema,
    /// The paths of what was removed.
    unknown: Vec<String>,
}

impl Pruning<'_> {
    fn value(&mut self, value: &mut Value, node: &Node, path: &str) {
        match value {
            Value::Object(fields) => self.fields(fields, node, path, node.extensions.embedded_resource),
            Value::Array(items) => {
                let schema = self.schema;
                let Some(inner) = schema.item(node) else {
                    return;
                };
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(item, inner, &format!("{path}[{index}]"));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Prunes the fields of an object; `whole` says that it has a header.
    fn fields(&mut self, fields: &mut Map<String, Value>, node: &Node, path: &str, whole: bool) {
        let at = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        let schema = self.schema;
        fields.retain(|key, part| {
            if whole && HEADER.contains(&key.as_str()) {
                if key == "metadata" && !path.is_empty() {
                    self.embedded_metadata(part, &at(key));
                }
                return true;
            }
            match schema.property(node, key) {
                Some(inner) => {
                    self.value(part, inner, &at(key));
                    true
                }
                None if node.preserves() => true,
                None => {
                    self.unknown.push(at(key));
                    false
                }
            }
        });
    }

    /// Objects inside of objects have the metadata that all objects have.
    fn embedded_metadata(&mut self, metadata: &mut Value, path: &str) {
        // What does not fit the type is refused before.
        let Ok(decoded) = decode::typed(metadata.clone().into(), &shape::metadata()) else { return };
        let paths = decoded.strict.iter().filter_map(|text| text.strip_prefix("unknown field \""));
        self.unknown.extend(paths.map(|rest| format!("{path}.{}", rest.trim_end_matches('"'))));
        *metadata = decoded.value;
        if let Some(fields) = metadata.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
    }
}

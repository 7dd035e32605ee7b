//! Objects inside of custom objects: `x-kubernetes-embedded-resource`.

use serde_json::{Map, Value};

use super::node::{Node, Schema};
use super::shape;
use crate::decode;

/// Returns the objects inside of `object`, with their paths.
pub(super) fn objects<'v>(schema: &Schema, object: &'v Value) -> Vec<(String, &'v Map<String, Value>)> {
    let mut found = Vec::new();
    if let Some(root) = schema.root().filter(|_| schema.has_embedded()) {
        collect(schema, root, (object, String::new()), &mut found);
    }
    found
}

fn collect<'v>(
    schema: &Schema,
    node: &Node,
    (value, path): (&'v Value, String),
    found: &mut Vec<(String, &'v Map<String, Value>)>,
) {
    match value {
        Value::Object(fields) => {
            for (name, part) in fields {
                if let Some(inner) = schema.property(node, name) {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    collect(schema, inner, (part, path), found);
                }
            }
            if node.extensions.embedded_resource {
                found.push((path, fields));
            }
        }
        Value::Array(items) => {
            let Some(inner) = schema.item(node) else { return };
            for (index, item) in items.iter().enumerate() {
                collect(schema, inner, (item, format!("{path}[{index}]")), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns what is wrong with the types of what every object has: the path of the field, and why.
pub(super) fn type_error(path: &str, object: &Map<String, Value>) -> Option<(String, String)> {
    let wrong = |field: &str, why: &str| {
        let shown = object.get(field).map(ToString::to_string).unwrap_or_default();
        (format!("{path}.{field}"), format!("Invalid value: {shown}: {why}"))
    };
    let is_text = |field: &str| object.get(field).is_none_or(|value| value.is_string() || value.is_null());
    if let Some(field) = ["apiVersion", "kind"].into_iter().find(|field| !is_text(field)) {
        return Some(wrong(field, "must be a string"));
    }
    let metadata = object.get("metadata")?.clone();
    let error = decode::typed(metadata.into(), &shape::metadata()).err()?;
    Some(wrong("metadata", &error.to_string()))
}

//! Taking out what a schema does not know, and filling in its defaults.

use crate::types;
use serde_json::{Map, Value};

use super::node::Node;

/// What every object has, and objects inside of objects, too.
const HEADER: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prunes a whole object.
pub(super) fn object(object: &mut Value, root: &Node, unknown: &mut Vec<String>) {
    let Value::Object(fields) = object else {
        return;
    };
    fields_of(fields, root, "", true, unknown);
    unknown.sort();
}

fn value(value: &mut Value, node: &Node, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields_of(fields, node, path, node.embedded, unknown),
        Value::Array(items) => {
            let Some(inner) = node.items.as_deref() else {
                return;
            };
            for (index, item) in items.iter_mut().enumerate() {
                self::value(item, inner, &format!("{path}[{index}]"), unknown);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn fields_of(
    fields: &mut Map<String, Value>,
    node: &Node,
    path: &str,
    whole: bool,
    unknown: &mut Vec<String>,
) {
    let at = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let keeps = node.preserves || node.any_additional;
    fields.retain(|key, part| {
        if whole && HEADER.contains(&key.as_str()) {
            if key == "metadata" && !path.is_empty() {
                embedded_metadata(part, &at(key), unknown);
            }
            return true;
        }
        match node.child(key) {
            Some(inner) => {
                value(part, inner, &at(key), unknown);
                true
            }
            None if keeps => true,
            None => {
                unknown.push(at(key));
                false
            }
        }
    });
}

/// Objects inside of objects have the metadata that all objects have.
fn embedded_metadata(metadata: &mut Value, path: &str, unknown: &mut Vec<String>) {
    let known = types::named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    let (Some(fields), Some(known)) = (metadata.as_object_mut(), known) else {
        return;
    };
    fields.retain(|key, _| {
        let keep = known.field(key).is_some();
        if !keep {
            unknown.push(format!("{path}.{key}"));
        }
        keep
    });
}

/// Fills in defaults.
pub(super) fn complete(value: &mut Value, node: &Node) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, part| {
                let inner = node.child(key);
                !part.is_null() || inner.is_none_or(|inner| inner.nullable || inner.is_any())
            });
            for (key, inner) in &node.properties {
                if let Some(default) = inner.default.as_ref().filter(|_| !fields.contains_key(key)) {
                    fields.insert(key.clone(), default.clone());
                }
            }
            for (key, part) in fields {
                if let Some(inner) = node.child(key) {
                    complete(part, inner);
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = node.items.as_deref() else {
                return;
            };
            for item in items {
                if item.is_null() && !inner.nullable {
                    *item = inner.default.clone().unwrap_or(Value::Null);
                }
                complete(item, inner);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

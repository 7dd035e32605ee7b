//! Items of lists that are told apart must differ.

use serde_json::{Map, Value};

use super::node::Node;
use super::{FieldError, fields};

/// Adds an error for each item that comes again.
pub(super) fn duplicates(value: &Value, node: &Node, path: &str, errors: &mut Vec<FieldError>) {
    let at = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    for (key, part) in fields(value) {
        if let Some(inner) = node.child(key) {
            duplicates(part, inner, &at(key), errors);
        }
    }
    let (Value::Array(items), Some(inner)) = (value, node.items.as_deref()) else {
        return;
    };
    let mut seen: Vec<Value> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let place = format!("{path}[{index}]");
        let identity = match node.list_type.as_str() {
            "set" => item.clone(),
            "map" => identity(item, &node.list_keys),
            _ => {
                duplicates(item, inner, &place, errors);
                continue;
            }
        };
        if seen.contains(&identity) {
            let shown = identity.as_str().map_or_else(|| identity.to_string(), |text| format!("{text:?}"));
            errors.push(FieldError {
                reason: "FieldValueDuplicate",
                field: place.clone(),
                message: format!("Duplicate value: {shown}"),
            });
        }
        seen.push(identity);
        duplicates(item, inner, &place, errors);
    }
}

fn identity(item: &Value, keys: &[String]) -> Value {
    let parts = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    Value::Object(parts.collect::<Map<_, _>>())
}

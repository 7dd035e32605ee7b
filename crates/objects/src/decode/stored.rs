//! What a round trip through the database of a server makes of an object: there an empty list is no list.

use serde_json::Value;

use crate::types::{Field, Shape};

/// Takes away the empty lists and maps of an object of `shape`; where fields are always written, null takes their place.
pub fn forget_empty(value: &mut Value, shape: &Shape) {
    match value {
        Value::Object(fields) => {
            if let Some(object) = shape.object() {
                for (name, value) in fields {
                    if let Some(field) = object.field(name) {
                        forget_in_field(value, field);
                    }
                }
            } else if let Shape::Map(item, _) = shape {
                for value in fields.values_mut() {
                    forget_empty(value, item);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item) = shape.item() {
                for value in items {
                    forget_empty(value, item);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn forget_in_field(value: &mut Value, field: &Field) {
    let is_empty = match (&field.shape, &*value) {
        (Shape::List(..), Value::Array(items)) => items.is_empty(),
        (Shape::Map(..), Value::Object(fields)) => fields.is_empty(),
        _ => false,
    };
    if is_empty && !field.omit_empty {
        *value = Value::Null;
    } else {
        forget_empty(value, &field.shape);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::types;

    #[test]
    fn empty_lists_that_are_always_written_become_null() {
        for (group, kind, given, expected) in [
            ("rbac.authorization.k8s.io", "Role", json!({"rules": []}), json!({"rules": null})),
            (
                "rbac.authorization.k8s.io",
                "Role",
                json!({"rules": [{"verbs": []}]}),
                json!({"rules": [{"verbs": null}]}),
            ),
            ("", "ConfigMap", json!({"data": {"a": ""}}), json!({"data": {"a": ""}})),
            ("", "LimitRange", json!({"spec": {"limits": []}}), json!({"spec": {"limits": null}})),
        ] {
            let shape = Shape::Named(types::name_of_kind(group, "v1", kind).unwrap());
            let mut found = given;
            forget_empty(&mut found, &shape);
            assert_eq!(found, expected);
        }
    }
}

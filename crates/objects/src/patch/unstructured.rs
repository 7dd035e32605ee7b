//! Why a merged object does not fit its type, in the words of the converter from unstructured objects.

use serde_json::Value;

use crate::decode::{self, Node};
use crate::types::{Object, Shape};

/// Returns the first value that does not fit `shape`; nothing if all do.
pub fn conversion_error(value: &Value, shape: &Shape) -> Option<String> {
    at(value, shape, "")
}

fn at(value: &Value, shape: &Shape, own: &str) -> Option<String> {
    match shape {
        _ if value.is_null() => None,
        Shape::Any | Shape::Fields => None,
        Shape::Named(_) | Shape::Object(_) => match value.as_object() {
            Some(fields) => shape.object().and_then(|object| in_object(fields, object)),
            None => Some(format!("cannot restore struct from: {}", kind(value))),
        },
        Shape::List(item, _) => match value.as_array() {
            Some(items) => items.iter().find_map(|value| at(value, item, "")),
            None => Some(format!("cannot restore slice from {}", kind(value))),
        },
        Shape::Map(item, _) => match value.as_object() {
            Some(fields) => fields.values().find_map(|value| at(value, item, "")),
            None => Some(format!("cannot restore map from {}", kind(value))),
        },
        Shape::Bytes => decode::typed(Node::from(value.clone()), shape).err().map(|error| {
            let prefix = if value.is_string() { "error decoding from json: " } else { "" };
            format!("{prefix}{error}")
        }),
        Shape::Quantity | Shape::Time | Shape::MicroTime | Shape::Duration | Shape::IntOrString => {
            decode::typed(Node::from(value.clone()), shape).err().map(|error| error.to_string())
        }
        Shape::String => scalar(value, "string", own, value.is_string()),
        Shape::Boolean => scalar(value, "bool", own, value.is_boolean()),
        Shape::Int32 => scalar(value, "int32", own, is_whole(value)),
        Shape::Int64 => scalar(value, "int64", own, is_whole(value)),
        Shape::Number => scalar(value, "float64", own, value.is_number()),
    }
}

fn in_object(fields: &serde_json::Map<String, Value>, object: &Object) -> Option<String> {
    let known = object.fields.iter().filter_map(|field| Some((field, fields.get(&*field.name)?)));
    let mut known: Vec<_> = known.collect();
    known.sort_by_key(|(field, _)| field.position);
    known.into_iter().find_map(|(field, value)| at(value, &field.shape, &field.go_type))
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Only some pairs of types have a conversion that can fail; all others are an unrecognized type.
fn scalar(value: &Value, target: &str, own: &str, fits: bool) -> Option<String> {
    if fits {
        return None;
    }
    let from = kind(value);
    let shown = if own.is_empty() { target } else { own };
    Some(match (from, target) {
        ("int64", "string") | ("float64", "int32" | "int64") => format!("cannot convert {from} to {shown}"),
        (_, _) => format!("unrecognized type: {target}"),
    })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types;
    use serde_json::json;

    #[test]
    fn what_does_not_fit_a_struct_is_told_in_its_words() {
        let shape = Shape::Named(types::name_of_kind("apps", "v1", "Deployment").unwrap());
        let template =
            |container: Value| json!({"spec": {"template": {"spec": {"containers": [container]}}}});
        for (object, expected) in [
            (json!({"spec": {"replicas": 2, "paused": true}}), None),
            (json!({"spec": {"replicas": "x"}}), Some("unrecognized type: int32")),
            (json!({"spec": {"replicas": 1.5}}), Some("cannot convert float64 to int32")),
            (json!({"spec": {"paused": "x"}}), Some("unrecognized type: bool")),
            (json!({"spec": "x"}), Some("cannot restore struct from: string")),
            (json!({"spec": {"template": []}}), Some("cannot restore struct from: slice")),
            (json!({"metadata": {"labels": [1]}}), Some("cannot restore map from slice")),
            (json!({"metadata": {"labels": {"a": 1}}}), Some("cannot convert int64 to string")),
            (
                json!({"spec": {"template": {"spec": {"containers": "x"}}}}),
                Some("cannot restore slice from string"),
            ),
            (
                template(json!({"name": "x", "imagePullPolicy": 5})),
                Some("cannot convert int64 to v1.PullPolicy"),
            ),
            (
                template(json!({"resources": {"limits": {"cpu": true}}})),
                Some(
                    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
                ),
            ),
        ] {
            assert_eq!(conversion_error(&object, &shape).as_deref(), expected, "{object}");
        }
    }

    #[test]
    fn bytes_that_are_no_base64_are_told_with_what_read_them() {
        let shape = Shape::Named(types::name_of_kind("", "v1", "Secret").unwrap());
        let told = conversion_error(&json!({"data": {"a": "not base64!"}}), &shape).unwrap();
        assert_eq!(told, "error decoding from json: illegal base64 data at input byte 3");
    }
}

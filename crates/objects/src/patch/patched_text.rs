//! A patched object as servers show it that keep what a patch does not touch as it was written: there fields have the order of their
//! type, and everywhere else that of the alphabet.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::location::decode_element;
use crate::types::Shape;

/// The objects on the way to what a patch changes.
#[derive(Debug, Default)]
pub struct Touched(BTreeMap<String, Touched>);

impl Touched {
    /// Returns what a merge patch touches.
    pub fn by_merge(patch: &Value) -> Touched {
        let fields = patch.as_object().into_iter().flatten().filter(|(_, value)| value.is_object());
        Touched(fields.map(|(key, value)| (key.clone(), Touched::by_merge(value))).collect())
    }

    /// Returns what a list of operations touches.
    pub fn by_operations(operations: &Value) -> Touched {
        let mut touched = Touched::default();
        for operation in operations.as_array().into_iter().flatten() {
            for name in ["path", "from"] {
                let path = operation.get(name).and_then(Value::as_str).unwrap_or_default();
                let Some((parents, _)) = path.rsplit_once('/') else {
                    continue;
                };
                let steps = parents.split('/').skip(1).map(decode_element);
                steps.fold(&mut touched, |at, step| at.0.entry(step).or_default());
            }
        }
        touched
    }
}

/// Returns an object of `shape` as text.
pub fn patched_text(object: &Value, shape: &Shape, touched: &Touched) -> String {
    let mut out = String::new();
    write(&mut out, object, Some(shape), Some(touched));
    out
}

fn write(out: &mut String, value: &Value, shape: Option<&Shape>, touched: Option<&Touched>) {
    match value {
        Value::Object(fields) => {
            out.push('{');
            for (index, (key, value)) in in_order(fields, shape, touched).into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&scalar(&Value::from(key)));
                out.push(':');
                let below = touched.and_then(|touched| touched.0.get(key));
                write(out, value, shape.and_then(|shape| shape.child(key)), below);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                let below = touched.and_then(|touched| touched.0.get(&index.to_string()));
                write(out, item, shape.and_then(Shape::item), below);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&scalar(value));
        }
    }
}

/// Returns a value as Go writes it.
fn scalar(value: &Value) -> String {
    String::from_utf8_lossy(&golang::json::bytes(value)).into_owned()
}

fn in_order<'a>(
    fields: &'a Map<String, Value>,
    shape: Option<&Shape>,
    touched: Option<&Touched>,
) -> Vec<(&'a str, &'a Value)> {
    let mut fields: Vec<(&str, &Value)> = fields.iter().map(|(key, value)| (key.as_str(), value)).collect();
    if let (None, Some(object)) = (touched, shape.and_then(Shape::object)) {
        fields.sort_by_key(|(key, _)| object.field(key).map_or(u16::MAX, |field| field.position));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types;
    use serde_json::json;

    #[test]
    fn what_is_not_touched_keeps_the_order_of_its_type() {
        let shape = Shape::Named(types::name_of_kind("", "v1", "ConfigMap").unwrap());
        let map = json!({"kind": "ConfigMap", "metadata": {"labels": {"b": "", "a": 1}, "name": "n", "uid": "u"}, "data": {"x": "y"}});
        let touched = Touched::by_merge(&json!({"data": {"x": 1}, "metadata": null}));
        assert_eq!(
            patched_text(&map, &shape, &touched),
            r#"{"data":{"x":"y"},"kind":"ConfigMap","metadata":{"name":"n","uid":"u","labels":{"a":1,"b":""}}}"#
        );
        let touched =
            Touched::by_operations(&json!([{"op": "add", "path": "/metadata/labels/a", "value": 1}]));
        assert_eq!(
            patched_text(&map, &shape, &touched),
            r#"{"data":{"x":"y"},"kind":"ConfigMap","metadata":{"labels":{"a":1,"b":""},"name":"n","uid":"u"}}"#
        );
    }
}

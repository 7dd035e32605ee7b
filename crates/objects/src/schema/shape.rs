//! The type of custom objects for managed fields, and their schema as clients read it.

use std::sync::Arc;

use crate::types::{self, Field, ListType, Object, PatchRule, Shape};
use serde_json::{Map, Value, json};

use super::node::{Node, Others, Schema};

const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

pub(super) fn of_schema(schema: &Schema) -> Shape {
    let mut object = schema.root().map(|root| object_of(schema, root)).unwrap_or_default();
    add_header(&mut object.fields);
    Shape::Object(Arc::new(object))
}

/// Adds what every object has.
fn add_header(fields: &mut Vec<Field>) {
    for (name, shape) in [("apiVersion", Shape::String), ("kind", Shape::String), ("metadata", metadata())] {
        fields.retain(|field| field.name != name);
        fields.push(field(name, shape, false, None));
    }
    fields.sort_by(|a, b| a.name.cmp(&b.name));
}

/// Returns the type of the metadata of all objects.
pub(super) fn metadata() -> Shape {
    types::name_of(METADATA).map_or(Shape::Any, Shape::Named)
}

fn field(name: &str, shape: Shape, atomic: bool, default: Option<&Value>) -> Field {
    Field {
        name: name.to_owned().into(),
        shape,
        inner: None,
        required: false,
        pointer: true,
        omit_empty: true,
        atomic,
        patch: PatchRule::default(),
        default: default.cloned().map(Arc::new),
        values: Vec::new(),
        go_type: "".into(),
        position: 0,
    }
}

fn object_of(schema: &Schema, node: &Node) -> Object {
    let parts = node.properties.iter().filter_map(|(name, id)| Some((name, schema.node(*id)?)));
    let mut fields: Vec<Field> = parts
        .map(|(name, part)| field(name, of(schema, part), part.extensions.atomic_map, part.default.as_ref()))
        .collect();
    if node.extensions.embedded_resource {
        add_header(&mut fields);
    }
    Object {
        fields,
        additional: others(schema, node).map(|others| of(schema, others)),
        preserves_unknown: node.preserves(),
        atomic: node.extensions.atomic_map,
        ..Object::default()
    }
}

/// Returns the level of properties that are not listed.
fn others<'s>(schema: &'s Schema, node: &Node) -> Option<&'s Node> {
    if let Others::Schema(id) = node.other_properties { schema.node(id) } else { None }
}

fn of(schema: &Schema, node: &Node) -> Shape {
    if node.extensions.int_or_string {
        return Shape::IntOrString;
    }
    match node.types.first().map_or("", String::as_str) {
        "string" => Shape::String,
        "boolean" => Shape::Boolean,
        "integer" => Shape::Int64,
        "number" => Shape::Number,
        "array" => {
            let item = schema.item(node).map_or(Shape::Any, |item| of(schema, item));
            let keys = || node.extensions.list_map_keys.iter().map(|key| key.clone().into()).collect();
            let list_type = match node.extensions.list_type.as_str() {
                "map" => ListType::Map(keys()),
                "set" => ListType::Set,
                _ => ListType::Atomic,
            };
            Shape::List(Arc::new(item), list_type)
        }
        "object" => match others(schema, node) {
            Some(item) if node.properties.is_empty() => {
                Shape::Map(Arc::new(of(schema, item)), node.extensions.atomic_map)
            }
            _ => Shape::Object(Arc::new(object_of(schema, node))),
        },
        // Whatever is there is owned key by key.
        _ => Shape::Object(Arc::new(Object { preserves_unknown: true, ..Object::default() })),
    }
}

/// Returns the schema with what every object has.
pub(super) fn published(schema: &Value) -> Value {
    let mut out = schema.clone();
    let Some(root) = out.as_object_mut() else {
        return json!({"type": "object"});
    };
    let properties = root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Some(properties) = properties.as_object_mut() {
        properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
        properties.insert("kind".to_owned(), json!({"type": "string"}));
        let reference = format!("#/components/schemas/{METADATA}");
        properties.insert("metadata".to_owned(), json!({"allOf": [{"$ref": reference}]}));
    }
    out
}

//! The type of custom objects for managed fields, and their schema as clients read it.

use std::sync::Arc;

use crate::types::{self, Field, Listing, Object, PatchRule, Shape};
use serde_json::{Map, Value, json};

use super::node::Node;

const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Returns the type of a whole object.
pub(super) fn of_root(root: &Node) -> Shape {
    let mut object = object_of(root);
    for (name, shape) in [("apiVersion", Shape::String), ("kind", Shape::String), ("metadata", metadata())] {
        object.fields.retain(|field| field.name != name);
        object.fields.push(field(name, shape, false, None));
    }
    object.fields.sort_by(|a, b| a.name.cmp(&b.name));
    Shape::Object(Arc::new(object))
}

fn metadata() -> Shape {
    types::name_of(METADATA).map_or(Shape::Any, Shape::Named)
}

fn field(name: &str, shape: Shape, atomic: bool, default: Option<&Value>) -> Field {
    Field {
        name: name.to_owned().into(),
        shape,
        required: false,
        pointer: true,
        omit_empty: true,
        atomic,
        patch: PatchRule::default(),
        default: default.cloned().map(Arc::new),
        values: Vec::new(),
        go_type: "".into(),
        place: 0,
    }
}

fn object_of(node: &Node) -> Object {
    let fields = node.properties.iter();
    Object {
        fields: fields
            .map(|(name, part)| field(name, of(part), part.atomic_map, part.default.as_ref()))
            .collect(),
        additional: node.additional.as_deref().map(of),
        preserves_unknown: node.preserves || node.any_additional,
        atomic: node.atomic_map,
        ..Object::default()
    }
}

fn of(node: &Node) -> Shape {
    if node.int_or_string {
        return Shape::IntOrString;
    }
    match node.kind.as_str() {
        "string" => Shape::String,
        "boolean" => Shape::Boolean,
        "integer" => Shape::Int64,
        "number" => Shape::Number,
        "array" => {
            let item = node.items.as_deref().map_or(Shape::Any, of);
            let listing = match node.list_type.as_str() {
                "map" => Listing::Map(node.list_keys.iter().map(|key| key.clone().into()).collect()),
                "set" => Listing::Set,
                _ => Listing::Atomic,
            };
            Shape::List(Arc::new(item), listing)
        }
        "object" => match &node.additional {
            Some(item) if node.properties.is_empty() => Shape::Map(Arc::new(of(item)), node.atomic_map),
            _ => Shape::Object(Arc::new(object_of(node))),
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

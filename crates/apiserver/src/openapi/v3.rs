//! `OpenAPI` documents of groups and versions: the types of their kinds and the addresses they are at.
//!
//! Nothing is described: clients read types, keys of merged lists and the options of requests.

use std::collections::BTreeMap;

use objects::schema::Structural;
use objects::types::{self, Field, ListType, Object, Shape};
use serde_json::{Map, Value, json};

use crate::kind::{Kind, Verb, join_group_version};

/// Types that are no objects, by the name they are published under.
const SCALARS: [(&str, &str); 6] = [
    ("io.k8s.apimachinery.pkg.api.resource.Quantity", r#"{"oneOf":[{"type":"string"},{"type":"number"}]}"#),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", r#"{"type":"object"}"#),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", r#"{"type":"string","format":"date-time"}"#),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", r#"{"type":"string","format":"date-time"}"#),
    ("io.k8s.apimachinery.pkg.runtime.RawExtension", r#"{"type":"object"}"#),
    (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        r#"{"format":"int-or-string","oneOf":[{"type":"integer"},{"type":"string"}]}"#,
    ),
];

/// A kind to publish, with its schema when it is custom.
#[derive(Clone, Copy, Debug)]
pub struct Published<'a> {
    /// The kind.
    pub kind: &'a Kind,
    /// `openAPIV3Schema` of a custom kind.
    pub schema: Option<&'a Value>,
}

/// Returns the document of a group and version.
pub fn of_group_version(group: &str, version: &str, kinds: &[Published<'_>], server: &str) -> Value {
    let mut schemas = BTreeMap::new();
    let mut paths = Map::new();
    for (name, object) in types::reachable(group, version) {
        schemas.insert(name, of_object(object));
    }
    for published in kinds {
        add_paths(published.kind, &mut paths);
        if let Some(schema) = published.schema {
            add_custom(published.kind, schema, &mut schemas);
        }
    }
    for (name, text) in SCALARS {
        schemas.insert(name.to_owned(), serde_json::from_str(text).unwrap_or_default());
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": server},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

/// Returns the path of the document of a group and version below `/openapi/v3/`.
pub fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// Returns the list of documents, given their paths and a text that changes with their content.
pub fn index<'a>(documents: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let entries = documents.map(|(path, hash)| {
        let url = format!("/openapi/v3/{path}?hash={hash}");
        (path.to_owned(), json!({"serverRelativeURL": url}))
    });
    json!({"paths": Value::Object(entries.collect())})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn of_object(object: &Object) -> Value {
    let mut out = Map::new();
    out.insert("type".to_owned(), "object".into());
    let required = object.fields.iter().filter(|field| field.required);
    let required: Vec<&str> = required.map(|field| &*field.name).collect();
    if !required.is_empty() {
        out.insert("required".to_owned(), json!(required));
    }
    if !object.fields.is_empty() {
        let fields = object.fields.iter().map(|field| (field.name.to_string(), of_field(field)));
        out.insert("properties".to_owned(), Value::Object(fields.collect()));
    }
    if !object.kinds.is_empty() {
        let kinds: Vec<Value> = object.kinds.iter().map(|(g, v, k)| gvk(g, v, k)).collect();
        out.insert("x-kubernetes-group-version-kind".to_owned(), Value::Array(kinds));
    }
    if object.atomic {
        out.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
    }
    Value::Object(out)
}

fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

fn of_field(field: &Field) -> Value {
    let mut out = match of_shape(&field.shape) {
        Value::Object(out) => out,
        _ => Map::new(),
    };
    // A reference stands alone, unless it is wrapped.
    if let Some(reference) = out.remove("$ref") {
        out.insert("allOf".to_owned(), json!([{"$ref": reference}]));
    }
    if let Some(default) = &field.default {
        out.insert("default".to_owned(), (**default).clone());
    }
    if !field.values.is_empty() {
        out.insert("enum".to_owned(), json!(field.values));
    }
    if let Shape::List(_, listing) = &field.shape {
        let kind = match listing {
            ListType::Atomic => "atomic",
            ListType::Map(keys) => {
                out.insert("x-kubernetes-list-map-keys".to_owned(), json!(keys));
                "map"
            }
            ListType::Set => "set",
        };
        out.insert("x-kubernetes-list-type".to_owned(), kind.into());
    }
    if field.atomic {
        out.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
    }
    let rule = &field.patch;
    let mut strategies = Vec::new();
    strategies.extend(rule.merge_key.as_ref().map(|_| "merge"));
    strategies.extend(rule.replace.then_some("replace"));
    strategies.extend(rule.retain_keys.then_some("retainKeys"));
    if !strategies.is_empty() {
        out.insert("x-kubernetes-patch-strategy".to_owned(), strategies.join(",").into());
    }
    if let Some(key) = rule.merge_key.as_deref().filter(|key| !key.is_empty()) {
        out.insert("x-kubernetes-patch-merge-key".to_owned(), key.into());
    }
    Value::Object(out)
}

fn of_shape(shape: &Shape) -> Value {
    match shape {
        Shape::Any => reference("io.k8s.apimachinery.pkg.runtime.RawExtension"),
        Shape::String | Shape::Duration => json!({"type": "string"}),
        Shape::Bytes => json!({"type": "string", "format": "byte"}),
        Shape::Boolean => json!({"type": "boolean"}),
        Shape::Int32 => json!({"type": "integer", "format": "int32"}),
        Shape::Int64 => json!({"type": "integer", "format": "int64"}),
        Shape::Number => json!({"type": "number", "format": "double"}),
        Shape::Quantity => reference("io.k8s.apimachinery.pkg.api.resource.Quantity"),
        Shape::Time => reference("io.k8s.apimachinery.pkg.apis.meta.v1.Time"),
        Shape::MicroTime => reference("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"),
        Shape::IntOrString => reference("io.k8s.apimachinery.pkg.util.intstr.IntOrString"),
        Shape::Fields => reference("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"),
        Shape::Named(name) => reference(&name.full()),
        Shape::Object(object) => of_object(object),
        Shape::List(item, _) => json!({"type": "array", "items": of_shape(item)}),
        Shape::Map(item, _) => json!({"type": "object", "additionalProperties": of_shape(item)}),
    }
}

/// Adds a custom kind, its list and the metadata they refer to.
fn add_custom(kind: &Kind, schema: &Value, schemas: &mut BTreeMap<String, Value>) {
    let name = custom_name(&kind.group, &kind.version, &kind.kind);
    let mut own = Structural::published(schema);
    if let Some(own) = own.as_object_mut() {
        let kinds = json!([gvk(&kind.group, &kind.version, &kind.kind)]);
        own.insert("x-kubernetes-group-version-kind".to_owned(), kinds);
    }
    let list = json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [reference("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta")]},
            "items": {"type": "array", "items": reference(&name)},
        },
        "x-kubernetes-group-version-kind": [gvk(&kind.group, &kind.version, &kind.list_kind)],
    });
    schemas.insert(custom_name(&kind.group, &kind.version, &kind.list_kind), list);
    schemas.insert(name, own);
    for meta in [
        "ObjectMeta",
        "ListMeta",
        "OwnerReference",
        "ManagedFieldsEntry",
        "DeleteOptions",
        "Preconditions",
        "Status",
        "StatusDetails",
        "StatusCause",
    ] {
        let name = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{meta}");
        if let Some(object) = types::named(&name) {
            schemas.entry(name).or_insert_with(|| of_object(object));
        }
    }
}

/// Returns the name of a custom type: the group backwards, the version and the kind.
fn custom_name(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.split('.').collect();
    parts.reverse();
    format!("{}.{version}.{kind}", parts.join("."))
}

fn add_paths(kind: &Kind, paths: &mut Map<String, Value>) {
    let base = if kind.group.is_empty() { "/api/" } else { "/apis/" };
    let base = format!("{base}{}", join_group_version(&kind.group, &kind.version));
    let (scope, parameters) = if kind.namespaced {
        ("/namespaces/{namespace}", json!([path_parameter("namespace")]))
    } else {
        ("", json!([]))
    };
    let all = format!("{base}{scope}/{}", kind.plural);
    let own = gvk(&kind.group, &kind.version, &kind.kind);
    let collection = [("get", Verb::List), ("post", Verb::Create), ("delete", Verb::DeleteCollection)];
    let mut item = operations(kind, &collection, &own);
    item.insert("parameters".to_owned(), parameters.clone());
    paths.insert(all.clone(), Value::Object(item));
    let single =
        [("get", Verb::Get), ("put", Verb::Update), ("patch", Verb::Patch), ("delete", Verb::Delete)];
    let mut item = operations(kind, &single, &own);
    let mut parameters = parameters.as_array().cloned().unwrap_or_default();
    parameters.push(path_parameter("name"));
    if !item.is_empty() {
        item.insert("parameters".to_owned(), Value::Array(parameters));
        paths.insert(format!("{all}/{{name}}"), Value::Object(item));
    }
}

fn path_parameter(name: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}})
}

fn operations(kind: &Kind, verbs: &[(&str, Verb)], own: &Value) -> Map<String, Value> {
    let offered = verbs.iter().filter(|(_, verb)| kind.allows(*verb));
    let operation = |method: &str, verb: Verb| {
        let action = match method {
            "get" if verb == Verb::List => "list",
            "delete" if verb == Verb::DeleteCollection => "deletecollection",
            method => method,
        };
        let options: &[&str] = match verb {
            Verb::Create | Verb::Update => &["dryRun", "fieldManager", "fieldValidation"],
            Verb::Patch => &["dryRun", "fieldManager", "fieldValidation", "force"],
            Verb::Delete => &["dryRun", "gracePeriodSeconds", "propagationPolicy"],
            Verb::DeleteCollection | Verb::Get | Verb::List | Verb::Watch => &[],
        };
        let parameters: Vec<Value> = options.iter().map(|name| query_parameter(name)).collect();
        json!({
            "parameters": parameters,
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": own,
        })
    };
    offered.map(|(method, verb)| ((*method).to_owned(), operation(method, *verb))).collect()
}

fn query_parameter(name: &str) -> Value {
    let kind = match name {
        "force" => "boolean",
        "gracePeriodSeconds" => "integer",
        _ => "string",
    };
    json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind;

    fn document(group: &str, version: &str) -> Value {
        let kinds = kind::builtin().iter().filter(|k| k.group == group && k.version == version);
        let kinds: Vec<Published<'_>> = kinds.map(|kind| Published { kind, schema: None }).collect();
        of_group_version(group, version, &kinds, "v1.34.2")
    }

    #[test]
    fn every_reference_of_every_document_leads_somewhere() {
        for kind in kind::builtin() {
            let document = document(&kind.group, &kind.version);
            let schemas = document["components"]["schemas"].as_object().unwrap();
            let text = document.to_string();
            for part in text.split("#/components/schemas/").skip(1) {
                let name = part.split('"').next().unwrap();
                assert!(schemas.contains_key(name), "{name}");
            }
        }
    }

    #[test]
    fn clients_find_kinds_options_and_merge_keys() {
        let document = document("apps", "v1");
        let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
        assert_eq!(
            patch["x-kubernetes-group-version-kind"],
            json!({"group": "apps", "version": "v1", "kind": "Deployment"})
        );
        assert!(patch["parameters"].as_array().unwrap().iter().any(|p| p["name"] == "fieldValidation"));
        let containers =
            &document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
        assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
        assert_eq!(containers["x-kubernetes-list-type"], "map");
    }

    #[test]
    fn custom_kinds_are_published_with_their_schema() {
        let mut kind = kind::Kind::clone(kind::find("apps", "v1", "deployments").unwrap());
        kind.group = "x.io".into();
        kind.kind = "Foo".into();
        kind.list_kind = "FooList".into();
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
        let document =
            of_group_version("x.io", "v1", &[Published { kind: &kind, schema: Some(&schema) }], "v1.34.2");
        let own = &document["components"]["schemas"]["io.x.v1.Foo"];
        assert_eq!(own["properties"]["spec"], json!({"type": "object"}));
        assert_eq!(own["x-kubernetes-group-version-kind"][0]["kind"], "Foo");
    }
}

//! The `OpenAPI` v2 document of all groups and versions, for clients that do not know v3 or look there first.
//!
//! It is made of the v3 documents; the second form of it is the protobuf that clients of Kubernetes ask for.

use serde_json::{Map, Value, json};

/// The media type of the protobuf form, as it is answered.
pub const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Returns the document of version 2 with the contents of `documents`.
pub fn of_documents(documents: impl Iterator<Item = Value>) -> Value {
    let mut definitions = Map::new();
    let mut paths = Map::new();
    for mut document in documents {
        let schemas = document.pointer_mut("/components/schemas").map(Value::take);
        for (name, schema) in object(schemas) {
            definitions.entry(name).or_insert_with(|| definition(schema));
        }
        for (path, item) in object(document.get_mut("paths").map(Value::take)) {
            paths.insert(path, path_item(item));
        }
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "1.34"},
        "paths": paths,
        "definitions": definitions,
    })
}

fn object(value: Option<Value>) -> Map<String, Value> {
    if let Some(Value::Object(fields)) = value { fields } else { Map::new() }
}

/// Turns a schema of v3 into one of v2.
fn definition(schema: Value) -> Value {
    let Value::Object(mut fields) = schema else {
        return json!({});
    };
    // References may have neighbours here, and need no wrap.
    if let Some(Value::Array(parts)) = fields.remove("allOf") {
        fields.extend(parts.into_iter().flat_map(|part| object(Some(part))));
    }
    // There are no alternatives: numbers and texts are published as texts.
    if fields.remove("oneOf").is_some() || fields.remove("anyOf").is_some() {
        fields.entry("type").or_insert_with(|| json!("string"));
    }
    for name in ["nullable", "not"] {
        fields.remove(name);
    }
    if let Some(Value::String(reference)) = fields.get_mut("$ref") {
        *reference = reference.replace("#/components/schemas/", "#/definitions/");
    }
    for name in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(name).filter(|inner| inner.is_object()) {
            *inner = definition(inner.take());
        }
    }
    if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
        for property in properties.values_mut() {
            *property = definition(property.take());
        }
    }
    Value::Object(fields)
}

/// Parameters have their type at their side instead of in a schema.
fn path_item(item: Value) -> Value {
    let Value::Object(fields) = item else {
        return item;
    };
    let changed = fields.into_iter().map(|(name, value)| {
        let value = if name == "parameters" {
            let items = value.as_array().cloned().unwrap_or_default();
            Value::Array(items.into_iter().map(parameter).collect())
        } else {
            path_item(value)
        };
        (name, value)
    });
    Value::Object(changed.collect())
}

fn parameter(parameter: Value) -> Value {
    let mut fields = object(Some(parameter));
    let schema = object(fields.remove("schema"));
    fields.extend(schema);
    Value::Object(fields)
}

/// A message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number > 0x7f {
            self.0.push(0x80 | u8::try_from(number & 0x7f).unwrap_or(0));
            number >>= 7;
        }
        self.0.push(u8::try_from(number).unwrap_or(0));
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint((field << 3) | 2);
        self.varint(u64::try_from(bytes.len()).unwrap_or(0));
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }

    /// Writes a text if there is one.
    fn text(&mut self, field: u64, value: Option<&Value>) {
        if let Some(text) = value.and_then(Value::as_str) {
            self.bytes(field, text.as_bytes());
        }
    }

    fn flag(&mut self, field: u64, value: Option<&Value>) {
        if value == Some(&Value::Bool(true)) {
            self.varint(field << 3);
            self.varint(1);
        }
    }

    /// Writes a name with what it stands for.
    fn named(&mut self, field: u64, name: &str, value: &Message) {
        let mut pair = Message::default();
        pair.bytes(1, name.as_bytes());
        pair.message(2, value);
        self.message(field, &pair);
    }

    /// Writes the fields that begin with `x-`.
    fn extensions(&mut self, field: u64, fields: &Map<String, Value>) {
        for (name, value) in fields.iter().filter(|(name, _)| name.starts_with("x-")) {
            self.named(field, name, &any(value));
        }
    }
}

/// A value of any kind is written as YAML, of which JSON is a part.
fn any(value: &Value) -> Message {
    let mut message = Message::default();
    message.bytes(2, format!("{value}\n").as_bytes());
    message
}

/// Returns the document as protobuf.
pub fn to_protobuf(document: &Value) -> Vec<u8> {
    let mut out = Message::default();
    out.text(1, document.get("swagger"));
    let mut info = Message::default();
    info.text(1, document.pointer("/info/title"));
    info.text(2, document.pointer("/info/version"));
    out.message(2, &info);
    let mut paths = Message::default();
    for (path, item) in document.get("paths").and_then(Value::as_object).into_iter().flatten() {
        paths.named(2, path, &item_message(item));
    }
    out.message(8, &paths);
    let mut definitions = Message::default();
    for (name, schema) in document.get("definitions").and_then(Value::as_object).into_iter().flatten() {
        definitions.named(1, name, &schema_message(schema));
    }
    out.message(9, &definitions);
    out.0
}

fn item_message(item: &Value) -> Message {
    const METHODS: [(&str, u64); 5] = [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("patch", 7)];
    let mut out = Message::default();
    for (method, field) in METHODS {
        if let Some(operation) = item.get(method).and_then(Value::as_object) {
            let mut message = Message::default();
            parameters(&mut message, 8, operation.get("parameters"));
            message.extensions(13, operation);
            out.message(field, &message);
        }
    }
    parameters(&mut out, 9, item.get("parameters"));
    out
}

fn parameters(out: &mut Message, field: u64, list: Option<&Value>) {
    for parameter in list.and_then(Value::as_array).into_iter().flatten() {
        let in_path = parameter.get("in").is_some_and(|place| place == "path");
        // Those of queries can be empty, and have one field more for it.
        let (kind, shift) = if in_path { (4, 0) } else { (3, 1) };
        let mut own = Message::default();
        own.flag(1, parameter.get("required"));
        own.text(2, parameter.get("in"));
        own.text(4, parameter.get("name"));
        own.text(5 + shift, parameter.get("type"));
        own.flag(19 + shift, parameter.get("uniqueItems"));
        let (mut not_body, mut either, mut item) =
            (Message::default(), Message::default(), Message::default());
        not_body.message(kind, &own);
        either.message(2, &not_body);
        item.message(1, &either);
        out.message(field, &item);
    }
}

fn schema_message(schema: &Value) -> Message {
    let mut out = Message::default();
    let Some(fields) = schema.as_object() else {
        return out;
    };
    out.text(1, fields.get("$ref"));
    out.text(2, fields.get("format"));
    out.text(4, fields.get("description"));
    if let Some(default) = fields.get("default") {
        out.message(5, &any(default));
    }
    for required in fields.get("required").and_then(Value::as_array).into_iter().flatten() {
        out.text(19, Some(required));
    }
    for value in fields.get("enum").and_then(Value::as_array).into_iter().flatten() {
        out.message(20, &any(value));
    }
    if let Some(inner) = fields.get("additionalProperties").filter(|inner| inner.is_object()) {
        let mut item = Message::default();
        item.message(1, &schema_message(inner));
        out.message(21, &item);
    }
    if fields.contains_key("type") {
        let mut kind = Message::default();
        kind.text(1, fields.get("type"));
        out.message(22, &kind);
    }
    if let Some(inner) = fields.get("items") {
        let mut item = Message::default();
        item.message(1, &schema_message(inner));
        out.message(23, &item);
    }
    if let Some(properties) = fields.get("properties").and_then(Value::as_object) {
        let mut message = Message::default();
        for (name, property) in properties {
            message.named(1, name, &schema_message(property));
        }
        out.message(25, &message);
    }
    out.extensions(31, fields);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        let schema = json!({
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": {"allOf": [{"$ref": "#/components/schemas/B"}], "default": {}, "x-kubernetes-map-type": "atomic"},
                "b": {"type": "array", "items": {"oneOf": [{"type": "integer"}, {"type": "string"}]}},
            },
        });
        let query =
            json!({"name": "dryRun", "in": "query", "schema": {"type": "string", "uniqueItems": true}});
        let paths = json!({"/api/v1/a": {"patch": {"parameters": [query], "x-kubernetes-action": "patch"}}});
        json!({"paths": paths, "components": {"schemas": {"A": schema}}})
    }

    #[test]
    fn references_alternatives_and_parameters_take_the_older_form() {
        let older = of_documents([document()].into_iter());
        let expected = json!({
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": {"$ref": "#/definitions/B", "default": {}, "x-kubernetes-map-type": "atomic"},
                "b": {"type": "array", "items": {"type": "string"}},
            },
        });
        assert_eq!(older["definitions"]["A"], expected);
        let parameter = &older["paths"]["/api/v1/a"]["patch"]["parameters"][0];
        assert_eq!(
            *parameter,
            json!({"name": "dryRun", "in": "query", "type": "string", "uniqueItems": true})
        );
    }

    #[test]
    fn protobuf_holds_names_before_values() {
        let bytes = to_protobuf(&of_documents([document()].into_iter()));
        assert!(bytes.starts_with(b"\x0a\x032.0\x12\x12\x0a\x0aKubernetes\x12\x041.34"));
        let holds = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        // A query parameter: place 2, name 4, type 6.
        assert!(holds(b"\x12\x05query\x22\x06dryRun\x32\x06string"));
        assert!(holds(b"\x0a\x0f#/definitions/B\x2a\x05\x12\x03{}\x0a"));
        assert!(holds(b"\x0a\x15x-kubernetes-map-type"));
    }
}

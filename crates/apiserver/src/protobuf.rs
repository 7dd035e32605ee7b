//! Bodies in protocol buffers: what compiled clients such as `kubectl create` send for built-in kinds.
//!
//! Answers are never written this way: every client that sends it reads JSON as well.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use objects::decode::Node;

const MAGIC: &[u8] = b"k8s\0";

const MAX_DEPTH: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtobufError {
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    #[error("proto: illegal wireType or unexpected EOF")]
    Broken,
    #[error("proto: messages are nested too deeply")]
    Depth,
    #[error("no kind {kind:?} is registered for version {version:?}")]
    Unknown { kind: String, version: String },
}

type Read<T> = Result<T, ProtobufError>;

/// Reads a body; one without a kind is read as an object of `kind` in `api_version`.
pub(crate) fn read(body: &[u8], api_version: &str, kind: &str) -> Read<Node> {
    let unknown = body.strip_prefix(MAGIC).ok_or(ProtobufError::Prefix)?;
    let (mut own_version, mut own_kind, mut raw, mut content_type) =
        (String::new(), String::new(), &[][..], "");
    for field in Fields(unknown) {
        match field? {
            (1, Wire::Bytes(type_meta)) => {
                for field in Fields(type_meta) {
                    match field? {
                        (1, Wire::Bytes(text)) => own_version = String::from_utf8_lossy(text).into_owned(),
                        (2, Wire::Bytes(text)) => own_kind = String::from_utf8_lossy(text).into_owned(),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            (4, Wire::Bytes(text)) => content_type = std::str::from_utf8(text).unwrap_or_default(),
            _ => {}
        }
    }
    if content_type == "application/json" {
        return objects::decode::parse(raw).map_err(|_| ProtobufError::Broken);
    }
    let version = if own_version.is_empty() { api_version } else { &own_version };
    let kind = if own_kind.is_empty() { kind } else { &own_kind };
    let name = message_of(version, kind);
    let message = MESSAGES
        .get(name.as_str())
        .ok_or_else(|| ProtobufError::Unknown { kind: kind.to_owned(), version: version.to_owned() })?;
    let mut fields = Vec::new();
    fields.push(("kind".to_owned(), Node::String(kind.to_owned())));
    fields.push(("apiVersion".to_owned(), Node::String(version.to_owned())));
    read_fields(raw, message, &mut fields, 0)?;
    Ok(Node::Object(fields))
}

fn message_of(version: &str, kind: &str) -> String {
    if kind == "DeleteOptions" {
        return "meta.v1.DeleteOptions".to_owned();
    }
    let (group, version) = version.split_once('/').unwrap_or(("core", version));
    let package = group.split('.').next().unwrap_or_default();
    format!("{package}.{version}.{kind}")
}

/// The fields of a message, by number.
type Message = BTreeMap<u64, Field>;

#[derive(Debug)]
struct Field {
    name: &'static str,
    shape: Shape,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    Inline(Item),
    Map(Item),
    Many(Item),
    One(Item),
}

#[derive(Clone, Copy, Debug)]
enum Item {
    Bool,
    Bytes,
    Double,
    Integer,
    Message(&'static str),
    String,
}

static MESSAGES: LazyLock<BTreeMap<&'static str, Message>> = LazyLock::new(|| {
    let mut messages: BTreeMap<&str, Message> = BTreeMap::new();
    let mut name = "";
    for line in include_str!("../data/protobuf.txt").lines() {
        if let Some(next) = line.strip_prefix('=') {
            name = next;
            messages.entry(name).or_default();
            continue;
        }
        let mut parts = line.split(' ');
        let (Some(number), Some(field), Some(shape)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if let Ok(number) = number.parse() {
            let field = Field { name: field, shape: shape_of(shape) };
            messages.entry(name).or_default().insert(number, field);
        }
    }
    messages
});

fn shape_of(text: &'static str) -> Shape {
    let item = |text: &'static str| match text {
        "b" => Item::Bool,
        "d" => Item::Double,
        "i" => Item::Integer,
        "s" => Item::String,
        "y" => Item::Bytes,
        name => Item::Message(name),
    };
    match text.split_at_checked(1) {
        Some(("!", rest)) => Shape::Inline(item(rest)),
        Some(("*", rest)) => Shape::Many(item(rest)),
        Some(("{", rest)) => Shape::Map(item(rest)),
        Some(_) | None => Shape::One(item(text)),
    }
}

#[derive(Clone, Copy, Debug)]
enum Wire<'a> {
    Bytes(&'a [u8]),
    Fixed(u64),
    Varint(u64),
}

/// The numbered values of a message, in their order.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Read<u64> {
        let mut value = 0_u64;
        for shift in 0..10_u32 {
            let (byte, rest) = self.0.split_first().ok_or(ProtobufError::Broken)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f).checked_shl(shift * 7).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Broken)
    }

    fn take(&mut self, length: u64) -> Read<&'a [u8]> {
        let length = usize::try_from(length).map_err(|_| ProtobufError::Broken)?;
        let (taken, rest) = self.0.split_at_checked(length).ok_or(ProtobufError::Broken)?;
        self.0 = rest;
        Ok(taken)
    }

    fn fixed(&mut self, length: u64) -> Read<Wire<'a>> {
        let bytes = self.take(length)?;
        Ok(Wire::Fixed(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))))
    }

    fn field(&mut self) -> Read<(u64, Wire<'a>)> {
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => self.fixed(8)?,
            2 => {
                let length = self.varint()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => self.fixed(4)?,
            _ => return Err(ProtobufError::Broken),
        };
        Ok((key >> 3, wire))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Read<(u64, Wire<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

fn read_fields(bytes: &[u8], message: &Message, into: &mut Vec<(String, Node)>, depth: usize) -> Read<()> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::Depth);
    }
    for field in Fields(bytes) {
        let (number, wire) = field?;
        // Fields of newer versions are left out, as a decoder of this version does.
        let Some(field) = message.get(&number) else {
            continue;
        };
        match field.shape {
            Shape::One(item) => {
                let value = read_item(wire, item, depth)?;
                into.push((field.name.to_owned(), value));
            }
            Shape::Many(item) => {
                let value = read_item(wire, item, depth)?;
                push(into, field.name, value);
            }
            Shape::Map(item) => {
                let entry = read_entry(wire, item, depth)?;
                insert(into, field.name, entry);
            }
            Shape::Inline(Item::Message(name)) => {
                if let (Wire::Bytes(bytes), Some(message)) = (wire, MESSAGES.get(name)) {
                    read_fields(bytes, message, into, depth + 1)?;
                }
            }
            Shape::Inline(_) => {}
        }
    }
    Ok(())
}

fn push(into: &mut Vec<(String, Node)>, name: &str, value: Node) {
    match into.iter_mut().find(|(known, _)| known == name) {
        Some((_, Node::Array(list))) => list.push(value),
        Some(_) => {}
        None => into.push((name.to_owned(), Node::Array(vec![value]))),
    }
}

fn insert(into: &mut Vec<(String, Node)>, name: &str, entry: (String, Node)) {
    match into.iter_mut().find(|(known, _)| known == name) {
        Some((_, Node::Object(entries))) => entries.push(entry),
        Some(_) => {}
        None => into.push((name.to_owned(), Node::Object(vec![entry]))),
    }
}

fn read_entry(wire: Wire<'_>, item: Item, depth: usize) -> Read<(String, Node)> {
    let Wire::Bytes(bytes) = wire else {
        return Err(ProtobufError::Broken);
    };
    let (mut key, mut value) = (String::new(), None);
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Bytes(text)) => key = String::from_utf8_lossy(text).into_owned(),
            (2, wire) => value = Some(read_item(wire, item, depth)?),
            _ => {}
        }
    }
    let absent = || match item {
        Item::Bool => Node::Bool(false),
        Item::Double | Item::Integer => Node::Number(0.into()),
        Item::Bytes | Item::String => Node::String(String::new()),
        Item::Message(_) => Node::Null,
    };
    Ok((key, value.unwrap_or_else(absent)))
}

fn read_item(wire: Wire<'_>, item: Item, depth: usize) -> Read<Node> {
    Ok(match (item, wire) {
        (Item::Bool, Wire::Varint(value)) => Node::Bool(value != 0),
        (Item::Integer, Wire::Varint(value)) => Node::Number(value.cast_signed().into()),
        (Item::Double, Wire::Fixed(bits)) => {
            serde_json::Number::from_f64(f64::from_bits(bits)).map_or(Node::Null, Node::Number)
        }
        (Item::String, Wire::Bytes(text)) => Node::String(String::from_utf8_lossy(text).into_owned()),
        (Item::Bytes, Wire::Bytes(bytes)) => Node::String(STANDARD.encode(bytes)),
        (Item::Message(name), Wire::Bytes(bytes)) => read_message(name, bytes, depth)?,
        _ => return Err(ProtobufError::Broken),
    })
}

/// Reads a message; some are written in JSON in a way of their own.
fn read_message(name: &str, bytes: &[u8], depth: usize) -> Read<Node> {
    let mut fields = Vec::new();
    let message = MESSAGES.get(name).ok_or(ProtobufError::Broken)?;
    let json = |bytes: &[u8]| objects::decode::parse(bytes).map_err(|_| ProtobufError::Broken);
    match name {
        "runtime.RawExtension" | "meta.v1.FieldsV1" | "apiextensions.v1.JSON" => {
            return match Fields(bytes).next().transpose()? {
                Some((1, Wire::Bytes(raw))) if !raw.is_empty() => json(raw),
                Some(_) | None => Ok(Node::Null),
            };
        }
        "meta.v1.Time" => return time(bytes, false),
        "meta.v1.MicroTime" => return time(bytes, true),
        _ => {}
    }
    read_fields(bytes, message, &mut fields, depth + 1)?;
    let object = Node::Object(fields);
    let empty = || Node::Object(Vec::new());
    Ok(match name {
        "resource.Quantity" => object.get("string").cloned().unwrap_or(Node::String("0".to_owned())),
        "intstr.IntOrString" => match object.get("type") {
            Some(Node::Number(kind)) if kind.as_i64() == Some(1) => {
                object.get("strVal").cloned().unwrap_or(Node::String(String::new()))
            }
            _ => object.get("intVal").cloned().unwrap_or(Node::Number(0.into())),
        },
        "meta.v1.Duration" => Node::String(duration(&object)),
        "meta.v1.Verbs"
        | "authentication.v1.ExtraValue"
        | "authorization.v1.ExtraValue"
        | "certificates.v1.ExtraValue" => object.get("items").cloned().unwrap_or(Node::Array(Vec::new())),
        "apiextensions.v1.JSONSchemaPropsOrArray" => match object.get("jSONSchemas") {
            Some(list) => list.clone(),
            None => object.get("schema").cloned().unwrap_or_else(empty),
        },
        "apiextensions.v1.JSONSchemaPropsOrStringArray" => match object.get("property") {
            Some(list) => list.clone(),
            None => object.get("schema").cloned().unwrap_or_else(empty),
        },
        "apiextensions.v1.JSONSchemaPropsOrBool" => match object.get("schema") {
            Some(schema) => schema.clone(),
            None => object.get("allows").cloned().unwrap_or(Node::Bool(false)),
        },
        _ => object,
    })
}

fn time(bytes: &[u8], micro: bool) -> Read<Node> {
    let (mut seconds, mut nanos) = (None, 0);
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Varint(value)) => seconds = Some(value.cast_signed()),
            (2, Wire::Varint(value)) => nanos = i32::try_from(value.cast_signed()).unwrap_or(0),
            _ => {}
        }
    }
    let instant = seconds.and_then(|seconds| Timestamp::new(seconds, nanos).ok());
    Ok(match instant {
        Some(instant) if micro => Node::String(objects::time::format_micro(instant)),
        Some(instant) => Node::String(objects::time::format_seconds(instant)),
        None => Node::Null,
    })
}

/// Writes a span of nanoseconds as Go does: `1h2m3s`, `500ms`.
fn duration(object: &Node) -> String {
    let nanos = match object.get("duration") {
        Some(Node::Number(nanos)) => nanos.as_i64().unwrap_or(0),
        _ => 0,
    };
    golang::time::Duration(nanos).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        field.extend_from_slice(bytes);
        field
    }

    fn body(kind: &str, raw: &[u8]) -> Vec<u8> {
        let type_meta = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &type_meta), field(2, raw)].concat()
    }

    #[test]
    fn an_object_is_read_by_the_numbers_of_its_fields() {
        let metadata = field(1, &field(1, b"a"));
        let data = [field(2, &[field(1, b"k"), field(2, b"v")].concat()), field(2, &field(1, b"e"))].concat();
        let node = read(&body("ConfigMap", &[metadata, data].concat()), "", "").unwrap();
        let expected = json!({
            "kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"k": "v", "e": ""},
        });
        assert_eq!(Value::from(node), expected);
    }

    #[test]
    fn inlined_messages_and_special_forms_become_what_json_has() {
        let secret = field(6, &field(1, b"s"));
        let volume = field(1, &[field(1, b"vol"), field(2, &secret)].concat());
        let pod = read(&body("Pod", &field(2, &volume)), "", "").unwrap();
        assert_eq!(
            Value::from(pod)["spec"]["volumes"],
            json!([{"name": "vol", "secret": {"secretName": "s"}}])
        );
        let service_port = field(4, &[1 << 3, 1, 3 << 3 | 2, 4, b'h', b't', b't', b'p']);
        let service = read(&body("Service", &field(2, &field(1, &service_port))), "", "").unwrap();
        assert_eq!(Value::from(service)["spec"]["ports"], json!([{"targetPort": "http"}]));
    }

    #[test]
    fn broken_bodies_are_refused() {
        assert_eq!(read(b"xx", "v1", "Pod").unwrap_err(), ProtobufError::Prefix);
        assert_eq!(read(b"k8s\0\x0a\xff", "v1", "Pod").unwrap_err(), ProtobufError::Broken);
        assert!(matches!(read(&body("Nope", b""), "", ""), Err(ProtobufError::Unknown { .. })));
        assert_eq!(read(&body("Pod", &[0x0a, 0xff, 0x01]), "", "").unwrap_err(), ProtobufError::Broken);
    }
}

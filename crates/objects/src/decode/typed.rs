//! What a round trip through types makes of an object: unknown fields go, empty values go, amounts become canonical.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use thiserror::Error;

use super::Node;
use super::json::number_text;
use crate::quantity::Quantity;
use crate::time;
use crate::types::{Field, Object, Shape};

/// An object as it is stored, and what strict validation reports.
#[derive(Debug, Default)]
pub struct Decoded {
    /// The object in the form of its type.
    pub value: Value,
    /// Texts like `unknown field "spec.foo"` and `duplicate field "data.x"`, in the order of the document.
    pub strict: Vec<String>,
}

/// A value has not the type of its field.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct TypeError(String);

/// Returns `node` as an object of `shape`.
pub fn typed(node: Node, shape: &Shape) -> Result<Decoded, TypeError> {
    let mut walk = Walk::default();
    let value = walk.value(node, shape, "").unwrap_or_else(|| zero(shape));
    match walk.error {
        Some(error) => Err(error),
        None => Ok(Decoded { value, strict: walk.strict }),
    }
}

/// Returns `node` as an object without a type; only repeated keys are reported.
pub fn untyped(node: Node) -> Decoded {
    let mut walk = Walk::default();
    let value = walk.any(node);
    Decoded { value, strict: walk.strict }
}

/// How many texts are reported about one object at most.
const MAX_STRICT: usize = 100;

/// A step on the way to a value.
enum Step<'a> {
    Field(&'a str),
    Key(String),
    Index(usize),
}

#[derive(Default)]
struct Walk<'a> {
    strict: Vec<String>,
    /// The first wrong type. Reading goes on: the first in the document is reported.
    error: Option<TypeError>,
    /// The path to the value. It becomes text only when there is something to report.
    path: Vec<Step<'a>>,
    /// The innermost type.
    owner: &'a str,
}

impl<'a> Walk<'a> {
    fn report(&mut self, what: &str, key: &str) {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Index(index) => path.extend(["[", &index.to_string(), "]"]),
                Step::Field(name) => push_key(&mut path, name),
                Step::Key(name) => push_key(&mut path, name),
            }
        }
        push_key(&mut path, key);
        let text = format!("{what} field \"{path}\"");
        if self.strict.len() < MAX_STRICT && !self.strict.contains(&text) {
            self.strict.push(text);
        }
    }

    fn fail(&mut self, what: &str, go_type: &str) {
        let fields = self.path.iter().filter_map(|step| match step {
            Step::Field(name) => Some(*name),
            Step::Key(_) | Step::Index(_) => None,
        });
        let fields: Vec<&str> = fields.collect();
        let place = if fields.is_empty() {
            "value".to_owned()
        } else {
            format!("struct field {}.{}", self.owner, fields.join("."))
        };
        self.fail_with(format!("json: cannot unmarshal {what} into Go {place} of type {go_type}"));
    }

    fn fail_with(&mut self, text: String) {
        self.error.get_or_insert(TypeError(text));
    }

    /// Returns the value, or nothing when it is null or wrong.
    fn value(&mut self, node: Node, shape: &'a Shape, go: &str) -> Option<Value> {
        match (shape, node) {
            (Shape::Any | Shape::Fields, node) => Some(self.any(node)),
            (_, Node::Null) => None,
            (Shape::Named(_) | Shape::Object(_), Node::Object(fields)) => {
                shape.object().map(|object| self.object(fields, object))
            }
            (Shape::List(item, _), Node::Array(items)) => Some(self.list(items, item)),
            (Shape::Map(item, _), Node::Object(fields)) => Some(self.map(fields, item)),
            (_, node) => self.scalar(node, shape, go),
        }
    }

    fn object(&mut self, fields: Vec<(String, Node)>, object: &'a Object) -> Value {
        let outer = std::mem::replace(&mut self.owner, &object.name);
        let mut seen: Vec<&str> = Vec::with_capacity(fields.len());
        let mut out = Map::new();
        for (key, node) in fields {
            let Some(field) = object.field(&key) else {
                self.report("unknown", &key);
                continue;
            };
            if seen.contains(&&*field.name) {
                self.report("duplicate", &key);
            }
            seen.push(&field.name);
            match self.field(node, field) {
                Some(value) => out.insert(key, value),
                None => out.remove(&key),
            };
        }
        self.owner = outer;
        complete(&mut out, object);
        Value::Object(out)
    }

    fn field(&mut self, node: Node, field: &'a Field) -> Option<Value> {
        self.path.push(Step::Field(&field.name));
        let value = match &field.inner {
            _ if field.pointer && matches!(node, Node::Null) => None,
            Some(inner) => Some(self.unsaid(node, inner)),
            None => self.value(node, &field.shape, &field.go_type),
        };
        self.path.pop();
        // An empty list of owners says "forget the owners", which no list does not. One of policies is refused, and
        // no list is filled.
        value.filter(|value| {
            matches!(&*field.name, "managedFields" | "policies")
                || !(field.omit_empty && !field.pointer && is_empty(value, &field.shape))
        })
    }

    /// Returns a value that may be an object, a list of these, or something else. Whoever reads it reports no unknown fields.
    fn unsaid(&mut self, node: Node, inner: &'a Shape) -> Value {
        let reported = self.strict.len();
        let value = match node {
            node @ Node::Object(_) => self.value(node, inner, "").unwrap_or(Value::Null),
            Node::Array(items) => self.list(items, inner),
            node => self.any(node),
        };
        self.strict.truncate(reported);
        value
    }

    fn list(&mut self, items: Vec<Node>, item: &'a Shape) -> Value {
        let mut out = Vec::with_capacity(items.len());
        for (index, node) in items.into_iter().enumerate() {
            self.path.push(Step::Index(index));
            out.push(self.value(node, item, "").unwrap_or_else(|| zero(item)));
            self.path.pop();
        }
        Value::Array(out)
    }

    fn map(&mut self, fields: Vec<(String, Node)>, item: &'a Shape) -> Value {
        let mut out = Map::new();
        for (key, node) in fields {
            if out.contains_key(&key) {
                self.report("duplicate", &key);
            }
            self.path.push(Step::Key(key));
            let value = self.value(node, item, "").unwrap_or_else(|| zero(item));
            if let Some(Step::Key(key)) = self.path.pop() {
                out.insert(key, value);
            }
        }
        Value::Object(out)
    }

    fn any(&mut self, node: Node) -> Value {
        static ANY: Shape = Shape::Any;
        match node {
            Node::Object(fields) => self.map(fields, &ANY),
            Node::Array(items) => self.list(items, &ANY),
            scalar => Value::from(scalar),
        }
    }

    fn scalar(&mut self, node: Node, shape: &Shape, go: &str) -> Option<Value> {
        match (shape, node) {
            (Shape::String | Shape::IntOrString | Shape::Duration, Node::String(text)) => {
                Some(Value::String(text))
            }
            (Shape::Boolean, Node::Bool(flag)) => Some(Value::Bool(flag)),
            (Shape::Int32 | Shape::Int64 | Shape::IntOrString, Node::Number(number)) => {
                let integer = number.as_i64();
                let fits = |i: &i64| matches!(shape, Shape::Int64) || i32::try_from(*i).is_ok();
                let integer = integer.filter(fits);
                if integer.is_none() {
                    self.fail(&format!("number {}", number_text(&number)), go_type(shape, go).as_str());
                }
                integer.map(Value::from)
            }
            (Shape::Number, Node::Number(number)) => Some(Value::Number(number)),
            (Shape::Bytes, Node::String(text)) => self.bytes(&text),
            (Shape::Quantity, Node::Number(number)) => self.quantity(&number_text(&number)),
            (Shape::Quantity, Node::String(text)) => self.quantity(&text),
            (Shape::Quantity, _) => self.quantity("?"),
            (Shape::Time, Node::String(text)) => self.time(&text, false),
            (Shape::MicroTime, Node::String(text)) => self.time(&text, true),
            (_, node) => {
                self.fail(node.go_kind(), &go_type(shape, go));
                None
            }
        }
    }

    fn bytes(&mut self, text: &str) -> Option<Value> {
        let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
        if let Ok(bytes) = STANDARD.decode(&text) {
            return Some(Value::String(STANDARD.encode(bytes)));
        }
        let at = base64_error_offset(&text);
        self.fail_with(format!("illegal base64 data at input byte {at}"));
        None
    }

    fn quantity(&mut self, text: &str) -> Option<Value> {
        match text.trim().parse::<Quantity>() {
            Ok(quantity) => Some(Value::String(quantity.to_string())),
            Err(error) => {
                self.fail_with(error.to_string());
                None
            }
        }
    }

    fn time(&mut self, text: &str, micro: bool) -> Option<Value> {
        match time::canonical(text, micro) {
            Ok(text) => Some(Value::String(text)),
            Err(error) => {
                self.fail_with(error);
                None
            }
        }
    }
}

fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

/// Returns where Go's decoder stops reading base64.
pub fn base64_error_offset(text: &str) -> usize {
    let alphabet = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    let bad = text.bytes().position(|b| !alphabet(b));
    match bad {
        Some(at) => match text.as_bytes().get(at) {
            // Padding is fine in the last two places of a group of four; what follows it is not.
            Some(b'=') if at % 4 == 3 => at + 1,
            Some(b'=') if at % 4 == 2 && text.as_bytes().get(at + 1) == Some(&b'=') => at + 2,
            Some(b'=') if at % 4 == 2 => at + 1,
            _ => at,
        },
        None => text.len() - text.len() % 4,
    }
}

fn go_type(shape: &Shape, own: &str) -> String {
    if !own.is_empty() {
        return own.to_owned();
    }
    match shape {
        Shape::String | Shape::Duration | Shape::Time | Shape::MicroTime => "string".to_owned(),
        Shape::Bytes => "[]uint8".to_owned(),
        Shape::Boolean => "bool".to_owned(),
        Shape::Int32 | Shape::IntOrString => "int32".to_owned(),
        Shape::Int64 => "int64".to_owned(),
        Shape::Number => "float64".to_owned(),
        Shape::Quantity => "resource.Quantity".to_owned(),
        Shape::Any | Shape::Fields => "interface {}".to_owned(),
        Shape::Named(_) | Shape::Object(_) => {
            let (package, name) = shape.object().map_or(("", ""), |o| (&*o.package, &*o.name));
            let package = package.rsplit('.').next().unwrap_or_default();
            format!("{package}.{name}")
        }
        Shape::List(item, _) => format!("[]{}", go_type(item, "")),
        Shape::Map(item, _) if matches!(**item, Shape::Quantity) => "v1.ResourceList".to_owned(),
        Shape::Map(item, _) => format!("map[string]{}", go_type(item, "")),
    }
}

/// Returns whether a value is left out of a field that omits empty values. Structs never are.
fn is_empty(value: &Value, shape: &Shape) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty() && !matches!(shape, Shape::Named(_) | Shape::Any),
    }
}

/// Adds what is written although it was not given: structs, and values of fields that do not omit empty ones.
fn complete(out: &mut Map<String, Value>, object: &Object) {
    for field in &object.fields {
        let is_struct =
            matches!(field.shape, Shape::Named(_) | Shape::Time | Shape::MicroTime | Shape::Quantity);
        let written = !field.omit_empty || (is_struct && !field.pointer);
        if !written || out.contains_key(&*field.name) {
            continue;
        }
        let value = if field.pointer { Value::Null } else { zero(&field.shape) };
        out.insert(field.name.to_string(), value);
    }
}

/// Returns an object of `shape` to which nothing was given.
pub fn empty(shape: &Shape) -> Value {
    match zero(shape) {
        Value::Null => Value::Object(Map::new()),
        value => value,
    }
}

/// Returns what Go writes for a value that was never set.
fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::String | Shape::Bytes => Value::String(String::new()),
        Shape::Boolean => Value::Bool(false),
        Shape::Int32 | Shape::Int64 | Shape::Number | Shape::IntOrString => Value::from(0),
        Shape::Quantity => Value::from("0"),
        Shape::Duration => Value::from("0s"),
        Shape::Any | Shape::Fields | Shape::Time | Shape::MicroTime | Shape::List(..) | Shape::Map(..) => {
            Value::Null
        }
        Shape::Named(_) | Shape::Object(_) => {
            let mut out = Map::new();
            if let Some(object) = shape.object() {
                complete(&mut out, object);
            }
            Value::Object(out)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types;
    use serde_json::json;

    fn read(kind: &str, text: &str) -> Result<Decoded, TypeError> {
        let group = if kind == "Deployment" { "apps" } else { "" };
        let shape = Shape::Named(types::name_of_kind(group, "v1", kind).unwrap());
        typed(super::super::parse(text.as_bytes()).unwrap(), &shape)
    }

    #[test]
    fn wrong_types_are_told_with_the_names_of_structs() {
        for (kind, text, expected) in [
            (
                "ConfigMap",
                r#"{"data":{"a":1}}"#,
                "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
            ),
            (
                "ConfigMap",
                r#"{"data":[]}"#,
                "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string",
            ),
            (
                "ConfigMap",
                r#"{"metadata":"x"}"#,
                "json: cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta",
            ),
            ("ConfigMap", r#"{"binaryData":{"x":"!!"}}"#, "illegal base64 data at input byte 0"),
            (
                "ConfigMap",
                r#"{"metadata":{"generation":"x"}}"#,
                "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.generation of type int64",
            ),
            (
                "Deployment",
                r#"{"spec":{"replicas":1.5}}"#,
                "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                "Deployment",
                r#"{"spec":{"template":{"spec":{"containers":["x"]}}}}"#,
                "json: cannot unmarshal string into Go struct field PodSpec.spec.template.spec.containers of type v1.Container",
            ),
            (
                "Deployment",
                r#"{"spec":{"strategy":{"rollingUpdate":{"maxSurge":true}}}}"#,
                "json: cannot unmarshal bool into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
            ),
            (
                "Pod",
                r#"{"spec":{"containers":[{"ports":[{"protocol":1}]}]}}"#,
                "json: cannot unmarshal number into Go struct field ContainerPort.spec.containers.ports.protocol of type v1.Protocol",
            ),
            (
                "Pod",
                r#"{"spec":{"containers":[{"resources":{"limits":{"cpu":"abc"}}}]}}"#,
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
            (
                "Pod",
                r#"{"metadata":{"creationTimestamp":"x"}}"#,
                r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
            ),
        ] {
            assert_eq!(read(kind, text).unwrap_err().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn unknown_and_duplicate_fields_are_told_in_the_order_of_the_document() {
        let text = r#"{"metadata":{"name":"a","foo":1,"ownerReferences":[{"x":1}]},"data":{"x":"1","x":"2"},"foo":1,"Data":{}}"#;
        let decoded = read("ConfigMap", text).unwrap();
        let expected = [
            "unknown field \"metadata.foo\"",
            "unknown field \"metadata.ownerReferences[0].x\"",
            "duplicate field \"data.x\"",
            "unknown field \"foo\"",
            "unknown field \"Data\"",
        ];
        assert_eq!(decoded.strict, expected);
        assert_eq!(decoded.value["data"], json!({"x": "2"}));
        assert_eq!(decoded.value.get("foo"), None);
    }

    #[test]
    fn empty_values_go_and_structs_come() {
        let decoded = read("Deployment", r#"{"metadata":{"name":"a","labels":{}},"spec":{"replicas":0,"paused":false,"template":{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":0.5,"memory":"1024Mi"}}}]}}}}"#).unwrap();
        let expected = json!({
            "metadata": {"name": "a"},
            "spec": {
                "replicas": 0,
                "selector": null,
                "strategy": {},
                "template": {"metadata": {}, "spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}}]}},
            },
            "status": {},
        });
        assert_eq!(decoded.value, expected);
    }
}

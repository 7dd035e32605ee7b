//! From the bytes of a request to an object of a kind, with the texts that clients know from API servers.

mod json;
mod stored;
mod typed;

use serde_json::{Map, Number, Value};

pub use json::{MAX_DEPTH, SyntaxError, parse};
pub use stored::forget_empty;
pub use typed::base64_error_offset;
pub use typed::{Decoded, TypeError, empty, typed, untyped};

/// How deep the fields of an object may be nested.
///
/// Who owns its fields is kept in its metadata, in a form that is a little deeper: [`MAX_DEPTH`] leaves room for that.
pub const MAX_OBJECT_DEPTH: usize = 400;

/// Reads what [`parse`] reads as a plain value.
pub fn read(bytes: &[u8]) -> Result<Value, SyntaxError> {
    // The reader of `serde_json` is faster and ends at a smaller depth.
    serde_json::from_slice(bytes).or_else(|_| parse(bytes).map(Value::from))
}

/// A JSON value as it was written: keys in their order, repeated keys included.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    String(String),
    /// A list.
    Array(Vec<Node>),
    /// An object.
    Object(Vec<(String, Node)>),
}

impl Node {
    /// Returns the last value of `key`.
    pub fn get(&self, key: &str) -> Option<&Node> {
        if let Node::Object(fields) = self {
            fields.iter().rev().find(|(k, _)| k == key).map(|(_, value)| value)
        } else {
            None
        }
    }

    /// Returns the string.
    pub fn as_str(&self) -> Option<&str> {
        if let Node::String(text) = self { Some(text) } else { None }
    }

    /// Returns what Go's decoder calls the value.
    pub fn go_kind(&self) -> &'static str {
        match self {
            Node::Null => "null",
            Node::Bool(_) => "bool",
            Node::Number(_) => "number",
            Node::String(_) => "string",
            Node::Array(_) => "array",
            Node::Object(_) => "object",
        }
    }
}

impl From<Node> for Value {
    fn from(node: Node) -> Value {
        match node {
            Node::Null => Value::Null,
            Node::Bool(flag) => Value::Bool(flag),
            Node::Number(number) => Value::Number(number),
            Node::String(text) => Value::String(text),
            Node::Array(items) => Value::Array(items.into_iter().map(Value::from).collect()),
            Node::Object(fields) => {
                let fields = fields.into_iter().map(|(key, item)| (key, Value::from(item)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Node {
        match value {
            Value::Null => Node::Null,
            Value::Bool(flag) => Node::Bool(flag),
            Value::Number(number) => Node::Number(number),
            Value::String(text) => Node::String(text),
            Value::Array(items) => Node::Array(items.into_iter().map(Node::from).collect()),
            Value::Object(map) => {
                Node::Object(map.into_iter().map(|(key, item)| (key, Node::from(item))).collect())
            }
        }
    }
}

/// Why a body is no object of a kind, before its fields are looked at.
///
/// `expected` is the kind of the request path. The text is that of the real server up to where it prints the body.
pub fn header_error(root: &Node) -> Option<String> {
    const TARGET: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    match root {
        Node::Object(_) => {
            let field = ["apiVersion", "kind"].into_iter().find_map(|name| {
                let value = root.get(name)?;
                (!matches!(value, Node::String(_) | Node::Null)).then_some((name, value.go_kind()))
            });
            field.map(|(name, kind)| {
                format!("json: cannot unmarshal {kind} into Go struct field .{name} of type string")
            })
        }
        Node::Null => None,
        other => {
            let kind = other.go_kind();
            Some(format!("json: cannot unmarshal {kind} into Go value of type {TARGET}"))
        }
    }
}

//! The values of expressions.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use crate::access_check::AccessCheck;
use crate::address::Address;
use crate::semver::Semver;
use crate::times;

/// The value of an expression.
#[derive(Clone, Debug)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` and `false`.
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A number with a fraction.
    Double(f64),
    /// A text.
    String(Arc<str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A list.
    List(Arc<List>),
    /// A map, or an object.
    Map(Arc<Map>),
    /// A point in time, in nanoseconds since 1970.
    Timestamp(i128),
    /// A length of time, in nanoseconds.
    Duration(i64),
    /// A type, by its name.
    Type(Arc<str>),
    /// A value that may be missing.
    Optional(Option<Arc<Value>>),
    /// A value of a library of Kubernetes.
    Opaque(Opaque),
}

/// The items of a list.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// The items.
    pub items: Vec<Value>,
    /// What makes two lists equal.
    pub kind: ListKind,
}

/// The entries of a map, or the fields of an object.
#[derive(Clone, Debug, Default)]
pub struct Map {
    entries: BTreeMap<Key, Value>,
    /// Whether a schema describes it.
    is_described: bool,
}

impl std::ops::Deref for Map {
    type Target = BTreeMap<Key, Value>;

    fn deref(&self) -> &Self::Target {
        &self.entries
    }
}

/// What makes two lists equal, and what their sum is: `x-kubernetes-list-type`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListKind {
    /// The same items in the same order.
    #[default]
    Atomic,
    /// The same items in the same order, in a list that a schema describes.
    Described,
    /// The same items in any order.
    Set,
    /// The same items in any order; each has an identity, made of these fields.
    Map(Vec<String>),
}

/// The key of a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// `true` and `false`.
    Bool(bool),
    /// A number, signed or not.
    Number(i128),
    /// A text.
    String(Arc<str>),
}

/// A value of a library of Kubernetes.
#[derive(Clone, Debug, PartialEq)]
pub enum Opaque {
    /// An amount, in billionths.
    Quantity(i128),
    /// An address.
    Ip(IpAddr),
    /// A network: address and length of the prefix.
    Cidr(IpAddr, u8),
    /// A URL.
    Url(Arc<Address>),
    /// A version.
    Semver(Arc<Semver>),
    /// A format of texts, by its name.
    Format(&'static str),
    /// An authorizer, or a question to it.
    Check(Arc<AccessCheck>),
    /// What an authorizer decided, and why.
    Decision(bool, Arc<str>),
}

impl Value {
    /// Returns a text.
    pub fn text(text: impl Into<Arc<str>>) -> Value {
        Value::String(text.into())
    }

    /// Returns a list.
    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Arc::new(List { items, kind: ListKind::Atomic }))
    }

    /// Returns a map.
    pub fn map(entries: impl IntoIterator<Item = (Key, Value)>) -> Value {
        Value::Map(Arc::new(Map { entries: entries.into_iter().collect(), is_described: false }))
    }

    /// Returns a map or an object that a schema describes.
    pub(crate) fn described(entries: impl IntoIterator<Item = (Key, Value)>) -> Value {
        Value::Map(Arc::new(Map { entries: entries.into_iter().collect(), is_described: true }))
    }

    /// Returns the point in time of a text in the form of RFC 3339; the text itself if it has another form.
    pub fn timestamp(text: &str) -> Value {
        times::parse_timestamp(text).map_or_else(|| Value::text(text), Value::Timestamp)
    }

    /// Returns a value that is there.
    pub(crate) fn some(value: Value) -> Value {
        Value::Optional(Some(Arc::new(value)))
    }

    /// Returns the value of JSON whose types are not known: whole numbers are `int`.
    pub fn of(json: &serde_json::Value) -> Value {
        match json {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(*value),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(number) => Value::Int(number),
                None => number.as_f64().map_or(Value::Null, Value::Double),
            },
            serde_json::Value::String(text) => Value::text(text.as_str()),
            serde_json::Value::Array(items) => Value::list(items.iter().map(Value::of).collect()),
            serde_json::Value::Object(fields) => {
                Value::map(fields.iter().map(|(key, value)| (Key::text(key), Value::of(value))))
            }
        }
    }

    /// Returns the name of the type of a value, as `type()` shows it.
    pub fn type_name(&self) -> &str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Type(_) => "type",
            Value::Optional(_) => "optional_type",
            Value::Opaque(opaque) => opaque.type_name(),
        }
    }

    /// Returns how much of a value has to be looked at, for costs.
    pub(crate) fn size(&self) -> u64 {
        let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        match self {
            Value::String(text) => count(text.chars().count()),
            Value::Bytes(bytes) => count(bytes.len()),
            Value::List(list) => count(list.items.len()),
            Value::Map(map) => count(map.len()),
            Value::Optional(Some(value)) => value.size(),
            Value::Opaque(opaque) => opaque.size(),
            _ => 1,
        }
    }

    /// Returns whether two values are equal; numbers of different types are if they are the same number.
    pub fn equals(&self, other: &Value) -> bool {
        self.equality(other) == Some(true)
    }

    /// Returns whether two values are equal; `None` if the first one is only compared with values of its own type and the other
    /// one has another. Inside of lists and maps that does not make a difference, as in the real server.
    pub(crate) fn equality(&self, other: &Value) -> Option<bool> {
        Some(match (self, other) {
            (Value::Null, _) | (_, Value::Null) => matches!((self, other), (Value::Null, Value::Null)),
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::String(a), Value::String(b)) | (Value::Type(a), Value::Type(b)) => a == b,
            (Value::Bytes(a), Value::Bytes(b)) => a == b,
            (Value::List(a), Value::List(b)) => a.equals(b),
            (Value::Map(a), Value::Map(b)) => {
                a.len() == b.len()
                    && a.iter().all(|(key, value)| {
                        b.get(key).is_some_and(|other| value.equality(other) != Some(false))
                    })
            }
            (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
            (Value::Duration(a), Value::Duration(b)) => a == b,
            (Value::Optional(a), Value::Optional(b)) => match (a, b) {
                (Some(a), Some(b)) => return a.equality(b),
                (None, None) => true,
                _ => false,
            },
            (Value::Opaque(a), Value::Opaque(b)) if a.type_name() == b.type_name() => a == b,
            (Value::Opaque(_), _) => return None,
            (Value::List(list), _) if list.kind != ListKind::Atomic => return None,
            (Value::Map(map), _) if map.is_described => return None,
            _ => self.compare_numbers(other) == Some(Ordering::Equal),
        })
    }

    /// Returns the order of two numbers; `None` for other values, and for what is no number.
    pub(crate) fn compare_numbers(&self, other: &Value) -> Option<Ordering> {
        let whole = |value: &Value| match value {
            Value::Int(number) => Some(i128::from(*number)),
            Value::Uint(number) => Some(i128::from(*number)),
            _ => None,
        };
        match (self, other) {
            (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
            (Value::Double(a), b) => compare_whole(whole(b)?, *a).map(Ordering::reverse),
            (a, Value::Double(b)) => compare_whole(whole(a)?, *b),
            (a, b) => Some(whole(a)?.cmp(&whole(b)?)),
        }
    }

    /// Returns the order of two values of one type that has an order.
    pub(crate) fn compare(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::String(a), Value::String(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
            (Value::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
            (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
            _ => self.compare_numbers(other),
        }
    }

    /// Returns a value as JSON, as far as JSON can show it.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Null | Value::Optional(None) => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(number) => (*number).into(),
            Value::Uint(number) => (*number).into(),
            Value::Double(number) => (*number).into(),
            Value::String(text) | Value::Type(text) => serde_json::Value::String(text.to_string()),
            Value::Bytes(bytes) => {
                use base64::Engine as _;
                base64::engine::general_purpose::STANDARD.encode(bytes).into()
            }
            Value::List(list) => list.items.iter().map(Value::to_json).collect(),
            Value::Map(map) => {
                let entries = map.iter().map(|(key, value)| (key.to_string(), value.to_json()));
                serde_json::Value::Object(entries.collect())
            }
            Value::Timestamp(nanos) => times::format_timestamp(*nanos).into(),
            Value::Duration(nanos) => times::format_duration(*nanos).into(),
            Value::Optional(Some(value)) => value.to_json(),
            Value::Opaque(opaque) => opaque.type_name().into(),
        }
    }
}

/// Compares a whole number with one that has a fraction, as doubles are compared.
#[expect(clippy::cast_precision_loss, reason = "the language compares the nearest double")]
fn compare_whole(whole: i128, double: f64) -> Option<Ordering> {
    (whole as f64).partial_cmp(&double)
}

impl List {
    fn equals(&self, other: &List) -> bool {
        let (a, b) = (&self.items, &other.items);
        if a.len() != b.len() {
            return false;
        }
        let is_ordered = |list: &List| matches!(list.kind, ListKind::Atomic | ListKind::Described);
        if is_ordered(self) && is_ordered(other) {
            return a.iter().zip(b).all(|(a, b)| a.equality(b) != Some(false));
        }
        a.iter().all(|item| b.iter().any(|other| item.equals(other)))
            && b.iter().all(|item| a.iter().any(|other| item.equals(other)))
    }

    /// Returns the items of both lists: those of sets once, those with an identity as the second list has them.
    pub(crate) fn plus(&self, other: &List) -> List {
        let mut items = self.items.clone();
        match &self.kind {
            ListKind::Atomic | ListKind::Described => items.extend(other.items.iter().cloned()),
            ListKind::Set => {
                let new = other.items.iter().filter(|item| !self.items.iter().any(|own| own.equals(item)));
                items.extend(new.cloned());
            }
            ListKind::Map(keys) => {
                for item in &other.items {
                    match items.iter_mut().find(|own| is_same(own, item, keys)) {
                        Some(own) => *own = item.clone(),
                        None => items.push(item.clone()),
                    }
                }
            }
        }
        List { items, kind: self.kind.clone() }
    }
}

/// Returns whether two items have the same identity.
fn is_same(a: &Value, b: &Value, keys: &[String]) -> bool {
    let (Value::Map(a), Value::Map(b)) = (a, b) else { return false };
    keys.iter().all(|key| {
        let key = Key::text(key);
        match (a.get(&key), b.get(&key)) {
            (Some(a), Some(b)) => a.equals(b),
            (a, b) => a.is_none() && b.is_none(),
        }
    })
}

impl Key {
    /// Returns the key of a text.
    pub fn text(text: &str) -> Key {
        Key::String(text.into())
    }

    /// Returns a value as a key; `None` if it can be none.
    pub fn of(value: &Value) -> Option<Key> {
        Some(match value {
            Value::Bool(value) => Key::Bool(*value),
            Value::Int(number) => Key::Number((*number).into()),
            Value::Uint(number) => Key::Number((*number).into()),
            Value::Double(number) => Key::Number(whole(*number)?),
            Value::String(text) => Key::String(Arc::clone(text)),
            _ => return None,
        })
    }

    /// Returns the value that was written as this key.
    pub(crate) fn value(&self) -> Value {
        match self {
            Key::Bool(value) => Value::Bool(*value),
            Key::Number(number) => match i64::try_from(*number) {
                Ok(number) => Value::Int(number),
                Err(_) => Value::Uint(u64::try_from(*number).unwrap_or_default()),
            },
            Key::String(text) => Value::String(Arc::clone(text)),
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Bool(value) => value.fmt(f),
            Key::Number(number) => number.fmt(f),
            Key::String(text) => f.write_str(text),
        }
    }
}

/// Returns a number without a fraction as a whole one.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
fn whole(number: f64) -> Option<i128> {
    (number.fract() == 0.0 && number.abs() < 1e19).then_some(number as i128)
}

impl Opaque {
    fn type_name(&self) -> &'static str {
        match self {
            Opaque::Quantity(_) => "kubernetes.Quantity",
            Opaque::Ip(_) => "net.IP",
            Opaque::Cidr(..) => "net.CIDR",
            Opaque::Url(_) => "kubernetes.URL",
            Opaque::Semver(_) => "kubernetes.Semver",
            Opaque::Format(_) => "kubernetes.NamedFormat",
            Opaque::Check(_) => "kubernetes.authorization.ResourceCheck",
            Opaque::Decision(..) => "kubernetes.authorization.Decision",
        }
    }

    fn size(&self) -> u64 {
        match self {
            Opaque::Ip(address) | Opaque::Cidr(address, _) => {
                if address.is_ipv4() {
                    4
                } else {
                    16
                }
            }
            _ => 1,
        }
    }
}

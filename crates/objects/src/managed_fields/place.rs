//! Where a walk through an object is: what the value there is, and how its parts are told apart.

use serde_json::{Map, Value};

use super::element::{Element, key_text};
use crate::patch::convert::printed;
use crate::types::{Listing, Shape};

/// The type of a value; `None` means that the value tells.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    shape: Option<&'a Shape>,
    atomic: bool,
}

/// How a value is owned.
pub(super) enum Owned<'a> {
    /// As a whole.
    Leaf,
    /// Key by key.
    Map,
    /// Item by item.
    List(&'a Listing),
}

impl<'a> Place<'a> {
    pub(super) fn new(shape: &'a Shape) -> Self {
        Place { shape: Some(shape), atomic: false }
    }

    fn untyped(self) -> bool {
        self.shape.is_none()
    }

    /// Returns how `value` is owned here.
    pub(super) fn owned(self, value: &Value) -> Owned<'a> {
        if self.untyped() {
            return if value.is_object() { Owned::Map } else { Owned::Leaf };
        }
        match self.shape {
            Some(Shape::Map(_, atomic)) => {
                if *atomic || self.atomic || !is_map(value) {
                    Owned::Leaf
                } else {
                    Owned::Map
                }
            }
            Some(Shape::List(_, listing)) => {
                if *listing == Listing::Atomic || !(value.is_array() || value.is_null()) {
                    Owned::Leaf
                } else {
                    Owned::List(listing)
                }
            }
            Some(shape) => match shape.object() {
                Some(object) if !object.atomic && !self.atomic && is_map(value) => Owned::Map,
                _ => Owned::Leaf,
            },
            None => Owned::Leaf,
        }
    }

    /// Tells whether `key` is a field that the type declares.
    pub(super) fn declares(self, key: &str) -> bool {
        let object = self.shape.and_then(Shape::object);
        object.is_some_and(|object| object.field(key).is_some())
    }

    /// Tells whether `key` may be here.
    pub(super) fn allows(self, key: &str) -> bool {
        self.untyped()
            || match self.shape.and_then(Shape::object) {
                Some(object) => {
                    object.preserves_unknown || object.additional.is_some() || object.field(key).is_some()
                }
                None => true,
            }
    }

    /// Tells why `value` cannot be here; nothing if it can.
    pub(super) fn misfit(self, value: &Value) -> Option<String> {
        if value.is_null() {
            return None;
        }
        match self.shape? {
            Shape::String if !value.is_string() => {
                let shown = go_literal(value);
                Some(format!("expected string, got &value.valueUnstructured{{Value:{shown}}}"))
            }
            Shape::Boolean if !value.is_boolean() => {
                Some(format!("expected boolean, got &{{{}}}", printed(value)))
            }
            Shape::Int32 | Shape::Int64 | Shape::Number if !value.is_number() => {
                Some(format!("expected numeric (int or float), got {}", go_type(value)))
            }
            Shape::Named(_) | Shape::Object(_) | Shape::Map(..) if !value.is_object() => {
                Some(format!("expected map, got &{{{}}}", printed(value)))
            }
            Shape::List(..) if !value.is_array() => {
                Some(format!("expected list, got &{{{}}}", printed(value)))
            }
            _ => None,
        }
    }

    /// Returns the place of a field or key.
    pub(super) fn child(self, key: &str) -> Place<'a> {
        let Some(shape) = self.shape else {
            return self;
        };
        let field = shape.object().and_then(|object| object.field(key));
        match field {
            Some(field) => Place { shape: Some(&field.shape), atomic: field.atomic },
            None => Place { shape: shape.child(key), atomic: false },
        }
    }

    /// Returns the place of the items of a list.
    pub(super) fn item(self) -> Place<'a> {
        Place { shape: self.shape.and_then(Shape::item), atomic: false }
    }

    /// Returns the place a step leads to, and whether it is a declared field.
    pub(super) fn step(self, step: &Element) -> (bool, Place<'a>) {
        match step {
            Element::Field(name) => (self.declares(name), self.child(name)),
            Element::Key(_) | Element::Value(_) | Element::Index(_) => (false, self.item()),
        }
    }

    /// Returns how an item of a list is told apart from the others.
    pub(super) fn element(self, listing: &Listing, item: &Value) -> Result<Element, String> {
        match listing {
            Listing::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            Listing::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".to_owned())
                }
                scalar => Ok(Element::Value(scalar.clone())),
            },
            Listing::Map(keys) => {
                let item = match item {
                    Value::Object(item) => item,
                    Value::Null => {
                        return Err("associative list with keys may not have a null element".to_owned());
                    }
                    _ => return Err("associative list with keys may not have non-map elements".to_owned()),
                };
                let mut found = Vec::with_capacity(keys.len());
                for key in keys {
                    let value = item.get(&**key).cloned().or_else(|| self.default_of(key));
                    found.extend(value.map(|value| (key.to_string(), value)));
                }
                if found.is_empty() {
                    let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
                    let keys = keys.join(" ");
                    return Err(format!(
                        "associative list with keys has an element that omits all key fields [{keys}] (and doesn't have default values for any key fields)"
                    ));
                }
                found.sort_by(|a, b| a.0.cmp(&b.0));
                Ok(Element::Key(found))
            }
        }
    }

    /// Returns the key of `fieldsV1` that tells an item of a list apart; nothing if it cannot be told apart.
    pub(super) fn key(self, listing: &Listing, item: &Value) -> Option<String> {
        let (Listing::Map(keys), Value::Object(fields)) = (listing, item) else {
            return self.element(listing, item).ok().map(|element| element.to_key());
        };
        let object = self.item().shape.and_then(Shape::object);
        let default = |key: &str| object?.field(key)?.default.as_deref();
        let found = keys.iter().filter_map(|key| {
            let key = &**key;
            Some((key, fields.get(key).or_else(|| default(key))?))
        });
        let mut found: Vec<(&str, &Value)> = found.collect();
        found.sort_unstable_by_key(|(name, _)| *name);
        if found.is_empty() { None } else { Some(key_text(found.into_iter())) }
    }

    fn default_of(self, key: &str) -> Option<Value> {
        let object = self.item().shape?.object()?;
        object.field(key)?.default.as_deref().cloned()
    }
}

/// Returns what Go calls the type of a value.
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Returns a value as Go source would have it.
fn go_literal(value: &Value) -> String {
    let parts = match value {
        Value::Null => return "interface {}(nil)".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => return value.to_string(),
        Value::Array(items) => items.iter().map(go_literal).collect::<Vec<_>>(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name:?}:{}", go_literal(value))).collect()
        }
    };
    format!("{}{{{}}}", go_type(value), parts.join(", "))
}

fn is_map(value: &Value) -> bool {
    value.is_object() || value.is_null()
}

/// Returns the items of a list, none for null and for nothing.
pub(super) fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns the entries of an object, none for null and for nothing.
pub(super) fn entries(value: Option<&Value>) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.and_then(Value::as_object).unwrap_or(&EMPTY)
}

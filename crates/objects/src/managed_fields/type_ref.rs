//! The type of a value inside of an object, and how its parts become elements of a path.

use serde_json::{Map, Value};

use super::path_element::{PathElement, key_text};
use crate::go_value::{printed, source, type_name};
use crate::types::{ListType, Shape};

/// The type of a value; without a shape it is deduced from the value.
#[derive(Clone, Copy)]
pub(super) struct TypeRef<'a> {
    shape: Option<&'a Shape>,
    atomic: bool,
}

/// How the fields of a value are owned.
pub(super) enum Atom<'a> {
    /// As a whole.
    Leaf,
    /// Key by key.
    Map,
    /// Item by item.
    List(&'a ListType),
}

impl<'a> TypeRef<'a> {
    pub(super) fn new(shape: &'a Shape) -> Self {
        TypeRef { shape: Some(shape), atomic: false }
    }

    fn untyped(self) -> bool {
        self.shape.is_none()
    }

    /// Returns how `value` is owned if it has this type.
    pub(super) fn atom(self, value: &Value) -> Atom<'a> {
        if self.untyped() {
            return if value.is_object() { Atom::Map } else { Atom::Leaf };
        }
        match self.shape {
            Some(Shape::Map(_, atomic)) => {
                if *atomic || self.atomic || !is_map(value) {
                    Atom::Leaf
                } else {
                    Atom::Map
                }
            }
            Some(Shape::List(_, list_type)) => {
                if *list_type == ListType::Atomic || !(value.is_array() || value.is_null()) {
                    Atom::Leaf
                } else {
                    Atom::List(list_type)
                }
            }
            Some(shape) => match shape.object() {
                Some(object) if !object.atomic && !self.atomic && is_map(value) => Atom::Map,
                _ => Atom::Leaf,
            },
            None => Atom::Leaf,
        }
    }

    pub(super) fn declares(self, key: &str) -> bool {
        let object = self.shape.and_then(Shape::object);
        object.is_some_and(|object| object.field(key).is_some())
    }

    pub(super) fn allows(self, key: &str) -> bool {
        self.untyped()
            || match self.shape.and_then(Shape::object) {
                Some(object) => {
                    object.preserves_unknown || object.additional.is_some() || object.field(key).is_some()
                }
                None => true,
            }
    }

    /// Returns why `value` does not fit the type; nothing if it does.
    pub(super) fn type_error(self, value: &Value) -> Option<String> {
        if value.is_null() {
            return None;
        }
        match self.shape? {
            Shape::String if !value.is_string() => {
                let shown = source(value);
                Some(format!("expected string, got &value.valueUnstructured{{Value:{shown}}}"))
            }
            Shape::Boolean if !value.is_boolean() => {
                Some(format!("expected boolean, got &{{{}}}", printed(value)))
            }
            Shape::Int32 | Shape::Int64 | Shape::Number if !value.is_number() => {
                Some(format!("expected numeric (int or float), got {}", type_name(value)))
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

    pub(super) fn child(self, key: &str) -> TypeRef<'a> {
        let Some(shape) = self.shape else {
            return self;
        };
        let field = shape.object().and_then(|object| object.field(key));
        match field {
            Some(field) => TypeRef { shape: Some(&field.shape), atomic: field.atomic },
            None => TypeRef { shape: shape.child(key), atomic: false },
        }
    }

    pub(super) fn item(self) -> TypeRef<'a> {
        TypeRef { shape: self.shape.and_then(Shape::item), atomic: false }
    }

    /// Returns whether a step leads to a declared field, and the type there.
    pub(super) fn descend(self, step: &PathElement) -> (bool, TypeRef<'a>) {
        match step {
            PathElement::FieldName(name) => (self.declares(name), self.child(name)),
            PathElement::Key(_) | PathElement::Value(_) | PathElement::Index(_) => (false, self.item()),
        }
    }

    /// Returns the element of a path that stands for an item of a list.
    pub(super) fn path_element(self, list_type: &ListType, item: &Value) -> Result<PathElement, String> {
        match list_type {
            ListType::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            ListType::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".to_owned())
                }
                scalar => Ok(PathElement::Value(scalar.clone())),
            },
            ListType::Map(keys) => {
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
                Ok(PathElement::Key(found))
            }
        }
    }

    /// Returns the key of `fieldsV1` that stands for an item of a list; nothing if the item has none.
    pub(super) fn fields_v1_key(self, list_type: &ListType, item: &Value) -> Option<String> {
        let (ListType::Map(keys), Value::Object(fields)) = (list_type, item) else {
            return self.path_element(list_type, item).ok().map(|element| element.to_key());
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

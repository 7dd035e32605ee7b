//! Strategic merge patches: merge patches that know which lists are merged and by which key.

mod diff;
mod keys;
mod list;
mod merge;
mod order;

use serde_json::{Map, Value};
use thiserror::Error;

pub use diff::{three_way, two_way};
pub use keys::with_keys;
pub use merge::apply;

use crate::go_value::{printed, type_name};
use crate::types::{PatchRule, Shape};

/// Why a strategic merge patch could not be made or applied.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StrategicError {
    /// A `$setElementOrder`, `$deleteFromPrimitiveList` or `$retainKeys` is not what it must be.
    #[error("invalid patch format of {0}")]
    Format(&'static str),
    /// A list holds lists.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// An item of a merged list lacks its key.
    #[error("map: {item} does not contain declared merge key: {key}")]
    NoMergeKey {
        /// The item.
        item: String,
        /// The key.
        key: String,
    },
    /// A value has another type than the schema or the object says.
    #[error("expected a {expected}, but received a {found}")]
    Type {
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// `$patch` has another value than `delete`, `merge` or `replace`.
    #[error("unknown patch type: {directive} in map: {map}")]
    Directive {
        /// The value.
        directive: String,
        /// Where it is.
        map: String,
    },
    /// The type has no such field.
    #[error("unable to find api field in struct {object} for the json field \"{field}\"")]
    UnknownField {
        /// The name of the type.
        object: String,
        /// The field.
        field: String,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl StrategicError {
    /// Returns the HTTP status that servers answer with.
    pub fn code(&self) -> u16 {
        match self {
            StrategicError::Format(_) => 400,
            StrategicError::ListOfLists => 422,
            StrategicError::NoMergeKey { .. }
            | StrategicError::Type { .. }
            | StrategicError::Directive { .. }
            | StrategicError::UnknownField { .. }
            | StrategicError::Other(_) => 500,
        }
    }
}

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_LIST: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

type Object = Map<String, Value>;

/// What the items of a list are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementKind {
    Objects,
    Scalars,
}

/// What a field of an object is and how it is patched.
struct Rule<'a> {
    shape: Option<&'a Shape>,
    patch: PatchRule,
}

impl Rule<'_> {
    /// Returns the key of a merged list; empty for lists of scalars and for lists that are not merged.
    fn key(&self) -> &str {
        self.patch.merge_key.as_deref().unwrap_or_default()
    }
}

/// Returns how the field `key` of `shape` is patched; `list` says that its value is a list.
fn rule<'a>(shape: Option<&'a Shape>, key: &str, list: bool) -> Result<Rule<'a>, StrategicError> {
    let unknown =
        |object: &str| StrategicError::UnknownField { object: object.to_owned(), field: key.to_owned() };
    let Some(shape) = shape else {
        return Ok(Rule { shape: None, patch: PatchRule::default() });
    };
    if let Some(object) = shape.object() {
        let field = object.field(key).ok_or_else(|| unknown(&object.name))?;
        let inner = if list { field.shape.item() } else { Some(&field.shape) };
        return Ok(Rule { shape: inner.filter(|s| !matches!(s, Shape::Any)), patch: field.patch.clone() });
    }
    let item = shape.child(key);
    let inner = if list { item.and_then(Shape::item) } else { item };
    Ok(Rule { shape: inner, patch: PatchRule::default() })
}

/// Returns whether two values are of one JSON type.
fn same_type(a: &Value, b: &Value) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

fn as_object(value: &Value) -> Result<&Object, StrategicError> {
    value
        .as_object()
        .ok_or(StrategicError::Type { expected: "map[string]interface {}", found: type_name(value) })
}

fn as_list(value: Value) -> Result<Vec<Value>, StrategicError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(StrategicError::Type { expected: "[]interface {}", found: type_name(&other) }),
    }
}

/// Returns the value of `key` in `item`.
fn merge_value<'a>(item: &'a Value, key: &str) -> Result<&'a Value, StrategicError> {
    let object = as_object(item)?;
    object.get(key).ok_or_else(|| StrategicError::NoMergeKey { item: printed(item), key: key.to_owned() })
}

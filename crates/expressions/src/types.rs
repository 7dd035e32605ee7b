//! The types of expressions, and how error messages name them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::escape::RESERVED;

/// The type of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Anything; what it is shows when it is evaluated.
    Dyn,
    /// `null`.
    Null,
    /// `true` and `false`.
    Bool,
    /// A signed number.
    Int,
    /// An unsigned number.
    Uint,
    /// A number with a fraction.
    Double,
    /// A text.
    String,
    /// Bytes.
    Bytes,
    /// A point in time.
    Timestamp,
    /// A length of time.
    Duration,
    /// A list.
    List(Arc<Type>),
    /// A map.
    Map(Arc<Type>, Arc<Type>),
    /// An object with known fields.
    Object(Arc<Object>),
    /// A value that may be missing.
    Optional(Arc<Type>),
    /// A type of a library, for example `kubernetes.URL`.
    Opaque(&'static str),
    /// A type itself.
    Type(Arc<Type>),
    /// A type that is not known yet, by its number.
    Param(usize),
    /// What has an error already.
    Error,
}

/// The fields of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    pub(crate) name: String,
    pub(crate) fields: BTreeMap<String, Type>,
}

impl Object {
    /// Returns the type of a field. Names that the language keeps for itself may be written as they are.
    pub(crate) fn field(&self, name: &str) -> Option<&Type> {
        let escaped = || RESERVED.contains(&name).then(|| format!("__{name}__"));
        self.fields.get(name).or_else(|| self.fields.get(&escaped()?))
    }
}

impl Type {
    /// Returns the type of lists of `element`.
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    /// Returns the type of maps.
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new(key), Arc::new(value))
    }

    /// Returns the type of values that may be missing.
    pub fn optional(value: Type) -> Type {
        Type::Optional(Arc::new(value))
    }

    /// Returns the type of objects with these fields.
    pub fn object(name: &str, fields: impl IntoIterator<Item = (String, Type)>) -> Type {
        Type::Object(Arc::new(Object { name: name.to_owned(), fields: fields.into_iter().collect() }))
    }

    /// Returns whether values of the type are of one size.
    pub(crate) fn is_scalar(&self) -> bool {
        match self {
            Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
            Type::Optional(value) => value.is_scalar(),
            _ => false,
        }
    }

    /// Returns whether values of the type may be `null`.
    pub(crate) fn takes_null(&self) -> bool {
        matches!(
            self,
            Type::Object(_)
                | Type::Duration
                | Type::Timestamp
                | Type::Opaque(_)
                | Type::Optional(_)
                | Type::Null
        )
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Type::Dyn | Type::Param(_) => "dyn",
            Type::Null => "null",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Timestamp => "timestamp",
            Type::Duration => "duration",
            Type::List(element) => return write!(f, "list({element})"),
            Type::Map(key, value) => return write!(f, "map({key}, {value})"),
            Type::Object(object) => &object.name,
            Type::Optional(value) => return write!(f, "optional_type({value})"),
            Type::Opaque(name) => name,
            Type::Type(inner) => return write!(f, "type({inner})"),
            Type::Error => "!error!",
        };
        f.write_str(name)
    }
}

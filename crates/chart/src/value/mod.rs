//! The values that templates compute with: Go's kinds, names and sharing.
//!
//! Maps and lists are shared: a clone of a [`Value`] is another reference to
//! the same map, so that `set` and `merge` are seen by everybody who holds it.

mod collection_types;
mod equal;
mod json;
mod list;
mod map;
mod object;
mod operand;
mod signature;
mod text;
mod types;
mod zero;

use std::rc::Rc;
use std::sync::Arc;

pub use collection_types::{ListType, MapType};
pub use golang::MAX_NESTING;
pub use golang::reflect::Kind;
pub use json::ToJsonError;
pub(crate) use list::End;
pub use list::List;
pub(crate) use map::CycleScope;
pub use map::{Entries, Map};
pub use object::Object;
pub use signature::{Body, CallError, Context, Function, Method, MethodBody, Signature};
pub use text::Text;
pub use types::{IntType, Type, UintType};

/// A value of a template.
#[derive(Clone, Default)]
pub enum Value {
    /// Go's untyped `nil`: a nil `interface {}`, or no value at all.
    #[default]
    Nil,
    /// A `bool`.
    Bool(bool),
    /// An `int`: what literals of templates and `len` are.
    Int(i64),
    /// An `int64`: what sprig's arithmetic and `--set` produce.
    Int64(i64),
    /// A signed integer of another size.
    Small(IntType, i64),
    /// An unsigned integer.
    Uint(UintType, u64),
    /// A `float64`: what numbers of YAML and JSON are.
    Float(f64),
    /// A `complex128`.
    Complex(f64, f64),
    /// A `string`, which need not be UTF-8.
    Text(Text),
    /// A `[]uint8`.
    Bytes(Arc<[u8]>),
    /// A slice.
    List(List),
    /// A map with string keys.
    Map(Map),
    /// Something with a type of its own: structs, times, versions.
    Object(Rc<dyn Object>),
}

impl Value {
    /// Returns a string value.
    pub fn text(text: impl Into<Text>) -> Self {
        Self::Text(text.into())
    }

    /// Returns a `[]interface {}` of `items`.
    pub fn list(items: Vec<Value>) -> Self {
        Self::List(List::new(items))
    }

    /// Returns a `[]string` of `items`.
    pub fn strings<I>(items: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<Text>,
    {
        let items = items.into_iter().map(Self::text).collect();
        Self::List(List::of(&ListType::STRINGS, items))
    }

    /// Returns a `map[string]interface {}` of `entries`.
    pub fn map<K, I>(entries: I) -> Self
    where
        K: Into<Rc<str>>,
        I: IntoIterator<Item = (K, Value)>,
    {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value));
        Self::Map(Map::new(entries.collect()))
    }

    /// Returns a value for `object`.
    pub fn object(object: impl Object) -> Self {
        Self::Object(Rc::new(object))
    }

    /// Returns Go's kind of this value.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Nil => Kind::Invalid,
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) => Kind::Int,
            Self::Int64(_) => Kind::Int64,
            Self::Small(kind, _) => kind.kind(),
            Self::Uint(kind, _) => kind.kind(),
            Self::Float(_) => Kind::Float64,
            Self::Complex(..) => Kind::Complex128,
            Self::Text(_) => Kind::String,
            Self::Bytes(_) | Self::List(_) => Kind::Slice,
            Self::Map(_) => Kind::Map,
            Self::Object(object) => object.kind(),
        }
    }

    /// Returns Go's name of this value's type, as `%T` prints it.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Int64(_) => "int64",
            Self::Small(kind, _) => kind.kind().name(),
            Self::Uint(kind, _) => kind.kind().name(),
            Self::Float(_) => "float64",
            Self::Complex(..) => "complex128",
            Self::Text(_) => "string",
            Self::Bytes(_) => "[]uint8",
            Self::List(list) => list.class().name,
            Self::Map(map) => map.class().name,
            Self::Object(object) => object.type_name(),
        }
    }

    /// Returns the integer that this value is, if it is of an integer kind and fits.
    pub fn as_i64(&self) -> Option<i64> {
        golang::fmt::whole(self)
    }

    /// Returns the string that this value is, if it is one.
    pub fn as_text(&self) -> Option<&Text> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Returns the list that this value is, if it is one.
    pub fn as_list(&self) -> Option<&List> {
        if let Self::List(list) = self { Some(list) } else { None }
    }

    /// Returns the map that this value is, if it is one.
    pub fn as_map(&self) -> Option<&Map> {
        if let Self::Map(map) = self { Some(map) } else { None }
    }

    /// Returns the object of type `T` that this value is, if it is one.
    pub fn as_object<T: Object>(&self) -> Option<&T> {
        if let Self::Object(object) = self {
            (object.as_ref() as &dyn std::any::Any).downcast_ref()
        } else {
            None
        }
    }

    /// Reports whether this is the untyped nil.
    pub fn is_nil(&self) -> bool {
        matches!(self, Self::Nil)
    }

    /// Returns what a named type other than a struct is made of: the integer of a
    /// `time.Duration`. Everything else is returned as it is.
    #[must_use]
    pub fn underlying(&self) -> Value {
        let underlying = if let Self::Object(object) = self { object.underlying() } else { None };
        underlying.unwrap_or_else(|| self.clone())
    }

    /// Reports whether `if` takes its branch: whether this is not the zero value,
    /// nor an empty collection. A struct is always true.
    pub fn truth(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(truth) => *truth,
            Self::Int(n) | Self::Int64(n) | Self::Small(_, n) => *n != 0,
            Self::Uint(_, n) => *n != 0,
            Self::Float(n) => *n != 0.0,
            Self::Complex(re, im) => *re != 0.0 || *im != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::Bytes(bytes) => !bytes.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Object(object) => object.underlying().is_none_or(|value| value.truth()),
        }
    }
}

/// Prints the type only: values may be secrets.
impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Value({})", self.type_name())
    }
}

/// Makes conversions into values: what is converted, and what makes a value of it.
macro_rules! from {
    ($($source:ty => $make:path),* $(,)?) => {
        $(impl From<$source> for Value {
            fn from(source: $source) -> Self {
                $make(source)
            }
        })*
    };
}

from! {
    bool => Self::Bool,
    f64 => Self::Float,
    &str => Self::text,
    String => Self::text,
    Text => Self::Text,
    List => Self::List,
    Map => Self::Map,
}

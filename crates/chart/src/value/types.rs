//! Go's kinds and types, as far as templates can distinguish them.

use golang::reflect::Kind;

use super::{ListType, MapType, Value};

/// A signed integer type that is neither `int` nor `int64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntType {
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `int32`, also known as a rune.
    Int32,
}

impl IntType {
    /// Returns the kind.
    pub fn kind(self) -> Kind {
        match self {
            Self::Int8 => Kind::Int8,
            Self::Int16 => Kind::Int16,
            Self::Int32 => Kind::Int32,
        }
    }
}

/// An unsigned integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UintType {
    /// `uint`
    Uint,
    /// `uint8`, also known as a byte.
    Uint8,
    /// `uint16`
    Uint16,
    /// `uint32`
    Uint32,
    /// `uint64`
    Uint64,
}

impl UintType {
    /// Returns the kind.
    pub fn kind(self) -> Kind {
        match self {
            Self::Uint => Kind::Uint,
            Self::Uint8 => Kind::Uint8,
            Self::Uint16 => Kind::Uint16,
            Self::Uint32 => Kind::Uint32,
            Self::Uint64 => Kind::Uint64,
        }
    }
}

/// The type of a parameter, a result or an element.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    /// `interface {}`: anything, nil too.
    Any,
    /// Anything, and handed over as the template has it (`reflect.Value`): a nil
    /// literal and a missing value are accepted.
    Reflect,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `uint8`
    Uint8,
    /// `uint32`
    Uint32,
    /// `uint64`
    Uint64,
    /// `float64`
    Float64,
    /// `string`
    String,
    /// `[]uint8`
    Bytes,
    /// A slice type.
    List(&'static ListType),
    /// A map type.
    Map(&'static MapType),
    /// A type that is known by its name: `time.Time`.
    Named(&'static str),
}

impl Type {
    /// Returns Go's name of the type.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Reflect => "reflect.Value",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint8 => "uint8",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Float64 => "float64",
            Self::String => "string",
            Self::Bytes => "[]uint8",
            Self::List(class) => class.name,
            Self::Map(class) => class.name,
            Self::Named(name) => name,
        }
    }

    /// Reports whether an element of this type is kept behind an `interface {}`.
    pub fn is_interface(&self) -> bool {
        matches!(self, Self::Any)
    }

    /// Reports whether `value`, which is not nil, may be assigned to this type.
    pub fn accepts(&self, value: &Value) -> bool {
        if let Self::List(class) = self {
            value.as_list().is_some_and(|list| class.accepts(list.class()))
        } else if let Self::Map(class) = self {
            value.as_map().is_some_and(|map| class.accepts(map.class()))
        } else {
            matches!(self, Self::Any | Self::Reflect) || value.type_name() == self.name()
        }
    }
}

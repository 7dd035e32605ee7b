//! The zero values of types.

use super::{IntType, List, Map, Type, UintType, Value};

impl Type {
    /// Returns the value that stands where nothing was given.
    pub fn zero(&self) -> Value {
        match self {
            Self::Any | Self::Reflect | Self::Named(_) => Value::Nil,
            Self::Bool => Value::Bool(false),
            Self::Int => Value::Int(0),
            Self::Int32 => Value::Small(IntType::Int32, 0),
            Self::Int64 => Value::Int64(0),
            Self::Uint8 => Value::Uint(UintType::Uint8, 0),
            Self::Uint32 => Value::Uint(UintType::Uint32, 0),
            Self::Uint64 => Value::Uint(UintType::Uint64, 0),
            Self::Float64 => Value::Float(0.0),
            Self::String => Value::text(""),
            Self::Bytes => Value::Bytes(std::sync::Arc::from([])),
            Self::List(class) => Value::List(List::nil(class)),
            Self::Map(class) => Value::Map(Map::nil(class)),
        }
    }
}

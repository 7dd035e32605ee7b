//! What formats print of JSON: the values that Go's `encoding/json` reads into an `interface {}`,
//! and whole numbers as `int64`.

use serde_json::Value;

use super::operand::{Operand, Shape};
use crate::reflect::Kind;

impl Operand for Value {
    fn shape(&self) -> Shape<'_> {
        match self {
            Self::Null => Shape::Nil,
            Self::Bool(truth) => Shape::Bool(*truth),
            Self::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(whole), _) => Shape::Int(whole),
                (None, Some(whole)) => Shape::Uint(whole),
                (None, None) => Shape::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Self::String(text) => Shape::Text(text.as_bytes()),
            Self::Array(_) => Shape::Slice { nil: false },
            Self::Object(_) => Shape::Map { nil: false },
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Null => Kind::Invalid,
            Self::Bool(_) => Kind::Bool,
            Self::Number(number) if number.is_f64() => Kind::Float64,
            Self::Number(number) if number.is_i64() => Kind::Int64,
            Self::Number(_) => Kind::Uint64,
            Self::String(_) => Kind::String,
            Self::Array(_) => Kind::Slice,
            Self::Object(_) => Kind::Map,
        }
    }

    fn type_name(&self) -> &str {
        match self {
            Self::Null => "<nil>",
            Self::Bool(_) | Self::Number(_) | Self::String(_) => self.kind().name(),
            Self::Array(_) => "[]interface {}",
            Self::Object(_) => "map[string]interface {}",
        }
    }

    fn each_item<E>(&self, visit: &mut dyn FnMut(&Self) -> Result<(), E>) -> Result<(), E> {
        self.as_array().map_or(Ok(()), |items| items.iter().try_for_each(visit))
    }

    fn each_entry<E>(&self, visit: &mut dyn FnMut(&str, &Self) -> Result<(), E>) -> Result<(), E> {
        self.as_object()
            .map_or(Ok(()), |entries| entries.iter().try_for_each(|(key, value)| visit(key, value)))
    }
}

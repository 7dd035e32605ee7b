//! Go's `reflect`: the kinds of types.

/// The kind of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No value.
    Invalid,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `uint`
    Uint,
    /// `uint8`
    Uint8,
    /// `uint16`
    Uint16,
    /// `uint32`
    Uint32,
    /// `uint64`
    Uint64,
    /// `float64`
    Float64,
    /// `complex128`
    Complex128,
    /// `string`
    String,
    /// `slice`
    Slice,
    /// `map`
    Map,
    /// `struct`
    Struct,
    /// A pointer, mostly to a struct.
    Ptr,
    /// A function.
    Func,
}

impl Kind {
    /// Returns Go's word for the kind, which `kindOf` prints.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint => "uint",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Float64 => "float64",
            Self::Complex128 => "complex128",
            Self::String => "string",
            Self::Slice => "slice",
            Self::Map => "map",
            Self::Struct => "struct",
            Self::Ptr => "ptr",
            Self::Func => "func",
        }
    }
}

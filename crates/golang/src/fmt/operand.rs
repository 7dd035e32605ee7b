//! What can be printed.

use crate::reflect::Kind;

/// What a verb sees of a value.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'v> {
    /// No value: a nil `interface {}`.
    Nil,
    /// A `bool`.
    Bool(bool),
    /// A signed integer of any size.
    Int(i64),
    /// An unsigned integer of any size.
    Uint(u64),
    /// A `float64`.
    Float(f64),
    /// A `complex128`: its real and its imaginary part.
    Complex(f64, f64),
    /// A `string`, which need not be UTF-8.
    Text(&'v [u8]),
    /// A `[]uint8`.
    Bytes(&'v [u8]),
    /// A slice; see [`Operand::each_item`].
    Slice {
        /// Whether this is the nil slice.
        nil: bool,
    },
    /// A map with string keys; see [`Operand::each_entry`].
    Map {
        /// Whether this is the nil map.
        nil: bool,
    },
    /// A struct, a pointer to one, or a named type; see [`Operand::fields`] and
    /// [`Operand::underlying`].
    Object,
}

/// A value that Go's formats can print.
pub trait Operand: Sized {
    /// Returns what verbs see of the value.
    fn shape(&self) -> Shape<'_>;

    /// Returns Go's kind of the type.
    fn kind(&self) -> Kind;

    /// Returns Go's name of the type, as `%T` prints it; for nil `<nil>`.
    fn type_name(&self) -> &str;

    /// Calls `visit` with the elements of a slice until it returns an error.
    fn each_item<E>(&self, visit: &mut dyn FnMut(&Self) -> Result<(), E>) -> Result<(), E>;

    /// Calls `visit` with the entries of a map, sorted by key, until it returns an error.
    fn each_entry<E>(&self, visit: &mut dyn FnMut(&str, &Self) -> Result<(), E>) -> Result<(), E>;

    /// Returns the fields of a struct in the order of their declaration.
    fn fields(&self) -> Vec<(&'static str, Self)> {
        Vec::new()
    }

    /// Returns what a named type other than a struct is made of.
    fn underlying(&self) -> Option<Self> {
        None
    }

    /// Returns what the `String` or `Error` method returns, if the type has one.
    fn display(&self) -> Option<String> {
        None
    }

    /// Returns what a `String` method of the pointer to the value returns, if there is one.
    fn display_of_pointer(&self) -> Option<String> {
        None
    }
}

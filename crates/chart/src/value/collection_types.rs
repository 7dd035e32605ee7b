//! The types of lists and maps.

use super::Method;
use super::Type;

/// A slice type.
#[derive(Debug)]
pub struct ListType {
    /// Go's name: `[]string`.
    pub name: &'static str,
    /// The type of the elements.
    pub element: Type,
    /// Whether the type was given a name, as `chartutil.VersionSet` was.
    pub named: bool,
    /// Its methods.
    pub methods: &'static [Method],
}

impl ListType {
    /// `[]interface {}`
    pub const ANY: Self = Self::unnamed("[]interface {}", Type::Any);
    /// `[]string`
    pub const STRINGS: Self = Self::unnamed("[]string", Type::String);
    /// `[]int`
    pub const INTS: Self = Self::unnamed("[]int", Type::Int);
    /// `[]map[string]interface {}`
    pub const MAPS: Self = Self::unnamed("[]map[string]interface {}", Type::Map(&MapType::ANY));

    /// Returns the type `name` without methods.
    pub const fn unnamed(name: &'static str, element: Type) -> Self {
        Self { name, element, named: false, methods: &[] }
    }

    /// Reports whether a list of type `other` may be assigned to this type.
    pub fn accepts(&self, other: &Self) -> bool {
        self.name == other.name
            || ((!self.named || !other.named) && self.element.name() == other.element.name())
    }
}

/// A map type whose keys are strings.
#[derive(Debug)]
pub struct MapType {
    /// Go's name: `map[string]interface {}`.
    pub name: &'static str,
    /// The type of the values.
    pub element: Type,
    /// Whether the type was given a name, as `chartutil.Values` was.
    pub named: bool,
    /// Its methods.
    pub methods: &'static [Method],
}

impl MapType {
    /// `map[string]interface {}`
    pub const ANY: Self = Self::unnamed("map[string]interface {}", Type::Any);
    /// `map[string]string`
    pub const STRINGS: Self = Self::unnamed("map[string]string", Type::String);

    /// Returns the type `name` without methods.
    pub const fn unnamed(name: &'static str, element: Type) -> Self {
        Self { name, element, named: false, methods: &[] }
    }

    /// Reports whether a map of type `other` may be assigned to this type.
    pub fn accepts(&self, other: &Self) -> bool {
        self.name == other.name
            || ((!self.named || !other.named) && self.element.name() == other.element.name())
    }
}

//! A type of a schema, with what it says about sizes.

use std::collections::BTreeMap;

use crate::types::Type;

/// A type of a schema, with what it says about sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    pub(crate) of: Type,
    /// How many items, or bytes, a value may have.
    pub(crate) max_elements: u64,
    /// How many bytes of JSON a value has at least.
    pub(crate) min_size: u64,
    /// The fields of objects, by their escaped names; [`Declared::ANY`] stands for all others.
    pub(crate) fields: BTreeMap<String, Declared>,
    /// The type of items, or of the values of a map.
    pub(crate) element: Option<Box<Declared>>,
    /// The type of the keys of a map.
    pub(crate) key: Option<Box<Declared>>,
}

impl Declared {
    /// The name of the field that says what all others are.
    pub(crate) const ANY: &str = "*";

    pub(crate) fn scalar(of: Type, min_size: u64) -> Self {
        Self { of, max_elements: 0, min_size, fields: BTreeMap::new(), element: None, key: None }
    }

    /// Returns the type.
    pub fn of(&self) -> &Type {
        &self.of
    }

    /// Gives objects without a name the name of their place.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        let fields: BTreeMap<String, Declared> = self
            .fields
            .into_iter()
            .map(|(field, declared)| {
                let named = declared.named(&format!("{name}.{field}"));
                (field, named)
            })
            .collect();
        let part = if matches!(self.of, Type::List(_)) { "@idx" } else { "@elem" };
        let element = self.element.map(|element| Box::new(element.named(&format!("{name}.{part}"))));
        let of = match (&self.of, &element) {
            (Type::Object(_), _) => Type::object(
                name,
                fields.iter().map(|(field, declared)| (field.clone(), declared.of.clone())),
            ),
            (Type::List(_), Some(element)) => Type::list(element.of.clone()),
            (Type::Map(key, _), Some(element)) => Type::map((**key).clone(), element.of.clone()),
            (of, _) => of.clone(),
        };
        Self { of, fields, element, ..self }
    }
}

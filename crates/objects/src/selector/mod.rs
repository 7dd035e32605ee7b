//! Label and field selectors: which objects a request is about.

mod field;
mod label;

pub use field::{FieldPath, FieldSelector};
pub use label::LabelSelector;

/// What can be selected: an object's labels, fields and name.
pub trait Selectable {
    /// Returns the value of a label.
    fn label(&self, name: &str) -> Option<&str>;
    /// Returns the value of the selectable field with this index in the list of its kind.
    fn field(&self, index: usize) -> &str;
    /// Returns the name.
    fn name(&self) -> &str;
    /// Returns the namespace, empty if there is none.
    fn namespace(&self) -> &str;
}

/// A selector that cannot be read, with the text for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub String);

/// A label selector and a field selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// What the labels must be.
    pub labels: LabelSelector,
    /// What the fields must be.
    pub fields: FieldSelector,
}

impl Selection {
    /// Returns whether every object is selected.
    pub fn is_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns whether `object` is selected.
    pub fn selects(&self, object: &impl Selectable) -> bool {
        self.labels.selects(object) && self.fields.selects(object)
    }
}

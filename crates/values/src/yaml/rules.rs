//! What readers of YAML differ in.

use super::scalar::Dialect;

/// What readers differ in.
#[derive(Clone, Copy)]
pub(super) struct Rules<'t> {
    pub(super) dialect: Dialect,
    /// How much memory a document may take, in bytes.
    pub(super) most: usize,
    /// A key that occurs twice in one mapping is refused.
    pub(super) strict: bool,
    /// A boolean that is written as another word than `true` or `false` is refused.
    pub(super) plain: bool,
    /// The properties of a document whose scalars are texts.
    pub(super) texts: &'t [&'t str],
    /// The property of a document whose lists are handed out item by item.
    pub(super) handed_out: Option<&'t str>,
}

impl Default for Rules<'_> {
    fn default() -> Self {
        Self {
            dialect: Dialect::default(),
            most: usize::MAX,
            strict: false,
            plain: false,
            texts: &[],
            handed_out: None,
        }
    }
}

impl<'t> Rules<'t> {
    /// Returns those of a reader that hands out the lists in the property `key`.
    pub(super) fn handing_out(key: &'t str, most: usize, strict: bool) -> Self {
        Self { most, strict, handed_out: Some(key), ..Self::default() }
    }
}

//! The mark of a release whose module came from a source: a label to compare, and an annotation for people.
//!
//! Nothing but that source, or a command, removes a release with such a mark.

use std::fmt::Write as _;

use engine::SourceKey;
use sha2::{Digest as _, Sha256};

/// The name of the label and of the annotation.
pub(super) const SOURCE: &str = "addon-operator.io/source";

/// How many digits of the hash the label has.
const DIGITS: usize = 32;

/// What the records of a release are marked with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct SourceMark {
    /// A hash: kind, namespace and name of an object fit no label.
    label: String,
    /// What it is the hash of.
    annotation: String,
}

impl SourceMark {
    pub(super) fn of(source: &SourceKey) -> Self {
        let annotation = source.to_string();
        Self { label: short_hash(&annotation, DIGITS), annotation }
    }

    /// Returns the label.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// Returns the annotation.
    pub(super) fn annotation(&self) -> &str {
        &self.annotation
    }
}

/// Returns the first hexadecimal digits of a text's hash; `digits` is even.
pub(super) fn short_hash(text: &str, digits: usize) -> String {
    Sha256::digest(text).iter().take(digits / 2).fold(String::new(), |mut hash, byte| {
        // Writing to a String can't fail.
        let _ = write!(hash, "{byte:02x}");
        hash
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_a_legal_label_whatever_the_object_is_called() {
        let long = SourceKey::cluster(&"a.".repeat(126));
        let mark = SourceMark::of(&long);
        assert!(mark.label.len() == DIGITS && mark.label.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(mark, SourceMark::of(&SourceKey::cluster("a")));
        assert_eq!(SourceMark::of(&SourceKey::cluster("a")).annotation, "ClusterAddonsConfiguration a");
    }
}

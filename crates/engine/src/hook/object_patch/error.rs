//! Why the object patches of a hook were refused.

use std::fmt;

use super::limits::{MAX_BYTES, MAX_OPERATIONS, MAX_VALUES};
use crate::hook::error_list;

/// Why the object patches of a hook were refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ObjectPatchError {
    /// A document is not an operation.
    #[error("can't validate document {}:\n{problem}", index + 1)]
    Invalid {
        /// Which document, counted from zero.
        index: usize,
        /// What it says of itself and what is wrong with it.
        problem: Problem,
    },
    /// The file is not UTF-8 from this byte on.
    #[error("the file is not UTF-8 text from byte {0} on")]
    NotText(usize),
    /// The file is neither JSON nor YAML.
    #[error("the file is neither JSON ({json}) nor YAML ({yaml})")]
    Syntax {
        /// Why it is not JSON.
        json: String,
        /// Why it is not YAML.
        yaml: String,
    },
    /// The file has this many bytes, more than [`MAX_BYTES`].
    #[error("the file has {0} bytes, more than {MAX_BYTES}; change fewer objects in one run")]
    TooLong(usize),
    /// There are more than [`MAX_VALUES`].
    #[error("the file holds more than {MAX_VALUES} values; change fewer objects in one run")]
    TooLarge,
    /// There are this many, more than [`MAX_OPERATIONS`].
    #[error("the file has {0} operations, more than {MAX_OPERATIONS}; change fewer objects in one run")]
    TooMany(usize),
}

/// What a document says of itself and what is wrong with it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Problem {
    /// The properties that tell which operation and object is meant, never content.
    pub said: Vec<(&'static str, String)>,
    /// What is wrong.
    pub reasons: Vec<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, value) in &self.said {
            writeln!(f, "{key}: {value}")?;
        }
        writeln!(f)?;
        error_list::write(f, &self.reasons)
    }
}

//! What is wrong with a YAML text, and where.

use std::fmt;

use thiserror::Error;

/// A place in a text; both numbers count from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, counted in characters.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

impl From<libyaml_safer::Mark> for Position {
    fn from(mark: libyaml_safer::Mark) -> Self {
        let one_based = |zero_based: u64| usize::try_from(zero_based).unwrap_or(usize::MAX).saturating_add(1);
        Self { line: one_based(mark.line), column: one_based(mark.column) }
    }
}

/// Why a YAML text could not be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum YamlError {
    /// The text is not YAML.
    #[error("{position}: {problem}")]
    Syntax {
        /// Where reading stopped.
        position: Position,
        /// What was found or missing.
        problem: String,
    },
    /// Lists and mappings are nested too deeply.
    #[error("{position}: nested deeper than {limit} levels")]
    TooDeep {
        /// Where the limit was passed.
        position: Position,
        /// The limit.
        limit: usize,
    },
    /// An alias names an anchor that was not seen before it.
    #[error("{position}: unknown anchor '{anchor}' referenced")]
    UnknownAnchor {
        /// Where the alias is.
        position: Position,
        /// The name.
        anchor: String,
    },
    /// An alias stands inside the node that it names.
    #[error("{position}: anchor '{anchor}' contains itself")]
    RecursiveAnchor {
        /// Where the alias is.
        position: Position,
        /// The name.
        anchor: String,
    },
    /// Aliases multiply the text beyond what a person would write.
    #[error("{position}: the document contains excessive aliasing")]
    ExcessiveAliasing {
        /// Where the limit was passed.
        position: Position,
    },
    /// A mapping's key cannot become a string.
    #[error("{position}: {found} cannot be a key, write a string")]
    Key {
        /// Where the key is.
        position: Position,
        /// What the key is.
        found: String,
    },
    /// A key occurs twice in one mapping; only the strict reader minds.
    #[error("{position}: key \"{key}\" is already set at line {}, remove one of them", first.line)]
    DuplicateKey {
        /// Where the key occurs again.
        position: Position,
        /// Where the key occurs first.
        first: Position,
        /// The key.
        key: String,
    },
    /// A merge key's value is neither a mapping nor a list of mappings.
    #[error("{position}: map merge requires a map or a list of maps as the value")]
    Merge {
        /// Where the value is.
        position: Position,
    },
    /// A value does not fit its explicit tag.
    #[error("{position}: cannot read `{text}` as {tag}")]
    Tag {
        /// Where the value is.
        position: Position,
        /// The value as written.
        text: String,
        /// The tag's short form, such as `!!int`.
        tag: String,
    },
    /// A number that JSON cannot hold.
    #[error("{position}: {text} is not a number that JSON can hold, quote it or write another")]
    NotJson {
        /// Where the value is.
        position: Position,
        /// The value as written.
        text: String,
    },
}

impl YamlError {
    /// Returns where in the text the error is.
    pub fn position(&self) -> Position {
        match self {
            Self::Syntax { position, .. }
            | Self::TooDeep { position, .. }
            | Self::UnknownAnchor { position, .. }
            | Self::RecursiveAnchor { position, .. }
            | Self::ExcessiveAliasing { position }
            | Self::Key { position, .. }
            | Self::DuplicateKey { position, .. }
            | Self::Merge { position }
            | Self::Tag { position, .. }
            | Self::NotJson { position, .. } => *position,
        }
    }
}

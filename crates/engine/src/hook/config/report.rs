//! Everything that is wrong with a configuration, and where.

use std::cell::RefCell;
use std::fmt;

use values::yaml::{Position, locate};

use crate::hook::error_list;

/// One thing that is wrong.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    /// What is wrong, beginning with the path of the property or the section.
    pub message: String,
    /// Where the property, or the innermost value around it, is written.
    pub position: Option<Position>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.position {
            Some(position) => write!(f, " ({position})"),
            None => Ok(()),
        }
    }
}

/// Everything that is wrong, in the form in which the reference operator lists errors.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violations(pub Vec<Violation>);

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        error_list::write(f, &self.0)
    }
}

/// Collects violations while a configuration is read.
#[derive(Debug, Default)]
pub(super) struct Report(RefCell<Vec<(Path, String)>>);

impl Report {
    /// Notes that `message` is wrong at `path`.
    pub(super) fn note(&self, path: &Path, message: impl Into<String>) {
        self.0.borrow_mut().push((path.clone(), message.into()));
    }

    /// Returns what was noted, or `None` if nothing was; `text` is what the paths lead into.
    pub(super) fn finish(self, text: &str) -> Option<Violations> {
        let violations: Vec<Violation> = self
            .0
            .into_inner()
            .into_iter()
            .map(|(path, message)| Violation { message, position: locate(text, &path.pointer) })
            .collect();
        (!violations.is_empty()).then_some(Violations(violations))
    }
}

/// The way to a value, for people and for looking it up.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    /// Keys joined by dots; places in lists are left out, as the reference operator does.
    dotted: String,
    /// A JSON pointer.
    pointer: String,
}

impl Path {
    /// Returns the way to the property `key` of this value.
    pub(super) fn key(&self, key: &str) -> Self {
        let dot = if self.dotted.is_empty() { "" } else { "." };
        let token = key.replace('~', "~0").replace('/', "~1");
        Self { dotted: format!("{}{dot}{key}", self.dotted), pointer: format!("{}/{token}", self.pointer) }
    }

    /// Returns the way to the item at `index` of this list.
    pub(super) fn item(&self, index: usize) -> Self {
        Self { dotted: self.dotted.clone(), pointer: format!("{}/{index}", self.pointer) }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.dotted)
    }
}

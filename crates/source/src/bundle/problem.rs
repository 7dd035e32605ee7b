//! What is wrong with a bundle.

use std::fmt;

/// The most problems that are reported of one bundle.
pub const MAX_PROBLEMS: usize = 100;

/// Something in a bundle that has to be changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file or directory, relative to the bundle; empty for the bundle itself.
    pub path: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// Collects problems and warnings.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Findings {
    pub(super) fn problem(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Problem { path: path.into(), message: message.into() });
    }

    pub(super) fn warning(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.warnings.push(Problem { path: path.into(), message: message.into() });
    }

    /// Returns the problems sorted, each once.
    pub(super) fn sorted(mut self) -> (Vec<Problem>, Vec<Problem>) {
        for list in [&mut self.problems, &mut self.warnings] {
            list.sort();
            list.dedup();
            let more = list.len().saturating_sub(MAX_PROBLEMS);
            if more > 0 {
                list.truncate(MAX_PROBLEMS);
                list.push(Problem { path: String::new(), message: format!("and {more} more") });
            }
        }
        (self.problems, self.warnings)
    }
}

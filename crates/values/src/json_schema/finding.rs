//! Findings as a tree: one for each schema that a value does not fit.

use std::fmt::Write as _;

use super::message;

/// One finding, and those that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// Where in the values.
    at: String,
    kind: Kind,
    text: String,
    causes: Vec<Finding>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    /// Several findings of one schema.
    Group,
    /// What is wrong with a schema that was referred to.
    Reference,
}

const FAILED: &str = "validation failed";

impl Finding {
    pub(super) fn new(at: String, text: String, causes: Vec<Self>) -> Self {
        Self { at, kind: Kind::Plain, text, causes }
    }

    /// Stands for any finding where only its existence matters.
    pub(super) fn any() -> Self {
        Self::new(String::new(), String::new(), Vec::new())
    }

    /// Returns the findings of one schema: one alone stands for itself.
    pub(super) fn group(at: impl FnOnce() -> String, mut causes: Vec<Self>) -> Option<Self> {
        if causes.len() < 2 {
            return causes.pop();
        }
        Some(Self { at: at(), kind: Kind::Group, text: FAILED.to_owned(), causes })
    }

    /// Returns what is wrong with a schema that was referred to.
    pub(super) fn reference(at: String, cause: Self) -> Self {
        Self { at, kind: Kind::Reference, text: FAILED.to_owned(), causes: cause.members() }
    }

    /// Returns the findings of a group, or itself alone.
    pub(super) fn members(self) -> Vec<Self> {
        match self.kind {
            Kind::Group => self.causes,
            Kind::Plain | Kind::Reference => vec![self],
        }
    }

    /// Returns what is wrong with a schema, with a heading.
    pub(super) fn report(self, location: &str) -> String {
        format!("jsonschema validation failed with {}{}", message::quote(location), self.lines())
    }

    /// Returns what is wrong with values: each line begins with a line feed.
    pub(super) fn lines(self) -> String {
        let mut lines = String::new();
        for finding in self.members() {
            finding.print(0, &mut lines);
        }
        lines
    }

    fn print(&self, indent: usize, lines: &mut String) {
        let mut below = indent;
        // Nobody has to know that there was a reference on the way to a single finding.
        if self.kind != Kind::Reference || self.causes.len() != 1 {
            lines.push('\n');
            lines.extend(std::iter::repeat_n("  ", indent));
            let _ = write!(lines, "- at {}: {}", message::quote(&self.at), self.text);
            below += 1;
        }
        for cause in &self.causes {
            cause.print(below, lines);
        }
    }
}

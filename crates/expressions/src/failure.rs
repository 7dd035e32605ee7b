//! Why an expression has no value.

use thiserror::Error;

/// Why an expression has no value, in the words of the real server.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{text}")]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// What people are told. It may quote values.
    pub text: String,
}

/// What kind of failure it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// A map has no such key, or an object no such field.
    NoSuchKey,
    /// A function or operator does not take what it was given: its name, and the types of its arguments.
    NoSuchOverload(String, Vec<String>),
    /// There is no variable of this name.
    Undeclared(String),
    /// A number is divided by zero.
    DivisionByZero,
    /// It costs more than a run may.
    Cost,
    /// A function can't work with the value that it was given.
    Other,
}

impl Failure {
    pub(crate) fn other(text: impl Into<String>) -> Self {
        Self { kind: FailureKind::Other, text: text.into() }
    }

    pub(crate) fn no_such_key(key: &str) -> Self {
        Self { kind: FailureKind::NoSuchKey, text: format!("no such key: {key}") }
    }

    pub(crate) fn undeclared(name: &str) -> Self {
        let text = format!("no such attribute(s): {name}");
        Self { kind: FailureKind::Undeclared(name.to_owned()), text }
    }

    pub(crate) fn no_such_overload(function: &str, types: Vec<String>) -> Self {
        const PLAIN: [&str; 6] = ["contains", "endsWith", "find", "findAll", "matches", "startsWith"];
        let text = match function {
            "size" => "no such overload: size".to_owned(),
            _ if function.contains(['_', '@']) || PLAIN.contains(&function) => "no such overload".to_owned(),
            _ => format!("no such overload: {function}({})", types.join(", ")),
        };
        Self { kind: FailureKind::NoSuchOverload(function.to_owned(), types), text }
    }

    pub(crate) fn cost() -> Self {
        Self { kind: FailureKind::Cost, text: "operation cancelled: actual cost limit exceeded".to_owned() }
    }

    /// Returns whether the run is over, whatever other parts of the expression say.
    pub(crate) fn ends_all(&self) -> bool {
        self.kind == FailureKind::Cost
    }
}

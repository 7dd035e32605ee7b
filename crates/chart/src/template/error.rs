//! Why a template can't be parsed or executed.

use crate::value::CallError;

/// Why a template can't be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("template: {name}:{line}: {message}")]
pub struct ParseError {
    /// The name of the source.
    pub name: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

impl ParseError {
    /// Returns the error as `helm` prints it.
    ///
    /// Helm keeps the place and what follows the last colon.
    pub fn for_people(&self) -> String {
        let text = self.to_string();
        let mut parts = text.split(": ").skip(1);
        let place = parts.next().unwrap_or_default();
        let message = parts.last().unwrap_or(place);
        format!("parse error at ({place}): {message}")
    }
}

/// Why the execution of a template stopped.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ExecError(Box<Details>);

#[derive(Debug)]
struct Details {
    text: String,
    kind: ErrorKind,
}

/// How long an error may become on its way out of templates within each other;
/// beyond this no more places are added to it.
const MAX_TEXT: usize = 1 << 20;

/// What kind of error stopped a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ErrorKind {
    /// The template or a function failed.
    Failed,
    /// `required` or `fail` refused, with this message.
    Refused(String),
    /// A limit was reached.
    Limit,
}

impl std::fmt::Display for Details {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl ExecError {
    pub(super) fn new(text: String) -> Self {
        Self(Box::new(Details { text, kind: ErrorKind::Failed }))
    }

    /// Returns the error of a call; `tell` adds the place to its text.
    pub(super) fn from_call(error: CallError, tell: impl Fn(&str) -> String) -> Self {
        let (text, kind) = match error {
            CallError::Message(text) => (text, ErrorKind::Failed),
            CallError::Refused { text, message } => (text, ErrorKind::Refused(message)),
            CallError::Limit(text) => (text, ErrorKind::Limit),
        };
        // A limit is reported where it was reached, without the places on the way out.
        let told = kind == ErrorKind::Limit && text.starts_with("template: ");
        let text = if told || text.len() > MAX_TEXT { text } else { tell(&text) };
        Self(Box::new(Details { text, kind }))
    }

    /// Returns the error as the error of the function that executed the template.
    pub(super) fn into_call(self, tell: impl Fn(&str) -> String) -> CallError {
        let text = tell(&self.0.text);
        match self.0.kind {
            ErrorKind::Failed => CallError::Message(text),
            ErrorKind::Refused(message) => CallError::Refused { text, message },
            ErrorKind::Limit => CallError::Limit(text),
        }
    }

    /// Adds the file that was rendered when a limit was reached.
    pub(super) fn in_file(mut self, name: &str) -> Self {
        if self.is_limit() {
            self.0.text = format!("rendering {name}: {}", self.0.text);
        }
        self
    }

    /// Reports whether a limit of the render was reached.
    pub fn is_limit(&self) -> bool {
        self.0.kind == ErrorKind::Limit
    }

    /// Returns the error as `helm` prints it: what `required` and `fail` say stands
    /// alone, behind the outermost place.
    pub fn for_people(&self) -> String {
        match &self.0.kind {
            ErrorKind::Refused(message) => {
                let place = self.0.text.split(": ").nth(1).unwrap_or_default();
                format!("execution error at ({place}): {message}")
            }
            ErrorKind::Failed | ErrorKind::Limit => self.0.text.clone(),
        }
    }
}

//! Why something did not work, as plain data.

use std::fmt;

use serde::Serialize;

/// Why an effect was not carried out.
///
/// A failure may quote what a hook printed, so it can hold secrets: it is shown
/// as it is on the unix socket only, and masked in the log and on the TCP port.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Failure {
    /// What went wrong, for metrics and for decisions.
    pub kind: FailureKind,
    /// One line that says what happened.
    pub message: String,
    /// What led to it, the nearest first.
    pub chain: Vec<String>,
    /// What the person who reads it can do, if anything is known.
    pub advice: Option<String>,
}

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, Eq, strum::IntoStaticStr, Ord, PartialEq, PartialOrd, Serialize)]
#[strum(serialize_all = "snake_case")]
pub enum FailureKind {
    /// A defect of the operator.
    Bug,
    /// A process was ended because the operator ends. It did nothing wrong.
    Cancelled,
    /// The API server did not answer or refused.
    Cluster,
    /// A file of a module or a hook can't be used.
    Files,
    /// A hook or script exited with another status than 0.
    HookExit,
    /// A hook wrote something that can't be used.
    HookOutput,
    /// A hook or script did not end in time.
    HookTimeout,
    /// A chart has an object of a kind that does not exist yet.
    MissingKind,
    /// A release could not be installed, upgraded or removed.
    Release,
    /// A chart did not render.
    Render,
    /// Values or their schema don't fit.
    Values,
}

impl Failure {
    /// Returns a failure without chain and advice.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), chain: Vec::new(), advice: None }
    }

    /// Returns the failure of an error with all its sources.
    pub fn of(kind: FailureKind, error: &dyn std::error::Error) -> Self {
        let mut chain = Vec::new();
        let mut source = error.source();
        while let Some(error) = source {
            chain.push(error.to_string());
            source = error.source();
        }
        Self { kind, message: error.to_string(), chain, advice: None }
    }

    /// Returns whether a process was ended because the operator ends.
    pub fn is_cancelled(&self) -> bool {
        self.kind == FailureKind::Cancelled
    }

    /// Returns the failure with what its reader can do about it.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

impl FailureKind {
    /// Returns the label that metrics and JSON use.
    pub fn label(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for cause in &self.chain {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

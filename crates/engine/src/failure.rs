//! Why something did not work, as plain data.

use std::fmt;
use std::sync::Arc;

use redaction::Secrets;
use serde::Serialize;

/// Why an effect was not carried out.
///
/// A failure may quote what a hook printed, so it can hold secrets: it is shown
/// as it is on the unix socket only, and masked in the log and on the TCP port.
#[derive(Clone, Eq, PartialEq, Serialize)]
pub struct Failure {
    /// What went wrong, for metrics and for decisions.
    pub kind: FailureKind,
    /// One line that says what happened.
    pub message: String,
    /// What led to it, the nearest first.
    pub chain: Vec<String>,
    /// What the person who reads it can do, if anything is known.
    pub advice: Option<String>,
    /// The same without the values that were in force when it happened; `None` where it quotes none.
    ///
    /// It is made at once, since later nobody knows what was a value then.
    #[serde(skip)]
    pub masked: Option<Arc<Failure>>,
}

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, Eq, strum::IntoStaticStr, Ord, PartialEq, PartialOrd, Serialize)]
#[strum(serialize_all = "snake_case")]
pub enum FailureKind {
    /// A defect of the operator.
    Bug,
    /// A process or a change of a release was ended because the operator ends. It did nothing wrong.
    Cancelled,
    /// The API server did not answer or refused.
    Cluster,
    /// Somebody else changed the object meanwhile: nothing was written.
    Conflict,
    /// The API server took an object and left out fields of it that its kind does not have.
    Dropped,
    /// A file of a module or a hook can't be used.
    Files,
    /// The API server does not allow it: a right is missing.
    Forbidden,
    /// A hook or script exited with another status than 0.
    HookExit,
    /// A hook met a limit of what it may use, and was ended.
    HookLimit,
    /// A hook wrote something that can't be used.
    HookOutput,
    /// A hook or script did not end in time.
    HookTimeout,
    /// A chart has an object of a kind that does not exist yet.
    MissingKind,
    /// The package of a chart that a module names is not there, or not whole.
    Package,
    /// A release could not be installed, upgraded or removed.
    Release,
    /// A chart did not render.
    Render,
    /// The disk does not take what is to be kept: it is full, read-only, or somebody else's.
    Storage,
    /// The namespace of an object is being deleted: nothing can be made in it until it is gone.
    Terminating,
    /// Values or their schema don't fit.
    Values,
}

impl Failure {
    /// Returns a failure without chain and advice.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), chain: Vec::new(), advice: None, masked: None }
    }

    /// Returns the failure of an error with all its sources.
    pub fn of(kind: FailureKind, error: &dyn std::error::Error) -> Self {
        let mut chain = Vec::new();
        let mut source = error.source();
        while let Some(error) = source {
            chain.push(error.to_string());
            source = error.source();
        }
        Self { kind, message: error.to_string(), chain, advice: None, masked: None }
    }

    /// Returns whether this was ended because the operator ends.
    pub fn is_cancelled(&self) -> bool {
        self.kind == FailureKind::Cancelled
    }

    /// Returns whether another one is the same, whatever is masked in each of them.
    pub(crate) fn repeats(&self, other: &Self) -> bool {
        let said = |failure: &Self| Self { masked: None, ..failure.clone() };
        said(self) == said(other)
    }

    /// Returns how many times in a row something failed like this, if it failed `before` times like `last` until then.
    pub(crate) fn in_a_row(&self, last: Option<&Self>, before: u32) -> u32 {
        if last.is_some_and(|last| last.repeats(self)) { before.saturating_add(1) } else { 1 }
    }

    /// Returns what everybody may read of it.
    pub fn for_everybody(&self) -> &Self {
        self.masked.as_deref().unwrap_or(self)
    }

    /// Returns the failure with none of `secrets` in its texts.
    #[must_use]
    pub fn without(&self, secrets: &Secrets<'_>) -> Self {
        let hidden = |text: &String| secrets.hide(text).into_owned();
        Self {
            kind: self.kind,
            message: hidden(&self.message),
            chain: self.chain.iter().map(hidden).collect(),
            advice: self.advice.as_ref().map(hidden),
            masked: None,
        }
    }

    /// Returns the failure with words before its message, in what everybody may read of it too.
    #[must_use]
    pub(crate) fn prefaced(mut self, words: &str) -> Self {
        let masked = self.masked.as_mut().map(|masked| &mut Arc::make_mut(masked).message);
        for message in masked.into_iter().chain([&mut self.message]) {
            *message = format!("{words}: {message}");
        }
        self
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

#[expect(clippy::missing_fields_in_debug, reason = "the other form of it says the same")]
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("kind", &self.kind)
            .field("message", &self.message)
            .field("chain", &self.chain)
            .field("advice", &self.advice)
            .finish()
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

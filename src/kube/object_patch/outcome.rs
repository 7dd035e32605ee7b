//! What became of the operations of a run, in words.

use std::fmt::Write as _;

use engine::object_patch::{ObjectPatch, Purpose};
use engine::{Failure, FailureKind, PatchAuthor};

use super::error::PatchError;

/// How many operations in a row may get no answer before the rest is left.
const SILENCE: usize = 3;

/// How many failures are named one by one.
const NAMED: usize = 10;

/// What became of the operations so far.
pub(super) struct Outcome<'a> {
    author: &'a PatchAuthor,
    patches: &'a [ObjectPatch],
    tried: usize,
    failed: Vec<(usize, Failure)>,
    /// How many in a row got no answer.
    silent: usize,
    /// Whether one failed that holds the rest.
    is_held: bool,
}

impl<'a> Outcome<'a> {
    pub(super) fn new(author: &'a PatchAuthor, patches: &'a [ObjectPatch]) -> Self {
        Self { author, patches, tried: 0, failed: Vec::new(), silent: 0, is_held: false }
    }

    /// Records what became of the next operation.
    pub(super) fn record(&mut self, outcome: Result<(), PatchError>) {
        match outcome {
            Ok(()) => self.silent = 0,
            Err(problem) => {
                self.silent = if problem.is_silence() { self.silent + 1 } else { 0 };
                self.is_held |= self.purpose(self.tried) == Purpose::Child;
                let is_of_content = problem.is_of_content();
                let failure = problem.into_failure();
                let failure = if is_of_content { self.advised(self.tried, failure) } else { failure };
                self.failed.push((self.tried, failure));
            }
        }
        self.tried += 1;
    }

    /// Returns whether the rest is left: one failed that holds it, or the API server does not answer any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_held || self.silent >= SILENCE
    }

    /// Returns the failure of a run in which an operation can't be right on any object.
    pub(super) fn impossible(&self, place: usize, failure: Failure) -> Failure {
        self.only(place, self.advised(place, failure), "nothing was done")
    }

    /// Returns the failure of the run, if an operation failed.
    pub(super) fn into_result(mut self) -> Result<(), Failure> {
        let left = self.patches.len() - self.tried;
        match (self.failed.pop(), self.failed.as_slice(), left) {
            (None, _, _) => Ok(()),
            (Some((place, failure)), [], left) if left == 0 || self.is_held => {
                let mut done = around(place, self.tried - place - 1);
                if left > 0 {
                    let _ = write!(
                        done,
                        ", and {left} behind it {} for it",
                        if left == 1 { "waits" } else { "wait" }
                    );
                }
                Err(self.only(place, failure, &done))
            }
            (Some(last), _, _) => {
                self.failed.push(last);
                Err(self.several(left))
            }
        }
    }

    /// Returns the failure of the only operation that failed.
    fn only(&self, place: usize, mut failure: Failure, done: &str) -> Failure {
        let cause = std::mem::take(&mut failure.message);
        let (number, count, author) = (place + 1, self.patches.len(), self.author);
        let patch = self.patch(place);
        failure.message = match self.purpose(place) {
            Purpose::Asked => {
                format!("object patch {number} of {count} of {author}: {patch}: {cause} ({done})")
            }
            // Nobody wrote it as one, and the object is known.
            Purpose::Child | Purpose::Finalizer | Purpose::Status if count == 1 => {
                format!("{patch}: {cause}")
            }
            Purpose::Child | Purpose::Finalizer | Purpose::Status => format!("{patch}: {cause} ({done})"),
        };
        failure
    }

    fn several(&self, left: usize) -> Failure {
        let (failed, count, author) = (self.failed.len(), self.patches.len(), self.author);
        let mut done = match self.tried - failed {
            0 => "nothing was done".to_owned(),
            1 => "one other is done".to_owned(),
            others => format!("{others} others are done"),
        };
        if left > 0 {
            let why =
                if self.is_held { "they wait for one that failed" } else { "the API server does not answer" };
            let _ = write!(done, ", {left} were not tried, for {why}");
        }
        let mut named: Vec<String> = Vec::with_capacity(NAMED + 1);
        for (place, failure) in self.failed.iter().take(NAMED) {
            named.push(format!("object patch {}: {}: {failure}", place + 1, self.patch(*place)));
        }
        if failed > NAMED {
            named.push(format!("and {} more", failed - NAMED));
        }
        let message =
            format!("{failed} of {count} object patches of {author} failed ({done}): {}", named.join("; "));
        let first = self.failed.first().map(|(_, failure)| failure);
        let mut failure = Failure::new(first.map_or(FailureKind::Cluster, |first| first.kind), message);
        failure.advice = first.and_then(|first| first.advice.clone());
        failure
    }

    /// Returns the failure with what a person can do about it, unless that is known.
    fn advised(&self, place: usize, failure: Failure) -> Failure {
        match self.correction(place).filter(|_| failure.advice.is_none()) {
            Some(advice) => failure.advise(advice),
            None => failure,
        }
    }

    /// Returns what a person can do about an operation that the API server does not take as it is.
    fn correction(&self, place: usize) -> Option<&'static str> {
        match (self.purpose(place), self.author) {
            (Purpose::Asked, PatchAuthor::Hook(_)) => Some(
                "correct the operation in what the hook writes into $KUBERNETES_PATCH_PATH; it is tried again by itself",
            ),
            (Purpose::Asked, PatchAuthor::Repository(_) | PatchAuthor::Source(_)) => None,
            (Purpose::Child, _) => {
                Some("correct the child in what the hook writes; the object is tried again by itself")
            }
            (Purpose::Finalizer, _) => Some("correct the finalizer in the configuration of the hook"),
            (Purpose::Status, _) => Some(
                "correct the status, or the conditions, in what the hook writes, or the schema of the kind; the object is tried again by \
                 itself",
            ),
        }
    }

    fn purpose(&self, place: usize) -> Purpose {
        self.patches.get(place).map(|patch| patch.purpose).unwrap_or_default()
    }

    fn patch(&self, place: usize) -> String {
        self.patches.get(place).map(ToString::to_string).unwrap_or_default()
    }
}

/// Says that the operations before and after the one that failed are done.
fn around(before: usize, after: usize) -> String {
    let operations = |count| match count {
        1 => "the operation".to_owned(),
        count => format!("the {count} operations"),
    };
    match (before, after) {
        (0, 0) => "nothing was done".to_owned(),
        (before, 0) => format!("{} before it {} done", operations(before), is_or_are(before)),
        (0, after) => format!("{} after it {} done", operations(after), is_or_are(after)),
        (before, after) => format!("{} before it and {after} after it are done", operations(before)),
    }
}

fn is_or_are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

//! How the work on a key goes on, and how it ends when it can't.

use std::time::Duration;

use super::key_state::{Answer, Pass, Wanted};
use crate::failure::{Failure, FailureKind};
use crate::reconcile::Step;

/// Where the work on a key goes on.
pub(super) enum Go {
    On(Pass),
    Stop(Pass, Step),
}

/// How long a change of an object is waited for that is known to have happened.
const UNTIL_SEEN: Duration = Duration::from_secs(1);

/// Ends the work on a key until something changes, or its time has come.
pub(super) fn finished(wanted: &Wanted) -> Go {
    let step = wanted.result.requeue_after.map_or(Step::Done, |after: Duration| Step::Again(after));
    Go::Stop(Pass::Idle, step)
}

/// Ends the work on a key whose object could not be written. If somebody else changed it, that is no failure: what is so now
/// decides as soon as it is seen.
pub(super) fn refused(failure: Failure) -> Go {
    let is_conflict = failure.kind == FailureKind::Conflict;
    let step = if is_conflict { Step::Later(UNTIL_SEEN) } else { Step::Failed(failure) };
    Go::Stop(Pass::Idle, step)
}

/// Returns why what was written was refused, if it was.
pub(super) fn failed(answer: Option<Answer>) -> Option<Failure> {
    match answer {
        Some(Answer::Patched(Err(failure)) | Answer::Saved(_, Err(failure))) => Some(failure),
        Some(Answer::Patched(Ok(())) | Answer::Saved(_, Ok(_)) | Answer::Hook(..)) | None => None,
    }
}

/// Returns why a child could not be applied, with what can be done about a field that can't change.
pub(super) fn advised(failure: Failure) -> Failure {
    let is_immutable = failure.advice.is_none() && failure.to_string().contains("immutable");
    let advice =
        "with update: Recreate of its kind in children, a child that has changed is deleted and made again";
    if is_immutable { failure.advise(advice) } else { failure }
}

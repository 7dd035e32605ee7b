//! How the work on a key goes on, and how it ends when it can't.

use std::time::Duration;

use super::key_state::{Answer, Pass, Wanted};
use super::plan::shown;
use super::remark::OVERDUE;
use super::single::Controller;
use crate::config::Config;
use crate::context::Context;
use crate::failure::{Failure, FailureKind};
use crate::hook::snapshot::Key;
use crate::name::TaskId;
use crate::reconcile::{LONGEST, Rest, Step};
use crate::time::Time;

/// Where the work on a key goes on.
pub(super) enum Go {
    On(Pass),
    Stop(Pass, Step),
}

/// How long the end of a namespace is waited for. No watch tells of it.
const UNTIL_GONE: Duration = Duration::from_secs(5);

/// How long a change of an object is waited for that is known to have happened.
pub(super) const UNTIL_SEEN: Duration = Duration::from_secs(1);

impl Controller {
    /// Ends the work on a key until something changes, or its time has come.
    pub(super) fn finished(&mut self, cx: &Context, key: &Key, wanted: &Wanted) -> Go {
        let after = wanted.result.requeue_after;
        let Some(state) = self.keys.get_mut(key) else { return Go::Stop(Pass::Idle, Step::Done) };
        state.turns.settle();
        if !wanted.is_finalize {
            if let Some(child) = state.leaving.take() {
                let reason = format!("{} to be gone, which is made again then", shown(&self.binding, &child));
                return Go::Stop(Pass::Idle, Step::Rest(Rest { reason, after, is_end: true }));
            }
            let unseen = (!state.unseen.is_empty()).then_some(UNTIL_SEEN);
            let after = unseen.into_iter().chain(after).min();
            return Go::Stop(Pass::Idle, after.map_or(Step::Done, Step::Again));
        }
        if state.unfinished_since.is_none() {
            state.unfinished_since = Some(cx.now);
            self.overdue.insert((cx.now + OVERDUE, key.clone()));
        }
        let reason = "its hook to say that it is finalized".to_owned();
        Go::Stop(Pass::Idle, Step::Rest(Rest { reason, after, is_end: true }))
    }

    /// Returns whether a key waits for the end of children.
    pub(super) fn is_pruning(&self, key: &Key) -> bool {
        self.keys.get(key).is_some_and(|state| matches!(state.pass, Pass::Pruning(..)))
    }

    /// Returns the wait of a key whose hook asks for something else each time; `None` if it may run now.
    pub(super) fn slowed(&mut self, config: &Config, now: Time, task: TaskId, key: &Key) -> Option<Go> {
        let generation = self.metadata_of(key)?.generation;
        let state = self.keys.get_mut(key)?;
        state.turns.look(generation);
        let after = state.turns.wait(now, |turns| config.retry_within(LONGEST, turns, task.number()))?;
        let circle = self.keys.get(key)?.turns.circle().map(|what| self.circle(what)).unwrap_or_default();
        let reason = format!("its hook to say the same each time it runs: {circle}");
        Some(Go::Stop(Pass::Idle, Step::Rest(Rest { reason, after: Some(after), is_end: false })))
    }

    /// Ends the work on a key whose object could not be written. If somebody else changed it, that is no failure: what is so now
    /// decides as soon as it is seen, also if it looks as what was refused. Whose answer was lost may be written all the same, so
    /// what was tried before it is no longer known to be so.
    pub(super) fn refused(&mut self, key: &Key, failure: Failure) -> Go {
        let version = self.parent(key).map(|parent| parent.metadata.resource_version.clone());
        let written_to = self.keys.get_mut(key).and_then(|state| {
            (state.expected, state.finalizer_added_to, state.written) = (None, None, None);
            state.written_to.take()
        });
        if failure.kind != FailureKind::Conflict {
            return Go::Stop(Pass::Idle, Step::Failed(failure));
        }
        if written_to.is_some() && written_to != version {
            // The watch was faster than the answer.
            return Go::On(Pass::Idle);
        }
        Go::Stop(Pass::Idle, Step::Later(UNTIL_SEEN))
    }
}

/// Returns why what was written was refused, if it was.
pub(super) fn failed(answer: Option<Answer>) -> Option<Failure> {
    match answer {
        Some(Answer::Patched(Err(failure)) | Answer::Saved(_, Err(failure))) => Some(failure),
        Some(Answer::Patched(Ok(())) | Answer::Saved(_, Ok(_)) | Answer::Hook(..)) | None => None,
    }
}

/// Goes on after children were taken over: the watch tells of it soon.
pub(super) fn children_taken(answer: Option<Answer>) -> Go {
    let step = failed(answer).map_or(Step::Later(UNTIL_SEEN), Step::Failed);
    Go::Stop(Pass::Idle, step)
}

/// Ends the work on a key whose children could not be applied. That a namespace is on its way out is no failure: it has to be gone.
pub(super) fn not_applied(failure: Failure) -> Go {
    let step = if failure.kind == FailureKind::Terminating {
        let reason = "a namespace that is being deleted to be gone".to_owned();
        Step::Rest(Rest { reason, after: Some(UNTIL_GONE), is_end: false })
    } else {
        Step::Failed(advised(failure))
    };
    Go::Stop(Pass::Idle, step)
}

/// Returns why a child could not be applied, with what can be done about a namespace that is missing, or a field that can't change.
fn advised(failure: Failure) -> Failure {
    let text = failure.to_string();
    if text.contains("namespaces \"") && text.contains("not found") {
        return failure.advise(
            "make the namespace; or have the hook name it among its children, before what is in it. The object is tried again by itself",
        );
    }
    let is_immutable = text.contains("immutable");
    let advice =
        "with update: Recreate of its kind in children, a child that has changed is deleted and made again";
    if is_immutable { failure.advise(advice) } else { failure }
}

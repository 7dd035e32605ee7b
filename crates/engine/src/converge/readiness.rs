//! When the first converge is through, and when the operator is ready.

use crate::cause::Cause;
use crate::time::Time;
use crate::view::ConvergeView;

/// Whether there are tasks that readiness waits for, and how far the first converge is.
#[derive(Debug, Default)]
pub(super) struct Readiness {
    /// When the tasks that readiness waits for appeared, and why.
    begun: Option<(Time, Cause)>,
    /// How far the first converge is.
    first: First,
    /// Whether the operator has become ready.
    ready: Ready,
    /// Whether nothing is left of what is removed behind the first converge.
    is_cleaned_up: bool,
    /// The number of the last converge whose end was reported.
    reported: u64,
    /// When the last one ended.
    finished_at: Option<Time>,
}

/// How far the first converge is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum First {
    /// It did not begin.
    #[default]
    NotStarted,
    /// It runs.
    Started,
    /// It is through: schedules fire from now on.
    Done,
}

/// Whether the operator has become ready: the first converge is through, and no global hook waits for a kind.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Ready {
    /// It has not.
    #[default]
    No,
    /// It has not, and what it waits for was reported.
    Waits,
    /// It has, for ever.
    Yes,
}

/// A converge that ended, or what is done after the first one.
#[derive(Debug)]
pub(super) struct Ended {
    /// When it began.
    pub(super) begun_at: Time,
    /// Why it ran.
    pub(super) cause: Cause,
    /// Its number; `None` when its end was reported before.
    pub(super) generation: Option<u64>,
    /// Whether it was the first.
    pub(super) first: bool,
}

impl Readiness {
    /// Returns whether the first converge is through.
    pub(super) fn is_first_done(&self) -> bool {
        self.first == First::Done
    }

    /// Returns whether there are tasks that readiness waits for.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Records that there are tasks that readiness waits for.
    pub(super) fn begin(&mut self, at: Time, cause: Cause) {
        self.begun = Some((at, cause));
        if self.first == First::NotStarted {
            self.first = First::Started;
        }
    }

    /// Records that there are no such tasks any more. Returns what ended, if there were any.
    pub(super) fn end(&mut self, now: Time, last: u64) -> Option<Ended> {
        let (begun_at, cause) = self.begun.take()?;
        let first = self.first == First::Started;
        if first {
            self.first = First::Done;
        }
        self.finished_at = Some(now);
        let generation = (last > self.reported).then_some(last);
        self.reported = last;
        Some(Ended { begun_at, cause, generation, first })
    }

    /// Records whether the operator is ready. Returns whether that is to be reported.
    pub(super) fn set_ready(&mut self, is_ready: bool) -> bool {
        let ready = if is_ready { Ready::Yes } else { Ready::Waits };
        std::mem::replace(&mut self.ready, ready) != ready
    }

    /// Returns whether the operator has not become ready behind its first converge.
    pub(super) fn waits(&self) -> bool {
        self.ready == Ready::Waits
    }

    /// Returns whether the operator has become ready.
    pub(super) fn is_ready(&self) -> bool {
        self.ready == Ready::Yes
    }

    /// Returns whether it is ready and something may be left of what is removed behind the first converge.
    pub(super) fn may_clean_up(&self) -> bool {
        self.is_ready() && !self.is_cleaned_up
    }

    /// Records that nothing is left of that.
    pub(super) fn set_cleaned_up(&mut self) {
        self.is_cleaned_up = true;
    }

    /// Returns a picture of how far converges are; `generation` is the last one, and `tasks` are those of converges.
    pub(super) fn view(&self, generation: u64, tasks: usize, now: Time) -> ConvergeView {
        ConvergeView {
            generation,
            first_started: self.first != First::NotStarted,
            first_done: self.is_ready(),
            standby_of: None,
            tasks,
            finished_ago: self.finished_at.map(|at| now.since(at)),
            began_ago: self.begun.as_ref().map(|(at, _)| now.since(*at)),
            cause: self.begun.as_ref().map(|(_, cause)| cause.to_string()),
        }
    }
}

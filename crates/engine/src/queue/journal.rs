//! What tasks came to: the last thousand.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::Reason;
use crate::failure::Failure;
use crate::name::TaskId;
use crate::notice::TaskInfo;
use crate::task::Task;
use crate::time::Time;
use crate::view::TaskEnd;

/// How many ends are kept.
const LENGTH: usize = 1_000;

/// The last ends of tasks, and what tasks wait for.
#[derive(Debug, Default)]
pub(super) struct Journal {
    ends: VecDeque<TaskEnd>,
    /// How many ends there were.
    count: u64,
    /// What tasks wait for and since when, as it was reported, so that nothing is reported twice.
    waits: VecDeque<(TaskId, Reason, Time)>,
}

/// What an attempt came to.
#[derive(Debug)]
pub(super) enum Ending {
    /// It did what it should.
    Done,
    /// It failed, and may.
    Allowed(Failure),
    /// It failed and is tried again.
    Failed(Failure),
}

impl Journal {
    /// Records how an attempt ended, of which `took` is the length.
    pub(super) fn ended(&mut self, task: &Task, at: Time, took: Duration, end: Ending) {
        self.record(task.info(), at, took, end);
    }

    /// Records how an attempt at what `task` tells of ended.
    pub(super) fn record(&mut self, task: TaskInfo, at: Time, took: Duration, end: Ending) {
        if self.ends.len() == LENGTH {
            self.ends.pop_front();
        }
        self.count += 1;
        let (failure, allowed) = match end {
            Ending::Done => (None, false),
            Ending::Allowed(failure) => (Some(Arc::new(failure)), true),
            Ending::Failed(failure) => (Some(Arc::new(failure)), false),
        };
        let number = self.count;
        self.waits.retain(|(id, _, _)| *id != task.id);
        self.ends.push_back(TaskEnd { number, at, task, took, failure, allowed });
    }

    /// Returns how many entries there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len() + self.waits.len()
    }

    /// Returns since when the task waits for `reason`, if that is the last thing that was reported about it.
    pub(super) fn waits_since(&self, task: TaskId, reason: &Reason) -> Option<Time> {
        self.waits.iter().find(|(id, known, _)| *id == task && known == reason).map(|(_, _, since)| *since)
    }

    /// Records that the task waits.
    pub(super) fn waits(&mut self, task: TaskId, reason: Reason, since: Time) {
        self.waits.retain(|(id, _, _)| *id != task);
        if self.waits.len() == LENGTH {
            self.waits.pop_front();
        }
        self.waits.push_back((task, reason, since));
    }

    /// Iterates over the ends, the oldest first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &TaskEnd> {
        self.ends.iter()
    }
}

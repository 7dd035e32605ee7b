//! What tasks came to: the last thousand.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::failure::Failure;
use crate::name::{QueueName, TaskId};
use crate::notice::TaskInfo;
use crate::queue::fifo::Reason;
use crate::task::Task;
use crate::time::Time;

/// How many ends are kept.
const LENGTH: usize = 1_000;

/// The last ends of tasks, and what tasks wait for.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    ends: VecDeque<TaskEnd>,
    /// How many ends there were.
    count: u64,
    /// What the tasks wait for that were told to wait, and since when, so that nothing is told twice.
    waits: VecDeque<(TaskId, Reason, Time)>,
}

/// How an attempt at a task ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskEnd {
    /// Its number: the first end after the start is 1.
    pub number: u64,
    /// When.
    pub at: Time,
    /// The task.
    pub task: TaskInfo,
    /// How long it ran.
    pub took: Duration,
    /// Why it failed, if it did.
    pub failure: Option<Arc<Failure>>,
    /// Whether it was allowed to fail, so that its queue goes on.
    pub allowed: bool,
}

/// What an attempt came to.
#[derive(Debug)]
pub(crate) enum Ending {
    /// It did what it should.
    Done,
    /// It failed, and may.
    Allowed(Failure),
    /// It failed and is tried again.
    Failed(Failure),
}

impl Journal {
    pub(crate) fn ended(&mut self, queue: &QueueName, task: &Task, at: Time, took: Duration, end: Ending) {
        if self.ends.len() == LENGTH {
            self.ends.pop_front();
        }
        self.count += 1;
        let (failure, allowed) = match end {
            Ending::Done => (None, false),
            Ending::Allowed(failure) => (Some(Arc::new(failure)), true),
            Ending::Failed(failure) => (Some(Arc::new(failure)), false),
        };
        let (number, task) = (self.count, task.info(queue));
        self.waits.retain(|(id, _, _)| *id != task.id);
        self.ends.push_back(TaskEnd { number, at, task, took, failure, allowed });
    }

    /// Returns how many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len() + self.waits.len()
    }

    /// Returns since when the task waits for `reason`, if that is the last thing that was told about it.
    pub(crate) fn waits_since(&self, task: TaskId, reason: &Reason) -> Option<Time> {
        self.waits.iter().find(|(id, known, _)| *id == task && known == reason).map(|(_, _, since)| *since)
    }

    pub(crate) fn waits(&mut self, task: TaskId, reason: Reason, since: Time) {
        self.waits.retain(|(id, _, _)| *id != task);
        if self.waits.len() == LENGTH {
            self.waits.pop_front();
        }
        self.waits.push_back((task, reason, since));
    }

    /// Iterates over the ends, the oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &TaskEnd> {
        self.ends.iter()
    }
}

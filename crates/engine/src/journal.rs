//! What tasks came to: the last thousand.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::failure::Failure;
use crate::name::{QueueName, TaskId};
use crate::notice::TaskInfo;
use crate::queue::Reason;
use crate::task::Task;
use crate::time::Time;

/// How many ends are kept.
const LENGTH: usize = 1_000;

/// The last ends of tasks, and what tasks wait for.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    ends: VecDeque<TaskEnd>,
    /// What the tasks wait for that were told to wait, so that nothing is told twice.
    waits: VecDeque<(TaskId, Reason)>,
}

/// How an attempt at a task ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskEnd {
    /// When.
    pub at: Time,
    /// The task.
    pub task: TaskInfo,
    /// How long it ran.
    pub took: Duration,
    /// Why it failed, if it did.
    pub failure: Option<Arc<Failure>>,
}

impl Journal {
    pub(crate) fn ended(
        &mut self,
        queue: &QueueName,
        task: &Task,
        at: Time,
        took: Duration,
        failure: Option<Failure>,
    ) {
        if self.ends.len() == LENGTH {
            self.ends.pop_front();
        }
        self.ends.push_back(TaskEnd { at, task: task.info(queue), took, failure: failure.map(Arc::new) });
        self.waits.retain(|(id, _)| *id != task.id);
    }

    /// Returns how many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len() + self.waits.len()
    }

    /// Returns whether the last thing that was told about the task is that it waits for `reason`.
    pub(crate) fn is_last_wait(&self, task: TaskId, reason: &Reason) -> bool {
        self.waits.iter().any(|(id, known)| *id == task && known == reason)
    }

    pub(crate) fn waits(&mut self, task: TaskId, reason: Reason) {
        self.waits.retain(|(id, _)| *id != task);
        if self.waits.len() == LENGTH {
            self.waits.pop_front();
        }
        self.waits.push_back((task, reason));
    }

    /// Iterates over the ends, the oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &TaskEnd> {
        self.ends.iter()
    }
}

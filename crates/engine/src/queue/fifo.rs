//! A first-in, first-out queue.

use std::collections::VecDeque;
use std::time::Duration;

use super::Reason;
use crate::task::{Running, Task};
use crate::time::Time;

/// A queue. Only its head ever runs; a failing head blocks the tasks behind it.
///
/// ```text
/// Ready ─▶ Running(RunId) ─▶ done
///   ▲ ▲       │ fails
///   │ └─ Backoff { until }
///   └─── Waiting(Reason)       another task may be put before a waiting head
/// ```
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// The head, while an effect of it is in flight.
    pub(super) running: Option<Running>,
    /// The tasks that did not start, or that started and wait.
    pub(super) tasks: VecDeque<Task>,
    /// Why the first of `tasks` does not go on, as far as that is known.
    pub(super) blocked: Option<Blocked>,
}

/// Why the first task of a queue does not go on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Blocked {
    /// It failed.
    Backoff {
        /// When it is tried again.
        until: Time,
        /// How long it waits in all.
        delay: Duration,
    },
    /// Something is not there yet.
    Waiting {
        reason: Reason,
        /// Since when.
        since: Time,
    },
}

impl Queue {
    /// Returns the number of tasks, the running one too.
    pub(crate) fn len(&self) -> usize {
        self.tasks.len() + usize::from(self.running.is_some())
    }

    /// Iterates over all tasks, the running one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Task> {
        self.running.iter().map(|running| &running.task).chain(&self.tasks)
    }

    /// Returns the first task that does not run.
    pub(crate) fn first_waiting(&self) -> Option<&Task> {
        self.tasks.front()
    }

    /// Returns when the first task is worth another look, if that is known.
    pub(super) fn wakeup(&self) -> Option<Time> {
        match &self.blocked {
            Some(
                Blocked::Backoff { until, .. } | Blocked::Waiting { reason: Reason::Rate { until }, .. },
            ) => Some(*until),
            Some(Blocked::Waiting { .. }) | None => None,
        }
    }
}

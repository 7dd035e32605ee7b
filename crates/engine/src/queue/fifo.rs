//! A first-in, first-out queue.

use std::collections::VecDeque;
use std::time::Duration;

use super::Reason;
use crate::hook::combine;
use crate::task::{HookRun, Running, Task, TaskKind};
use crate::time::Time;

/// A queue. Only its head ever runs; a failing head blocks the tasks behind it.
///
/// ```text
/// Ready ─▶ Running(RunId) ─▶ done
///   ▲ ▲       │ fails
///   │ └─ Backoff { until }
///   └─── Waiting(Reason)       another task may be put before a waiting head
/// ```
///
/// A head that waits for what may stand behind it is set aside, see `aside`.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// The head, while an effect of it is in flight.
    pub(super) running: Option<Running>,
    /// The tasks that did not start, or that started and wait.
    pub(super) tasks: VecDeque<Task>,
    /// Why the first of `tasks` does not go on, as far as that is known.
    pub(super) blocked: Option<Blocked>,
    /// Tasks that the others pass.
    pub(super) aside: VecDeque<Aside>,
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
        self.tasks.len() + self.aside.len() + usize::from(self.running.is_some())
    }

    /// Iterates over all tasks, the running one first, those that are aside last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Task> {
        let aside = self.aside.iter().map(|aside| &aside.task);
        self.running.iter().map(|running| &running.task).chain(&self.tasks).chain(aside)
    }

    /// Returns whether a task is worth another look at that time.
    pub(super) fn wakes_at(&self, time: Time) -> bool {
        self.wakeup() == Some(time) || self.aside.iter().any(|aside| aside.until() == Some(time))
    }

    /// Returns when the first task is worth another look, if that is known.
    pub(super) fn wakeup(&self) -> Option<Time> {
        match &self.blocked {
            Some(
                Blocked::Backoff { until, .. }
                | Blocked::Waiting {
                    reason: Reason::Rate { until } | Reason::Finalizing { until, .. }, ..
                },
            ) => Some(*until),
            Some(Blocked::Waiting { .. }) | None => None,
        }
    }
}

/// A task that the others of its queue pass.
#[derive(Debug)]
pub(super) struct Aside {
    pub(super) task: Task,
    /// What it waits for.
    pub(super) why: Blocked,
}

impl Aside {
    /// Returns whether it waits for others that are aside, not for something of its own.
    pub(super) fn follows_others(&self) -> bool {
        matches!(&self.why, Blocked::Waiting { reason, .. } if !reason.stands_aside())
    }

    /// Returns until when it waits, if a time ends that.
    pub(super) fn until(&self) -> Option<Time> {
        if let Blocked::Backoff { until, .. } = self.why { Some(until) } else { None }
    }

    /// Returns whether `task` can become one with this one.
    pub(super) fn is_open_to(&self, task: &Task) -> bool {
        match (&self.task.kind, &task.kind) {
            (TaskKind::ModuleRun(old), TaskKind::ModuleRun(new)) => old.module == new.module,
            (TaskKind::HookRun(old), TaskKind::HookRun(new)) => {
                is_same_point(old, new) || are_mergeable_events(old, new)
            }
            _ => false,
        }
    }

    /// Makes this task and a later one like it one.
    pub(super) fn absorb(&mut self, mut later: Task, why: Blocked) {
        if let (TaskKind::HookRun(old), TaskKind::HookRun(new)) = (&mut self.task.kind, &mut later.kind)
            && are_mergeable_events(old, new)
        {
            combine::append(&mut old.contexts, std::mem::take(&mut new.contexts));
            return;
        }
        // The later run sees all that the earlier one would; who waits for that one waits for it.
        later.head.generation = later.head.generation.or(self.task.head.generation);
        *self = Self { task: later, why };
    }
}

fn is_same_point(old: &HookRun, new: &HookRun) -> bool {
    old.hook == new.hook
        && old.is_of_lifecycle()
        && new.is_of_lifecycle()
        && old.binding_type == new.binding_type
}

fn are_mergeable_events(old: &HookRun, new: &HookRun) -> bool {
    old.is_of_events(&new.hook) && new.is_of_events(&old.hook) && old.allow_failure == new.allow_failure
}

//! A first-in, first-out task queue.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use crate::task::Task;
use crate::task::in_flight::Running;
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
    pub(crate) running: Option<Running>,
    /// The tasks that did not start, or that started and wait.
    pub(crate) tasks: VecDeque<Task>,
    /// Why the first of `tasks` does not go on, as far as that is known.
    pub(crate) blocked: Option<Blocked>,
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
        /// What.
        reason: Reason,
        /// Since when.
        since: Time,
    },
}

/// What a task waits for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reason {
    /// A new version of its module's files is broken.
    BrokenVersion(String),
    /// A stale effect of the same module has to end first.
    EarlierRun,
    /// The kind of a binding does not exist.
    Kind(String),
    /// The first list of a watch.
    List(String),
    /// Other modules.
    Modules(String),
    /// Its hook may not run again so soon.
    Rate {
        /// When it may.
        until: Time,
    },
    /// Too many hooks run.
    Slot,
    /// The Synchronization of bindings.
    Synchronization(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BrokenVersion(why) => write!(f, "its new version is broken: {why}"),
            Self::EarlierRun => f.write_str("an earlier run of the module has to end first"),
            Self::Kind(kind) => write!(f, "kind {kind} does not exist yet"),
            Self::List(what) => write!(f, "the first list of {what}"),
            Self::Modules(names) => write!(f, "modules {names}"),
            Self::Rate { .. } => f.write_str("executionMinInterval of its hook"),
            Self::Slot => f.write_str("a free place among the running hooks (--max-hooks)"),
            Self::Synchronization(what) => write!(f, "Synchronization of {what}"),
        }
    }
}

impl Reason {
    /// Returns what a person can do about it.
    pub(crate) fn advice(&self) -> String {
        match self {
            Self::BrokenVersion(_) => {
                "correct the file that the message names; it is read again by itself".to_owned()
            }
            Self::EarlierRun => "nothing: it goes on when that run has ended".to_owned(),
            Self::Kind(kind) => format!(
                "install the CustomResourceDefinition of {kind}, or switch the module on that brings it; the task goes on by itself"
            ),
            Self::List(_) => {
                "look whether the API server answers and whether the operator may list and watch that kind (RBAC); \
                 the task goes on by itself"
                    .to_owned()
            }
            Self::Modules(_) => {
                "look at those modules: `addon-operator why module NAME`".to_owned()
            }
            Self::Rate { .. } => {
                "nothing: settings.executionMinInterval of the hook asks for this pause".to_owned()
            }
            Self::Slot => "nothing, unless it lasts: then raise --max-hooks, or look for a hook that hangs".to_owned(),
            Self::Synchronization(_) => {
                "look at the queue of that hook: `addon-operator why queue NAME`".to_owned()
            }
        }
    }
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

    /// Returns when the first task is worth another look, if that is known.
    pub(crate) fn wakeup(&self) -> Option<Time> {
        match &self.blocked {
            Some(
                Blocked::Backoff { until, .. } | Blocked::Waiting { reason: Reason::Rate { until }, .. },
            ) => Some(*until),
            Some(Blocked::Waiting { .. }) | None => None,
        }
    }
}

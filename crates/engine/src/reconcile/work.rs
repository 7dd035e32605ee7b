//! The work on one key.

use std::fmt;
use std::sync::Arc;

use crate::cause::Cause;
use crate::failure::Failure;
use crate::name::{QueueName, RunId, Scope, TaskId};
use crate::notice::{TaskInfo, TaskType};
use crate::time::Time;
use crate::view::TaskView;

/// What work is about: at most one run of it is pending.
pub(crate) trait Subject: Clone + Ord + fmt::Display {
    /// Returns what distinguishes the work `id` on it from other tasks.
    fn info(&self, id: TaskId, queue: &QueueName, cause: &Cause) -> TaskInfo;
}

/// An object that the operator itself looks after.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct WorkKey {
    /// What type of task the work is.
    pub(crate) task: TaskType,
    /// Who does it: a kind of objects.
    pub(crate) controller: &'static str,
    /// The namespace of the object; empty if it is in none.
    pub(crate) namespace: Arc<str>,
    /// The name of the object.
    pub(crate) name: Arc<str>,
}

/// Writes `ClusterAddonsConfiguration platform` or `AddonsConfiguration team/platform`.
impl fmt::Display for WorkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { controller, namespace, name, .. } = self;
        if namespace.is_empty() {
            write!(f, "{controller} {name}")
        } else {
            write!(f, "{controller} {namespace}/{name}")
        }
    }
}

impl Subject for WorkKey {
    fn info(&self, id: TaskId, queue: &QueueName, cause: &Cause) -> TaskInfo {
        TaskInfo {
            id,
            queue: queue.clone(),
            kind: self.task,
            scope: Scope::Global,
            hook: None,
            binding: None,
            cause: cause.clone(),
        }
    }
}

/// The work on one key and how far it is.
///
/// ```text
/// Ready ─▶ InFlight ─▶ Ready ─▶ … ─▶ done
///   ▲ ▲ └▶ Waiting ─────┘
///   │ ├─── Due            it comes back by itself
///   │ └─── Resting        it comes back when something changes, or by itself
///   └───── asked for
/// ```
#[derive(Debug)]
pub(super) struct Work {
    pub(super) id: TaskId,
    pub(super) cause: Cause,
    pub(super) queued_at: Time,
    pub(super) begun_at: Option<Time>,
    pub(super) state: State,
    /// Its place in the order in which keys came; `None` if nobody has asked for it since its work ended.
    pub(super) turn: Option<u64>,
    /// How many attempts failed.
    pub(super) failures: u32,
    pub(super) failing_since: Option<Time>,
    pub(super) last_failure: Option<Arc<Failure>>,
    /// How many of the last attempts failed like that.
    pub(super) alike: u32,
    /// That it is done once more when it is done, if it was asked for meanwhile.
    pub(super) again: Option<Again>,
}

/// That work is done once more.
#[derive(Debug)]
pub(super) struct Again {
    /// Why.
    pub(super) cause: Cause,
    /// Whether it may rest before, so that more of what happens beside it is seen by one run.
    pub(super) rests: bool,
}

/// What the work on one key is doing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum State {
    /// It waits for a worker.
    Ready,
    /// It comes back then.
    Due(Time),
    /// It comes back when it is asked for, or then.
    Resting { reason: String, since: Time, until: Option<Time> },
    /// An effect of it runs.
    InFlight {
        run: RunId,
        since: Time,
        /// Whether it holds a worker.
        holds_worker: bool,
    },
    /// It waits for something inside of the engine.
    Waiting { reason: String, since: Time },
}

impl State {
    /// Returns when it comes back by itself.
    pub(super) fn until(&self) -> Option<Time> {
        match self {
            Self::Due(until) => Some(*until),
            Self::Resting { until, .. } => *until,
            Self::InFlight { .. } | Self::Ready | Self::Waiting { .. } => None,
        }
    }
}

impl Work {
    pub(super) fn new(id: TaskId, cause: Cause, now: Time) -> Self {
        Self {
            id,
            cause,
            queued_at: now,
            begun_at: None,
            state: State::Ready,
            turn: None,
            failures: 0,
            failing_since: None,
            last_failure: None,
            alike: 0,
            again: None,
        }
    }

    /// Returns a picture of it.
    pub(super) fn view(&self, key: &impl Subject, queue: &QueueName, now: Time) -> TaskView {
        let info = key.info(self.id, queue, &self.cause);
        let (running, retry_in, waiting) = match &self.state {
            State::InFlight { since, .. } => (Some(now.since(*since)), None, None),
            State::Due(until) => (None, Some(until.since(now)), None),
            State::Waiting { reason, since } => (None, None, Some((reason.clone(), *since))),
            State::Resting { reason, since, until } => {
                (None, until.map(|until| until.since(now)), Some((reason.clone(), *since)))
            }
            State::Ready => (None, None, None),
        };
        let blocked_since = waiting.as_ref().map(|(_, since)| *since).or(self.failing_since);
        TaskView {
            id: self.id,
            description: format!("{}:{queue}:{key}", info.kind),
            module: info.scope.module().cloned(),
            age: now.since(self.queued_at),
            running,
            failures: self.failures,
            last_failure: self.last_failure.clone(),
            retry_in,
            waits_for: waiting.map(|(reason, _)| reason),
            cause: self.cause.to_string(),
            chain: self.cause.clone(),
            kind: info.kind,
            hook: info.hook,
            blocked_for: blocked_since.map(|since| now.since(since)),
            wait_advice: None,
            // Work on one key never waits for work on another one.
            is_aside: true,
        }
    }
}

//! A picture for people and programs. It holds no values but what failures quote.

mod footprint;
mod format;
pub mod graph;
pub mod journal;
mod mask;
pub mod status;
mod suggestion;
pub mod why;

use std::sync::Arc;
use std::time::Duration;

use crate::cause::Cause;
use crate::failure::Failure;
use crate::name::{HookId, HookName, ModuleName, MonitorId, QueueName, TaskId};
use crate::notice::{TaskInfo, TaskType};
use crate::time::Time;

pub use footprint::Footprint;
pub use format::{Format, span};
pub use mask::{Secrets, ends, masked, masked_text};
pub use suggestion::nearest;

/// What the operator is doing, at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// When the picture was taken.
    pub now: Time,
    /// All queues: `main` first, then by name.
    pub queues: Vec<QueueView>,
    /// The global hooks by path.
    pub global_hooks: Vec<HookName>,
    /// All modules as they run, orphans last.
    pub modules: Vec<ModuleView>,
    /// All watches.
    pub watches: Vec<WatchView>,
    /// How far converges are.
    pub converge: ConvergeView,
    /// What is wrong with the ConfigMap, key by key.
    pub config_problems: Vec<ConfigProblem>,
    /// What of the files of all modules is broken: an older version is in force.
    pub file_problems: Vec<Failure>,
    /// What was skipped in the files.
    pub warnings: Vec<String>,
    /// The last ends of tasks, the newest first.
    pub journal: Vec<TaskEnd>,
    /// How many processes of hooks and scripts run.
    pub processes: usize,
    /// How many answers came that no task waited for any more.
    pub stale_answers: u64,
    /// The ConfigMap: `namespace/name`.
    pub config_map: String,
    /// Whether the operator is about to end.
    pub is_ending: bool,
}

/// A queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueView {
    /// Its name.
    pub name: QueueName,
    /// Its status, in the words of the reference operator; empty when it is idle.
    pub status: String,
    /// Its tasks, the head first.
    pub tasks: Vec<TaskView>,
}

/// A task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskView {
    /// Which task.
    pub id: TaskId,
    /// Its line without the last failure.
    pub description: String,
    /// Its module, if it is about one.
    pub module: Option<ModuleName>,
    /// How long it has been in the queue, or since its last failure.
    pub age: Duration,
    /// How long its effect has been in flight, if one is.
    pub running: Option<Duration>,
    /// How many attempts failed.
    pub failures: u32,
    /// Why the last one failed. Can hold secrets.
    pub last_failure: Option<Arc<Failure>>,
    /// How long until it is tried again.
    pub retry_in: Option<Duration>,
    /// What it waits for.
    pub waits_for: Option<String>,
    /// Why it exists.
    pub cause: String,
    /// The same, link by link.
    pub chain: Cause,
    /// What type of task it is.
    pub kind: TaskType,
    /// Its hook, if it runs one.
    pub hook: Option<HookId>,
    /// How long it has been failing or waiting for the same thing.
    pub blocked_for: Option<Duration>,
    /// What a person can do about what it waits for.
    pub wait_advice: Option<String>,
}

/// How an attempt at a task ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskEnd {
    /// Its number: the first end after the start is 1.
    pub number: u64,
    /// When it ended.
    pub at: Time,
    /// Which task.
    pub task: TaskInfo,
    /// How long it ran.
    pub took: Duration,
    /// Why it failed, if it did.
    pub failure: Option<Arc<Failure>>,
    /// Whether it was allowed to fail, so that its queue goes on.
    pub allowed: bool,
}

/// A module.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleView {
    /// Its name.
    pub name: ModuleName,
    /// The key of its section.
    pub key: Arc<str>,
    /// Its order number.
    pub order: u32,
    /// Where its files are.
    pub path: Arc<str>,
    /// `disabled`, `starting`, `running`, `failed`, `deleting`, `parked` or `orphaned`.
    pub phase: &'static str,
    /// How long it has been so.
    pub since: Duration,
    /// Whether it is on; `None` before the first discovery.
    pub enabled: Option<bool>,
    /// Who said so, the last one wins.
    pub why: String,
    /// The same, one by one. Before the first discovery: what is known already.
    pub opinions: Vec<OpinionView>,
    /// What is wrong with its keys of the ConfigMap.
    pub config_problem: Option<Failure>,
    /// Why its last run failed. Can hold secrets.
    pub last_error: Option<Arc<Failure>>,
    /// The revision of its release, if one is deployed.
    pub revision: Option<u32>,
    /// What is known about its release.
    pub release: &'static str,
    /// Whether it is in maintenance.
    pub maintenance: bool,
    /// Why its release is left alone, if it is.
    pub parked: Option<String>,
    /// Objects of its release that somebody else changed since the last upgrade.
    pub changed_objects: Vec<String>,
    /// Why its files are not in force, if they are not.
    pub broken_version: Option<Failure>,
    /// Its hooks.
    pub hooks: Vec<HookId>,
}

/// What one source says about whether a module is on.
#[derive(Clone, Debug, PartialEq)]
pub struct OpinionView {
    /// What kind of source it is.
    pub source: Source,
    /// What it says.
    pub says: bool,
    /// Which one: the file, the global hook, the key of the ConfigMap, the script.
    pub by: String,
    /// Why it says so, if it told. Can hold secrets.
    pub reason: Option<String>,
    /// How long it has been saying so, if that is known.
    pub ago: Option<Duration>,
}

/// Who can say whether a module is on, the weakest first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// A file of static values.
    Static,
    /// A global hook.
    Dynamic,
    /// The ConfigMap.
    ConfigMap,
    /// The enabled script.
    Script,
}

/// A watch.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchView {
    /// Which watch.
    pub id: MonitorId,
    /// The kind it watches.
    pub kind: String,
    /// The bindings that it feeds: hook and name.
    pub bindings: Vec<(HookId, String)>,
    /// How many objects it knows.
    pub objects: usize,
    /// Whether it listed all of them.
    pub listed: bool,
    /// The kind it waits for.
    pub missing_kind: Option<String>,
    /// Why it broke, until it works again.
    pub failure: Option<Arc<Failure>>,
    /// How long it has been waiting for its kind or broken.
    pub broken_for: Option<Duration>,
}

/// Something that is wrong with the ConfigMap.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigProblem {
    /// What. Can hold secrets.
    pub failure: Failure,
    /// How long it has been there.
    pub since: Duration,
}

/// How far converges are.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ConvergeView {
    /// The number of the last one.
    pub generation: u64,
    /// Whether the first one began.
    pub first_started: bool,
    /// Whether the operator is ready: the first one is through, and no global hook waits for a kind.
    pub first_done: bool,
    /// How many tasks of converges there are.
    pub tasks: usize,
    /// How long ago the last one ended.
    pub finished_ago: Option<Duration>,
    /// How long the one has run that runs.
    pub began_ago: Option<Duration>,
    /// Why the one runs that runs.
    pub cause: Option<String>,
}

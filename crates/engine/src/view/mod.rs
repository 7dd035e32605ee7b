//! A picture for people and programs. It holds no values but what failures quote.
//!
//! It is long because each fact that is shown stands here once.

mod chart;
pub mod charts;
mod footprint;
mod format;
pub mod graph;
pub mod journal;
mod mask;
mod problems;
mod source;
pub mod source_plan;
pub mod sources;
pub mod status;
mod suggestion;
pub mod why;

use std::sync::Arc;
use std::time::Duration;

use crate::addon::SourceKey;
use crate::cause::Cause;
use crate::config_object::ConfigObject;
use crate::event::{TakenObject, UnwatchedKind};
use crate::extenders::Extenders;
use crate::failure::{Failure, FailureKind};
use crate::memory::ShortMemory;
use crate::name::{HookId, HookName, ModuleName, MonitorId, QueueName, TaskId};
use crate::notice::{TaskInfo, TaskType};
use crate::package::Package;
use crate::release_target::ReleaseTarget;
use crate::time::Time;

pub use chart::{ChartRepositoryView, ChartVersionView, ChartView, ChartsView, ModuleChartView};
pub use footprint::Footprint;
pub use format::{Format, cut, escaped, one_line, span};
pub use mask::{ends, masked, masked_text};
pub(crate) use problems::{NOT_FOLLOWED, PARKED};
pub use problems::{Problem, problems};
pub use redaction::{Secrets, Unquotable};
pub use source::{ModuleOriginView, SourceAddonView, SourceRepositoryView, SourceView};
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
    /// The configurations of module sources.
    pub sources: Vec<SourceView>,
    /// Chart repositories, what is kept of them, and what modules are installed from.
    pub charts: ChartsView,
    /// All watches.
    pub watches: Vec<WatchView>,
    /// The watches of the operator itself that do not work.
    pub broken_own_watches: Vec<OwnWatchView>,
    /// The webhooks of hooks.
    pub webhooks: WebhooksView,
    /// How far converges are.
    pub converge: ConvergeView,
    /// What is wrong with the ConfigMap, key by key.
    pub config_problems: Vec<ConfigProblem>,
    /// What of the files of all modules is broken: an older version is in force.
    pub file_problems: Vec<Failure>,
    /// What was skipped in the files.
    pub warnings: Vec<String>,
    /// What people should know about objects of controllers that do not fail.
    pub remarks: Vec<RemarkView>,
    /// The last ends of tasks, the newest first.
    pub journal: Vec<TaskEnd>,
    /// How many processes of hooks and scripts run.
    pub processes: usize,
    /// How much memory is used, while that is so close to the limit that hooks run one at a time.
    pub short_memory: Option<ShortMemory>,
    /// How many answers came that no task waited for any more.
    pub stale_answers: u64,
    /// The ConfigMap: `namespace/name`.
    pub config_map: String,
    /// The Secret over it, in the same words.
    pub config_secret: String,
    /// The texts that are shown only to who asks for them: those of that Secret.
    pub secrets: Arc<Secrets<'static>>,
    /// Who is asked whether modules are on.
    pub extenders: Extenders,
    /// Who may act; `None` if nothing keeps operators apart.
    pub election: Option<ElectionView>,
    /// Whether the operator is about to end.
    pub is_ending: bool,
}

impl View {
    /// Returns one of the objects that users write values into: `ConfigMap namespace/name`.
    pub fn place(&self, object: ConfigObject) -> String {
        let name = match object {
            ConfigObject::ConfigMap => &self.config_map,
            ConfigObject::Secret => &self.config_secret,
        };
        format!("{object} {name}")
    }

    /// Returns why nothing is known about module sources, nor done for them, if this operator is a standby.
    pub fn refusal(&self) -> Option<Failure> {
        let standby = self.election.as_ref().filter(|election| election.is_standby() && !self.is_ending)?;
        Some(ElectionView::refusal(standby.holder.as_deref()))
    }

    /// Returns the picture with what everybody may read of each failure.
    ///
    /// Values that are in force by now are not masked in it, where they were none when it failed.
    #[must_use]
    pub fn for_everybody(mut self) -> Self {
        let tasks = self.queues.iter_mut().flat_map(|queue| &mut queue.tasks);
        let modules = self.modules.iter_mut().map(|module| &mut module.last_error);
        let watches = self.watches.iter_mut().map(|watch| &mut watch.failure);
        let ends = self.journal.iter_mut().map(|end| &mut end.failure);
        let shared = tasks.map(|task| &mut task.last_failure).chain(modules).chain(watches).chain(ends);
        for failure in shared.flatten() {
            if let Some(masked) = &failure.masked {
                *failure = Arc::clone(masked);
            }
        }
        let mut of_modules = Vec::new();
        let mut of_config: Vec<&mut ConfigProblem> = self.config_problems.iter_mut().collect();
        for module in &mut self.modules {
            of_modules.extend(&mut module.broken_version);
            of_config.extend(&mut module.config_problem);
        }
        let of_config = of_config.into_iter().map(|problem| &mut problem.failure);
        let of_streaks = self.webhooks.streaks.iter_mut().filter_map(|streak| streak.failure.as_mut());
        let of_webhooks = of_streaks.chain(&mut self.webhooks.certificate_failure).map(Arc::make_mut);
        for failure in
            of_modules.into_iter().chain(of_config).chain(&mut self.file_problems).chain(of_webhooks)
        {
            if let Some(masked) = failure.masked.take() {
                *failure = Arc::unwrap_or_clone(masked);
            }
        }
        self
    }
}

/// Which of several operators may act.
#[derive(Clone, Debug, PartialEq)]
pub struct ElectionView {
    /// What this operator is.
    pub role: ElectionRole,
    /// Whether nothing is done without the Lease.
    pub is_decisive: bool,
    /// The Lease: `namespace/name`.
    pub lease: String,
    /// Who this operator is in the Lease.
    pub identity: String,
    /// Who holds it, as far as is known.
    pub holder: Option<String>,
    /// How long until it may be taken, if it is not renewed.
    pub free_in: Option<Duration>,
    /// How long this operator may act, if it can't renew it.
    pub acts_for: Option<Duration>,
    /// Another operator that is at work, too.
    pub rival: Option<String>,
    /// Why the Lease could not be used last.
    pub failure: Option<Arc<Failure>>,
}

/// What an operator is in an election.
#[derive(Clone, Copy, Debug, Eq, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ElectionRole {
    /// It acts without holding the Lease.
    Alone,
    /// It holds the Lease.
    Leader,
    /// It waits for the Lease.
    Standby,
}

impl ElectionView {
    /// Returns whether this operator waits, and another one acts.
    pub fn is_standby(&self) -> bool {
        self.role == ElectionRole::Standby
    }

    /// Returns why a standby does not what only the one can do that leads, and knows not what only that one knows.
    pub(crate) fn refusal(holder: Option<&str>) -> Failure {
        let message = format!("this replica is a standby of {}", holder.unwrap_or("nobody"));
        Failure::new(FailureKind::Cluster, message).advise("ask the one that leads")
    }
}

/// The webhooks of hooks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebhooksView {
    /// What can't be served, or is not registered.
    pub unserved: Vec<UnservedWebhook>,
    /// Why the API server does not know the webhooks as they are, if that failed last.
    pub failure: Option<Arc<Failure>>,
    /// How many hooks answer reviews.
    pub running: usize,
    /// How many reviews wait for a hook.
    pub waiting: usize,
    /// Those that let nothing pass.
    pub streaks: Vec<WebhookStreakView>,
    /// Why our own certificate can't be followed in its Secret, if that failed last.
    pub certificate_failure: Option<Arc<Failure>>,
    /// How long the certificate is valid; zero if it is not any more. `None` while nothing is served.
    pub certificate_ends_in: Option<Duration>,
}

/// A webhook that nobody asks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnservedWebhook {
    /// The hook that asks for it.
    pub hook: HookId,
    /// Which one it is, and why nobody asks it.
    pub what: String,
    /// What to do about it.
    pub advice: &'static str,
}

/// A webhook that lets nothing pass: it fails, or it denied many requests in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookStreakView {
    /// The name of the webhook, or of the definition whose objects are converted.
    pub webhook: Arc<str>,
    /// Its hook.
    pub hook: HookId,
    /// How many requests in a row did not pass.
    pub count: u32,
    /// How long ago the first of them was.
    pub since: Duration,
    /// Why the last one has no answer; `None` if the hook denied it. Can hold secrets.
    pub failure: Option<Arc<Failure>>,
    /// Whether it converts objects, for which there is no failure policy.
    pub is_conversion: bool,
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

impl QueueView {
    /// Returns how long the queue has been at its first task: running, failing or waiting; `None` when none holds it back.
    ///
    /// A queue that is busy with ever new tasks is at each of them for a short time only.
    pub fn head_for(&self) -> Option<Duration> {
        let head = self.tasks.first().filter(|task| !task.is_aside)?;
        Some(head.running.max(head.blocked_for).unwrap_or_default())
    }

    /// Iterates over the tasks that the first one holds back. Those that are aside hold nothing back and are not held back.
    pub(crate) fn behind_head(&self) -> impl Iterator<Item = &TaskView> {
        self.tasks.iter().skip(1).filter(|task| !task.is_aside)
    }
}

impl QueueView {
    /// Adds tasks that are in no queue under a name. A queue of hooks may have the same.
    pub(crate) fn add(queues: &mut Vec<Self>, name: &str, tasks: Vec<TaskView>) {
        match queues.iter_mut().find(|queue| queue.name.as_str() == name) {
            _ if tasks.is_empty() => {}
            Some(queue) => queue.tasks.extend(tasks),
            None => queues.push(Self { name: name.into(), status: String::new(), tasks }),
        }
    }
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
    /// Whether the other tasks of its queue pass it. Such tasks are the last of the list.
    pub is_aside: bool,
}

impl TaskView {
    /// Returns a task of no queue, which waits for no other one: how old it is, and for how long it runs.
    pub(crate) fn outside(
        id: TaskId,
        kind: TaskType,
        description: String,
        chain: Cause,
        (age, running): (Duration, Option<Duration>),
    ) -> Self {
        Self {
            id,
            description,
            module: None,
            age,
            running,
            failures: 0,
            last_failure: None,
            retry_in: None,
            waits_for: None,
            cause: chain.to_string(),
            chain,
            kind,
            hook: None,
            blocked_for: None,
            wait_advice: None,
            is_aside: true,
        }
    }
}

/// What people should know about an object whose controller does not fail.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RemarkView {
    /// The object: `Website shop/cart`.
    pub about: String,
    /// What is so.
    pub what: String,
    /// What to do about it.
    pub advice: String,
    /// The module of the hook; `None` for a global one.
    pub module: Option<ModuleName>,
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

/// What becomes of what others change of the objects of a release.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DriftView {
    /// It stays until the next upgrade.
    Stays,
    /// It is written back.
    Mended,
    /// It is left to them for a while: they change an object again and again.
    Quarrel,
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
    /// Where it comes from, if a module source brought it.
    pub origin: Option<ModuleOriginView>,
    /// `disabled`, `starting`, `running`, `failed`, `held`, `waiting`, `deleting`, `parked` or `orphaned`.
    pub phase: &'static str,
    /// How long it has been so.
    pub since: Duration,
    /// Whether it is on; `None` before the first discovery.
    pub enabled: Option<bool>,
    /// Who said so, the last one wins.
    pub why: String,
    /// The same, one by one. Before the first discovery: what is known already.
    pub opinions: Vec<OpinionView>,
    /// What those say who are not asked.
    pub unasked: Vec<OpinionView>,
    /// Whether a flag in the ConfigMap would switch it on.
    pub is_flag_heard: bool,
    /// What is wrong with its keys of the ConfigMap or of the Secret over it.
    pub config_problem: Option<ConfigProblem>,
    /// Whether values of its section come from the Secret over the ConfigMap.
    pub has_secret_values: bool,
    /// Why its last run failed. Can hold secrets.
    pub last_error: Option<Arc<Failure>>,
    /// Why its hooks did not say what they want when they were asked before its run, so that the API server does not know of their
    /// webhooks as they are. Can hold secrets.
    pub unanswered: Option<Arc<Failure>>,
    /// The revision of its release, if one is deployed.
    pub revision: Option<u32>,
    /// What is known about its release.
    pub release: &'static str,
    /// Where its release is, or belongs if there is none; `None` for the operator's own namespace.
    pub elsewhere: Option<ReleaseTarget>,
    /// That it is in maintenance, if it is.
    pub maintenance: Option<MaintenanceView>,
    /// Why its release is left alone, if it is.
    pub parked: Option<String>,
    /// Why it is neither run nor removed, if its chart was never found.
    pub held: Option<String>,
    /// Why it does not run as its files are now, if others are missing that it requires.
    pub waits: Option<String>,
    /// Whether the objects of its release are ready, if its files ask for that.
    pub readiness: Option<ReadinessView>,
    /// The modules that it requires.
    pub requires: Vec<RequirementView>,
    /// What it is installed from, if it names a chart.
    pub package: Option<Arc<Package>>,
    /// Objects of its release that somebody else changed since the last upgrade, each with the place.
    pub changed_objects: Vec<String>,
    /// What becomes of what others change.
    pub drift: DriftView,
    /// One of these objects that can't be put right, and why, as everybody may read it.
    pub unmended: Option<(String, Arc<Failure>)>,
    /// Objects that its last upgrade took over from others, as a whole or a field of them.
    pub taken_objects: Vec<TakenObject>,
    /// Kinds of objects of its release that can't be watched.
    pub unwatched_kinds: Vec<UnwatchedKind>,
    /// Why its files are not in force, if they are not.
    pub broken_version: Option<Failure>,
    /// Whether it goes on as its files were before then.
    pub has_old_version: bool,
    /// Its hooks.
    pub hooks: Vec<HookId>,
}

/// Whether the objects of a release are ready.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ReadinessView {
    /// How long they have not been; `None` if they are.
    pub awaited_for: Option<Duration>,
    /// Whether that is longer than the module allows.
    pub is_late: bool,
    /// Those that are not, each with the reason. Can hold secrets.
    pub unready: Vec<String>,
}

impl ReadinessView {
    /// Returns the state in one word: `ready`, `waiting` or `late`.
    pub fn state(&self) -> &'static str {
        match (self.awaited_for, self.is_late) {
            (None, _) => "ready",
            (Some(_), false) => "waiting",
            (Some(_), true) => "late",
        }
    }
}

/// That the release of a module is left alone because people work on it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MaintenanceView {
    /// Why, if they said so.
    pub reason: Option<String>,
    /// When it ends by itself, in UTC, if it does.
    pub until: Option<String>,
    /// How long until then.
    pub ends_in: Option<Duration>,
}

impl MaintenanceView {
    /// Returns until when and why, with what stands before it.
    pub fn told(&self) -> String {
        let until = self.until.as_ref().map(|until| format!(" until {until}")).unwrap_or_default();
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("in maintenance{until}{reason}")
    }
}

/// A module that another one requires.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequirementView {
    /// Its name.
    pub module: ModuleName,
    /// The versions that do.
    pub version: Option<String>,
    /// What is missing, if something is: `module db, which is off`.
    pub lack: Option<String>,
    /// Whether a person has to do something about that.
    pub needs_help: bool,
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
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Source {
    /// A file of static values.
    Static,
    /// A global hook.
    Dynamic,
    /// The ConfigMap, or the Secret over it.
    Config(ConfigObject),
    /// The enabled script.
    Script,
    /// The configuration of sources that brought the module and takes it back.
    Withdrawn(SourceKey),
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

/// A watch of the operator itself that does not work: that of the ConfigMap, for example.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnWatchView {
    /// What it watches, in words.
    pub name: String,
    /// Why it does not work.
    pub failure: Arc<Failure>,
    /// For how long.
    pub broken_for: Duration,
}

/// Something that is wrong with the ConfigMap or the Secret over it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigProblem {
    /// With which of the two.
    pub object: ConfigObject,
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
    /// Whether this operator waits for the Lease, and the name of who holds it.
    pub standby_of: Option<Option<String>>,
    /// How many tasks of converges there are.
    pub tasks: usize,
    /// How long ago the last one ended.
    pub finished_ago: Option<Duration>,
    /// How long the one has run that runs.
    pub began_ago: Option<Duration>,
    /// Why the one runs that runs.
    pub cause: Option<String>,
}

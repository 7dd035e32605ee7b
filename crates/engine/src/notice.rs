//! Facts that are worth telling. Telemetry folds them into logs and metrics.

use std::sync::Arc;
use std::time::Duration;

use redaction::Unquotable;

use crate::cause::Cause;
use crate::config_object::ConfigObject;
use crate::event::{Drift, ReleaseAction, Usage};
use crate::failure::Failure;
use crate::hook::metric::MetricOperation;
use crate::name::{HookId, ModuleName, MonitorId, QueueName, Scope, TaskId};

/// Something that has become true.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// The configuration of the user has problems, or none any more when the list is empty.
    ConfigChecked {
        /// One failure for each bad key, with the object that has it.
        problems: Vec<(ConfigObject, Failure)>,
    },
    /// Nothing is left that readiness waits for: a converge ended, or what is done after the first one.
    ConvergeFinished {
        /// The number of the converge; `None` when its end was told before.
        generation: Option<u64>,
        /// How long it took.
        took: Duration,
        /// Whether it was the first.
        first: bool,
        /// Why it ran.
        cause: Cause,
    },
    /// A converge began.
    ConvergeStarted {
        /// Its number.
        generation: u64,
        /// Why it runs.
        cause: Cause,
    },
    /// A discovery of modules failed; it is repeated.
    DiscoveryFailed {
        /// Why.
        failure: Failure,
    },
    /// A hook process ended.
    HookRan {
        /// The hook.
        hook: HookId,
        /// Its type of binding: `beforeHelm`, `kubernetes`, `schedule`.
        binding: &'static str,
        /// The queue.
        queue: QueueName,
        /// What it used, if it ran to its end.
        usage: Option<Usage>,
        /// How it ended.
        outcome: HookEnd,
        /// Whether it was a task of its own: not part of the run or the removal of a module.
        is_task: bool,
        /// Whether the start of the operator led to it.
        startup: bool,
    },
    /// Who may act is another one now, or this operator can't find out.
    ElectionChanged {
        /// One line that says what, and what to do if something is to be done.
        message: String,
        /// Whether a person should look at it.
        warning: bool,
    },
    /// A hook exported metrics.
    MetricsExported {
        /// The hook.
        hook: HookId,
        /// What it wrote.
        operations: Arc<[MetricOperation]>,
        /// What a text must not quote that says what is wrong with it.
        unquotable: Unquotable,
    },
    /// The metrics that the hooks of a scope exported are void; the module was disabled.
    MetricsForgotten {
        /// Whose.
        scope: Scope,
    },
    /// A module's phase changed.
    ModuleChanged {
        /// The module.
        module: ModuleName,
        /// Its phase now, as `View` names it.
        phase: &'static str,
        /// Why, in one line.
        reason: Option<String>,
    },
    /// Which modules are on was found anew.
    ModulesDiscovered {
        /// All modules with what they are now.
        modules: Arc<[(ModuleName, bool)]>,
    },
    /// Scripts ran once more after the first converge, as hooks had changed what they read.
    ScriptsAskedAgain {
        /// How many.
        scripts: usize,
    },
    /// Many runs of one hook that waited in a queue became few.
    QueueCompacted {
        /// The queue.
        queue: QueueName,
        /// The hook.
        hook: HookId,
        /// How many runs there were.
        before: usize,
        /// How many there are.
        after: usize,
    },
    /// The length of a queue changed.
    QueueChanged {
        /// The queue.
        queue: QueueName,
        /// How many tasks it holds, the running one too.
        length: usize,
    },
    /// The operator is ready from now on: the first converge is through.
    Ready,
    /// It is ready, and what is removed behind the first converge is gone: releases that nobody wants any more.
    CleanedUp,
    /// The first converge is through, but the operator is not ready: a global hook did not see the objects that it waits for.
    ReadinessWaits {
        /// The hook.
        hook: HookId,
        /// What it waits for.
        reason: String,
        /// What a person can do about it.
        advice: String,
    },
    /// The number of objects of a controller changed.
    ReconcileKeysChanged {
        /// The hook.
        hook: HookId,
        /// The name of the binding.
        binding: Arc<str>,
        /// How many objects there are.
        keys: usize,
    },
    /// A release was looked after.
    ReleaseRan {
        /// The module.
        module: ModuleName,
        /// What was done; `None` when it failed.
        action: Option<ReleaseAction>,
        /// How long it took.
        took: Duration,
        /// Whether the start of the operator led to it.
        startup: bool,
    },
    /// An object of a release that others had changed is as it was rendered again.
    ObjectMended {
        /// The module.
        module: ModuleName,
        /// `namespace/Kind/name`
        object: String,
    },
    /// A release differs from its chart. A field that others change again and again is told a few times only.
    ReleaseDrifted {
        /// The module.
        module: ModuleName,
        /// How.
        drift: Drift,
        /// What was found, in one line.
        what: String,
    },
    /// The number of objects in a snapshot changed.
    SnapshotChanged {
        /// The monitor.
        monitor: MonitorId,
        /// The hooks and bindings that it feeds.
        bindings: Arc<[ObservedBinding]>,
        /// How many objects it holds.
        objects: usize,
    },
    /// A whole round brought nothing further: all that is left failed, or waits for what does not come by itself.
    Stuck {
        /// Why, in one line.
        why: String,
    },
    /// A task ended or failed.
    TaskFinished {
        /// The task.
        task: TaskInfo,
        /// How long it ran.
        took: Duration,
        /// Why it failed; it is tried again after `retry`.
        failure: Option<Failure>,
        /// How long until it is tried again.
        retry: Option<Duration>,
        /// Whether its failure was allowed, so that the queue goes on.
        allowed: bool,
        /// Whether it has failed like this before, and nobody has to hear of it again so soon.
        is_old: bool,
    },
    /// A task was put in a queue.
    TaskQueued {
        /// The task.
        task: TaskInfo,
    },
    /// A task began.
    TaskStarted {
        /// The task.
        task: TaskInfo,
        /// How long it was in the queue.
        waited: Duration,
    },
    /// There is no such module any more.
    ModuleLeft {
        /// Its name.
        module: ModuleName,
    },
    /// The effect of a task was ended: the operator ends, or something newer takes its place.
    TaskStopped {
        /// The task.
        task: TaskInfo,
        /// Whether the operator ends.
        at_shutdown: bool,
    },
    /// A task can't begin yet.
    TaskWaits {
        /// The task.
        task: TaskInfo,
        /// For what.
        reason: String,
        /// What a person has to do about it, if it does not end by itself.
        advice: Option<String>,
    },
    /// A review of the API server was answered.
    ReviewAnswered {
        /// What was asked: `kubernetesValidating`, `kubernetesMutating`, `kubernetesCustomResourceConversion`.
        binding: &'static str,
        /// The name of the webhook, or of the definition whose objects are converted.
        webhook: Arc<str>,
        /// What was answered.
        outcome: ReviewEnd,
        /// How long it took, the wait for other hooks too.
        took: Duration,
    },
    /// Reviews are taken with another certificate.
    WebhookCertificateChanged {
        /// How long it is valid from now on.
        valid_for: Duration,
    },
    /// A hook that the API server asked failed.
    ReviewFailed {
        /// The hook.
        hook: HookId,
        /// The name of the webhook, or of the definition whose objects are converted.
        webhook: Arc<str>,
        /// Why.
        failure: Failure,
    },
    /// A step of the work on a chart was taken.
    ChartStepped {
        /// The object.
        object: String,
        /// The step, in words.
        step: String,
    },
    /// Nothing looks after module sources, as their kind does not exist. It is told once.
    SourcesAbsent {
        /// The kind.
        kind: String,
    },
    /// An instance of the broker came to another stage.
    InstanceChanged {
        /// The module that it is.
        module: ModuleName,
        /// The stage.
        stage: InstanceStage,
        /// One line that says which instance, and why something failed.
        message: String,
    },
    /// A module went back to the version before, as it did not run with another one.
    ModuleRolledBack {
        /// The module.
        module: ModuleName,
        /// One line that says which versions.
        message: String,
    },
    /// A configuration of sources became ready, or failed.
    SourceChanged {
        /// Whether it is ready.
        is_ready: bool,
        /// One line that says which, and why.
        message: String,
    },
    /// Something was done because a configuration of sources lets go of its addons: it is being deleted, or brings others.
    SourceReleases {
        /// One line that says what.
        message: String,
    },
    /// Something is not as it should be, but nothing stops.
    Warned {
        /// Whose it is.
        scope: Scope,
        /// One line that says what and what to do.
        message: String,
    },
    /// A watch broke; it is opened again.
    WatchFailed {
        /// The monitor; `None` for a watch of the operator itself.
        monitor: Option<MonitorId>,
        /// Why.
        failure: Failure,
    },
    /// A watch that had broken works again.
    WatchRestored {
        /// What it watches, in words.
        watch: String,
        /// How long it did not work.
        broken_for: Duration,
    },
}

/// How far an instance of the broker is.
#[derive(Clone, Copy, Debug, strum::Display, Eq, PartialEq)]
#[strum(serialize_all = "kebab-case")]
pub enum InstanceStage {
    /// A platform wants it.
    Provisioning,
    /// It is there.
    Provisioned,
    /// It did not come. It may recover.
    ProvisionFailed,
    /// It is to go.
    Deprovisioning,
    /// It is gone.
    Deprovisioned,
    /// It did not go.
    DeprovisionFailed,
}

impl InstanceStage {
    /// Returns whether a person should look at it.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::ProvisionFailed | Self::DeprovisionFailed)
    }

    /// Returns the one word for machines with which an end is announced; `None` for a beginning.
    pub(crate) fn reason(self) -> Option<&'static str> {
        match self {
            Self::Provisioning | Self::Deprovisioning => None,
            Self::Provisioned => Some("InstanceProvisioned"),
            Self::ProvisionFailed => Some("InstanceFailed"),
            Self::Deprovisioned => Some("InstanceRemoved"),
            Self::DeprovisionFailed => Some("InstanceRemovalFailed"),
        }
    }
}

/// A binding that a watch feeds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ObservedBinding {
    /// The hook.
    pub hook: HookId,
    /// The name of the binding.
    pub binding: Arc<str>,
    /// Its queue.
    pub queue: QueueName,
    /// The kind it watches, as it is written there.
    pub kind: Arc<str>,
}

/// What distinguishes a task from others.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TaskInfo {
    /// The task.
    pub id: TaskId,
    /// The queue it is in.
    pub queue: QueueName,
    /// What type of task it is.
    pub kind: TaskType,
    /// Whose it is.
    pub scope: Scope,
    /// Its hook, if it runs one.
    pub hook: Option<HookId>,
    /// The name of its binding, if it runs a hook.
    pub binding: Option<Arc<str>>,
    /// Why it exists.
    pub cause: Cause,
}

/// What type of task it is, by the names of the reference operator.
#[derive(Clone, Copy, Debug, strum::Display, Eq, Ord, PartialEq, PartialOrd, strum::IntoStaticStr)]
pub enum TaskType {
    /// Puts the modules of bundles into force as they are registered.
    AddonsCommit,
    /// Looks after a configuration of module sources.
    AddonsReconcile,
    /// Looks after a Chart of a chart repository, or after the chart of a module.
    ChartReconcile,
    /// Finds out which modules are on, and runs them.
    ConvergeModules,
    /// Looks for releases that no module owns any more.
    DiscoverHelmReleases,
    /// Starts the watches of a global hook.
    GlobalHookEnableKubernetesBindings,
    /// Runs a global hook.
    GlobalHookRun,
    /// Waits for the Synchronizations of global hooks.
    GlobalHookWaitKubernetesSynchronization,
    /// Removes what a module brought.
    ModuleDelete,
    /// Installs the CRDs of a module.
    #[strum(to_string = "ModuleEnsureCRDs")]
    ModuleEnsureCrds,
    /// Runs a hook of a module.
    ModuleHookRun,
    /// Removes a release that no module owns.
    ModulePurge,
    /// Runs a module whose bundle is another one now.
    ModuleReload,
    /// Runs a module.
    ModuleRun,
    /// Runs the tests of a module's chart.
    ModuleTest,
    /// Waits for modules that run in queues of their own.
    ParallelModuleRun,
    /// Runs a hook for an object that it is the controller of, and makes what it says so.
    ReconcileRun,
    /// Looks after a group of chart repositories.
    RepoGroupReconcile,
    /// Looks after a chart repository.
    RepositoryReconcile,
}

impl TaskType {
    /// Returns whether it runs a module.
    pub fn is_module_run(self) -> bool {
        matches!(self, Self::ModuleReload | Self::ModuleRun)
    }

    /// Returns its name as logs, metrics and queue listings show it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What was answered to a review.
#[derive(Clone, Copy, Debug, Eq, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ReviewEnd {
    /// The object may be written, or the objects were converted.
    Allowed,
    /// Nobody waited for the answer any more.
    Abandoned,
    /// The hook said no.
    Denied,
    /// The time was over.
    Expired,
    /// The hook failed, or what it wrote can't be used.
    Failed,
    /// It was not put to any hook.
    Refused,
}

impl ReviewEnd {
    /// Returns its label in metrics.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How a run of a hook ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HookEnd {
    /// It failed, and its binding allows that.
    AllowedError,
    /// It failed.
    Error,
    /// It did what it should.
    Success,
}

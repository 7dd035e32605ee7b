//! Units of work in a queue.

pub(crate) mod in_flight;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::binding::BindingKey;
use crate::cause::Cause;
use crate::converge::discovery::Discovery;
use crate::failure::Failure;
use crate::hook::{BindingContext, Trigger};
use crate::module::delete::ModuleDelete;
use crate::module::run::ModuleRun;
use crate::name::{HookId, ModuleName, QueueName, ReleaseName, Scope, TaskId};
use crate::notice::TaskInfo;
use crate::time::Time;

/// A unit of work. Tasks are plain data: they can be listed, compared and dropped.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Which task it is.
    pub(crate) id: TaskId,
    /// What to do.
    pub(crate) kind: TaskKind,
    /// What put it in its queue, in the words that queue listings use.
    pub(crate) description: &'static str,
    /// Why it exists.
    pub(crate) cause: Cause,
    /// When it was put in its queue.
    pub(crate) queued_at: Time,
    /// When its current attempt began.
    pub(crate) begun_at: Option<Time>,
    /// When it failed for the first time.
    pub(crate) failing_since: Option<Time>,
    /// How many attempts failed.
    pub(crate) failures: u32,
    /// Why the last one failed.
    pub(crate) last_failure: Option<Arc<Failure>>,
    /// When it may be tried again.
    pub(crate) not_before: Option<Time>,
    /// The converge that it is part of.
    pub(crate) generation: Option<u64>,
}

/// What a [`Task`] does. The names are those of the reference operator.
#[derive(Clone, Debug)]
pub(crate) enum TaskKind {
    /// Find out which modules are on, and run them.
    ConvergeModules(Box<Converge>),
    /// Look for releases that no module owns any more.
    DiscoverHelmReleases,
    /// Start the watches of a global hook and queue its Synchronizations.
    GlobalHookEnableKubernetesBindings(HookId),
    /// Run a global hook.
    GlobalHookRun(HookRun),
    /// Let nothing go on until the Synchronizations of global hooks are through.
    GlobalHookWaitKubernetesSynchronization,
    /// Remove what a module brought.
    ModuleDelete(ModuleDelete),
    /// Install the CRDs of a module.
    ModuleEnsureCrds(ModuleName),
    /// Run a hook of a module.
    ModuleHookRun(HookRun),
    /// Remove a release that no module owns.
    ModulePurge(ReleaseName),
    /// Run a module: its hooks and its chart.
    ModuleRun(ModuleRun),
    /// Let nothing go on until some modules ran in queues of their own.
    ParallelModuleRun(ParallelModuleRun),
}

/// How far a converge got.
///
/// ```text
/// StandBy ─▶ BeforeAll ─▶ Discovering ─▶ Modules ─▶ AfterAll ─▶ done
///                           ▲      │
///                           └ fails┘ every 5 s
/// ```
#[derive(Clone, Debug)]
pub(crate) struct Converge {
    /// Whether all modules run, or only those that something changed for.
    pub(crate) mode: ConvergeMode,
    /// What happens next.
    pub(crate) phase: ConvergePhase,
    /// What the tasks that it makes say about themselves.
    pub(crate) event: &'static str,
    /// Whether enabled scripts run that answered the same question before.
    pub(crate) force_scripts: bool,
}

/// Which modules a converge runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ConvergeMode {
    /// These, if no module was switched on or off; otherwise all.
    Changed(BTreeSet<ModuleName>),
    /// All.
    Full,
}

/// What a converge does next.
#[derive(Clone, Debug)]
pub(crate) enum ConvergePhase {
    /// It did not begin.
    StandBy,
    /// Its `beforeAll` hooks are queued before it.
    BeforeAll,
    /// It finds out which modules are on.
    Discovering(Discovery),
    /// The tasks of its modules are queued before it.
    Modules,
    /// Its `afterAll` hooks are queued before it.
    AfterAll {
        /// The global values before the first of them.
        values_before: Arc<Value>,
    },
}

/// A run of one hook. Queued runs of one hook are merged.
#[derive(Clone, Debug)]
pub(crate) struct HookRun {
    /// The hook.
    pub(crate) hook: HookId,
    /// The type of binding of its first context.
    pub(crate) binding_type: &'static str,
    /// Why it runs.
    pub(crate) contexts: Vec<BindingContext>,
    /// Whether its failure counts as success.
    pub(crate) allow_failure: bool,
    /// The bindings that go live when it succeeds.
    pub(crate) synchronizes: Vec<BindingKey>,
}

/// Module runs in queues of their own.
#[derive(Clone, Debug)]
pub(crate) struct ParallelModuleRun {
    /// The modules that did not succeed yet.
    pub(crate) waiting_for: BTreeSet<ModuleName>,
    /// Their queues, when they have been filled.
    pub(crate) queues: Option<BTreeSet<QueueName>>,
    /// Whether the modules run for the first time.
    pub(crate) event: &'static str,
}

impl Converge {
    /// Returns whether it did not begin.
    pub(crate) fn is_unstarted(&self) -> bool {
        matches!(self.phase, ConvergePhase::StandBy)
    }
}

impl HookRun {
    /// Returns whether bindings go live with its success.
    pub(crate) fn is_synchronization(&self) -> bool {
        !self.synchronizes.is_empty()
    }

    /// Returns whether it runs at a point of a lifecycle. Such a run stands for itself.
    ///
    /// It can be dropped with its converge, and what it would have taken in must not be.
    pub(crate) fn is_of_lifecycle(&self) -> bool {
        self.contexts.iter().any(|context| matches!(context.trigger, Trigger::Lifecycle(_)))
    }

    /// Returns the binding names, sorted and without repetitions.
    pub(crate) fn binding_names(&self) -> BTreeSet<&str> {
        self.contexts.iter().map(|context| &*context.binding).collect()
    }

    /// Returns the name of the first binding.
    pub(crate) fn first_binding(&self) -> Arc<str> {
        self.contexts.first().map_or_else(|| self.binding_type.into(), |context| Arc::clone(&context.binding))
    }
}

impl Task {
    /// Returns the module that the task is about.
    pub(crate) fn module(&self) -> Option<&ModuleName> {
        match &self.kind {
            TaskKind::ConvergeModules(_)
            | TaskKind::DiscoverHelmReleases
            | TaskKind::GlobalHookEnableKubernetesBindings(_)
            | TaskKind::GlobalHookRun(_)
            | TaskKind::GlobalHookWaitKubernetesSynchronization
            | TaskKind::ModulePurge(_)
            | TaskKind::ParallelModuleRun(_) => None,
            TaskKind::ModuleDelete(delete) => Some(&delete.module),
            TaskKind::ModuleEnsureCrds(module) => Some(module),
            TaskKind::ModuleHookRun(run) => run.hook.scope.module(),
            TaskKind::ModuleRun(run) => Some(&run.module),
        }
    }

    /// Returns the hook run, if it is one.
    pub(crate) fn hook_run(&self) -> Option<&HookRun> {
        match &self.kind {
            TaskKind::GlobalHookRun(run) | TaskKind::ModuleHookRun(run) => Some(run),
            TaskKind::ConvergeModules(_)
            | TaskKind::DiscoverHelmReleases
            | TaskKind::GlobalHookEnableKubernetesBindings(_)
            | TaskKind::GlobalHookWaitKubernetesSynchronization
            | TaskKind::ModuleDelete(_)
            | TaskKind::ModuleEnsureCrds(_)
            | TaskKind::ModulePurge(_)
            | TaskKind::ModuleRun(_)
            | TaskKind::ParallelModuleRun(_) => None,
        }
    }

    /// Returns the hook run for changes, if it is one.
    pub(crate) fn hook_run_mut(&mut self) -> Option<&mut HookRun> {
        if let TaskKind::GlobalHookRun(run) | TaskKind::ModuleHookRun(run) = &mut self.kind {
            Some(run)
        } else {
            None
        }
    }

    /// Returns the module run, if it is one.
    pub(crate) fn module_run(&self) -> Option<&ModuleRun> {
        if let TaskKind::ModuleRun(run) = &self.kind { Some(run) } else { None }
    }

    /// Returns the converge, if it is one.
    pub(crate) fn converge(&self) -> Option<&Converge> {
        if let TaskKind::ConvergeModules(converge) = &self.kind { Some(converge) } else { None }
    }

    /// Returns whether a new converge makes the task worthless.
    pub(crate) fn is_of_converge(&self) -> bool {
        match &self.kind {
            TaskKind::ConvergeModules(_) => true,
            TaskKind::GlobalHookRun(_)
            | TaskKind::ModuleDelete(_)
            | TaskKind::ModuleEnsureCrds(_)
            | TaskKind::ModuleRun(_)
            | TaskKind::ParallelModuleRun(_) => self.generation.is_some(),
            TaskKind::ModuleHookRun(run) => run.is_synchronization() && self.generation.is_some(),
            TaskKind::DiscoverHelmReleases
            | TaskKind::GlobalHookEnableKubernetesBindings(_)
            | TaskKind::GlobalHookWaitKubernetesSynchronization
            | TaskKind::ModulePurge(_) => false,
        }
    }

    /// Returns whether readiness waits for the task.
    pub(crate) fn counts_for_readiness(&self) -> bool {
        match &self.kind {
            TaskKind::DiscoverHelmReleases
            | TaskKind::GlobalHookEnableKubernetesBindings(_)
            | TaskKind::GlobalHookWaitKubernetesSynchronization
            | TaskKind::ModulePurge(_) => true,
            TaskKind::ConvergeModules(_)
            | TaskKind::GlobalHookRun(_)
            | TaskKind::ModuleDelete(_)
            | TaskKind::ModuleEnsureCrds(_)
            | TaskKind::ModuleHookRun(_)
            | TaskKind::ModuleRun(_)
            | TaskKind::ParallelModuleRun(_) => self.is_of_converge(),
        }
    }

    /// Returns whether this run of a module will see the values as they are now.
    pub(crate) fn is_pending_run(&self) -> bool {
        self.module_run().is_some_and(|run| !run.has_begun_helm())
    }

    /// Returns the name that the reference operator gives to this type of task.
    pub(crate) fn type_name(&self) -> &'static str {
        match &self.kind {
            TaskKind::ConvergeModules(_) => "ConvergeModules",
            TaskKind::DiscoverHelmReleases => "DiscoverHelmReleases",
            TaskKind::GlobalHookEnableKubernetesBindings(_) => "GlobalHookEnableKubernetesBindings",
            TaskKind::GlobalHookRun(_) => "GlobalHookRun",
            TaskKind::GlobalHookWaitKubernetesSynchronization => "GlobalHookWaitKubernetesSynchronization",
            TaskKind::ModuleDelete(_) => "ModuleDelete",
            TaskKind::ModuleEnsureCrds(_) => "ModuleEnsureCRDs",
            TaskKind::ModuleHookRun(_) => "ModuleHookRun",
            TaskKind::ModulePurge(_) => "ModulePurge",
            TaskKind::ModuleRun(_) => "ModuleRun",
            TaskKind::ParallelModuleRun(_) => "ParallelModuleRun",
        }
    }

    /// Returns what tells the task from others, for notices.
    pub(crate) fn info(&self, queue: &QueueName) -> TaskInfo {
        let run = self.hook_run();
        TaskInfo {
            id: self.id,
            queue: queue.clone(),
            kind: self.type_name(),
            scope: self.module().map_or(Scope::Global, |module| Scope::Module(module.clone())),
            hook: run.map(|run| run.hook.clone()),
            binding: run.map(HookRun::first_binding),
            cause: self.cause.clone(),
        }
    }
}

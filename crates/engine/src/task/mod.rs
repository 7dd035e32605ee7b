//! Tasks: units of work as plain data, which machines move on. See docs/contract.md#queues-and-tasks.

mod converge;
mod hook_run;
mod in_flight;
mod module_delete;
mod module_run;
mod trigger;

use std::sync::Arc;

pub(crate) use converge::{
    Converge, ConvergeMode, ConvergePhase, Discovery, ParallelModuleRun, Question, ScriptAnswer,
};
pub(crate) use hook_run::{BindingType, HookRun};
pub(crate) use in_flight::{Answer, HookInFlight, HookStage, Running, ScriptInFlight};
pub(crate) use module_delete::{DeleteStage, ModuleDelete, ModulePurge};
pub(crate) use module_run::{ModuleRun, RunStage};
pub(crate) use trigger::Trigger;

use crate::cause::Cause;
use crate::context::Context;
use crate::effect::ValuesInput;
use crate::failure::Failure;
use crate::name::{HookId, ModuleName, QueueName, Scope, TaskId};
use crate::notice::{TaskInfo, TaskType};
use crate::time::Time;

/// A unit of work in a queue. It can be listed, compared and dropped.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// What is known about it whatever it does.
    pub(crate) head: TaskHead,
    /// What to do, and how far it got.
    pub(crate) kind: TaskKind,
}

/// What is known about a task whatever it does.
#[derive(Clone, Debug)]
pub(crate) struct TaskHead {
    pub(crate) id: TaskId,
    /// The queue it is in.
    pub(crate) queue: QueueName,
    /// What put it there.
    pub(crate) trigger: Trigger,
    /// Why it exists.
    pub(crate) cause: Cause,
    /// The converge that it is part of.
    pub(crate) generation: Option<u64>,
    /// When it was put in its queue, or failed last.
    pub(crate) queued_at: Time,
    /// When its current attempt began.
    pub(crate) begun_at: Option<Time>,
    /// Since when those behind it wait for it: it began for the first time, or had to wait before that.
    pub(crate) holds_since: Option<Time>,
    /// How often somebody had changed files or the ConfigMap when its last attempt began.
    pub(crate) begun_behind: u64,
    /// When it failed for the first time.
    pub(crate) failing_since: Option<Time>,
    /// How many attempts failed.
    pub(crate) failures: u32,
    /// Why the last one failed.
    pub(crate) last_failure: Option<Arc<Failure>>,
    /// How many of the last attempts failed like that.
    pub(crate) alike: u32,
    /// When it may be tried again.
    pub(crate) not_before: Option<Time>,
    /// What the last process or chart of its attempt read as values: a failure can quote that.
    pub(crate) read: Option<ValuesInput>,
}

/// What a [`Task`] does. The names are those of the reference operator.
#[derive(Clone, Debug)]
pub(crate) enum TaskKind {
    /// Put the modules of bundles into force as they are registered.
    AddonsCommit,
    /// Find out which modules are on, and run them.
    ConvergeModules(Box<Converge>),
    /// Look for releases that no module owns any more.
    DiscoverHelmReleases,
    /// Start the watches of a global hook and queue its Synchronizations.
    GlobalHookEnableKubernetesBindings(HookId),
    /// Wait until the Synchronizations of global hooks are through.
    GlobalHookWaitKubernetesSynchronization,
    /// Run a global hook or a hook of a module.
    HookRun(HookRun),
    /// Remove what a module brought.
    ModuleDelete(ModuleDelete),
    /// Install the CRDs of a module.
    ModuleEnsureCrds(ModuleName),
    /// Remove a release that no module owns.
    ModulePurge(ModulePurge),
    /// Run a module: its hooks and its chart.
    ModuleRun(ModuleRun),
    /// Wait until some modules ran in queues of their own.
    ParallelModuleRun(ParallelModuleRun),
}

impl TaskHead {
    /// Returns the head of a new task.
    pub(crate) fn new(
        cx: &mut Context,
        queue: &QueueName,
        trigger: Trigger,
        cause: Cause,
        generation: Option<u64>,
    ) -> Self {
        Self {
            id: cx.ids.task(),
            queue: queue.clone(),
            trigger,
            cause,
            generation,
            queued_at: cx.now,
            begun_at: None,
            holds_since: None,
            begun_behind: 0,
            failing_since: None,
            failures: 0,
            last_failure: None,
            alike: 0,
            not_before: None,
            read: None,
        }
    }

    /// Forgets how its attempts failed, after what they failed at went well.
    pub(crate) fn forget_failures(&mut self) {
        (self.failures, self.alike, self.failing_since, self.last_failure) = (0, 0, None, None);
    }
}

impl TaskKind {
    /// Returns the module that such a task is about.
    pub(crate) fn module(&self) -> Option<&ModuleName> {
        match self {
            Self::AddonsCommit
            | Self::ConvergeModules(_)
            | Self::DiscoverHelmReleases
            | Self::GlobalHookEnableKubernetesBindings(_)
            | Self::GlobalHookWaitKubernetesSynchronization
            | Self::ModulePurge(_)
            | Self::ParallelModuleRun(_) => None,
            Self::HookRun(run) => run.hook.scope.module(),
            Self::ModuleDelete(delete) => Some(&delete.module),
            Self::ModuleEnsureCrds(module) => Some(module),
            Self::ModuleRun(run) => Some(&run.module),
        }
    }
}

impl Task {
    /// Returns a task that is in no queue yet.
    pub(crate) fn new(
        cx: &mut Context,
        queue: &QueueName,
        kind: TaskKind,
        trigger: Trigger,
        cause: Cause,
        generation: Option<u64>,
    ) -> Self {
        Self { head: TaskHead::new(cx, queue, trigger, cause, generation), kind }
    }

    /// Returns a task of the same converge and queue as `head`, which exists because of it.
    pub(crate) fn of(
        cx: &mut Context,
        head: &TaskHead,
        kind: TaskKind,
        trigger: Trigger,
        why: String,
    ) -> Self {
        Self::new(cx, &head.queue, kind, trigger, head.cause.then(why), head.generation)
    }

    /// Returns the module that the task is about.
    pub(crate) fn module(&self) -> Option<&ModuleName> {
        self.kind.module()
    }

    /// Returns the task as one that did nothing yet, and that no converge waits for.
    #[must_use]
    pub(crate) fn begun_anew(mut self) -> Self {
        self.head.generation = None;
        if let TaskKind::ModuleRun(run) = &mut self.kind {
            (run.stage, run.content) = (RunStage::Begin, None);
        } else if let TaskKind::ModuleDelete(delete) = &mut self.kind {
            delete.stage = DeleteStage::Begin;
        }
        self
    }

    /// Returns the hook run, if it is one.
    pub(crate) fn hook_run(&self) -> Option<&HookRun> {
        if let TaskKind::HookRun(run) = &self.kind { Some(run) } else { None }
    }

    /// Returns the hook run for changes, if it is one.
    pub(crate) fn hook_run_mut(&mut self) -> Option<&mut HookRun> {
        if let TaskKind::HookRun(run) = &mut self.kind { Some(run) } else { None }
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
        let is_part = |run: &HookRun| matches!(run.hook.scope, Scope::Global) || run.is_synchronization();
        let is_member = self.head.generation.is_some() && self.hook_run().is_none_or(is_part);
        self.converge().is_some() || (is_member && !self.is_once())
    }

    /// Returns whether it is done between two attempts of the task at the head: it may be what that lacks, or the end of it.
    pub(crate) fn comes_between_attempts(&self) -> bool {
        match &self.kind {
            TaskKind::AddonsCommit => true,
            TaskKind::ConvergeModules(converge) => {
                let is_asked_for = converge.mode != ConvergeMode::Full || self.head.trigger.is_of_people();
                is_asked_for && matches!(converge.phase, ConvergePhase::StandBy)
            }
            TaskKind::DiscoverHelmReleases
            | TaskKind::GlobalHookEnableKubernetesBindings(_)
            | TaskKind::GlobalHookWaitKubernetesSynchronization
            | TaskKind::HookRun(_)
            | TaskKind::ModuleDelete(_)
            | TaskKind::ModuleEnsureCrds(_)
            | TaskKind::ModulePurge(_)
            | TaskKind::ModuleRun(_)
            | TaskKind::ParallelModuleRun(_) => false,
        }
    }

    /// Returns whether it is work of the start or of the cleanup after the first converge, which no converge replaces.
    fn is_once(&self) -> bool {
        match &self.kind {
            TaskKind::DiscoverHelmReleases
            | TaskKind::GlobalHookEnableKubernetesBindings(_)
            | TaskKind::GlobalHookWaitKubernetesSynchronization
            | TaskKind::ModulePurge(_) => true,
            TaskKind::AddonsCommit
            | TaskKind::ConvergeModules(_)
            | TaskKind::HookRun(_)
            | TaskKind::ModuleDelete(_)
            | TaskKind::ModuleEnsureCrds(_)
            | TaskKind::ModuleRun(_)
            | TaskKind::ParallelModuleRun(_) => false,
        }
    }

    /// Returns whether readiness waits for the task.
    pub(crate) fn counts_for_readiness(&self) -> bool {
        self.is_once() || self.is_of_converge()
    }

    /// Returns what type of task it is.
    pub(crate) fn task_type(&self) -> TaskType {
        match &self.kind {
            TaskKind::AddonsCommit => TaskType::AddonsCommit,
            TaskKind::ConvergeModules(_) => TaskType::ConvergeModules,
            TaskKind::DiscoverHelmReleases => TaskType::DiscoverHelmReleases,
            TaskKind::GlobalHookEnableKubernetesBindings(_) => TaskType::GlobalHookEnableKubernetesBindings,
            TaskKind::GlobalHookWaitKubernetesSynchronization => {
                TaskType::GlobalHookWaitKubernetesSynchronization
            }
            TaskKind::HookRun(run) => match run.hook.scope {
                Scope::Global => TaskType::GlobalHookRun,
                Scope::Module(_) => TaskType::ModuleHookRun,
            },
            TaskKind::ModuleDelete(_) => TaskType::ModuleDelete,
            TaskKind::ModuleEnsureCrds(_) => TaskType::ModuleEnsureCrds,
            TaskKind::ModulePurge(_) => TaskType::ModulePurge,
            TaskKind::ModuleRun(run) if run.is_reload => TaskType::ModuleReload,
            TaskKind::ModuleRun(_) => TaskType::ModuleRun,
            TaskKind::ParallelModuleRun(_) => TaskType::ParallelModuleRun,
        }
    }

    /// Returns what distinguishes the task from others, for notices.
    pub(crate) fn info(&self) -> TaskInfo {
        let run = self.hook_run();
        TaskInfo {
            id: self.head.id,
            queue: self.head.queue.clone(),
            kind: self.task_type(),
            scope: self.module().map_or(Scope::Global, |module| Scope::Module(module.clone())),
            hook: run.map(|run| run.hook.clone()),
            binding: run.map(HookRun::first_binding),
            cause: self.head.cause.clone(),
        }
    }
}

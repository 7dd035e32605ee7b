//! The run of a module: its hooks and its chart.

use std::sync::Arc;

use serde_json::Value;

use crate::binding::BindingKey;
use crate::binding::watches::BindingState;
use crate::catalog::{Hook, Module};
use crate::effect::Effect;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::hook::spec::ConfigVersion;
use crate::hook::{BindingContext, Lifecycle};
use crate::module::{ModuleState, Phase};
use crate::name::{ModuleName, QueueName, RunId};
use crate::notice::Notice;
use crate::queue::fifo::Reason;
use crate::queue::next::Next;
use crate::queue::queues::Place;
use crate::task::in_flight::{Running, Work};
use crate::task::{HookRun, Task, TaskKind};

/// A module run and how far it got.
#[derive(Clone, Debug)]
pub(crate) struct ModuleRun {
    /// The module.
    pub(crate) module: ModuleName,
    /// The step that runs now.
    pub(crate) stage: Stage,
    /// It may be the module's first run.
    pub(crate) does_startup: bool,
    /// It waits for a kind that does not exist.
    pub(crate) waits_for_kind: bool,
}

/// A step of a [`ModuleRun`].
///
/// ```text
/// Begin ─▶ OnStartup ─▶ Synchronize ─▶ BeforeHelm(0) ─▶ … ─▶ Upgrade ─▶ AfterHelm(0) ─▶ … ─▶ done
///   ▲                                       ▲                                │
///   ├─ fails in the module's first run ─────┼────────────────────────────────┤
///   └─ fails later: hooks that started stay │─ values changed: runs again ───┘
/// ```
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    /// Nothing was done.
    Begin,
    /// The `onStartup` hooks that did not run yet.
    OnStartup,
    /// The bindings that are not live yet.
    Synchronize,
    /// The n-th `beforeHelm` hook.
    BeforeHelm(usize),
    /// The chart.
    Upgrade,
    /// The n-th `afterHelm` hook.
    AfterHelm {
        /// Which hook.
        n: usize,
        /// The values before the first of them.
        values_before: Arc<Value>,
    },
}

impl ModuleRun {
    /// Creates a run that did not begin.
    pub(crate) fn new(module: ModuleName, does_startup: bool) -> Self {
        Self { module, stage: Stage::Begin, does_startup, waits_for_kind: false }
    }

    /// Returns whether hooks or the chart may have read values already.
    pub(crate) fn has_begun_helm(&self) -> bool {
        match self.stage {
            Stage::Begin | Stage::OnStartup | Stage::Synchronize => false,
            Stage::BeforeHelm(_) | Stage::Upgrade | Stage::AfterHelm { .. } => true,
        }
    }

    /// Returns whether the chart was not rendered yet.
    pub(crate) fn is_before_upgrade(&self) -> bool {
        !matches!(self.stage, Stage::AfterHelm { .. })
    }

    /// Records that a hook of the current stage succeeded.
    pub(crate) fn hook_done(&mut self, _hook: &Hook) {
        match &mut self.stage {
            Stage::BeforeHelm(n) | Stage::AfterHelm { n, .. } => *n += 1,
            Stage::Begin | Stage::OnStartup | Stage::Synchronize | Stage::Upgrade => {}
        }
    }
}

impl Engine {
    /// Does the next step of a module run.
    pub(crate) fn step_module_run(&mut self, queue: &QueueName, mut task: Task) -> Next {
        loop {
            let TaskKind::ModuleRun(run) = &mut task.kind else { return Next::Done(task) };
            let name = run.module.clone();
            let Some(module) = self.modules.get(&name).filter(|module| module.is_on()) else {
                return Next::Gone(task);
            };
            let spec = Arc::clone(&module.spec);
            let startup = next_startup(module);
            match run.stage.clone() {
                Stage::Begin => {
                    if let Some(next) = self.begin_module_run(&mut task, &name, &spec) {
                        return next.with(task);
                    }
                }
                Stage::OnStartup => {
                    if let Some(hook) = startup {
                        return self.start_hook(queue, task, &hook, at(Lifecycle::OnStartup));
                    }
                    run.stage = Stage::Synchronize;
                }
                Stage::Synchronize => {
                    if let Some(next) = self.synchronize_module(queue, &mut task, &name, &spec) {
                        return next.with(task);
                    }
                }
                Stage::BeforeHelm(n) => {
                    if let Some(hook) = hooks_at(&spec, Lifecycle::BeforeHelm).get(n) {
                        let next = self.start_hook(queue, task, hook, at(Lifecycle::BeforeHelm));
                        return self.behind_if_kind_is_missing(queue, next);
                    }
                    run.stage = Stage::Upgrade;
                }
                Stage::Upgrade => {
                    if spec.has_chart && !self.is_release_left_alone(&name) {
                        return self.start_upgrade(task, &name, &spec);
                    }
                    run.stage = self.after_helm(&name);
                }
                Stage::AfterHelm { n, values_before } => {
                    if let Some(hook) = hooks_at(&spec, Lifecycle::AfterHelm).get(n) {
                        return self.start_hook(queue, task, hook, at(Lifecycle::AfterHelm));
                    }
                    return self.finish_module_run(task, &name, &values_before);
                }
            }
        }
    }

    /// Checks whether the module can run at all.
    fn begin_module_run(
        &mut self,
        task: &mut Task,
        name: &ModuleName,
        spec: &Arc<Module>,
    ) -> Option<Outcome> {
        let module = self.modules.get_mut(name)?;
        if module.stale_runs > 0 {
            return Some(Outcome::Wait(Reason::EarlierRun));
        }
        if let Some(failure) = &module.broken_version {
            return Some(Outcome::Wait(Reason::BrokenVersion(failure.message.clone())));
        }
        module.is_active = true;
        if let Some(failure) = &spec.broken {
            if task.failures == 0 {
                // Its files were read a moment ago; they are read again with the next try.
                return Some(Outcome::Fail(failure.clone()));
            }
            let run = self.next_run();
            let effect = Effect::LoadModule { run, module: name.clone() };
            return Some(Outcome::Run(run, Work::Load, effect));
        }
        if let Some(failure) = self.user.blocking_problem(&spec.key) {
            return Some(Outcome::Fail(failure.clone()));
        }
        if let Some(module) =
            self.modules.get(name).filter(|module| !module.first_run_done && module.phase != Phase::Failed)
        {
            let phase = if module.parked.is_some() { Phase::Parked } else { Phase::Starting };
            self.set_phase(name, phase, None);
        }
        if let TaskKind::ModuleRun(run) = &mut task.kind {
            run.stage = Stage::OnStartup;
            run.waits_for_kind = false;
        }
        for hook in &spec.hooks {
            for queue in hook.spec.queues() {
                self.queues.ensure(queue);
            }
        }
        None
    }

    /// Starts the watches of the module's hooks and queues their Synchronizations.
    fn synchronize_module(
        &mut self,
        queue: &QueueName,
        task: &mut Task,
        name: &ModuleName,
        spec: &Arc<Module>,
    ) -> Option<Outcome> {
        self.modules.get_mut(name)?.is_synchronizing = true;
        for hook in &spec.hooks {
            self.enable_bindings(hook, spec.order);
        }
        // The order of the configuration is kept, so nothing is queued until everything is listed that is waited for.
        for hook in &spec.hooks {
            for (index, binding) in hook.spec.kubernetes.iter().enumerate() {
                let is_listing = self
                    .watches
                    .binding(&hook.id, index)
                    .is_some_and(|b| matches!(b.state, BindingState::Listing));
                if binding.is_waited() && is_listing {
                    let reason = self.missing_list(&hook.id, index);
                    if let (Reason::Kind(_), TaskKind::ModuleRun(run)) = (&reason, &mut task.kind) {
                        run.waits_for_kind = true;
                        self.has_kind_waiters = true;
                        if self.has_other_runs(queue, task) {
                            return Some(Outcome::Behind);
                        }
                    }
                    return Some(Outcome::Wait(reason));
                }
            }
        }
        let first = self.queue_synchronizations(queue, &spec.hooks, task);
        if !first.is_empty() {
            return Some(Outcome::First(first));
        }
        if let Some(waited) = self.unsynchronized(&spec.hooks) {
            return Some(Outcome::Wait(Reason::Synchronization(waited)));
        }
        self.modules.get_mut(name)?.is_synchronizing = false;
        if let TaskKind::ModuleRun(run) = &mut task.kind {
            run.stage = Stage::BeforeHelm(0);
        }
        self.enable_module_schedules(name);
        None
    }

    /// Queues a Synchronization for each binding of `hooks` that needs one.
    ///
    /// Returns those that belong into `queue` itself, to be put first. Bindings of `main` follow the
    /// queue that their module runs in.
    pub(crate) fn queue_synchronizations(
        &mut self,
        queue: &QueueName,
        hooks: &[Arc<Hook>],
        task: &Task,
    ) -> Vec<Task> {
        let mut first = Vec::new();
        for hook in hooks {
            for (index, binding) in hook.spec.kubernetes.iter().enumerate() {
                match self.watches.binding(&hook.id, index).map(|binding| &binding.state) {
                    Some(BindingState::Synchronizing { queued: false, .. }) => {}
                    Some(BindingState::Synchronizing { .. } | BindingState::Listing | BindingState::Live)
                    | None => continue,
                }
                let order = self.order_of(&hook.id.scope);
                let key = BindingKey::new(&hook.id, order, index);
                if hook.spec.config_version == ConfigVersion::V0 || !binding.execute_on_synchronization {
                    self.go_live(&[key], task);
                    continue;
                }
                self.watches.mark_queued(&hook.id, index, true);
                let run = HookRun {
                    hook: hook.id.clone(),
                    binding_type: "kubernetes",
                    contexts: vec![BindingContext::synchronization(binding, index)],
                    allow_failure: binding.allow_failure,
                    synchronizes: vec![key],
                };
                let cause = task.cause.then(format!("Synchronization of {}", binding.name));
                let own_queue = binding.queue.is_main() || binding.queue == *queue;
                let generation = task.generation.filter(|_| own_queue);
                let run = self.new_task(
                    crate::module::hook_run::task_kind(run),
                    task.description,
                    cause,
                    generation,
                );
                if own_queue {
                    first.push(run);
                } else {
                    let queue = binding.queue.clone();
                    self.put_back(&queue, vec![run]);
                }
            }
        }
        first
    }

    /// Returns the first binding of `hooks` whose Synchronization is waited for and not through.
    pub(crate) fn unsynchronized(&self, hooks: &[Arc<Hook>]) -> Option<String> {
        let is_under_way = |state: &BindingState| matches!(state, BindingState::Synchronizing { .. });
        let mut waited = self.watches.waited(hooks);
        let (hook, binding, _) = waited.find(|(_, _, state)| is_under_way(state))?;
        Some(format!("{} of hook {}", binding.name, hook.id))
    }

    /// Moves a run that waits for a kind behind the others of its converge.
    fn behind_if_kind_is_missing(&mut self, queue: &QueueName, next: Next) -> Next {
        match next {
            Next::Wait(mut task, reason @ Reason::Kind(_)) => {
                if let TaskKind::ModuleRun(run) = &mut task.kind {
                    run.waits_for_kind = true;
                    self.has_kind_waiters = true;
                    // The module that brings the kind may be among the others; hooks start over then.
                    run.stage = Stage::Begin;
                }
                if self.has_other_runs(queue, &task) { Next::Behind(task) } else { Next::Wait(task, reason) }
            }
            Next::Behind(_)
            | Next::Done(_)
            | Next::Fail(..)
            | Next::First(..)
            | Next::Gone(_)
            | Next::Run(..)
            | Next::Then(..)
            | Next::Wait(..) => next,
        }
    }

    /// Returns whether other module runs of the same converge wait that could go on.
    pub(crate) fn has_other_runs(&self, queue: &QueueName, task: &Task) -> bool {
        let waiting = self.queues.get(queue).into_iter().flat_map(|queue| &queue.tasks);
        waiting.filter(|other| other.generation == task.generation && other.id != task.id).any(|other| {
            match &other.kind {
                TaskKind::ModuleRun(run) => {
                    !run.waits_for_kind && other.not_before.is_none_or(|until| until <= self.now)
                }
                TaskKind::ParallelModuleRun(_) => true,
                TaskKind::ConvergeModules(_)
                | TaskKind::DiscoverHelmReleases
                | TaskKind::GlobalHookEnableKubernetesBindings(_)
                | TaskKind::GlobalHookRun(_)
                | TaskKind::GlobalHookWaitKubernetesSynchronization
                | TaskKind::ModuleDelete(_)
                | TaskKind::ModuleEnsureCrds(_)
                | TaskKind::ModuleHookRun(_)
                | TaskKind::ModulePurge(_) => false,
            }
        })
    }

    fn start_upgrade(&mut self, task: Task, name: &ModuleName, spec: &Arc<Module>) -> Next {
        for section in [Some(&self.global), self.sections.get(name)].into_iter().flatten() {
            if let Err(error) = section.validate_helm() {
                let failure = Failure::of(crate::failure::FailureKind::Values, &error)
                    .advise("correct the values in the ConfigMap or in values.yaml, or the schema");
                return Next::Fail(task, failure);
            }
        }
        let mut values = self.values_for(&crate::name::Scope::Module(name.clone()));
        values.enabled_modules = None;
        let maintenance = self.user.is_in_maintenance(&spec.key);
        let run = self.next_run();
        let effect = Effect::UpgradeRelease { run, module: Arc::clone(spec), values, maintenance };
        Next::Run(task, run, Work::Release(name.clone()), Box::new(effect))
    }

    pub(crate) fn after_helm(&self, name: &ModuleName) -> Stage {
        let values_before =
            self.sections.get(name).map(|section| Arc::clone(section.result())).unwrap_or_default();
        Stage::AfterHelm { n: 0, values_before }
    }

    fn finish_module_run(&mut self, task: Task, name: &ModuleName, values_before: &Arc<Value>) -> Next {
        let values = self.sections.get(name).map(|section| Arc::clone(section.result())).unwrap_or_default();
        let Some(module) = self.modules.get_mut(name) else { return Next::Gone(task) };
        module.first_run_done = true;
        module.last_error = None;
        let phase = if module.parked.is_some() { Phase::Parked } else { Phase::Running };
        let why = module.parked.as_ref().map(|parked| parked.why.clone());
        self.set_phase(name, phase, why);
        if !Arc::ptr_eq(values_before, &values) && *values_before != values {
            let cause = task.cause.then(format!("afterHelm hooks of {name} changed its values"));
            let kind = TaskKind::ModuleRun(ModuleRun::new(name.clone(), false));
            let again = self.new_task(kind, "AfterHelm-Hooks-Change-Values", cause, task.generation);
            return Next::Then(task, vec![again]);
        }
        Next::Done(task)
    }

    /// Takes in that a module was read again.
    pub(crate) fn module_loaded(&mut self, run: RunId, outcome: Result<Arc<Module>, Failure>) {
        let Some((queue, Running { task, .. })) = self.finish_run(run) else { return };
        match outcome {
            Ok(module) => match &module.broken {
                Some(failure) => {
                    let failure = failure.clone();
                    self.fail(&queue, task, failure);
                }
                None => match self.adopt_module(&module) {
                    Ok(()) => self.resume(&queue, task),
                    Err(failure) => self.fail(&queue, task, failure),
                },
            },
            Err(failure) => self.fail(&queue, task, failure),
        }
    }

    /// Queues a run of `module` at the end of `main`, unless one waits that will see everything.
    pub(crate) fn queue_module_run(
        &mut self,
        name: &ModuleName,
        place: Place,
        description: &'static str,
        cause: &crate::Cause,
    ) {
        let Some(module) = self.modules.get(name).filter(|module| module.is_on()) else { return };
        if self.queues.is_pending(name) {
            return;
        }
        let run = ModuleRun::new(name.clone(), !module.first_run_done);
        let cause = cause.then(format!("module {name}"));
        let task = self.new_task(TaskKind::ModuleRun(run), description, cause, None);
        self.put(&QueueName::main(), place, vec![task]);
    }

    /// Tells that a module does something else now.
    pub(crate) fn set_phase(&mut self, name: &ModuleName, phase: Phase, reason: Option<String>) {
        let now = self.now;
        let Some(module) = self.modules.get_mut(name) else { return };
        if module.phase == phase && (reason.is_none() || module.reason == reason) {
            return;
        }
        module.reason.clone_from(&reason);
        if module.phase != phase {
            module.since = now;
        }
        module.phase = phase;
        self.announce(name, phase, reason.as_deref());
        self.notify(Notice::ModuleChanged { module: name.clone(), phase: phase.as_str(), reason });
    }
}

/// What a check of a run leads to; the task is added to it.
enum Outcome {
    Behind,
    Fail(Failure),
    First(Vec<Task>),
    Run(RunId, Work, Effect),
    Wait(Reason),
}

impl Outcome {
    fn with(self, task: Task) -> Next {
        match self {
            Self::Behind => Next::Behind(task),
            Self::Fail(failure) => Next::Fail(task, failure),
            Self::First(tasks) => Next::First(task, tasks),
            Self::Run(run, work, effect) => Next::Run(task, run, work, Box::new(effect)),
            Self::Wait(reason) => Next::Wait(task, reason),
        }
    }
}

fn at(point: Lifecycle) -> Vec<BindingContext> {
    vec![BindingContext::lifecycle(point)]
}

/// Returns the hooks that run at `point`, in their order.
pub(crate) fn hooks_at(module: &Module, point: Lifecycle) -> Vec<&Arc<Hook>> {
    let mut hooks: Vec<_> =
        module.hooks.iter().filter_map(|hook| Some((hook.spec.order(point)?, &hook.id.name, hook))).collect();
    hooks.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    hooks.into_iter().map(|(_, _, hook)| hook).collect()
}

/// Returns the next hook whose `onStartup` did not run as it is now.
fn next_startup(module: &ModuleState) -> Option<Arc<Hook>> {
    let hooks = hooks_at(&module.spec, Lifecycle::OnStartup);
    let started = |hook: &Hook| module.started_hooks.get(&hook.id.name) == Some(&hook.content);
    hooks.into_iter().find(|hook| !started(hook)).cloned()
}

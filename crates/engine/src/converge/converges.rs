//! A full pass over all modules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::binding::watches::BindingState;
use crate::cause::Cause;
use crate::converge::discovery::Discovery;
use crate::engine::Engine;
use crate::hook::{BindingContext, Lifecycle};
use crate::module::Phase;
use crate::module::delete::ModuleDelete;
use crate::module::hook_run::Reaction;
use crate::module::run::ModuleRun;
use crate::name::{HookId, ModuleName, QueueName, Scope};
use crate::notice::Notice;
use crate::queue::next::Next;
use crate::queue::queues::{Dropped, Place};
use crate::task::{Converge, ConvergeMode, ConvergePhase, HookRun, ParallelModuleRun, Task, TaskKind};
use crate::time::Time;

/// What is known about converges as a whole.
#[derive(Debug, Default)]
pub(crate) struct ConvergeState {
    /// The number of the last one.
    pub(crate) generation: u64,
    /// When the tasks that readiness waits for appeared, and why.
    pub(crate) begun: Option<(Time, Cause)>,
    /// How far the first one is.
    pub(crate) first: First,
    /// Whether the operator has become ready.
    pub(crate) ready: Readiness,
    /// The number of the last one whose end was told.
    pub(crate) told: u64,
    /// When the last one ended.
    pub(crate) finished_at: Option<Time>,
    /// Whether the phase of some converge is past `StandBy`.
    pub(crate) has_begun: bool,
}

/// How far the first converge is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum First {
    /// It did not begin.
    #[default]
    NotStarted,
    /// It runs.
    Started,
    /// It is through: schedules fire from now on.
    Done,
}

/// Whether the operator has become ready: the first converge is through, and no global hook waits for a kind.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Readiness {
    /// It has not.
    #[default]
    No,
    /// It has not, and what for was told.
    Waits,
    /// It has, for ever.
    Yes,
}

impl Engine {
    /// Returns whether the first converge is through.
    pub(crate) fn is_ready(&self) -> bool {
        self.converge.first == First::Done
    }

    /// Does the next step of a converge.
    pub(crate) fn step_converge(&mut self, mut task: Task) -> Next {
        loop {
            let TaskKind::ConvergeModules(converge) = &mut task.kind else { return Next::Done(task) };
            let is_full = converge.mode == ConvergeMode::Full;
            let force = converge.force_scripts;
            match &mut converge.phase {
                ConvergePhase::StandBy if is_full => {
                    converge.phase = ConvergePhase::BeforeAll;
                    self.converge.has_begun = true;
                    let generation = task.generation.unwrap_or_default();
                    self.notify(Notice::ConvergeStarted { generation, cause: task.cause.clone() });
                    let hooks = self.global_hook_tasks(Lifecycle::BeforeAll, &task);
                    if !hooks.is_empty() {
                        return Next::First(task, hooks);
                    }
                }
                ConvergePhase::StandBy | ConvergePhase::BeforeAll => {
                    converge.phase = ConvergePhase::Discovering(Discovery::default());
                }
                ConvergePhase::Discovering(_) => {
                    let (found, discovery) = match self.discover(task, force) {
                        Ok(found) => found,
                        Err(next) => return *next,
                    };
                    task = found;
                    if let Some(next) = self.discovered(&mut task, discovery) {
                        return next.with(task);
                    }
                }
                ConvergePhase::Modules => {
                    let values_before = Arc::clone(self.global.result());
                    converge.phase = ConvergePhase::AfterAll { values_before };
                    let hooks = self.global_hook_tasks(Lifecycle::AfterAll, &task);
                    if !hooks.is_empty() {
                        return Next::First(task, hooks);
                    }
                }
                ConvergePhase::AfterAll { values_before } => {
                    let changed = **values_before != **self.global.result();
                    if changed && !self.queues.has_unstarted_converge() {
                        let cause = task.cause.then("afterAll hooks changed global values");
                        self.append_converge("AfterAll-Hooks-Change-GlobalValues", &cause);
                    }
                    return Next::Done(task);
                }
            }
        }
    }

    /// Plans what a complete discovery leads to.
    fn discovered(&mut self, task: &mut Task, discovery: Discovery) -> Option<Planned> {
        let changed = self.commit_discovery(discovery);
        let TaskKind::ConvergeModules(converge) = &mut task.kind else { return None };
        converge.force_scripts = false;
        let changed_modules = match &converge.mode {
            ConvergeMode::Full => None,
            ConvergeMode::Changed(modules) => Some(modules.clone()),
        };
        match changed_modules {
            Some(modules) if !changed => {
                let runs = self.changed_runs(&modules, task);
                Some(Planned::Then(runs))
            }
            Some(_) => {
                // A module was switched on or off: that concerns all of them.
                converge.mode = ConvergeMode::Full;
                converge.phase = ConvergePhase::StandBy;
                if task.description == "KubeConfig-Changed-Modules" {
                    task.description = "ReloadAll-After-KubeConfigChange";
                }
                let keep = task.id;
                self.drop_converge_tasks(Some(keep));
                None
            }
            None => {
                converge.phase = ConvergePhase::Modules;
                let event = converge.event;
                let tasks = self.module_tasks(task, event);
                (!tasks.is_empty()).then_some(Planned::First(tasks))
            }
        }
    }

    fn changed_runs(&mut self, modules: &BTreeSet<ModuleName>, task: &Task) -> Vec<Task> {
        let mut runs = Vec::new();
        for name in self.order.clone().iter().filter(|name| modules.contains(*name)) {
            let Some(module) = self.modules.get(name).filter(|module| module.is_on()) else { continue };
            if self.queues.is_pending(name) {
                continue;
            }
            let run = ModuleRun::new(name.clone(), !module.first_run_done);
            let cause = task.cause.then(format!("module {name}"));
            if module.needs_crds() {
                let kind = TaskKind::ModuleEnsureCrds(name.clone());
                runs.push(self.new_task(kind, task.description, cause.clone(), None));
            }
            runs.push(self.new_task(TaskKind::ModuleRun(run), task.description, cause, None));
        }
        runs
    }

    /// Returns the tasks of a converge: CRDs first, then removals, then runs.
    fn module_tasks(&mut self, task: &Task, event: &'static str) -> Vec<Task> {
        let mut crds = Vec::new();
        let mut removals = Vec::new();
        let mut groups: BTreeMap<u32, Vec<(ModuleName, bool)>> = BTreeMap::new();
        for name in self.order.clone() {
            let Some(module) = self.modules.get(&name) else { continue };
            let spec = Arc::clone(&module.spec);
            let cause = task.cause.then(format!("module {name}"));
            if !module.is_on() {
                if module.is_active {
                    let kind = TaskKind::ModuleDelete(ModuleDelete::new(name));
                    removals.push(self.new_task(kind, event, cause, task.generation));
                }
                continue;
            }
            groups.entry(spec.order).or_default().push((name.clone(), !module.first_run_done));
            if module.needs_crds() {
                crds.push(self.new_task(TaskKind::ModuleEnsureCrds(name), event, cause, task.generation));
            }
        }
        let mut tasks = crds;
        tasks.extend(removals.into_iter().rev());
        for group in groups.into_values() {
            if self.config.module_concurrency > 1 && group.len() > 1 {
                let waiting_for: BTreeSet<ModuleName> = group.into_iter().map(|(name, _)| name).collect();
                let wave = ParallelModuleRun { waiting_for, queues: None, event };
                tasks.push(self.new_task(
                    TaskKind::ParallelModuleRun(wave),
                    event,
                    task.cause.clone(),
                    task.generation,
                ));
                continue;
            }
            for (name, does_startup) in group {
                let cause = task.cause.then(format!("module {name}"));
                let kind = TaskKind::ModuleRun(ModuleRun::new(name, does_startup));
                tasks.push(self.new_task(kind, event, cause, task.generation));
            }
        }
        tasks
    }

    /// Returns the tasks of the global hooks that run at `point`.
    pub(crate) fn global_hook_tasks(&mut self, point: Lifecycle, task: &Task) -> Vec<Task> {
        let mut hooks: Vec<_> = self
            .catalog
            .global
            .hooks
            .iter()
            .filter_map(|hook| Some((hook.spec.order(point)?, hook.id.clone())))
            .collect();
        hooks.sort();
        let mut tasks = Vec::new();
        for (_, hook) in hooks {
            let cause = task.cause.then(format!("{point} hook {}", hook.name));
            let run = HookRun {
                hook,
                binding_type: point.as_str(),
                contexts: vec![BindingContext::lifecycle(point)],
                allow_failure: false,
                synchronizes: Vec::new(),
            };
            tasks.push(self.new_task(TaskKind::GlobalHookRun(run), task.description, cause, task.generation));
        }
        tasks
    }

    /// Puts a converge of all modules behind everything in `main`, unless one waits there.
    pub(crate) fn append_converge(&mut self, description: &'static str, cause: &Cause) {
        if self.queues.has_unstarted_converge() {
            return;
        }
        let task = self.converge_task(ConvergeMode::Full, description, "GlobalValuesChanged", false, cause);
        self.put_back(&QueueName::main(), vec![task]);
    }

    /// Makes every task of an older converge worthless and puts a new one in their place.
    pub(crate) fn restart_converge(
        &mut self,
        description: &'static str,
        event: &'static str,
        force_scripts: bool,
        cause: &Cause,
    ) {
        let dropped = self.drop_converge_tasks(None);
        let task = self.converge_task(ConvergeMode::Full, description, event, force_scripts, cause);
        let place = if dropped { Place::Front } else { Place::Back };
        self.put(&QueueName::main(), place, vec![task]);
    }

    /// Looks whether modules were switched on or off; if not, only `modules` run again.
    pub(crate) fn look_again(
        &mut self,
        modules: BTreeSet<ModuleName>,
        description: &'static str,
        event: &'static str,
        cause: &Cause,
    ) {
        let main = QueueName::main();
        // A converge that did not decide yet will see everything; one that is deciding starts over.
        let covered = self.queues.edit(&main, |task| {
            let TaskKind::ConvergeModules(converge) = &mut task.kind else { return false };
            match &mut converge.phase {
                ConvergePhase::StandBy | ConvergePhase::BeforeAll => {}
                ConvergePhase::Discovering(discovery) => *discovery = Discovery::default(),
                ConvergePhase::Modules | ConvergePhase::AfterAll { .. } => return false,
            }
            if let ConvergeMode::Changed(others) = &mut converge.mode {
                others.extend(modules.iter().cloned());
            }
            true
        });
        if !covered {
            let task = self.converge_task(ConvergeMode::Changed(modules), description, event, false, cause);
            self.put(&main, Place::Front, vec![task]);
        }
    }

    pub(crate) fn converge_task(
        &mut self,
        mode: ConvergeMode,
        description: &'static str,
        event: &'static str,
        force_scripts: bool,
        cause: &Cause,
    ) -> Task {
        self.converge.generation += 1;
        let generation = self.converge.generation;
        let converge = Converge { mode, phase: ConvergePhase::StandBy, event, force_scripts };
        let cause = cause.then(format!("converge {generation}"));
        self.new_task(TaskKind::ConvergeModules(Box::new(converge)), description, cause, Some(generation))
    }

    /// Drops the tasks of converges, but not the one with the id `except`. Returns whether there were any.
    fn drop_converge_tasks(&mut self, except: Option<crate::name::TaskId>) -> bool {
        let mut any = false;
        for queue in self.queues.names() {
            if !queue.is_main() && !queue.as_str().starts_with("parallel_queue_") {
                continue;
            }
            let dropped =
                self.queues.retain(&queue, |task| Some(task.id) == except || !task.is_of_converge());
            any |= dropped.any();
            self.forget(&queue, &dropped);
            self.queues.cancel_backoff(&queue);
        }
        any
    }

    /// Takes in that tasks were dropped.
    pub(crate) fn forget(&mut self, _queue: &QueueName, dropped: &Dropped) {
        for task in dropped.tasks() {
            for key in task.hook_run().into_iter().flat_map(|run| &run.synchronizes) {
                self.watches.mark_queued(&key.hook, key.index, false);
            }
        }
        if let Some((task, _)) = &dropped.running
            && let Some(module) = task.module().cloned().and_then(|name| self.modules.get_mut(&name))
        {
            module.stale_runs += 1;
        }
    }

    /// Takes in that a global hook said something new about which modules are on.
    pub(crate) fn flags_changed(&mut self, cause: &Cause) {
        if self.discoveries == 0 {
            return;
        }
        let differs = self.modules.values().any(|module| {
            let flags = self.flags_of(module);
            let script_says_no = flags.enabled && module.spec.enabled_script.is_some();
            module.phase != Phase::Orphaned && flags.enabled != module.is_on() && !script_says_no
        });
        if differs || self.modules.values().any(|module| module.spec.enabled_script.is_some()) {
            self.look_again(
                BTreeSet::new(),
                "ReloadAll-After-GlobalHookDynamicUpdate",
                "ReloadAllModules",
                cause,
            );
        }
    }

    /// Takes in that an event or a schedule made a hook change values.
    pub(crate) fn values_changed_by_event(&mut self, scope: &Scope, reaction: Reaction, cause: &Cause) {
        match scope {
            Scope::Global => {
                let description = match reaction {
                    Reaction::Kubernetes => "Kubernetes-Change-GlobalValues",
                    Reaction::Schedule => "Schedule-Change-GlobalValues",
                };
                self.append_converge(description, cause);
            }
            Scope::Module(name) => {
                let description = match reaction {
                    Reaction::Kubernetes => "Kubernetes-Change-ModuleValues",
                    Reaction::Schedule => "Schedule-Change-ModuleValues",
                };
                self.queue_module_run(&name.clone(), Place::Back, description, cause);
            }
        }
    }

    /// Takes in that tasks are about to be queued; a converge may begin with them, and end before the next event.
    pub(crate) fn expect_converge(&mut self, tasks: &[Task]) {
        let full = |task: &&Task| {
            task.counts_for_readiness()
                && task.converge().is_none_or(|converge| converge.mode == ConvergeMode::Full)
        };
        if self.converge.begun.is_some() {
            return;
        }
        let converge = tasks.iter().filter(full).find(|task| task.converge().is_some());
        let Some(task) = converge.or_else(|| tasks.iter().find(full)) else { return };
        self.converge.begun = Some((self.now, task.cause.clone()));
        if self.converge.first == First::NotStarted {
            self.converge.first = First::Started;
        }
    }

    /// Looks whether the operator has become ready.
    ///
    /// A global hook whose kind does not exist yet holds no other back, but what it does for all
    /// modules is not done before: the operator is not called ready.
    pub(crate) fn note_ready(&mut self) {
        if self.converge.ready == Readiness::Yes || !self.is_ready() {
            return;
        }
        let Some((hook, kind)) = self.unready_global_hook() else {
            self.converge.ready = Readiness::Yes;
            return self.notify(Notice::Ready);
        };
        if self.converge.ready == Readiness::No {
            self.converge.ready = Readiness::Waits;
            self.notify(Notice::ReadinessWaits { hook, kind });
        }
    }

    /// Returns a global hook that has not seen the objects of a kind that it is to know from the start.
    fn unready_global_hook(&self) -> Option<(HookId, String)> {
        let mut waited = self.watches.waited(&self.catalog.global.hooks);
        let (hook, binding, _) = waited.find(|(_, _, state)| !matches!(state, BindingState::Live))?;
        Some((hook.id.clone(), binding.selection.kind.clone()))
    }

    /// Looks whether a converge began or ended.
    pub(crate) fn note_converge(&mut self) {
        let unready = self.queues.unready();
        if unready > 0 {
            if self.converge.begun.is_none() {
                let cause = self
                    .queues
                    .get(&QueueName::main())
                    .and_then(|queue| queue.iter().find(|task| task.counts_for_readiness()));
                let cause = cause.map_or_else(|| Cause::outside("unknown"), |task| task.cause.clone());
                self.converge.begun = Some((self.now, cause));
            }
            if self.converge.first == First::NotStarted {
                self.converge.first = First::Started;
            }
            return;
        }
        let Some((begun_at, cause)) = self.converge.begun.take() else { return };
        let first = self.converge.first == First::Started;
        self.converge.finished_at = Some(self.now);
        let (last, took) = (self.converge.generation, self.now.since(begun_at));
        let generation = (last > self.converge.told).then_some(last);
        self.converge.told = last;
        if first {
            self.converge.first = First::Done;
        }
        self.notify(Notice::ConvergeFinished { generation, took, first, cause: cause.clone() });
        if first {
            self.enable_global_schedules();
            let task =
                self.new_task(TaskKind::DiscoverHelmReleases, "Operator-PostConvergeCleanup", cause, None);
            self.put_back(&QueueName::main(), vec![task]);
        }
    }
}

/// What a complete discovery leads to; the converge is added to it.
enum Planned {
    First(Vec<Task>),
    Then(Vec<Task>),
}

impl Planned {
    fn with(self, task: Task) -> Next {
        match self {
            Self::First(tasks) => Next::First(task, tasks),
            Self::Then(tasks) => Next::Then(task, tasks),
        }
    }
}

//! Converges: passes over all modules, or over those that something changed for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ahead::ScriptsAhead;
use super::progress::Progress;
use super::readiness::Readiness;
use crate::cause::Cause;
use crate::config::Config;
use crate::configuration::Configuration;
use crate::context::Context;
use crate::hook::Lifecycle;
use crate::module::{Lower, ModuleState, Modules};
use crate::name::{ModuleName, QueueName, TaskId};
use crate::notice::Notice;
use crate::queue::{End, Next, Queues, Reason};
use crate::task::{
    Converge, ConvergeMode, ConvergePhase, Discovery, ModuleDelete, ModuleRun, ParallelModuleRun, Task,
    TaskHead, TaskKind, Trigger,
};

/// What is known about converges as a whole.
#[derive(Debug, Default)]
pub(crate) struct Converges {
    pub(super) config: Arc<Config>,
    /// The number of the last one.
    generation: u64,
    /// Whether the phase of some converge is past `StandBy`.
    has_begun: bool,
    /// How many discoveries were completed.
    pub(super) discoveries: u64,
    pub(super) ahead: ScriptsAhead,
    pub(super) readiness: Readiness,
    pub(super) progress: Progress,
}

impl Converges {
    /// Returns the state before the first converge.
    pub(crate) fn new(config: Arc<Config>) -> Self {
        Self { config, ..Self::default() }
    }

    /// Returns the number of the last one.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns whether the phase of some converge is past `StandBy`.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Does the next step of a converge.
    pub(crate) fn advance(
        &mut self,
        modules: &mut Modules,
        lower: &mut Lower<'_>,
        head: &mut TaskHead,
        converge: &mut Converge,
    ) -> Next {
        loop {
            match &mut converge.phase {
                ConvergePhase::StandBy if converge.mode == ConvergeMode::Full => {
                    if lower.queues.has_aside() {
                        // An older one may wait for its modules, which run in this one.
                        drop_tasks(lower, Some(head.id));
                    }
                    converge.phase = ConvergePhase::BeforeAll;
                    self.has_begun = true;
                    let generation = head.generation.unwrap_or_default();
                    lower.cx.notify(Notice::ConvergeStarted { generation, cause: head.cause.clone() });
                    let hooks = modules.global_hook_tasks(lower.cx, head, Lifecycle::BeforeAll);
                    if !hooks.is_empty() {
                        return Next::First(hooks);
                    }
                }
                ConvergePhase::StandBy | ConvergePhase::BeforeAll => {
                    converge.phase = ConvergePhase::Discovering(Discovery::default());
                }
                ConvergePhase::Discovering(discovery) => {
                    let is_of_all = converge.mode == ConvergeMode::Full;
                    let stopped =
                        self.discover(modules, lower, head, discovery, (is_of_all, converge.force_scripts));
                    if let Some(next) = stopped {
                        return next;
                    }
                    let discovery = std::mem::take(discovery);
                    let changed = self.commit_discovery(modules, lower, discovery);
                    if let Some(next) = self.discovered(modules, lower, head, converge, changed) {
                        return next;
                    }
                }
                ConvergePhase::Modules => {
                    let late = lower.queues.modules_aside(head.generation);
                    if !late.is_empty() {
                        let names: Vec<&str> = late.iter().map(ModuleName::as_str).collect();
                        return Next::Aside(Reason::Modules(names.join(", ")));
                    }
                    let values_before = Arc::clone(lower.configuration.global_values());
                    converge.phase = ConvergePhase::AfterAll { values_before };
                    let hooks = modules.global_hook_tasks(lower.cx, head, Lifecycle::AfterAll);
                    if !hooks.is_empty() {
                        return Next::First(hooks);
                    }
                }
                ConvergePhase::AfterAll { values_before } => {
                    if **values_before != **lower.configuration.global_values() {
                        let cause = head.cause.then("afterAll hooks changed global values");
                        self.append(lower.cx, lower.queues, Trigger::AfterAllChangedValues, &cause);
                    }
                    return Next::Done;
                }
            }
        }
    }

    /// Plans what a complete discovery leads to. Returns `None` when the converge goes on by itself.
    fn discovered(
        &mut self,
        modules: &mut Modules,
        lower: &mut Lower<'_>,
        head: &mut TaskHead,
        converge: &mut Converge,
        changed: bool,
    ) -> Option<Next> {
        converge.force_scripts = false;
        match &converge.mode {
            ConvergeMode::Changed(names) if !changed => {
                Some(Next::Then(changed_runs(lower, modules, head, names)))
            }
            ConvergeMode::Changed(_) => {
                // A module was switched on or off: that concerns all of them.
                converge.mode = ConvergeMode::Full;
                converge.phase = ConvergePhase::StandBy;
                if head.trigger == Trigger::ConfigMapChangedModules {
                    head.trigger = Trigger::ConfigMapChanged;
                }
                drop_tasks(lower, Some(head.id));
                None
            }
            ConvergeMode::Full => {
                converge.phase = ConvergePhase::Modules;
                modules.hold_back(lower);
                modules.expect_guests(lower.configuration);
                let tasks = self.module_tasks(lower, modules, head, converge.event);
                (!tasks.is_empty()).then_some(Next::First(tasks))
            }
        }
    }

    /// Returns the tasks of a converge: CRDs first, then removals, then runs.
    fn module_tasks(
        &self,
        lower: &mut Lower<'_>,
        modules: &Modules,
        head: &TaskHead,
        event: Trigger,
    ) -> Vec<Task> {
        let removed = being_removed(lower.queues);
        let mut crds = Vec::new();
        let mut removals = Vec::new();
        let mut groups: BTreeMap<u32, Vec<(ModuleName, bool)>> = BTreeMap::new();
        for module in modules.in_order() {
            let name = module.spec().name.clone();
            if let Some(queue) = lower.configuration.guest_queue(&name) {
                // Nobody waits for it.
                let is_removed =
                    !removed.contains(&name) && modules.leaves_something(lower.configuration, module);
                put_guest(lower, module, &queue, (event, head), is_removed);
                continue;
            }
            let why = format!("module {name}");
            if !module.is_on() {
                if modules.leaves_something(lower.configuration, module) && !removed.contains(&name) {
                    let kind = TaskKind::ModuleDelete(ModuleDelete::new(name));
                    removals.push(Task::of(lower.cx, head, kind, event, why));
                }
                continue;
            }
            if !module.can_run() {
                continue;
            }
            let is_removal = |task: &Task| matches!(task.kind, TaskKind::ModuleDelete(_));
            lower.queues.end_attempts(lower.cx, &name, is_removal);
            groups.entry(module.spec().order).or_default().push((name.clone(), !module.first_run_done()));
            if module.needs_crds() {
                crds.push(Task::of(lower.cx, head, TaskKind::ModuleEnsureCrds(name), event, why));
            }
        }
        let (mut tasks, cx) = (crds, &mut *lower.cx);
        tasks.extend(removals.into_iter().rev());
        for group in groups.into_values() {
            if self.config.module_concurrency > 1 && group.len() > 1 {
                let waiting_for: BTreeSet<ModuleName> = group.into_iter().map(|(name, _)| name).collect();
                let run = ParallelModuleRun { waiting_for, is_queued: false, event };
                let kind = TaskKind::ParallelModuleRun(run);
                tasks.push(Task::new(cx, &head.queue, kind, event, head.cause.clone(), head.generation));
                continue;
            }
            for (name, does_startup) in group {
                let why = format!("module {name}");
                let run = modules.get(&name).map(ModuleState::next_run);
                let kind = TaskKind::ModuleRun(run.unwrap_or_else(|| ModuleRun::new(name, does_startup)));
                tasks.push(Task::of(cx, head, kind, event, why));
            }
        }
        tasks
    }

    /// Puts a converge of all modules behind everything in `main`, unless one waits there.
    pub(crate) fn append(&mut self, cx: &mut Context, queues: &mut Queues, trigger: Trigger, cause: &Cause) {
        if !queues.has_unstarted_converge() {
            let event = Trigger::GlobalValuesChanged;
            let task = self.task(cx, ConvergeMode::Full, (trigger, event), false, cause);
            queues.put(cx, &QueueName::main(), End::Back, vec![task]);
        }
    }

    /// Makes every task of an older converge worthless and puts a new one in their place.
    pub(crate) fn restart(
        &mut self,
        lower: &mut Lower<'_>,
        trigger: Trigger,
        force_scripts: bool,
        cause: &Cause,
    ) {
        let end = if drop_tasks(lower, None) { End::Front } else { End::Back };
        let triggers = (trigger, Trigger::ReloadAllModules);
        let task = self.task(lower.cx, ConvergeMode::Full, triggers, force_scripts, cause);
        lower.queues.put(lower.cx, &QueueName::main(), end, vec![task]);
    }

    /// Looks whether modules were switched on or off; if not, only `modules` run again.
    pub(crate) fn look_again(
        &mut self,
        cx: &mut Context,
        queues: &mut Queues,
        modules: BTreeSet<ModuleName>,
        trigger: Trigger,
        cause: &Cause,
    ) {
        let main = QueueName::main();
        // A converge that did not decide yet will see everything; one that is deciding starts over.
        let covered = queues.edit(&main, |task| {
            let TaskKind::ConvergeModules(converge) = &mut task.kind else { return false };
            match &mut converge.phase {
                ConvergePhase::StandBy | ConvergePhase::BeforeAll => {}
                ConvergePhase::Discovering(discovery) => *discovery = Discovery::default(),
                ConvergePhase::Modules | ConvergePhase::AfterAll { .. } => return false,
            }
            if let ConvergeMode::Changed(others) = &mut converge.mode {
                others.extend(modules.iter().cloned());
            } else if trigger.is_of_people() {
                // What fails before it must not hold it up any more.
                task.head.trigger = trigger.of_all();
            }
            true
        });
        if !covered {
            let triggers = (trigger, Trigger::ReloadAllModules);
            let task = self.task(cx, ConvergeMode::Changed(modules), triggers, false, cause);
            queues.put(cx, &main, End::Front, vec![task]);
        }
    }

    /// Returns the task of the first converge.
    pub(crate) fn first(&mut self, cx: &mut Context, cause: &Cause) -> Task {
        let triggers = (Trigger::Startup, Trigger::StartupOfModules);
        self.task(cx, ConvergeMode::Full, triggers, true, cause)
    }

    fn task(
        &mut self,
        cx: &mut Context,
        mode: ConvergeMode,
        (trigger, event): (Trigger, Trigger),
        force_scripts: bool,
        cause: &Cause,
    ) -> Task {
        self.generation += 1;
        let generation = self.generation;
        let converge = Converge { mode, phase: ConvergePhase::StandBy, event, force_scripts };
        let kind = TaskKind::ConvergeModules(Box::new(converge));
        let cause = cause.then(format!("converge {generation}"));
        Task::new(cx, &QueueName::main(), kind, trigger, cause, Some(generation))
    }
}

/// Returns whether the converge `generation` is at `point` now: it looks at what the hooks there did when all are through.
pub(crate) fn is_at(queues: &Queues, generation: Option<u64>, point: Lifecycle) -> bool {
    let is_it = |task: &Task| {
        task.head.generation == generation
            && task.converge().is_some_and(|converge| match converge.phase {
                ConvergePhase::BeforeAll => point == Lifecycle::BeforeAll,
                ConvergePhase::AfterAll { .. } => point == Lifecycle::AfterAll,
                ConvergePhase::StandBy | ConvergePhase::Discovering(_) | ConvergePhase::Modules => false,
            })
    };
    queues.main_tasks().any(is_it)
}

/// Returns the removals of those of `names` of which nobody knows whether there is something, and the runs of those that are on, each
/// with its CRDs before it. Those of namespaces are put in their queues.
fn changed_runs(
    lower: &mut Lower<'_>,
    modules: &Modules,
    head: &TaskHead,
    names: &BTreeSet<ModuleName>,
) -> Vec<Task> {
    let (mut removals, mut runs) = (Vec::new(), Vec::new());
    let is_unseen = |module: &ModuleState, configuration: &Configuration| {
        !module.is_on() && modules.is_unseen(configuration, module)
    };
    let mut changed: Vec<&ModuleState> = names.iter().filter_map(|name| modules.get(name)).collect();
    changed.retain(|module| module.can_run() || is_unseen(module, lower.configuration));
    if changed.iter().any(|module| !module.is_on()) {
        let removed = being_removed(lower.queues);
        changed.retain(|module| module.is_on() || !removed.contains(&module.spec().name));
    }
    changed.sort_by_key(|module| (module.spec().order, &module.spec().name));
    for module in changed {
        let name = &module.spec().name;
        if let Some(queue) = lower.configuration.guest_queue(name) {
            put_guest(lower, module, &queue, (head.trigger, head), !module.is_on());
        } else if !module.is_on() {
            let cause = head.cause.then(format!("module {name}"));
            let kind = TaskKind::ModuleDelete(ModuleDelete::new(name.clone()));
            removals.push(Task::new(lower.cx, &head.queue, kind, head.trigger, cause, None));
        } else if !lower.queues.is_pending(name) {
            runs.extend(tasks_of_run(lower.cx, module, (&head.queue, head.trigger), &head.cause));
        }
    }
    removals.into_iter().rev().chain(runs).collect()
}

/// Returns the task of a run of a module, with that of its CRDs before it if they are not there.
fn tasks_of_run(
    cx: &mut Context,
    module: &ModuleState,
    (queue, trigger): (&QueueName, Trigger),
    cause: &Cause,
) -> Vec<Task> {
    let name = &module.spec().name;
    let cause = cause.then(format!("module {name}"));
    let run = TaskKind::ModuleRun(module.next_run());
    let crds = module.needs_crds().then(|| TaskKind::ModuleEnsureCrds(name.clone()));
    let kinds = crds.into_iter().chain([run]);
    kinds.map(|kind| Task::new(cx, queue, kind, trigger, cause.clone(), None)).collect()
}

/// Puts what a module of a namespace has to do in its `queue`: its run if it is on, and its removal if it is off and `is_removed`. What is in flight of the contrary ends.
fn put_guest(
    lower: &mut Lower<'_>,
    module: &ModuleState,
    queue: &QueueName,
    (event, head): (Trigger, &TaskHead),
    is_removed: bool,
) {
    let name = &module.spec().name;
    if module.is_on() {
        lower.queues.end_attempts(lower.cx, name, |task| task.module_run().is_none());
        if module.can_run() && !lower.queues.is_pending(name) {
            let tasks = tasks_of_run(lower.cx, module, (queue, event), &head.cause);
            lower.queues.put(lower.cx, queue, End::Back, tasks);
        }
    } else if is_removed {
        lower.queues.end_attempts(lower.cx, name, |task| task.module_run().is_some());
        let (kind, cause) = (
            TaskKind::ModuleDelete(ModuleDelete::new(name.clone())),
            head.cause.then(format!("module {name}")),
        );
        let removal = Task::new(lower.cx, queue, kind, event, cause, None);
        lower.queues.put(lower.cx, queue, End::Front, vec![removal]);
    }
}

/// Drops the tasks of converges, but not the one with the id `except`. Returns whether there were any.
fn drop_tasks(lower: &mut Lower<'_>, except: Option<TaskId>) -> bool {
    let mut any = false;
    for queue in lower.queues.names() {
        if !queue.runs_modules() {
            continue;
        }
        let keep = |task: &Task| Some(task.head.id) == except || !task.is_of_converge();
        any |= lower.drop_tasks_in(&queue, keep);
        lower.queues.cancel_backoff(&queue);
    }
    any
}

/// Returns the modules whose removal waits on its own, beside any converge: each converge would add another one.
fn being_removed(queues: &Queues) -> BTreeSet<ModuleName> {
    let of_modules = queues.iter().filter(|(name, _)| name.removes_modules());
    let alone = of_modules.flat_map(|(_, queue)| queue.iter()).filter(|task| task.head.generation.is_none());
    let removed = |task: &Task| {
        if let TaskKind::ModuleDelete(delete) = &task.kind { Some(delete.module.clone()) } else { None }
    };
    alone.filter_map(removed).collect()
}

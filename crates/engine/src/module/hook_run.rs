//! Starting hooks, and what their end leads to.

use std::sync::Arc;

use crate::binding::BindingKey;
use crate::catalog::Hook;
use crate::effect::{Effect, RunLabels};
use crate::engine::Engine;
use crate::event::Usage;
use crate::failure::Failure;
use crate::hook::combine;
use crate::hook::context::required_bindings;
use crate::hook::snapshot::{Change, Snapshot};
use crate::hook::spec::ConfigVersion;
use crate::hook::{BindingContext, Lifecycle, RunContexts, Trigger};
use crate::name::{HookId, QueueName, Scope};
use crate::notice::{HookEnd, Notice};
use crate::queue::fifo::Reason;
use crate::queue::next::Next;
use crate::task::in_flight::{HookStage, HookWork, Work};
use crate::task::{HookRun, Task, TaskKind};

/// What a successful run of a hook changed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HookReport {
    /// The values of its scope differ.
    pub(crate) changed: bool,
    /// It said something new about which modules are on.
    pub(crate) flags_changed: bool,
}

impl Engine {
    /// Does the next step of a task that runs one hook.
    pub(crate) fn step_hook_task(&mut self, queue: &QueueName, mut task: Task) -> Next {
        let Some(run) = task.hook_run() else { return Next::Done(task) };
        let id = run.hook.clone();
        let Some(hook) = self.runnable_hook(&id) else {
            self.miss_event(&id);
            return Next::Gone(task);
        };
        if let Some(reason) = self.broken_version(&id) {
            return Next::Wait(task, reason);
        }
        if let Some(reason) = self.not_now(&hook) {
            return Next::Wait(task, reason);
        }
        if hook.spec.config_version == ConfigVersion::V1 {
            self.combine_following(queue, &mut task);
        }
        let Some(run) = task.hook_run_mut() else { return Next::Done(task) };
        // The hook may have been changed while the task waited; its bindings may be others now.
        run.contexts.retain(|context| is_of(&hook, context));
        let contexts = run.contexts.clone();
        if contexts.is_empty() {
            return Next::Gone(task);
        }
        let synchronizes = run.synchronizes.clone();
        let next = self.start_hook(queue, task, &hook, contexts);
        if let Next::Run(..) = next {
            for key in synchronizes {
                self.watches.forget_held_back(&key.hook, key.index);
            }
        }
        next
    }

    /// Starts a hook with `contexts`, unless something is missing for that.
    pub(crate) fn start_hook(
        &mut self,
        queue: &QueueName,
        task: Task,
        hook: &Arc<Hook>,
        contexts: Vec<BindingContext>,
    ) -> Next {
        if let Some(reason) = self.not_now(hook) {
            return Next::Wait(task, reason);
        }
        if let Some(reason) = self.not_synchronized(hook, &contexts) {
            return Next::Wait(task, reason);
        }
        // Whether a run is possible was looked at above.
        let _ = self.rates.get_mut(&hook.id).map(|rate| rate.take(self.now));
        let first = contexts.first();
        let labels = RunLabels {
            task: task.id,
            queue: queue.clone(),
            binding_type: task
                .hook_run()
                .map_or_else(|| first.map_or("", binding_type), |run| run.binding_type),
            binding: first.map_or_else(|| "".into(), |context| Arc::clone(&context.binding)),
            cause: task.cause.clone(),
        };
        let watches = &self.watches;
        let snapshot = |index| {
            watches.monitor_of(&hook.id, index).map_or_else(Snapshot::default, |m| m.snapshot.clone())
        };
        let contexts = RunContexts::new(&hook.spec, contexts, snapshot);
        self.watches.shown_to(&hook.id);
        let values = self.values_for(&hook.id.scope);
        let timeout = crate::binding::rate::timeout(&hook.spec.settings, self.config.hook_timeout);
        let run = self.next_run();
        let work =
            HookWork { hook: Arc::clone(hook), binding_type: labels.binding_type, stage: HookStage::Process };
        let effect = Effect::RunHook { run, hook: Arc::clone(hook), contexts, values, timeout, labels };
        self.processes += 1;
        Next::Run(task, run, Work::Hook(Box::new(work)), Box::new(effect))
    }

    /// Returns the hook if it exists and its module is on.
    pub(crate) fn runnable_hook(&self, id: &HookId) -> Option<Arc<Hook>> {
        match &id.scope {
            Scope::Global => self.global_hooks.get(&id.name).cloned(),
            Scope::Module(name) => {
                let module = self.modules.get(name).filter(|module| module.is_on())?;
                module.spec.hooks.iter().find(|hook| hook.id == *id).cloned()
            }
        }
    }

    /// Returns why the hook can't start at this moment, whatever it is started for.
    fn not_now(&self, hook: &Hook) -> Option<Reason> {
        if self.processes >= self.config.max_hooks.max(1) {
            return Some(Reason::Slot);
        }
        let until = self.rates.get(&hook.id)?.clone().take(self.now).err()?;
        Some(Reason::Rate { until })
    }

    /// Returns which snapshot is missing that a run with `contexts` shows.
    fn not_synchronized(&self, hook: &Hook, contexts: &[BindingContext]) -> Option<Reason> {
        for index in required_bindings(&hook.spec, contexts) {
            let Some(monitor) = self.watches.monitor_of(&hook.id, index) else { continue };
            if !monitor.listed {
                return Some(self.missing_list(&hook.id, index));
            }
        }
        None
    }

    /// Returns what a binding waits for whose list is not complete.
    pub(crate) fn missing_list(&self, hook: &HookId, index: usize) -> Reason {
        let monitor = self.watches.monitor_of(hook, index);
        if let Some(kind) = monitor.and_then(|monitor| monitor.missing_kind.clone()) {
            return Reason::Kind(kind);
        }
        let kind = monitor.map_or("", |monitor| monitor.spec.selection.kind.as_str());
        Reason::List(format!("{kind} for hook {hook}"))
    }

    /// Adds the runs of the same hook that directly follow to `task`.
    fn combine_following(&mut self, queue: &QueueName, task: &mut Task) {
        let kind = std::mem::discriminant(&task.kind);
        let Some(run) = task.hook_run_mut() else { return };
        let is_alone = run.is_synchronization() && run.contexts.iter().all(|context| context.group.is_none());
        if is_alone || run.is_of_lifecycle() {
            return;
        }
        // Synchronizations can be dropped with their converge, events can't: they stay apart.
        let is_synchronization = run.is_synchronization();
        while let Some(next) = self.queues.take_next(queue, |next| {
            std::mem::discriminant(&next.kind) == kind
                && next.hook_run().is_some_and(|other| {
                    other.hook == run.hook
                        && other.is_synchronization() == is_synchronization
                        && !other.is_of_lifecycle()
                })
        }) {
            let (TaskKind::GlobalHookRun(other) | TaskKind::ModuleHookRun(other)) = next.kind else {
                continue;
            };
            run.synchronizes.extend(other.synchronizes);
            combine::append(&mut run.contexts, other.contexts);
        }
    }

    /// Puts a run of a hook at the end of its queue, or adds it to the one that waits there.
    pub(crate) fn queue_hook_run(
        &mut self,
        queue: &QueueName,
        run: HookRun,
        description: &'static str,
        cause: crate::Cause,
    ) {
        let is_v1 =
            self.runnable_hook(&run.hook).is_some_and(|hook| hook.spec.config_version == ConfigVersion::V1);
        let mut contexts = Some(run.contexts.clone());
        let merged = is_v1
            && self.queues.with_last(queue, |last| match last.hook_run_mut() {
                Some(waiting)
                    if waiting.hook == run.hook
                        && !waiting.is_synchronization()
                        && !waiting.is_of_lifecycle()
                        && waiting.allow_failure == run.allow_failure =>
                {
                    combine::append(&mut waiting.contexts, contexts.take().unwrap_or_default());
                    true
                }
                Some(_) | None => false,
            });
        if merged {
            return;
        }
        let hook = run.hook.clone();
        let task = self.new_task(task_kind(run), description, cause, None);
        self.put_back(queue, vec![task]);
        if is_v1 && self.queues.is_crowded(queue, &hook) {
            let before = self.queues.waiting_runs(queue, &hook);
            self.queues.rebuild(queue, |tasks| compacted(tasks, &hook));
            let after = self.queues.waiting_runs(queue, &hook);
            self.notify(Notice::QueueCompacted { queue: queue.clone(), hook, before, after });
        }
    }

    /// Tells how a run of a hook ended.
    pub(crate) fn hook_ran(
        &mut self,
        queue: &QueueName,
        work: &HookWork,
        task: &Task,
        usage: Option<Usage>,
        outcome: HookEnd,
    ) {
        self.notify(Notice::HookRan {
            hook: work.hook.id.clone(),
            binding: work.binding_type,
            queue: queue.clone(),
            usage,
            outcome,
            is_task: task.hook_run().is_some(),
            startup: task.cause.is_of_start(),
        });
    }

    /// Takes in that a run of a hook failed, and that nothing it asked for is left to do.
    pub(crate) fn hook_failed(
        &mut self,
        queue: &QueueName,
        task: Task,
        work: &HookWork,
        failure: Failure,
        usage: Option<Usage>,
    ) {
        let allowed = task.hook_run().is_some_and(|run| run.allow_failure);
        let end = if allowed { HookEnd::AllowedError } else { HookEnd::Error };
        self.hook_ran(queue, work, &task, usage, end);
        if !allowed {
            return self.fail(queue, task, failure);
        }
        self.go_live(task.hook_run().map_or(&[], |run| &run.synchronizes), &task);
        self.end(queue, task, Some(failure));
    }

    /// Takes in that a run of a hook succeeded and that its output took effect.
    pub(crate) fn hook_succeeded(
        &mut self,
        queue: &QueueName,
        mut task: Task,
        work: &HookWork,
        report: HookReport,
    ) {
        if report.flags_changed {
            self.flags_changed(&task.cause.then(format!("hook {}", work.hook.id)));
        }
        match &mut task.kind {
            TaskKind::ModuleRun(run) => {
                run.hook_done(&work.hook);
                let name = run.module.clone();
                if let Some(module) = self.modules.get_mut(&name)
                    && work.binding_type == Lifecycle::OnStartup.as_str()
                {
                    module.started_hooks.insert(work.hook.id.name.clone(), work.hook.content);
                }
                self.resume(queue, task);
            }
            TaskKind::ModuleDelete(delete) => {
                delete.hook_done();
                self.resume(queue, task);
            }
            TaskKind::GlobalHookRun(run) | TaskKind::ModuleHookRun(run) => {
                let synchronizes = run.synchronizes.clone();
                let reacts = run.contexts.iter().find_map(reaction);
                self.go_live(&synchronizes, &task);
                let cause = task.cause.then(format!("hook {}", work.hook.id));
                let scope = work.hook.id.scope.clone();
                self.end(queue, task, None);
                if let Some(reaction) = reacts.filter(|_| report.changed) {
                    self.values_changed_by_event(&scope, reaction, &cause);
                }
            }
            TaskKind::ConvergeModules(_)
            | TaskKind::DiscoverHelmReleases
            | TaskKind::GlobalHookEnableKubernetesBindings(_)
            | TaskKind::GlobalHookWaitKubernetesSynchronization
            | TaskKind::ModuleEnsureCrds(_)
            | TaskKind::ModulePurge(_)
            | TaskKind::ParallelModuleRun(_) => self.resume(queue, task),
        }
    }

    /// Lets the events of bindings through whose Synchronization is done.
    pub(crate) fn go_live(&mut self, keys: &[BindingKey], task: &Task) {
        for key in keys {
            let held_back = self.watches.go_live(&key.hook, key.index);
            for change in held_back {
                self.queue_event(key, change, &task.cause);
            }
        }
        if !keys.is_empty() {
            self.queues.wake(|reason| matches!(reason, Reason::Synchronization(_)));
        }
    }

    /// Remembers that a module that is off did not see an event. If it is switched on before it was removed,
    /// its bindings have to be synchronised anew.
    fn miss_event(&mut self, hook: &HookId) {
        if let Some(module) = hook.scope.module().and_then(|name| self.modules.get_mut(name)) {
            module.missed_events = true;
        }
    }

    /// Queues the run of a hook that an event of one of its bindings causes.
    pub(crate) fn queue_event(&mut self, key: &BindingKey, change: Change, cause: &crate::Cause) {
        let Some(hook) = self.runnable_hook(&key.hook) else { return self.miss_event(&key.hook) };
        let Some(binding) = hook.spec.kubernetes.get(key.index) else { return };
        if !binding.execute_on_events.contains(&change.event) {
            return;
        }
        let cause = cause.then(format!("{} {} {}", binding.selection.kind, change.key, change.event));
        let run = HookRun {
            hook: key.hook.clone(),
            binding_type: "kubernetes",
            allow_failure: binding.allow_failure,
            contexts: vec![BindingContext::event(binding, key.index, change)],
            synchronizes: Vec::new(),
        };
        let queue = binding.queue.clone();
        self.queue_hook_run(&queue, run, "Kubernetes", cause);
    }
}

/// What a change of values by a hook leads to depends on why the hook ran.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reaction {
    /// An object changed.
    Kubernetes,
    /// A crontab line was due.
    Schedule,
}

fn reaction(context: &BindingContext) -> Option<Reaction> {
    match context.trigger {
        Trigger::Event { .. } => Some(Reaction::Kubernetes),
        Trigger::Schedule => Some(Reaction::Schedule),
        Trigger::Lifecycle(_) | Trigger::Synchronization { .. } => None,
    }
}

fn binding_type(context: &BindingContext) -> &'static str {
    match context.trigger {
        Trigger::Event { .. } | Trigger::Synchronization { .. } => "kubernetes",
        Trigger::Lifecycle(point) => point.as_str(),
        Trigger::Schedule => "schedule",
    }
}

fn is_of(hook: &Hook, context: &BindingContext) -> bool {
    match context.trigger {
        Trigger::Event { binding, .. } | Trigger::Synchronization { binding } => {
            hook.spec.kubernetes.get(binding).is_some_and(|found| *found.name == *context.binding)
        }
        Trigger::Lifecycle(point) => hook.spec.order(point).is_some(),
        Trigger::Schedule => hook.spec.schedules.iter().any(|found| *found.name == *context.binding),
    }
}

/// Returns the task of a hook run.
pub(crate) fn task_kind(run: HookRun) -> TaskKind {
    match run.hook.scope {
        Scope::Global => TaskKind::GlobalHookRun(run),
        Scope::Module(_) => TaskKind::ModuleHookRun(run),
    }
}

/// Merges the waiting runs of `hook` into the first of them. Synchronizations and points of a lifecycle stay apart.
fn compacted(tasks: Vec<Task>, hook: &HookId) -> Vec<Task> {
    let mut kept: Vec<Task> = Vec::with_capacity(tasks.len());
    let mut first: Option<usize> = None;
    for mut task in tasks {
        let is_merged =
            |run: &&mut HookRun| run.hook == *hook && !run.is_synchronization() && !run.is_of_lifecycle();
        let Some(run) = task.hook_run_mut().filter(is_merged) else {
            kept.push(task);
            continue;
        };
        if let Some(merged) = first.and_then(|place| kept.get_mut(place)).and_then(Task::hook_run_mut) {
            combine::append(&mut merged.contexts, std::mem::take(&mut run.contexts));
        } else {
            first = Some(kept.len());
            kept.push(task);
        }
    }
    kept
}

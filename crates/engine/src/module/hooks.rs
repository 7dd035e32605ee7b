//! Hooks go into service: global ones at the start, those of modules when they run. See docs/contract.md#the-start.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Lower, Modules};
use crate::binding::{Bindings, Synchronization};
use crate::catalog::Hook;
use crate::cause::Cause;
use crate::context::Context;
use crate::hook::spec::ConfigVersion;
use crate::hook::{BindingContext, Lifecycle};
use crate::name::{BindingKey, CronLine, HookId, ModuleName, QueueName};
use crate::notice::Notice;
use crate::queue::{End, Next, Queues, Reason};
use crate::task::{BindingType, HookRun, Task, TaskHead, TaskKind, Trigger};

/// What is known of a hook.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Standing {
    /// It runs when something happens.
    InService,
    /// Its module is on, and has not come so far.
    On,
    /// No discovery has said yet whether its module is on.
    Unknown,
}

impl Modules {
    /// Returns the tasks that put all global hooks into service, and reports what was skipped in the files.
    pub(crate) fn start(&self, cx: &mut Context, cause: &Cause) -> Vec<Task> {
        for message in &self.warnings {
            cx.notify(Notice::Warned { scope: crate::name::Scope::Global, message: message.clone() });
        }
        let mut tasks = startup_tasks(cx, &self.global.hooks, cause);
        if !tasks.is_empty() {
            let wait = TaskKind::GlobalHookWaitKubernetesSynchronization;
            tasks.push(Task::new(cx, &QueueName::main(), wait, Trigger::Startup, cause.clone(), None));
        }
        tasks
    }

    /// Returns the tasks of the global hooks that run at `point` of the converge `head`.
    pub(crate) fn global_hook_tasks(&self, cx: &mut Context, head: &TaskHead, point: Lifecycle) -> Vec<Task> {
        let task = |hook: HookId| {
            let why = format!("{point} hook {}", hook.name);
            Task::of(cx, head, TaskKind::HookRun(HookRun::lifecycle(hook, point)), head.trigger, why)
        };
        hooks_at(&self.global.hooks, point).into_iter().map(task).collect()
    }

    /// Starts the watches of a global hook and queues its Synchronizations.
    pub(crate) fn advance_enable(&mut self, lower: &mut Lower<'_>, head: &TaskHead, id: &HookId) -> Next {
        let Some(hook) = self.runnable_hook(id).cloned() else { return Next::Gone };
        self.enable_bindings(lower, &hook);
        for (index, binding) in hook.spec.kubernetes.iter().enumerate() {
            let state = lower.bindings.synchronization(id, index);
            if binding.queue.is_main() && state == Some(Synchronization::Listing) {
                let reason = lower.bindings.missing_list(id, index);
                // Modules come later; the binding starts by itself when one has brought what is missing.
                return if reason.may_come_from_modules() { Next::Done } else { Next::Wait(reason) };
            }
        }
        Next::Then(self.queue_synchronizations(lower, head, &[hook]))
    }

    /// Waits for the Synchronizations of global hooks, but not for those that wait for what a module may bring.
    pub(crate) fn advance_wait(&self, bindings: &Bindings, queues: &Queues) -> Next {
        let hooks: Vec<Arc<Hook>> =
            self.global.hooks.iter().filter(|hook| !bindings.needs_module(hook)).cloned().collect();
        let mut unlisted = bindings.unlisted(&hooks).filter(|reason| !reason.may_come_from_modules());
        let mut under_way = bindings.unsynchronized(&hooks);
        let goes_on = |(key, _): &(BindingKey, Reason)| queues.synchronization_aside(key).is_none();
        let reason = unlisted.next().or_else(|| under_way.find(goes_on).map(|(_, reason)| reason));
        reason.map_or(Next::Done, Next::Wait)
    }

    /// Switches the kubernetes bindings of a hook on, as far as they are not.
    pub(super) fn enable_bindings(&self, lower: &mut Lower<'_>, hook: &Arc<Hook>) {
        for binding in &hook.spec.kubernetes {
            lower.queues.ensure(&binding.queue);
        }
        lower.bindings.enable(lower.cx, hook, self.order_of(&hook.id.scope));
    }

    /// Switches the schedules of a module on.
    pub(super) fn enable_schedules(&mut self, lower: &mut Lower<'_>, name: &ModuleName) {
        let Some(module) = self.states.get_mut(name) else { return };
        module.schedules_on = true;
        self.in_service += 1;
        for hook in &module.spec.hooks {
            lower.bindings.enable_schedules(hook, module.spec.order);
            for binding in &hook.spec.schedules {
                lower.queues.ensure(&binding.queue);
            }
        }
    }

    /// Switches the schedules of a module off.
    pub(super) fn disable_schedules(&mut self, bindings: &mut Bindings, name: &ModuleName) {
        let Some(module) = self.states.get_mut(name) else { return };
        module.schedules_on = false;
        self.in_service += 1;
        for hook in &module.spec.hooks {
            bindings.disable_schedules(hook, module.spec.order);
        }
    }

    /// Switches the schedules of global hooks on.
    pub(crate) fn enable_global_schedules(&self, bindings: &mut Bindings) {
        for hook in &self.global.hooks {
            bindings.enable_schedules(hook, 0);
        }
    }

    /// Returns a number that changes with the hooks that are in service, and with those that may come into service.
    pub(crate) fn in_service(&self) -> u64 {
        self.in_service
    }

    /// Iterates over the hooks that the API server may ask or may come to ask: global ones, then those of modules as they run, with
    /// what is known of them.
    pub(crate) fn webhooks(&self) -> impl Iterator<Item = (&Arc<Hook>, Standing)> {
        let places = self.files.places_of_asked(|name| Some(self.states.get(name)?.spec.order));
        let modules = places.into_iter().filter_map(|place| self.at(place));
        let hooks = modules.filter(|module| module.may_be_on()).flat_map(|module| {
            let standing = if module.schedules_on {
                Standing::InService
            } else if module.is_on() {
                Standing::On
            } else {
                Standing::Unknown
            };
            module.spec.hooks.iter().map(move |hook| (hook, standing))
        });
        let global = self.global.hooks.iter().map(|hook| (hook, Standing::InService));
        global.chain(hooks).filter(|(hook, _)| hook.spec.has_webhooks())
    }

    /// Returns the definitions whose objects a hook converts, whether its module is on or not; `None` if some hooks have not said yet
    /// what they want.
    pub(crate) fn converted(&self) -> Option<BTreeSet<String>> {
        let has_unread = self.files.unread().chain(self.files.lent()).next().is_some();
        if has_unread || !self.files.are_in_force() {
            return None;
        }
        let places = self.files.places_of_asked(|name| Some(self.states.get(name)?.spec.order));
        let modules = places.into_iter().filter_map(|place| self.at(place));
        let hooks = modules.flat_map(|module| &module.spec.hooks).chain(&self.global.hooks);
        let conversions = hooks.flat_map(|hook| &hook.spec.conversions);
        Some(conversions.map(|conversion| conversion.crd_name.clone()).collect())
    }

    /// Queues the hooks that a crontab line runs.
    pub(crate) fn schedule_due(&self, lower: &mut Lower<'_>, line: &CronLine) {
        let cause = Cause::outside(format!("schedule {line}"));
        for key in lower.bindings.due(line) {
            let module = key.hook.scope.module();
            let is_new = module.is_some_and(|name| !self.states.get(name).is_some_and(|m| m.first_run_done));
            let Some(hook) = self.runnable_hook(&key.hook).filter(|_| !is_new) else { continue };
            let Some(binding) = hook.spec.schedules.get(key.index) else { continue };
            let run = HookRun {
                hook: key.hook,
                binding_type: BindingType::Schedule,
                contexts: vec![BindingContext::schedule(binding)],
                allow_failure: binding.allow_failure,
                synchronizes: Vec::new(),
                is_awaited: false,
            };
            let cause = cause.then(format!("binding {}", binding.name));
            let merges = hook.spec.config_version == ConfigVersion::V1;
            lower.queues.put_hook_run(lower.cx, &binding.queue, run, merges, (Trigger::Schedule, cause));
        }
    }

    /// Queues a Synchronization for each binding of `hooks` that needs one.
    ///
    /// Returns those that belong into the queue of `head` itself, to be put first. Bindings of `main` follow the
    /// queue that their module runs in.
    pub(super) fn queue_synchronizations(
        &mut self,
        lower: &mut Lower<'_>,
        head: &TaskHead,
        hooks: &[Arc<Hook>],
    ) -> Vec<Task> {
        let mut first = Vec::new();
        for hook in hooks {
            for (index, binding) in hook.spec.kubernetes.iter().enumerate() {
                if lower.bindings.synchronization(&hook.id, index) != Some(Synchronization::Due) {
                    continue;
                }
                let key = BindingKey::new(&hook.id, self.order_of(&hook.id.scope), index);
                if hook.spec.config_version == ConfigVersion::V0 || !binding.execute_on_synchronization {
                    self.go_live(lower, &[key], &head.cause);
                    continue;
                }
                lower.bindings.mark_queued(&key, true);
                let run = TaskKind::HookRun(HookRun {
                    hook: hook.id.clone(),
                    binding_type: BindingType::Kubernetes,
                    contexts: vec![BindingContext::synchronization(binding, index)],
                    allow_failure: binding.allow_failure,
                    synchronizes: vec![key],
                    is_awaited: binding.is_waited(),
                });
                let cause = head.cause.then(format!("Synchronization of {}", binding.name));
                if binding.queue.is_main() || binding.queue == head.queue {
                    first.push(Task::new(lower.cx, &head.queue, run, head.trigger, cause, head.generation));
                } else {
                    let task = Task::new(lower.cx, &binding.queue, run, head.trigger, cause, None);
                    lower.queues.put(lower.cx, &binding.queue, End::Back, vec![task]);
                }
            }
        }
        first
    }

    /// Queues Synchronizations that no task waits for: those of named queues, and of kinds that came late.
    pub(crate) fn synchronize_late(&mut self, lower: &mut Lower<'_>, hooks: BTreeSet<HookId>) {
        let main = QueueName::main();
        for id in hooks {
            // While a task puts the hook into service, the order of its bindings is kept by that task.
            let Some(hook) = self.runnable_hook(&id).filter(|_| self.is_in_service(lower, &id)).cloned()
            else {
                continue;
            };
            // The order of the configuration is kept: the last of them to be listed queues all.
            if lower.bindings.is_listing(&hook) {
                continue;
            }
            let cause = Cause::outside(format!("kinds of hook {id} are listed"));
            let head = TaskHead::new(lower.cx, &main, Trigger::Kubernetes, cause, None);
            let first = self.queue_synchronizations(lower, &head, &[hook]);
            // Whatever waits for it must not stand before it.
            lower.queues.put_before(lower.cx, &main, first, |task| {
                task.hook_run().is_some_and(|run| run.hook == id)
                    || matches!(task.kind, TaskKind::GlobalHookWaitKubernetesSynchronization)
            });
        }
    }

    /// Returns whether no task puts the hook into service at the moment.
    fn is_in_service(&self, lower: &Lower<'_>, id: &HookId) -> bool {
        if let Some(module) = id.scope.module().and_then(|name| self.states.get(name)) {
            return module.schedules_on && !module.is_synchronizing;
        }
        !lower.queues.main_tasks().any(
            |task| matches!(&task.kind, TaskKind::GlobalHookEnableKubernetesBindings(hook) if hook == id),
        )
    }
}

/// Returns the tasks that put global hooks into service.
pub(super) fn startup_tasks(cx: &mut Context, hooks: &[Arc<Hook>], cause: &Cause) -> Vec<Task> {
    let main = QueueName::main();
    let mut tasks = Vec::new();
    for hook in hooks_at(hooks, Lifecycle::OnStartup) {
        let cause = cause.then(format!("onStartup hook {}", hook.name));
        let run = TaskKind::HookRun(HookRun::lifecycle(hook, Lifecycle::OnStartup));
        tasks.push(Task::new(cx, &main, run, Trigger::Startup, cause, None));
    }
    for hook in hooks.iter().filter(|hook| hook.spec.watches()) {
        let kind = TaskKind::GlobalHookEnableKubernetesBindings(hook.id.clone());
        let cause = cause.then(format!("bindings of hook {}", hook.id.name));
        tasks.push(Task::new(cx, &main, kind, Trigger::Startup, cause, None));
    }
    tasks
}

/// Returns the global hooks that run at `point`, in their order.
fn hooks_at(hooks: &[Arc<Hook>], point: Lifecycle) -> Vec<HookId> {
    let at = hooks.iter().filter_map(|hook| Some((hook.spec.order(point)?, hook.id.clone())));
    let mut hooks: Vec<_> = at.collect();
    hooks.sort();
    hooks.into_iter().map(|(_, hook)| hook).collect()
}

//! The beginning: global hooks, their bindings, the first converge.

use std::sync::Arc;

use crate::binding::BindingKey;
use crate::binding::watches::BindingState;
use crate::catalog::Hook;
use crate::cause::Cause;
use crate::effect::Effect;
use crate::engine::{Engine, Life};
use crate::hook::{BindingContext, Lifecycle};
use crate::name::{HookId, ModuleName, MonitorId, QueueName, Scope};
use crate::notice::Notice;
use crate::queue::fifo::Reason;
use crate::queue::next::Next;
use crate::task::{ConvergeMode, HookRun, Task, TaskKind};

/// What the tasks of the start say about themselves.
const STARTUP: &str = "Operator-Startup";

impl Engine {
    /// Queues what happens once, and the first converge.
    pub(crate) fn start(&mut self) {
        if self.life != Life::New {
            return;
        }
        self.life = Life::Running;
        self.assume_config();
        for message in self.catalog.warnings.clone() {
            self.notify(Notice::Warned { scope: Scope::Global, message });
        }
        let cause = Cause::start();
        let hooks = self.catalog.global.hooks.clone();
        let mut tasks = self.startup_tasks(&hooks, &cause);
        if !tasks.is_empty() {
            let wait = TaskKind::GlobalHookWaitKubernetesSynchronization;
            tasks.push(self.new_task(wait, STARTUP, cause.clone(), None));
        }
        tasks.push(self.converge_task(ConvergeMode::Full, STARTUP, "OperatorStartup", true, &cause));
        self.put_back(&QueueName::main(), tasks);
    }

    /// Returns the tasks that take global hooks into service.
    pub(crate) fn startup_tasks(&mut self, hooks: &[Arc<Hook>], cause: &Cause) -> Vec<Task> {
        let mut starting: Vec<_> = hooks
            .iter()
            .filter_map(|hook| Some((hook.spec.order(Lifecycle::OnStartup)?, hook.id.clone())))
            .collect();
        starting.sort();
        let mut tasks = Vec::new();
        for (_, hook) in starting {
            let cause = cause.then(format!("onStartup hook {}", hook.name));
            let run = HookRun {
                hook,
                binding_type: Lifecycle::OnStartup.as_str(),
                contexts: vec![BindingContext::lifecycle(Lifecycle::OnStartup)],
                allow_failure: false,
                synchronizes: Vec::new(),
            };
            tasks.push(self.new_task(TaskKind::GlobalHookRun(run), STARTUP, cause, None));
        }
        for hook in hooks.iter().filter(|hook| !hook.spec.kubernetes.is_empty()) {
            let kind = TaskKind::GlobalHookEnableKubernetesBindings(hook.id.clone());
            let cause = cause.then(format!("bindings of hook {}", hook.id.name));
            tasks.push(self.new_task(kind, STARTUP, cause, None));
        }
        tasks
    }

    /// Starts the watches of a global hook and queues its Synchronizations.
    pub(crate) fn step_enable_bindings(&mut self, queue: &QueueName, task: Task) -> Next {
        let TaskKind::GlobalHookEnableKubernetesBindings(id) = &task.kind else { return Next::Done(task) };
        let Some(hook) = self.runnable_hook(id) else { return Next::Gone(task) };
        self.enable_bindings(&hook, 0);
        for (index, binding) in hook.spec.kubernetes.iter().enumerate() {
            let state = self.watches.binding(&hook.id, index).map(|binding| &binding.state);
            if binding.queue.is_main() && matches!(state, Some(BindingState::Listing)) {
                let reason = self.missing_list(&hook.id, index);
                // A module may bring the kind, and modules come later; the binding starts by itself then.
                if let Reason::Kind(_) = reason {
                    return Next::Done(task);
                }
                return Next::Wait(task, reason);
            }
        }
        let first = self.queue_synchronizations(queue, &[hook], &task);
        Next::Then(task, first)
    }

    /// Waits for the Synchronizations of global hooks.
    pub(crate) fn step_wait(&mut self, task: Task) -> Next {
        let hooks = self.catalog.global.hooks.clone();
        for hook in &hooks {
            for (index, binding) in hook.spec.kubernetes.iter().enumerate() {
                let state = self.watches.binding(&hook.id, index).map(|binding| &binding.state);
                if binding.is_waited() && matches!(state, Some(BindingState::Listing)) {
                    match self.missing_list(&hook.id, index) {
                        Reason::Kind(_) => {}
                        reason @ (Reason::BrokenVersion(_)
                        | Reason::EarlierRun
                        | Reason::List(_)
                        | Reason::Modules(_)
                        | Reason::Rate { .. }
                        | Reason::Slot
                        | Reason::Synchronization(_)) => return Next::Wait(task, reason),
                    }
                }
            }
        }
        match self.unsynchronized(&hooks) {
            Some(what) => Next::Wait(task, Reason::Synchronization(what)),
            None => Next::Done(task),
        }
    }

    /// Switches the kubernetes bindings of a hook on, as far as they are not.
    pub(crate) fn enable_bindings(&mut self, hook: &Hook, order: u32) {
        for (index, binding) in hook.spec.kubernetes.iter().enumerate() {
            self.queues.ensure(&binding.queue);
            let key = BindingKey::new(&hook.id, order, index);
            if let Some((monitor, spec)) = self.watches.enable(&key, binding.monitor()) {
                self.out.push(Effect::StartMonitor { monitor, spec });
            }
        }
    }

    /// Switches the kubernetes bindings of a hook off.
    pub(crate) fn disable_hook_bindings(&mut self, hook: &HookId) {
        let idle: Vec<MonitorId> = self.watches.disable(hook);
        self.out.extend(idle.into_iter().map(|monitor| Effect::StopMonitor { monitor }));
    }

    /// Switches the kubernetes bindings of all hooks of a scope off.
    pub(crate) fn disable_bindings(&mut self, scope: &Scope) {
        for hook in self.watches.hooks_of(scope) {
            self.disable_hook_bindings(&hook);
        }
    }

    /// Switches the bindings of hooks off that wait for a list; what is left has all it needs.
    pub(crate) fn disable_unlisted_bindings(&mut self, scope: &Scope) {
        for hook in self.watches.hooks_of(scope) {
            let is_listing = self
                .watches
                .bindings_of(&hook)
                .any(|(_, binding)| matches!(binding.state, BindingState::Listing));
            if is_listing {
                self.disable_hook_bindings(&hook);
            }
        }
    }

    /// Lets the crontab lines of a module fire.
    pub(crate) fn enable_module_schedules(&mut self, name: &ModuleName) {
        let Some(module) = self.modules.get_mut(name) else { return };
        module.schedules_on = true;
        let spec = Arc::clone(&module.spec);
        for hook in &spec.hooks {
            self.schedules.enable(hook, spec.order);
            for binding in &hook.spec.schedules {
                self.queues.ensure(&binding.queue);
            }
        }
    }

    /// Lets the crontab lines of a module fire no more.
    pub(crate) fn disable_module_schedules(&mut self, name: &ModuleName) {
        let Some(module) = self.modules.get_mut(name) else { return };
        module.schedules_on = false;
        let spec = Arc::clone(&module.spec);
        for hook in &spec.hooks {
            self.schedules.disable(hook, spec.order);
        }
    }

    /// Lets the crontab lines of global hooks fire.
    pub(crate) fn enable_global_schedules(&mut self) {
        for hook in self.catalog.global.hooks.clone() {
            self.schedules.enable(&hook, 0);
        }
    }
}

//! Starting hooks, and what their events and their end lead to.

use std::sync::Arc;
use std::time::Duration;

use super::{Lower, Modules};
use crate::binding::timeout;
use crate::catalog::Hook;
use crate::cause::Cause;
use crate::context::Context;
use crate::effect::{Effect, RunLabels};
use crate::event::Usage;
use crate::hook::context::Trigger as ContextTrigger;
use crate::hook::snapshot::Change;
use crate::hook::spec::ConfigVersion;
use crate::hook::{BindingContext, Lifecycle};
use crate::name::{BindingKey, HookId, QueueName, RunId, TaskId};
use crate::notice::{HookEnd, Notice};
use crate::queue::{Next, Queues, Reason};
use crate::task::{Answer, BindingType, HookInFlight, HookRun, HookStage, Task, TaskHead, Trigger};

impl Modules {
    /// Does the next step of a task that runs one hook.
    pub(crate) fn advance_hook(&mut self, lower: &mut Lower<'_>, head: &TaskHead, run: &mut HookRun) -> Next {
        let Some(hook) = self.runnable_hook(&run.hook).cloned() else {
            self.miss_event(&run.hook);
            return Next::Gone;
        };
        let overtakes =
            || lower.queues.events_aside(&head.queue, &run.hook).filter(|_| run.is_of_events(&run.hook));
        if let Some(reason) = overtakes() {
            return Next::Wait(reason);
        }
        let not_now = || not_now(lower, lower.queues.has_slot_for(&head.queue, run), &hook);
        if let Some(reason) = self.broken_version(&run.hook).or_else(not_now) {
            return Next::Wait(reason);
        }
        if hook.spec.config_version == ConfigVersion::V1 {
            combine_following(lower.queues, head, run);
        }
        // The hook may have been changed while the task waited; its bindings may be others now.
        run.contexts.retain(|context| is_of(&hook, context));
        if run.contexts.is_empty() {
            return Next::Gone;
        }
        let next = self.start_hook(lower, head, &hook, run.contexts.clone(), run.binding_type);
        if let Next::Run(..) = next {
            lower.bindings.forget_held_back(&run.synchronizes);
        }
        next
    }

    /// Starts a hook at a point of a lifecycle, unless something is missing for that.
    pub(super) fn start_lifecycle_hook(
        &self,
        lower: &mut Lower<'_>,
        head: &TaskHead,
        hook: &Arc<Hook>,
        point: Lifecycle,
    ) -> Next {
        if let Some(reason) = not_now(lower, lower.queues.has_slot(&head.queue), hook) {
            return Next::Wait(reason);
        }
        let contexts = vec![BindingContext::lifecycle(point)];
        self.start_hook(lower, head, hook, contexts, BindingType::Lifecycle(point))
    }

    fn start_hook(
        &self,
        lower: &mut Lower<'_>,
        head: &TaskHead,
        hook: &Arc<Hook>,
        contexts: Vec<BindingContext>,
        binding_type: BindingType,
    ) -> Next {
        if let Some(reason) = lower.bindings.missing_for(hook, &contexts) {
            return Next::Wait(reason);
        }
        let labels = RunLabels {
            task: head.id,
            queue: head.queue.clone(),
            binding_type: binding_type.as_str(),
            binding: contexts.first().map_or_else(|| "".into(), |context| Arc::clone(&context.binding)),
            cause: head.cause.clone(),
        };
        let contexts = lower.bindings.show(hook, contexts, lower.cx.now);
        let values = self.input(lower.configuration, &hook.id.scope);
        let timeout = timeout(&hook.spec.settings, self.config.hook_timeout);
        let run = lower.cx.ids.run();
        let hook = Arc::clone(hook);
        let answer = HookInFlight { hook: Arc::clone(&hook), binding_type, stage: HookStage::Process };
        let effect = Effect::RunHook { run, hook, contexts, values, timeout, labels };
        Next::Run(run, Answer::Hook(Box::new(answer)), Box::new(effect))
    }

    /// Returns the run of a hook that the API server asks, or what is missing for it at the moment. It is in no queue.
    pub(crate) fn review_run(
        &self,
        lower: &mut Lower<'_>,
        hook: &Arc<Hook>,
        (context, binding_type): (BindingContext, BindingType),
        (task, patience): (TaskId, Duration),
    ) -> Result<(RunId, Effect), Reason> {
        let contexts = vec![context];
        let not_now =
            self.broken_version(&hook.id).or_else(|| lower.bindings.held_up(&hook.id, lower.cx.now));
        // Its module may be about to run, with other bindings than before.
        let missing = || {
            lower.bindings.off_for(hook, &contexts).or_else(|| lower.bindings.missing_for(hook, &contexts))
        };
        if let Some(reason) = not_now.or_else(missing) {
            return Err(reason);
        }
        let labels = RunLabels {
            task,
            queue: QueueName::from(""),
            binding_type: binding_type.as_str(),
            binding: contexts.first().map_or_else(|| "".into(), |context| Arc::clone(&context.binding)),
            cause: Cause::outside("the API server asks"),
        };
        let contexts = lower.bindings.show(hook, contexts, lower.cx.now);
        let values = self.input(lower.configuration, &hook.id.scope);
        let own = timeout(&hook.spec.settings, self.config.hook_timeout);
        let timeout = Some(own.map_or(patience, |own| own.min(patience)));
        let run = lower.cx.ids.run();
        let effect = Effect::RunHook { run, hook: Arc::clone(hook), contexts, values, timeout, labels };
        Ok((run, effect))
    }

    /// Makes bindings live whose Synchronization is done, and queues the events that were held back.
    pub(crate) fn go_live(&mut self, lower: &mut Lower<'_>, keys: &[BindingKey], cause: &Cause) {
        for key in keys {
            for change in lower.bindings.go_live(key) {
                self.queue_event(lower.cx, lower.queues, key, change, cause);
            }
        }
        if !keys.is_empty() {
            lower.queues.wake(|reason| matches!(reason, Reason::Synchronization(_)));
        }
    }

    /// Queues the run of a hook that an event of one of its bindings causes.
    pub(crate) fn queue_event(
        &mut self,
        cx: &mut Context,
        queues: &mut Queues,
        key: &BindingKey,
        change: Change,
        cause: &Cause,
    ) {
        let Some(hook) = self.runnable_hook(&key.hook) else { return self.miss_event(&key.hook) };
        let Some(binding) = hook.spec.kubernetes.get(key.index) else { return };
        if !binding.execute_on_events.contains(&change.event) {
            return;
        }
        let cause = cause.then(format!("{} {} {}", binding.selection.kind, change.key, change.event));
        let run = HookRun {
            hook: key.hook.clone(),
            binding_type: BindingType::Kubernetes,
            allow_failure: binding.allow_failure,
            contexts: vec![BindingContext::event(binding, key.index, change)],
            synchronizes: Vec::new(),
            is_awaited: false,
        };
        let merges = hook.spec.config_version == ConfigVersion::V1;
        queues.put_hook_run(cx, &binding.queue, run, merges, (Trigger::Kubernetes, cause));
    }

    /// Records that a module that is off did not see an event. If it is switched on before it was removed,
    /// its bindings have to be synchronised anew.
    fn miss_event(&mut self, hook: &HookId) {
        if let Some(module) = hook.scope.module().and_then(|name| self.states.get_mut(name)) {
            module.missed_events = true;
        }
    }
}

/// Reports how a run of a hook ended.
pub(crate) fn report_run(
    cx: &mut Context,
    task: &Task,
    run: &HookInFlight,
    usage: Option<Usage>,
    end: HookEnd,
) {
    cx.notify(Notice::HookRan {
        hook: run.hook.id.clone(),
        binding: run.binding_type.as_str(),
        queue: task.head.queue.clone(),
        usage,
        outcome: end,
        is_task: task.hook_run().is_some(),
        startup: task.head.cause.is_of_start(),
    });
}

/// Reports how a run of a hook ended that the API server asked. It is in no queue.
pub(crate) fn report_review(
    cx: &mut Context,
    hook: &HookId,
    binding: &'static str,
    usage: Option<Usage>,
    outcome: HookEnd,
) {
    let queue = QueueName::from("");
    cx.notify(Notice::HookRan {
        hook: hook.clone(),
        binding,
        queue,
        usage,
        outcome,
        is_task: true,
        startup: false,
    });
}

/// Returns why the hook can't start at this moment, whatever is missing for what it is started for.
fn not_now(lower: &Lower<'_>, has_slot: bool, hook: &Hook) -> Option<Reason> {
    if has_slot { lower.bindings.held_up(&hook.id, lower.cx.now) } else { Some(Reason::Slot) }
}

/// Adds the runs of the same hook that directly follow to `run`.
fn combine_following(queues: &mut Queues, head: &TaskHead, run: &mut HookRun) {
    let is_alone = run.is_synchronization() && run.contexts.iter().all(|context| context.group.is_none());
    if is_alone || run.is_of_lifecycle() {
        return;
    }
    while let Some(mut next) =
        queues.take_next(&head.queue, |next| next.hook_run().is_some_and(|next| run.can_include(next)))
    {
        if let Some(next) = next.hook_run_mut() {
            run.append(next);
        }
    }
}

fn is_of(hook: &Hook, context: &BindingContext) -> bool {
    match context.trigger {
        ContextTrigger::Event { binding, .. } | ContextTrigger::Synchronization { binding } => {
            hook.spec.kubernetes.get(binding).is_some_and(|found| *found.name == *context.binding)
        }
        ContextTrigger::Conversion { .. } => {
            hook.spec.conversions.iter().any(|found| *found.name == *context.binding)
        }
        ContextTrigger::Reconcile(_) => {
            hook.spec.reconciles.iter().any(|found| *found.name == *context.binding)
        }
        ContextTrigger::Lifecycle(point) => hook.spec.order(point).is_some(),
        ContextTrigger::Review { kind, .. } => {
            hook.spec.admissions(kind).iter().any(|found| *found.name == *context.binding)
        }
        ContextTrigger::Schedule => hook.spec.schedules.iter().any(|found| *found.name == *context.binding),
    }
}

//! What watches and the clock tell.

use std::sync::Arc;

use crate::binding::BindingKey;
use crate::binding::watches::{BindingState, Monitor};
use crate::cause::Cause;
use crate::effect::Effect;
use crate::engine::{Engine, Life};
use crate::failure::{Failure, FailureKind};
use crate::hook::combine;
use crate::hook::snapshot::{Change, Item, Key, Objects};
use crate::hook::{BindingContext, WatchEvent};
use crate::name::{CronLine, HookId, MonitorId, QueueName, ReviewId};
use crate::notice::{FedBinding, Notice};
use crate::queue::fifo::Reason;
use crate::task::{HookRun, TaskKind};

impl Engine {
    /// Takes in the lists that begin or renew watches: all snapshots first, then hooks are told.
    pub(crate) fn listed(&mut self, lists: Vec<(MonitorId, Objects)>) {
        let mut listings = Vec::with_capacity(lists.len());
        for (id, objects) in lists {
            let Some(monitor) = self.watches.monitor_mut(id) else { continue };
            listings.push((id, monitor.list(objects)));
        }
        for (id, listing) in listings {
            if listing.first {
                let users = self.watches.synchronize(id);
                self.reconsider_kinds();
                self.queues.wake(|reason| matches!(reason, Reason::List(_) | Reason::Kind(_)));
                self.synchronize_late(users.into_iter().map(|key| key.hook).collect());
            }
            for change in listing.changes {
                self.tell_users(id, &change);
            }
            self.tell_snapshot(id);
        }
    }

    /// Lets every run that waits for a kind be tried again: one of them may go on now.
    fn reconsider_kinds(&mut self) {
        if !std::mem::take(&mut self.has_kind_waiters) {
            return;
        }
        for queue in self.queues.names() {
            self.queues.edit(&queue, |task| {
                if let TaskKind::ModuleRun(run) = &mut task.kind {
                    run.waits_for_kind = false;
                }
                // All tasks are looked at.
                false
            });
        }
    }

    /// Queues Synchronizations that no task waits for: those of named queues, and of kinds that came late.
    fn synchronize_late(&mut self, hooks: std::collections::BTreeSet<HookId>) {
        for id in hooks {
            let Some(hook) = self.runnable_hook(&id) else { continue };
            // While a task takes the hook into service, the order of its bindings is kept by that task.
            let in_service = self.is_in_service(&id);
            if !in_service {
                continue;
            }
            let cause = Cause::outside(format!("kinds of hook {id} are listed"));
            let late = TaskKind::GlobalHookEnableKubernetesBindings(id.clone());
            let task = self.new_task(late, "Kubernetes", cause, None);
            let first = self.queue_synchronizations(&QueueName::main(), &[hook], &task);
            self.put_back(&QueueName::main(), first);
        }
    }

    /// Returns whether nobody takes the hook into service at the moment.
    fn is_in_service(&self, id: &HookId) -> bool {
        if let Some(module) = id.scope.module().and_then(|name| self.modules.get(name)) {
            return module.schedules_on && !module.is_synchronizing;
        }
        let mut tasks =
            self.queues.get(&QueueName::main()).into_iter().flat_map(crate::queue::fifo::Queue::iter);
        !tasks.any(|task| match &task.kind {
            TaskKind::GlobalHookEnableKubernetesBindings(hook) => hook == id,
            TaskKind::ConvergeModules(_)
            | TaskKind::DiscoverHelmReleases
            | TaskKind::GlobalHookRun(_)
            | TaskKind::GlobalHookWaitKubernetesSynchronization
            | TaskKind::ModuleDelete(_)
            | TaskKind::ModuleEnsureCrds(_)
            | TaskKind::ModuleHookRun(_)
            | TaskKind::ModulePurge(_)
            | TaskKind::ModuleRun(_)
            | TaskKind::ParallelModuleRun(_) => false,
        })
    }

    /// Takes in that an object changed: all snapshots first, then hooks are told.
    pub(crate) fn object_changed(
        &mut self,
        event: WatchEvent,
        key: &Key,
        items: Vec<(MonitorId, Arc<Item>)>,
    ) {
        let mut changes = Vec::with_capacity(items.len());
        for (id, item) in items {
            let Some(monitor) = self.watches.monitor_mut(id) else { continue };
            // What failed at another object is over, as far as anybody can tell.
            monitor.failure = None;
            monitor.broken_since = None;
            let before = monitor.snapshot.len();
            let change = match event {
                WatchEvent::Added | WatchEvent::Modified => monitor.put(key.clone(), item),
                WatchEvent::Deleted => monitor.remove(key, Some(item)),
            };
            changes.push((id, change, monitor.snapshot.len() != before));
        }
        for (id, change, is_other_size) in changes {
            if let Some(change) = change {
                self.tell_users(id, &change);
            }
            if is_other_size {
                self.tell_snapshot(id);
            }
        }
    }

    /// Takes in the objects of a namespace that joined or left those that a watch is about.
    pub(crate) fn namespace_listed(
        &mut self,
        id: MonitorId,
        namespace: &str,
        objects: Vec<(Key, Arc<Item>)>,
    ) {
        let Some(monitor) = self.watches.monitor_mut(id) else { return };
        monitor.list_namespace(namespace, objects);
        self.watches.forget_namespace(id, namespace);
        self.tell_snapshot(id);
    }

    /// Hands a change to the bindings of a watch, or holds it back until their Synchronization is through.
    fn tell_users(&mut self, id: MonitorId, change: &Change) {
        let users: Vec<_> =
            self.watches.monitor(id).into_iter().flat_map(|monitor| monitor.users.iter().cloned()).collect();
        let cause = Cause::outside("cluster");
        for key in users {
            let Some(binding) = self.watches.binding_mut(&key.hook, key.index) else { continue };
            match &mut binding.state {
                BindingState::Listing => {}
                BindingState::Synchronizing { held_back, .. } => {
                    combine::hold_back(held_back, change.clone());
                }
                BindingState::Live => self.queue_event(&key, change.clone(), &cause),
            }
        }
    }

    fn tell_snapshot(&mut self, id: MonitorId) {
        let Some(monitor) = self.watches.monitor(id) else { return };
        let bindings = monitor.users.iter().filter_map(|key| {
            let hook = self.runnable_hook(&key.hook)?;
            let binding = hook.spec.kubernetes.get(key.index)?;
            Some(FedBinding {
                hook: key.hook.clone(),
                binding: binding.name.as_str().into(),
                queue: binding.queue.clone(),
                kind: binding.selection.kind.as_str().into(),
            })
        });
        let (bindings, objects) = (bindings.collect(), monitor.snapshot.len());
        self.notify(Notice::SnapshotChanged { monitor: id, bindings, objects });
    }

    /// Takes in that the kind of a watch exists: it is listed next.
    pub(crate) fn kind_appeared(&mut self, id: MonitorId) {
        let Some(monitor) = self.watches.monitor_mut(id) else { return };
        monitor.missing_kind = None;
        monitor.broken_since = None;
        self.queues.wake(|reason| matches!(reason, Reason::Kind(_)));
    }

    /// Takes in that the kind of a watch does not exist.
    pub(crate) fn kind_vanished(&mut self, id: MonitorId, kind: String) {
        let now = self.now;
        let Some(monitor) = self.watches.monitor_mut(id) else { return };
        let changes = monitor.vanish(kind, now);
        for change in changes {
            self.tell_users(id, &change);
        }
        self.queues.wake(|reason| matches!(reason, Reason::List(_) | Reason::Kind(_)));
        self.tell_snapshot(id);
    }

    /// Takes in that a watch broke. The adapter goes on trying.
    pub(crate) fn watch_failed(&mut self, id: MonitorId, failure: Failure) {
        let Some(monitor) = self.watches.monitor(id) else { return };
        let mut failure = failure;
        if failure.kind == FailureKind::HookOutput {
            failure.message = format!("{}: {}", self.fed_by(monitor), failure.message);
            failure.advice.get_or_insert_with(|| {
                "correct the jqFilter of the binding, or the object that it does not work on".to_owned()
            });
        }
        let now = self.now;
        let Some(monitor) = self.watches.monitor_mut(id) else { return };
        monitor.broken_since.get_or_insert(now);
        monitor.failure = Some(Arc::new(failure.clone()));
        self.notify(Notice::WatchFailed { monitor: id, failure });
    }

    /// Returns the hooks and bindings that a watch feeds, for people.
    fn fed_by(&self, monitor: &Monitor) -> String {
        const NAMED: usize = 3;
        let name = |key: &BindingKey| {
            let binding = self
                .runnable_hook(&key.hook)
                .and_then(|hook| hook.spec.kubernetes.get(key.index).map(|binding| binding.name.clone()));
            format!("hook {}, binding {}", key.hook, binding.unwrap_or_else(|| key.index.to_string()))
        };
        let names: Vec<String> = monitor.users.iter().take(NAMED).map(name).collect();
        let more = monitor.users.len().saturating_sub(NAMED);
        let names = names.join("; ");
        if more == 0 { names } else { format!("{names}; and {more} more") }
    }

    /// Queues the hooks that a crontab line runs.
    pub(crate) fn cron_fired(&mut self, line: &CronLine) {
        if self.life != Life::Running || !self.is_ready() {
            return;
        }
        let cause = Cause::outside(format!("schedule {line}"));
        for key in self.schedules.users(line) {
            let is_new = key
                .hook
                .scope
                .module()
                .is_some_and(|name| !self.modules.get(name).is_some_and(|m| m.first_run_done));
            let Some(hook) = self.runnable_hook(&key.hook).filter(|_| !is_new) else { continue };
            let Some(binding) = hook.spec.schedules.get(key.index) else { continue };
            let run = HookRun {
                hook: key.hook.clone(),
                binding_type: "schedule",
                contexts: vec![BindingContext::schedule(binding)],
                allow_failure: binding.allow_failure,
                synchronizes: Vec::new(),
            };
            let queue = binding.queue.clone();
            self.queue_hook_run(&queue, run, "Schedule", cause.then(format!("binding {}", binding.name)));
        }
    }

    /// Answers a review. Hooks are not asked yet.
    pub(crate) fn review_requested(&mut self, id: ReviewId, webhook: &str) {
        let failure = Failure::new(FailureKind::Files, format!("no hook answers reviews of {webhook}"))
            .advise("webhooks of hooks are not served by this version");
        self.out.push(Effect::AnswerReview { id, outcome: Err(failure) });
    }
}

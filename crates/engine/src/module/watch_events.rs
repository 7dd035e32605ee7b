//! What watches report reaches hooks: all snapshots change first, then the hooks are queued.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Lower, Modules};
use crate::binding::Bindings;
use crate::cause::Cause;
use crate::context::Context;
use crate::hook::snapshot::{Change, Item, Key, Objects};
use crate::name::{BindingKey, HookId, MonitorId};
use crate::notice::{Notice, ObservedBinding};
use crate::queue::Reason;
use crate::task::{ModuleRun, Task};

impl Modules {
    /// Handles the lists that begin or renew watches.
    pub(crate) fn listed(&mut self, lower: &mut Lower<'_>, lists: Vec<(MonitorId, Objects)>) {
        for (id, listing) in lower.bindings.list(lists) {
            if listing.first {
                let hooks = lower.bindings.listed_first(id);
                look_again(lower, &hooks);
                self.synchronize_late(lower, hooks);
            }
            for change in &listing.changes {
                self.deliver(lower, id, change);
            }
            self.report_snapshot(lower.cx, lower.bindings, id);
        }
    }

    /// Handles a change of an object.
    pub(crate) fn object_changed(
        &mut self,
        lower: &mut Lower<'_>,
        key: &Key,
        is_gone: bool,
        items: Vec<(MonitorId, Arc<Item>)>,
    ) {
        for observed in lower.bindings.object_changed(key, is_gone, items) {
            if let Some(change) = &observed.change {
                self.deliver(lower, observed.monitor, change);
            }
            if observed.is_other_size {
                self.report_snapshot(lower.cx, lower.bindings, observed.monitor);
            }
        }
    }

    /// Handles the objects of a namespace that joined or left those that a watch is about.
    pub(crate) fn namespace_listed(
        &self,
        cx: &mut Context,
        bindings: &mut Bindings,
        id: MonitorId,
        namespace: &str,
        objects: Vec<(Key, Arc<Item>)>,
    ) {
        if bindings.namespace_listed(id, namespace, objects) {
            self.report_snapshot(cx, bindings, id);
        }
    }

    /// Handles that the kind of a watch does not exist: its objects are gone with it.
    pub(crate) fn kind_vanished(&mut self, lower: &mut Lower<'_>, id: MonitorId, kind: String) {
        let Some(changes) = lower.bindings.kind_vanished(id, kind, lower.cx.now) else { return };
        for change in &changes {
            self.deliver(lower, id, change);
        }
        lower.queues.wake(|reason| matches!(reason, Reason::List(_)));
        self.report_snapshot(lower.cx, lower.bindings, id);
    }

    /// Queues the hooks that a change of an object runs.
    fn deliver(&mut self, lower: &mut Lower<'_>, id: MonitorId, change: &Change) {
        let cause = Cause::outside("cluster");
        for key in lower.bindings.deliver(id, change) {
            self.queue_event(lower.cx, lower.queues, &key, change.clone(), &cause);
        }
    }

    /// Reports how many objects a watch knows, and for which bindings.
    fn report_snapshot(&self, cx: &mut Context, bindings: &Bindings, id: MonitorId) {
        let Some(users) = bindings.users(id) else { return };
        let fed = users.iter().filter_map(|key| {
            let binding = self.runnable_hook(&key.hook)?.spec.kubernetes.get(key.index)?;
            Some(ObservedBinding {
                hook: key.hook.clone(),
                binding: binding.name.as_str().into(),
                queue: binding.queue.clone(),
                kind: binding.selection.kind.as_str().into(),
            })
        });
        let (bindings, objects) = (fed.collect(), bindings.objects(id));
        cx.notify(Notice::SnapshotChanged { monitor: id, bindings, objects });
    }

    /// Returns hooks and their bindings in words, the first three by name.
    pub(super) fn described<'k>(&self, keys: impl ExactSizeIterator<Item = &'k BindingKey>) -> String {
        const NAMED: usize = 3;
        let more = keys.len().saturating_sub(NAMED);
        let name = |key: &BindingKey| {
            let binding = self.binding_name(key).unwrap_or_else(|| key.index.to_string());
            format!("hook {}, binding {binding}", key.hook)
        };
        let names = keys.take(NAMED).map(name).collect::<Vec<_>>().join("; ");
        if more == 0 { names } else { format!("{names}; and {more} more") }
    }
}

/// Lets all look once more for what they wait for who wait for the first lists of `hooks`, in their queues or aside.
pub(super) fn look_again(lower: &mut Lower<'_>, hooks: &BTreeSet<HookId>) {
    lower.queues.wake(|reason| matches!(reason, Reason::List(_)));
    lower.queues.take_back(|task| concerns(task, hooks));
}

/// Lets those who wait for first lists that have become late let others go first.
pub(crate) fn look_at_late_lists(lower: &mut Lower<'_>) {
    let hooks = lower.bindings.take_late(lower.cx.now);
    if !hooks.is_empty() {
        look_again(lower, &hooks);
    }
}

/// Returns whether a task runs one of `hooks`, or the module of one.
fn concerns(task: &Task, hooks: &BTreeSet<HookId>) -> bool {
    let runs = |run: &ModuleRun| hooks.iter().any(|hook| hook.scope.module() == Some(&run.module));
    task.hook_run().is_some_and(|run| hooks.contains(&run.hook)) || task.module_run().is_some_and(runs)
}

/// Handles that the kind of a watch exists: it is listed next.
pub(crate) fn kind_appeared(lower: &mut Lower<'_>, id: MonitorId) {
    if lower.bindings.kind_appeared(id, lower.cx.now) {
        let users = lower.bindings.users(id).into_iter().flatten();
        let hooks = users.map(|key| key.hook.clone()).collect();
        lower.queues.take_back(|task| concerns(task, &hooks));
    }
}

//! What watches report reaches hooks: all snapshots change first, then the hooks are queued.

use std::sync::Arc;

use super::{Lower, Modules};
use crate::binding::Bindings;
use crate::cause::Cause;
use crate::context::Context;
use crate::failure::{Failure, FailureKind};
use crate::hook::WatchEvent;
use crate::hook::snapshot::{Change, Item, Key, Objects};
use crate::name::{BindingKey, MonitorId};
use crate::notice::{Notice, ObservedBinding};
use crate::queue::Reason;

impl Modules {
    /// Handles the lists that begin or renew watches.
    pub(crate) fn listed(&mut self, lower: &mut Lower<'_>, lists: Vec<(MonitorId, Objects)>) {
        for (id, listing) in lower.bindings.list(lists) {
            if listing.first {
                let hooks = lower.bindings.listed_first(id);
                self.reconsider_kinds(lower.queues);
                lower.queues.wake(|reason| matches!(reason, Reason::List(_) | Reason::Kind(_)));
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
        event: WatchEvent,
        key: &Key,
        items: Vec<(MonitorId, Arc<Item>)>,
    ) {
        for observed in lower.bindings.object_changed(event, key, items) {
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
        lower.queues.wake(|reason| matches!(reason, Reason::List(_) | Reason::Kind(_)));
        self.report_snapshot(lower.cx, lower.bindings, id);
    }

    /// Records and reports that a watch broke. The adapter goes on trying.
    pub(crate) fn watch_failed(
        &self,
        cx: &mut Context,
        bindings: &mut Bindings,
        id: MonitorId,
        mut failure: Failure,
    ) {
        let Some(users) = bindings.users(id) else { return };
        if failure.kind == FailureKind::HookOutput {
            failure.message = format!("{}: {}", self.described(users.iter()), failure.message);
            failure.advice.get_or_insert_with(|| {
                "correct the jqFilter of the binding, or the object that it does not work on".to_owned()
            });
        }
        bindings.watch_failed(id, failure.clone(), cx.now);
        cx.notify(Notice::WatchFailed { monitor: id, failure });
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
    fn described<'k>(&self, keys: impl ExactSizeIterator<Item = &'k BindingKey>) -> String {
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

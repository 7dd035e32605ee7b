//! What watches report: lists, changes of objects, kinds that come and go, failures.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Bindings;
use super::watches::{BindingState, Listing};
use crate::failure::Failure;
use crate::hook::snapshot::{Change, Item, Key, Objects};
use crate::hook::{WatchEvent, combine};
use crate::name::{BindingKey, HookId, MonitorId};
use crate::time::Time;

/// What a change of an object led to in one watch.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) monitor: MonitorId,
    /// What hooks see, if they see a difference.
    pub(crate) change: Option<Change>,
    /// Whether the watch knows more or fewer objects than before.
    pub(crate) is_other_size: bool,
}

impl Bindings {
    /// Replaces the snapshots of watches by lists of one moment. Returns what each led to; unknown watches are left out.
    pub(crate) fn list(&mut self, lists: Vec<(MonitorId, Objects)>) -> Vec<(MonitorId, Listing)> {
        let mut listings = Vec::with_capacity(lists.len());
        for (id, objects) in lists {
            let Some(monitor) = self.watches.monitor_mut(id) else { continue };
            listings.push((id, monitor.list(objects)));
        }
        listings
    }

    /// Moves the bindings of a watch on whose first list is complete. Returns their hooks.
    pub(crate) fn listed_first(&mut self, id: MonitorId) -> BTreeSet<HookId> {
        self.watches.synchronize(id).into_iter().map(|key| key.hook).collect()
    }

    /// Records the change of an object in all snapshots. Returns what it led to in each.
    pub(crate) fn object_changed(
        &mut self,
        event: WatchEvent,
        key: &Key,
        items: Vec<(MonitorId, Arc<Item>)>,
    ) -> Vec<Observed> {
        let mut observed = Vec::with_capacity(items.len());
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
            let is_other_size = monitor.snapshot.len() != before;
            observed.push(Observed { monitor: id, change, is_other_size });
        }
        observed
    }

    /// Replaces the objects of a namespace that joined or left. Hooks see it in their snapshots; no event runs them.
    ///
    /// Returns whether the watch exists.
    pub(crate) fn namespace_listed(
        &mut self,
        id: MonitorId,
        namespace: &str,
        objects: Vec<(Key, Arc<Item>)>,
    ) -> bool {
        let Some(monitor) = self.watches.monitor_mut(id) else { return false };
        monitor.list_namespace(namespace, objects);
        self.watches.forget_namespace(id, namespace);
        true
    }

    /// Records that the kind of a watch exists: it is listed next. Returns whether the watch exists.
    pub(crate) fn kind_appeared(&mut self, id: MonitorId) -> bool {
        let Some(monitor) = self.watches.monitor_mut(id) else { return false };
        monitor.missing_kind = None;
        monitor.broken_since = None;
        true
    }

    /// Records that the kind of a watch does not exist. Returns what hooks see, if the watch exists.
    pub(crate) fn kind_vanished(&mut self, id: MonitorId, kind: String, now: Time) -> Option<Vec<Change>> {
        Some(self.watches.monitor_mut(id)?.vanish(kind, now))
    }

    /// Records that a watch broke. The adapter goes on trying.
    pub(crate) fn watch_failed(&mut self, id: MonitorId, failure: Failure, now: Time) {
        let Some(monitor) = self.watches.monitor_mut(id) else { return };
        monitor.broken_since.get_or_insert(now);
        monitor.failure = Some(Arc::new(failure));
    }

    /// Returns the bindings that a change of an object runs; those whose Synchronization is not through hold it back.
    pub(crate) fn deliver(&mut self, id: MonitorId, change: &Change) -> Vec<BindingKey> {
        let mut users: Vec<BindingKey> = self.users(id).into_iter().flatten().cloned().collect();
        users.retain(|key| {
            let Some(binding) = self.watches.binding_mut(&key.hook, key.index) else { return false };
            match &mut binding.state {
                BindingState::Listing => false,
                BindingState::Synchronizing { held_back, .. } => {
                    combine::hold_back(held_back, change.clone());
                    false
                }
                BindingState::Live => true,
            }
        });
        users
    }

    /// Returns the bindings that see a watch, in order, if it exists.
    pub(crate) fn users(&self, id: MonitorId) -> Option<&BTreeSet<BindingKey>> {
        Some(&self.watches.monitor(id)?.users)
    }

    /// Returns how many objects a watch knows.
    pub(crate) fn objects(&self, id: MonitorId) -> usize {
        self.watches.monitor(id).map_or(0, |monitor| monitor.snapshot.len())
    }
}

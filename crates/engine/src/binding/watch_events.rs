//! What watches report: lists, changes of objects, kinds that come and go, failures.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Bindings;
use super::watch_health::Restored;
use super::watches::{BindingState, Listing};
use crate::failure::Failure;
use crate::hook::combine;
use crate::hook::snapshot::{Change, Item, Key, Objects};
use crate::name::{BindingKey, HookId, MonitorId};
use crate::queue::Reason;
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
            let listing = self.watches.change(id, |monitor| monitor.list(objects));
            listings.extend(listing.map(|listing| (id, listing)));
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
        key: &Key,
        is_gone: bool,
        items: Vec<(MonitorId, Arc<Item>)>,
    ) -> Vec<Observed> {
        let mut observed = Vec::with_capacity(items.len());
        for (id, item) in items {
            let Some(monitor) = self.watches.monitor_mut(id) else { continue };
            let before = monitor.snapshot.len();
            let change =
                if is_gone { monitor.remove(key, Some(item)) } else { monitor.put(key.clone(), item) };
            monitor.judge_filter();
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
    pub(crate) fn kind_appeared(&mut self, id: MonitorId, now: Time) -> bool {
        self.watches.change(id, |monitor| monitor.appear(now)).is_some()
    }

    /// Records that the kind of a watch does not exist. Returns what hooks see, if the watch exists.
    pub(crate) fn kind_vanished(&mut self, id: MonitorId, kind: String, now: Time) -> Option<Vec<Change>> {
        self.watches.change(id, |monitor| monitor.vanish(kind, now))
    }

    /// Records that a watch broke. The adapter goes on trying. Returns its kind, and for how long it does not work if that is
    /// long and was not announced.
    pub(crate) fn watch_failed(
        &mut self,
        id: MonitorId,
        failure: Failure,
        now: Time,
    ) -> Option<(String, Duration)> {
        let lasting = self.watches.change(id, |monitor| monitor.fail(failure, now))??;
        Some((self.watches.monitor(id)?.spec.selection.kind.clone(), lasting))
    }

    /// Returns when the next first list is late.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        self.watches.next_late()
    }

    /// Returns the hooks whose first lists have become late: others need not wait for them any more.
    pub(crate) fn take_late(&mut self, now: Time) -> BTreeSet<HookId> {
        let mut hooks = BTreeSet::new();
        while let Some(id) = self.watches.take_late(now) {
            hooks.extend(self.users(id).into_iter().flatten().map(|key| key.hook.clone()));
        }
        hooks
    }

    /// Returns why a watch has no first list, where a module may bring what is missing.
    pub(crate) fn obstacle(&self, id: MonitorId) -> Option<Reason> {
        self.watches.monitor(id)?.obstacle()
    }

    /// Records that it is announced that a watch does not work.
    pub(crate) fn watch_announced(&mut self, id: MonitorId) {
        if let Some(monitor) = self.watches.monitor_mut(id) {
            monitor.announce();
        }
    }

    /// Records that a watch works. Returns its kind and what that ends, if it did not.
    pub(crate) fn watch_restored(&mut self, id: MonitorId, now: Time) -> Option<(String, Restored)> {
        let monitor = self.watches.monitor_mut(id)?;
        let restored = monitor.restore(now)?;
        Some((monitor.spec.selection.kind.clone(), restored))
    }

    /// Records that a watch of the operator itself broke. Returns for how long it does not work, if that is long and was not
    /// announced.
    pub(crate) fn own_watch_failed(&mut self, watch: &str, failure: Failure, now: Time) -> Option<Duration> {
        self.own_watches.entry(watch.to_owned()).or_default().fail(failure, now)
    }

    /// Records that it is announced that a watch of the operator itself does not work.
    pub(crate) fn own_watch_announced(&mut self, watch: &str) {
        if let Some(health) = self.own_watches.get_mut(watch) {
            health.announce();
        }
    }

    /// Records that a watch of the operator itself works. Returns what that ends, if it did not.
    pub(crate) fn own_watch_restored(&mut self, watch: &str, now: Time) -> Option<Restored> {
        self.own_watches.remove(watch)?.restore(now)
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

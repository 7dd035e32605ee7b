//! Watches and the bindings that they feed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::Tally;
use super::first_list::FirstList;
use super::watch_health::{Restored, WatchHealth};
use crate::catalog::Hook;
use crate::failure::{Failure, FailureKind};
use crate::hook::snapshot::{Change, Item, Key, Snapshot};
use crate::hook::{KubernetesBinding, MonitorSpec, Selection};
use crate::name::{BindingKey, HookId, MonitorId, Scope};
use crate::queue::Reason;
use crate::time::Time;

/// All watches, and all bindings that are switched on.
#[derive(Debug, Default)]
pub(super) struct Watches {
    monitors: BTreeMap<MonitorId, Monitor>,
    by_spec: BTreeMap<MonitorSpec, MonitorId>,
    bindings: BTreeMap<HookId, BTreeMap<usize, Binding>>,
    /// When first lists are late that are not yet.
    late: BTreeSet<(Time, MonitorId)>,
    last_id: u64,
}

/// One watch with one filter.
#[derive(Debug)]
pub(super) struct Monitor {
    /// What it selects.
    pub(super) spec: Arc<MonitorSpec>,
    /// The bindings that see it.
    pub(super) users: BTreeSet<BindingKey>,
    /// What it knows.
    pub(super) snapshot: Snapshot,
    /// What happened to its objects.
    pub(super) tally: Tally,
    /// Whether the snapshot is complete.
    pub(super) listed: bool,
    /// Its first list, as far as that is waited for.
    first_list: FirstList,
    /// The kind that it waits for.
    pub(super) missing_kind: Option<String>,
    /// Since when it waits for that.
    missing_since: Option<Time>,
    /// Whether it works.
    health: WatchHealth,
    /// Whether its filter works on all objects.
    filter: WatchHealth,
}

/// A kubernetes binding that is switched on.
#[derive(Debug)]
pub(super) struct Binding {
    /// Its watch.
    pub(super) monitor: MonitorId,
    /// What it is doing.
    pub(super) state: BindingState,
    /// What had happened when its hook was started last.
    pub(super) seen: Tally,
}

/// What a kubernetes binding is doing. One that is off is not there.
///
/// ```text
/// Off ─▶ Listing ─▶ Synchronizing { held_back } ─▶ Live
///  ▲                      ▲                         │
///  │                      └─ its hook has new code ─┤
///  └──────────────── its hook goes ─────────────────┘
/// ```
#[derive(Debug)]
pub(super) enum BindingState {
    /// Its watch did not list everything yet.
    Listing,
    /// Its Synchronization is not through.
    Synchronizing {
        /// What happened since its snapshot was complete.
        held_back: Vec<Change>,
        /// Whether a task for it is in a queue.
        queued: bool,
    },
    /// Its events run the hook.
    Live,
}

/// What a list led to.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Differences to what was known, oldest first.
    pub(crate) changes: Vec<Change>,
    /// Whether the watch was not listed before.
    pub(crate) first: bool,
}

impl Watches {
    /// Returns the number of a new watch.
    pub(super) fn next_id(&mut self) -> MonitorId {
        self.last_id += 1;
        MonitorId::new(self.last_id)
    }

    /// Switches a binding on. Returns the watch if it has to be started.
    pub(super) fn enable(
        &mut self,
        key: &BindingKey,
        spec: MonitorSpec,
        now: Time,
    ) -> Option<(MonitorId, Arc<MonitorSpec>)> {
        if self.binding(&key.hook, key.index).is_some() {
            return None;
        }
        let known = self.by_spec.get(&spec).copied();
        let like = self.failing_like(&spec.selection);
        let first_list = like.map_or_else(|| FirstList::asked(now), |like| FirstList::asked_like(now, like));
        let id = known.unwrap_or_else(|| self.next_id());
        let monitor = self.monitors.entry(id).or_insert_with(|| {
            self.by_spec.insert(spec.clone(), id);
            Monitor {
                spec: Arc::new(spec),
                users: BTreeSet::new(),
                snapshot: Snapshot::default(),
                tally: Tally::default(),
                listed: false,
                first_list,
                missing_kind: None,
                missing_since: None,
                health: WatchHealth::default(),
                filter: WatchHealth::default(),
            }
        });
        monitor.users.insert(key.clone());
        let state = if monitor.listed {
            BindingState::Synchronizing { held_back: Vec::new(), queued: false }
        } else {
            BindingState::Listing
        };
        let spec = Arc::clone(&monitor.spec);
        let bindings = self.bindings.entry(key.hook.clone()).or_default();
        bindings.insert(key.index, Binding { monitor: id, state, seen: Tally::default() });
        if known.is_none() {
            self.note_late(id, None);
        }
        known.is_none().then_some((id, spec))
    }

    /// Switches the bindings of a hook off. Returns the watches that no binding needs any more.
    pub(super) fn disable(&mut self, hook: &HookId) -> Vec<MonitorId> {
        let mut idle = Vec::new();
        for (index, binding) in self.bindings.remove(hook).unwrap_or_default() {
            let Some(monitor) = self.monitors.get_mut(&binding.monitor) else { continue };
            monitor.users.retain(|key| key.hook != *hook || key.index != index);
            if monitor.users.is_empty() {
                self.by_spec.remove(&*monitor.spec);
                let before = monitor.late_at();
                self.monitors.remove(&binding.monitor);
                self.note_late(binding.monitor, before);
                idle.push(binding.monitor);
            }
        }
        idle
    }

    /// Makes the live bindings of a hook due for a Synchronization. Their snapshots stay.
    pub(super) fn synchronize_again(&mut self, hook: &HookId) {
        for binding in self.bindings.get_mut(hook).into_iter().flat_map(BTreeMap::values_mut) {
            if let BindingState::Live = binding.state {
                binding.state = BindingState::Synchronizing { held_back: Vec::new(), queued: false };
            }
        }
    }

    /// Returns the first list of a watch of the same objects that fails for longest: one of a new watch fails for as long.
    fn failing_like(&self, selection: &Selection) -> Option<&FirstList> {
        let first = MonitorSpec { selection: selection.clone(), jq_filter: None, keep_objects: false };
        let same = self.by_spec.range(first..).take_while(|(spec, _)| spec.selection == *selection);
        let unlisted = same.filter_map(|(_, id)| self.monitors.get(id)).filter(|monitor| !monitor.listed);
        let failing = unlisted.map(|monitor| &monitor.first_list);
        failing.filter(|list| list.failing_since().is_some()).min_by_key(|list| list.failing_since())
    }

    /// Notes when the first list of a watch is late, where that was another time before.
    fn note_late(&mut self, id: MonitorId, before: Option<Time>) {
        let at = self.monitors.get(&id).and_then(Monitor::late_at);
        if let Some(before) = before.filter(|before| at != Some(*before)) {
            self.late.remove(&(before, id));
        }
        self.late.extend(at.map(|at| (at, id)));
    }

    /// Changes a watch in what its first list depends on.
    pub(super) fn change<T>(&mut self, id: MonitorId, change: impl FnOnce(&mut Monitor) -> T) -> Option<T> {
        let monitor = self.monitors.get_mut(&id)?;
        let before = monitor.late_at();
        let changed = change(monitor);
        self.note_late(id, before);
        Some(changed)
    }

    /// Returns when the next first list is late.
    pub(super) fn next_late(&self) -> Option<Time> {
        self.late.first().map(|(at, _)| *at)
    }

    /// Returns a watch whose first list has become late.
    pub(super) fn take_late(&mut self, now: Time) -> Option<MonitorId> {
        let (_, id) = self.late.first().filter(|(at, _)| *at <= now).copied()?;
        self.change(id, |monitor| monitor.first_list.judge(now));
        Some(id)
    }

    /// Returns the binding, if it is on.
    pub(super) fn binding(&self, hook: &HookId, index: usize) -> Option<&Binding> {
        self.bindings.get(hook)?.get(&index)
    }

    /// Returns the bindings of `hooks` that are on and that a start waits for, with their index and what they are doing.
    pub(super) fn waited<'a>(
        &'a self,
        hooks: &'a [Arc<Hook>],
    ) -> impl Iterator<Item = (&'a Hook, usize, &'a KubernetesBinding, &'a BindingState)> {
        hooks.iter().flat_map(move |hook| {
            let bindings = hook.spec.kubernetes.iter().enumerate().filter(|(_, binding)| binding.is_waited());
            bindings.filter_map(move |(index, binding)| {
                Some((&**hook, index, binding, &self.binding(&hook.id, index)?.state))
            })
        })
    }

    /// Returns the binding for changes, if it is on.
    pub(super) fn binding_mut(&mut self, hook: &HookId, index: usize) -> Option<&mut Binding> {
        self.bindings.get_mut(hook)?.get_mut(&index)
    }

    /// Records that a hook is started: it sees what has happened to the objects of its bindings.
    pub(super) fn shown_to(&mut self, hook: &HookId) {
        for binding in self.bindings.get_mut(hook).into_iter().flat_map(BTreeMap::values_mut) {
            if let Some(monitor) = self.monitors.get(&binding.monitor) {
                binding.seen = monitor.tally;
            }
        }
    }

    /// Returns the watch of a binding, if it is on.
    pub(super) fn monitor_of(&self, hook: &HookId, index: usize) -> Option<&Monitor> {
        self.monitors.get(&self.binding(hook, index)?.monitor)
    }

    /// Returns the watch.
    pub(super) fn monitor(&self, id: MonitorId) -> Option<&Monitor> {
        self.monitors.get(&id)
    }

    /// Returns the watch for changes.
    pub(super) fn monitor_mut(&mut self, id: MonitorId) -> Option<&mut Monitor> {
        self.monitors.get_mut(&id)
    }

    /// Iterates over all watches.
    pub(super) fn iter(&self) -> impl Iterator<Item = (MonitorId, &Monitor)> {
        self.monitors.iter().map(|(id, monitor)| (*id, monitor))
    }

    /// Iterates over the bindings of a hook that are on.
    pub(super) fn bindings_of(&self, hook: &HookId) -> impl Iterator<Item = (usize, &Binding)> {
        self.bindings.get(hook).into_iter().flatten().map(|(index, binding)| (*index, binding))
    }

    /// Iterates over the hooks of a scope that have bindings that are on.
    pub(super) fn hooks_of(&self, scope: &Scope) -> Vec<HookId> {
        self.bindings.keys().filter(|hook| hook.scope == *scope).cloned().collect()
    }

    /// Returns how many events are held back, and how many objects the snapshots hold.
    pub(super) fn sizes(&self) -> (usize, usize) {
        let waiting = |binding: &Binding| match &binding.state {
            BindingState::Synchronizing { held_back, .. } => held_back.len(),
            BindingState::Listing | BindingState::Live => 0,
        };
        let held_back = self.bindings.values().flat_map(BTreeMap::values).map(waiting).sum();
        let of = |monitor: &Monitor| monitor.snapshot.len();
        (held_back, self.monitors.values().map(of).sum())
    }

    /// Moves the bindings of a watch on whose first list is complete. Returns them in order.
    pub(super) fn synchronize(&mut self, id: MonitorId) -> Vec<BindingKey> {
        let users = self.users(id);
        for key in &users {
            if let Some(binding) = self.binding_mut(&key.hook, key.index)
                && let BindingState::Listing = binding.state
            {
                binding.state = BindingState::Synchronizing { held_back: Vec::new(), queued: false };
            }
        }
        users
    }

    /// Forgets what was held back of a namespace that joined or left.
    pub(super) fn forget_namespace(&mut self, id: MonitorId, namespace: &str) {
        for key in self.users(id) {
            if let Some(held_back) = self.held_back(&key) {
                held_back.retain(|change| *change.key.namespace != *namespace);
            }
        }
    }

    /// Returns the bindings that see a watch, in order.
    fn users(&self, id: MonitorId) -> Vec<BindingKey> {
        self.monitors.get(&id).into_iter().flat_map(|monitor| monitor.users.iter().cloned()).collect()
    }

    /// Returns what is held back for a binding, if its Synchronization is under way.
    pub(super) fn held_back(&mut self, key: &BindingKey) -> Option<&mut Vec<Change>> {
        match &mut self.binding_mut(&key.hook, key.index)?.state {
            BindingState::Synchronizing { held_back, .. } => Some(held_back),
            BindingState::Listing | BindingState::Live => None,
        }
    }
}

impl Monitor {
    /// Replaces the objects by those of a list.
    pub(super) fn list(&mut self, objects: Vec<(Key, Arc<Item>)>) -> Listing {
        let changes = self.snapshot.replace(objects.into_iter().collect());
        self.tally.count(&changes, &self.snapshot);
        let first = !std::mem::replace(&mut self.listed, true);
        (self.missing_kind, self.missing_since) = (None, None);
        self.judge_filter();
        // What the first list shows is what the Synchronization shows.
        if first { Listing { changes: Vec::new(), first } } else { Listing { changes, first } }
    }

    /// Records that the kind exists: its objects are listed and watched anew.
    pub(super) fn appear(&mut self, now: Time) {
        (self.missing_kind, self.missing_since) = (None, None);
        self.first_list = FirstList::asked(now);
        self.health = WatchHealth::default();
    }

    /// Records why the watch or its filter does not work. Returns for how long the watch has not, if that is long and was not announced.
    pub(super) fn fail(&mut self, failure: Failure, now: Time) -> Option<Duration> {
        self.first_list.fail(failure.kind, now);
        if failure.kind == FailureKind::HookOutput {
            // Who wrote the filter is told by the status of the operator. The watch itself works.
            self.filter.fail(failure, now);
            return None;
        }
        self.health.fail(failure, now)
    }

    /// Returns why it has no first list, where a module may bring what is missing: a kind, a right, what else the list fails of.
    pub(super) fn obstacle(&self) -> Option<Reason> {
        let missing = self.missing_kind.clone().map(Reason::Kind);
        missing.or_else(|| self.first_list.obstacle(&self.spec.selection.kind))
    }

    /// Returns when its first list is late, if it is waited for and not late yet.
    fn late_at(&self) -> Option<Time> {
        self.first_list.late_at().filter(|_| !self.listed && self.missing_kind.is_none())
    }

    /// Records that it is announced that the watch does not work.
    pub(super) fn announce(&mut self) {
        self.health.announce();
    }

    /// Records that the watch works. Returns what that ends, if it did not.
    pub(super) fn restore(&mut self, now: Time) -> Option<Restored> {
        self.health.restore(now)
    }

    /// Forgets that the filter did not work when it has worked on the last state of each object.
    pub(super) fn judge_filter(&mut self) {
        if !self.snapshot.has_failed() {
            self.filter = WatchHealth::default();
        }
    }

    /// Returns why the watch or its filter does not work.
    pub(super) fn failure(&self) -> Option<&Arc<Failure>> {
        self.health.failure().or(self.filter.failure())
    }

    /// Returns since when it waits for its kind, or does not work.
    pub(super) fn broken_since(&self) -> Option<Time> {
        self.missing_since.or(self.health.since()).or(self.filter.since())
    }

    /// Records that an object is there. Returns the change that hooks see.
    pub(super) fn put(&mut self, key: Key, item: Arc<Item>) -> Option<Change> {
        let change = self.snapshot.put(key, item);
        self.tally.count(&change, &self.snapshot);
        change.filter(|_| self.listed)
    }

    /// Records that an object is gone. Returns the change that hooks see.
    pub(super) fn remove(&mut self, key: &Key, last: Option<Arc<Item>>) -> Option<Change> {
        let change = self.snapshot.remove(key, last);
        self.tally.count(&change, &self.snapshot);
        change.filter(|_| self.listed)
    }

    /// Replaces the objects of a namespace that joined or left.
    pub(super) fn list_namespace(&mut self, namespace: &str, objects: Vec<(Key, Arc<Item>)>) {
        let changes = self.snapshot.replace_namespace(namespace, objects);
        self.tally.count(&changes, &self.snapshot);
    }

    /// Records that the kind does not exist any more: its objects are gone with it.
    pub(super) fn vanish(&mut self, kind: String, now: Time) -> Vec<Change> {
        self.missing_kind = Some(kind);
        self.missing_since.get_or_insert(now);
        let changes = self.snapshot.replace(BTreeMap::new());
        self.tally.count(&changes, &self.snapshot);
        if self.listed { changes } else { Vec::new() }
    }
}

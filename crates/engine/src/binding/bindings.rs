//! All bindings that are switched on, and what of them hooks are shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Tally;
use super::rate::Rate;
use super::schedule::Schedules;
use super::watch_health::WatchHealth;
use super::watches::{Binding, BindingState, Monitor, Watches};
use crate::catalog::Hook;
use crate::context::Context;
use crate::effect::Effect;
use crate::hook::context::required_bindings;
use crate::hook::snapshot::{Change, Snapshot};
use crate::hook::{BindingContext, KubernetesBinding, RunContexts};
use crate::name::{BindingKey, CronLine, HookId, ModuleName, MonitorId, Scope};
use crate::queue::Reason;
use crate::time::Time;
use crate::view::{Footprint, OwnWatchView, WatchView};

/// All bindings that are switched on, and how often hooks may run.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    pub(super) watches: Watches,
    schedules: Schedules,
    /// The limits of the hooks that have one.
    rates: BTreeMap<HookId, Rate>,
    /// The hooks that are on and are controllers.
    reconciling: BTreeMap<HookId, Arc<Hook>>,
    /// Which of them were switched on or off since the last call of [`Bindings::take_switched`].
    switched: BTreeSet<HookId>,
    /// The modules that are being removed and finalize objects, with what is left of these.
    leaving: BTreeMap<ModuleName, Unfinished>,
    /// The watches that no binding asked for and that do not work, by what they watch.
    pub(super) own_watches: BTreeMap<String, WatchHealth>,
}

/// What is left of the objects that the hooks of a module finalize which is being removed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Unfinished {
    /// Nobody knows yet.
    Unknown,
    /// Some are being deleted, as this says.
    Objects(String),
    /// Some live.
    Living,
}

/// How far the Synchronization of a binding is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Synchronization {
    /// The list of its watch is not complete.
    Listing,
    /// Its list is complete, and no task for it is in a queue.
    Due,
    /// A task for it is in a queue.
    Queued,
    /// It is through.
    Done,
}

/// What a binding knows of the cluster.
#[derive(Clone, Debug, Default)]
pub struct WatchedObjects {
    /// The objects.
    pub snapshot: Snapshot,
    /// What happened to them since the watch began.
    pub since_start: Tally,
    /// What happened to them since its hook was started last.
    pub since_run: Tally,
}

impl Bindings {
    /// Makes the limits of hooks known.
    pub(crate) fn limit(&mut self, hooks: &[Arc<Hook>]) {
        for hook in hooks {
            if hook.spec.settings.execution_min_interval.is_zero() {
                self.rates.remove(&hook.id);
            } else {
                self.rates.entry(hook.id.clone()).or_insert_with(|| Rate::new(&hook.spec.settings));
            }
        }
    }

    /// Returns the number of a watch that no binding asks for.
    pub(crate) fn own_monitor(&mut self) -> MonitorId {
        self.watches.next_id()
    }

    /// Switches the kubernetes bindings of a hook on, as far as they are not.
    pub(crate) fn enable(&mut self, cx: &mut Context, hook: &Arc<Hook>, order: u32) {
        if !hook.spec.reconciles.is_empty() {
            self.reconciling.insert(hook.id.clone(), Arc::clone(hook));
            self.switched.insert(hook.id.clone());
        }
        for (index, binding) in hook.spec.kubernetes.iter().enumerate() {
            let key = BindingKey::new(&hook.id, order, index);
            if let Some((monitor, spec)) = self.watches.enable(&key, binding.monitor(), cx.now) {
                cx.push(Effect::StartMonitor { monitor, spec });
            }
        }
    }

    /// Has the reconcile bindings of a module that is being removed finalize what is deleted until then.
    pub(crate) fn finalize_for(&mut self, module: &ModuleName, hooks: &[Arc<Hook>]) {
        for hook in hooks.iter().filter(|hook| hook.spec.has_finalizers()) {
            if !self.reconciling.contains_key(&hook.id) {
                self.reconciling.insert(hook.id.clone(), Arc::clone(hook));
                self.switched.insert(hook.id.clone());
            }
            self.leaving.entry(module.clone()).or_insert(Unfinished::Unknown);
        }
    }

    /// Returns what is left of the objects that the hooks of a module finalize which is being removed; `None` if there are none.
    pub(crate) fn leaving(&self, module: &ModuleName) -> Option<Unfinished> {
        self.leaving.get(module).cloned()
    }

    /// Iterates over the modules that are being removed and finalize objects.
    pub(crate) fn all_leaving(&self) -> impl Iterator<Item = (&ModuleName, &Unfinished)> {
        self.leaving.iter()
    }

    /// Records what is left of the objects of such a module.
    pub(crate) fn set_leaving(&mut self, module: ModuleName, left: Option<Unfinished>) {
        match left {
            Some(left) => drop(self.leaving.insert(module, left)),
            None => drop(self.leaving.remove(&module)),
        }
    }

    /// Records that the objects of such a module are not waited for any more.
    pub(crate) fn left(&mut self, module: &ModuleName) {
        self.leaving.remove(module);
    }

    /// Switches the kubernetes bindings of a hook off.
    pub(crate) fn disable(&mut self, cx: &mut Context, hook: &HookId) {
        if self.reconciling.remove(hook).is_some() {
            self.switched.insert(hook.clone());
        }
        self.disable_watches(cx, hook);
    }

    fn disable_watches(&mut self, cx: &mut Context, hook: &HookId) {
        for monitor in self.watches.disable(hook) {
            cx.push(Effect::StopMonitor { monitor });
        }
    }

    /// Has the bindings of a hook that are on show it all objects once more, as if they had just been listed.
    pub(crate) fn synchronize_again(&mut self, hook: &HookId) {
        self.watches.synchronize_again(hook);
    }

    /// Switches the kubernetes bindings of all hooks of a scope off.
    pub(crate) fn disable_scope(&mut self, cx: &mut Context, scope: &Scope) {
        let reconciling = self.reconciling.keys().filter(|hook| hook.scope == *scope).cloned();
        let hooks: BTreeSet<HookId> = self.watches.hooks_of(scope).into_iter().chain(reconciling).collect();
        for hook in hooks {
            self.disable(cx, &hook);
        }
    }

    /// Switches the kubernetes bindings of the hooks of a scope off that wait for a list; what is left has all it needs.
    pub(crate) fn disable_unlisted(&mut self, cx: &mut Context, scope: &Scope) {
        for hook in self.watches.hooks_of(scope) {
            let is_listing = |(_, binding): (usize, &Binding)| matches!(binding.state, BindingState::Listing);
            if self.watches.bindings_of(&hook).any(is_listing) {
                self.disable_watches(cx, &hook);
            }
        }
    }

    /// Returns the controllers that were switched on or off since the last call; those that are on with their hook.
    pub(crate) fn take_switched(&mut self) -> Vec<(HookId, Option<Arc<Hook>>)> {
        let hook = |id: HookId| {
            let hook = self.reconciling.get(&id).cloned();
            (id, hook)
        };
        std::mem::take(&mut self.switched).into_iter().map(hook).collect()
    }

    /// Switches the schedules of a hook on.
    pub(crate) fn enable_schedules(&mut self, hook: &Hook, order: u32) {
        self.schedules.enable(hook, order);
    }

    /// Switches the schedules of a hook off.
    pub(crate) fn disable_schedules(&mut self, hook: &Hook, order: u32) {
        self.schedules.disable(hook, order);
    }

    /// Sets the crontab lines that fire if they are others than at the last call.
    pub(crate) fn set_schedules(&mut self, cx: &mut Context) {
        if let Some(lines) = self.schedules.take_changed() {
            cx.push(Effect::SetSchedules { lines });
        }
    }

    /// Returns the bindings that `line` fires for, in order.
    pub(crate) fn due(&self, line: &CronLine) -> Vec<BindingKey> {
        self.schedules.users(line)
    }

    /// Returns how far the Synchronization of a binding is; `None` when the binding is off.
    pub(crate) fn synchronization(&self, hook: &HookId, index: usize) -> Option<Synchronization> {
        Some(match self.watches.binding(hook, index)?.state {
            BindingState::Listing => Synchronization::Listing,
            BindingState::Synchronizing { queued: false, .. } => Synchronization::Due,
            BindingState::Synchronizing { .. } => Synchronization::Queued,
            BindingState::Live => Synchronization::Done,
        })
    }

    /// Iterates over what bindings wait for whose list is not complete and that a start of `hooks` waits for.
    pub(crate) fn unlisted<'a>(&'a self, hooks: &'a [Arc<Hook>]) -> impl Iterator<Item = Reason> + 'a {
        let waited = self.watches.waited(hooks);
        let listing = waited.filter(|(_, _, _, state)| matches!(state, BindingState::Listing));
        listing.map(|(hook, index, _, _)| self.missing_list(&hook.id, index))
    }

    /// Iterates over the bindings of `hooks` whose Synchronization is waited for and not through.
    pub(crate) fn unsynchronized<'a>(
        &'a self,
        hooks: &'a [Arc<Hook>],
    ) -> impl Iterator<Item = (BindingKey, Reason)> + 'a {
        let is_under_way = |state: &BindingState| matches!(state, BindingState::Synchronizing { .. });
        let under_way = self.watches.waited(hooks).filter(move |(_, _, _, state)| is_under_way(state));
        under_way.filter_map(|(hook, index, binding, _)| {
            let users = &self.watches.monitor_of(&hook.id, index)?.users;
            let key = users.iter().find(|key| key.hook == hook.id && key.index == index)?;
            let what = format!("{} of hook {}", binding.name, hook.id);
            Some((key.clone(), Reason::Synchronization(what)))
        })
    }

    /// Returns whether a binding in `main` waits for its list: then the hook has no Synchronization in `main` yet.
    pub(crate) fn is_listing(&self, hook: &Hook) -> bool {
        self.unlisted_in_main(hook).next().is_some()
    }

    /// Returns whether a binding in `main` waits for what a module may bring: the whole hook waits for it.
    pub(crate) fn needs_module(&self, hook: &Hook) -> bool {
        self.unlisted_in_main(hook).any(|monitor| monitor.obstacle().is_some())
    }

    fn unlisted_in_main<'a>(&'a self, hook: &'a Hook) -> impl Iterator<Item = &'a Monitor> + 'a {
        let in_main = hook.spec.kubernetes.iter().enumerate().filter(|(_, binding)| binding.queue.is_main());
        in_main
            .filter_map(|(index, _)| self.watches.monitor_of(&hook.id, index))
            .filter(|watch| !watch.listed)
    }

    /// Returns the first hook that has not seen the objects that a start waits for, and what it waits for: what a module
    /// may bring, if that is missing for any.
    pub(crate) fn unready(&self, hooks: &[Arc<Hook>]) -> Option<(HookId, Reason)> {
        let waits = |(hook, index, binding, state): (&Hook, usize, &KubernetesBinding, &BindingState)| {
            let reason = match state {
                BindingState::Live => return None,
                BindingState::Listing => self.missing_list(&hook.id, index),
                BindingState::Synchronizing { .. } => {
                    Reason::Synchronization(format!("{} of hook {}", binding.name, hook.id))
                }
            };
            Some((hook.id.clone(), reason))
        };
        let waits: Vec<(HookId, Reason)> = self.watches.waited(hooks).filter_map(waits).collect();
        let missing = waits.iter().find(|(_, reason)| reason.may_come_from_modules());
        missing.or(waits.first()).cloned()
    }

    /// Returns what a binding waits for whose list is not complete.
    pub(crate) fn missing_list(&self, hook: &HookId, index: usize) -> Reason {
        let monitor = self.watches.monitor_of(hook, index);
        if let Some(obstacle) = monitor.and_then(Monitor::obstacle) {
            return obstacle;
        }
        let kind = monitor.map_or("", |monitor| monitor.spec.selection.kind.as_str());
        Reason::List(format!("{kind} for hook {hook}"))
    }

    /// Returns which list is missing that a run with `contexts` shows.
    pub(crate) fn missing_for(&self, hook: &Hook, contexts: &[BindingContext]) -> Option<Reason> {
        let required = required_bindings(&hook.spec, contexts).into_iter();
        let is_missing =
            |index: &usize| self.watches.monitor_of(&hook.id, *index).is_some_and(|monitor| !monitor.listed);
        required.filter(is_missing).map(|index| self.missing_list(&hook.id, index)).next()
    }

    /// Returns which binding is off that a run with `contexts` shows: it would show that there are no objects.
    pub(crate) fn off_for(&self, hook: &Hook, contexts: &[BindingContext]) -> Option<Reason> {
        let mut required = required_bindings(&hook.spec, contexts).into_iter();
        let index = required.find(|index| self.watches.monitor_of(&hook.id, *index).is_none())?;
        let kind = hook.spec.kubernetes.get(index).map_or("", |binding| binding.selection.kind.as_str());
        Some(Reason::List(format!("{kind} for hook {}", hook.id)))
    }

    /// Returns when the hook may run again, if it may not run at `now`.
    pub(crate) fn held_up(&self, hook: &HookId, now: Time) -> Option<Reason> {
        let until = self.rates.get(hook)?.clone().take(now).err()?;
        Some(Reason::Rate { until })
    }

    /// Records that a hook runs, and returns what it is shown.
    pub(crate) fn show(&mut self, hook: &Hook, contexts: Vec<BindingContext>, now: Time) -> RunContexts {
        if let Some(rate) = self.rates.get_mut(&hook.id) {
            // Whether a run is possible was asked before.
            let _ = rate.take(now);
        }
        let snapshot = |index| {
            let monitor = self.watches.monitor_of(&hook.id, index);
            monitor.map_or_else(Snapshot::default, |monitor| monitor.snapshot.clone())
        };
        let contexts = RunContexts::new(&hook.spec, contexts, snapshot);
        self.watches.shown_to(&hook.id);
        contexts
    }

    /// Records that a task for the Synchronization of the binding was queued or dropped.
    pub(crate) fn mark_queued(&mut self, key: &BindingKey, now_queued: bool) {
        if let Some(binding) = self.watches.binding_mut(&key.hook, key.index)
            && let BindingState::Synchronizing { queued, .. } = &mut binding.state
        {
            *queued = now_queued;
        }
    }

    /// Forgets what was held back for bindings: the run that begins sees it in its snapshots.
    pub(crate) fn forget_held_back(&mut self, keys: &[BindingKey]) {
        for key in keys {
            if let Some(held_back) = self.watches.held_back(key) {
                held_back.clear();
            }
        }
    }

    /// Makes a binding live and returns the events that were held back.
    pub(crate) fn go_live(&mut self, key: &BindingKey) -> Vec<Change> {
        let Some(binding) = self.watches.binding_mut(&key.hook, key.index) else { return Vec::new() };
        match std::mem::replace(&mut binding.state, BindingState::Live) {
            BindingState::Synchronizing { held_back, .. } => held_back,
            BindingState::Listing | BindingState::Live => Vec::new(),
        }
    }

    /// Returns what a binding knows of the cluster, if it is on.
    pub(crate) fn watched_objects(&self, hook: &HookId, index: usize) -> Option<WatchedObjects> {
        let monitor = self.watches.monitor_of(hook, index)?;
        let seen = self.watches.binding(hook, index)?.seen;
        Some(WatchedObjects {
            snapshot: monitor.snapshot.clone(),
            since_start: monitor.tally,
            since_run: monitor.tally.since(seen),
        })
    }

    /// Returns a picture of all watches; `name_of` returns the name of a binding.
    pub(crate) fn views(&self, now: Time, name_of: impl Fn(&BindingKey) -> Option<String>) -> Vec<WatchView> {
        let view = |(id, monitor): (MonitorId, &Monitor)| WatchView {
            id,
            kind: monitor.spec.selection.kind.clone(),
            bindings: monitor
                .users
                .iter()
                .filter_map(|key| Some((key.hook.clone(), name_of(key)?)))
                .collect(),
            objects: monitor.snapshot.len(),
            listed: monitor.listed,
            missing_kind: monitor.missing_kind.clone(),
            failure: monitor.failure().cloned(),
            broken_for: monitor.broken_since().map(|since| now.since(since)),
        };
        self.watches.iter().map(view).collect()
    }

    /// Returns a picture of the watches that no binding asked for and that do not work.
    pub(crate) fn broken_own_watches(&self, now: Time) -> Vec<OwnWatchView> {
        let view = |(name, health): (&String, &WatchHealth)| {
            let (failure, since) = (Arc::clone(health.failure()?), health.since()?);
            Some(OwnWatchView { name: name.clone(), failure, broken_for: now.since(since) })
        };
        self.own_watches.iter().filter_map(view).collect()
    }

    /// Adds what the bindings hold to `footprint`.
    pub(crate) fn count_in(&self, footprint: &mut Footprint) {
        (footprint.held_back, footprint.objects) = self.watches.sizes();
        footprint.entries += self.watches.iter().count() + self.rates.len() + self.own_watches.len();
    }
}

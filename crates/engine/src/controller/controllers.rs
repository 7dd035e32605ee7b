//! All controllers: what watches tell them, and which key is worked on next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::identity::{ControllerId, ReconcileKey};
use super::inheritance::Inheritance;
use super::key_state::Answer;
use super::retirement::Retirement;
use super::single::{Controller, Role, Wake};
use super::step::{Aftermath, Head, Surroundings};
use super::telling::{announce, told};
use crate::cause::Cause;
use crate::config::Config;
use crate::context::Context;
use crate::effect::Effect;
use crate::event::{HookOutput, Usage};
use crate::failure::Failure;
use crate::hook::reconcile::ObjectKind;
use crate::hook::snapshot::{Item, Key, Objects};
use crate::module::{Lower, Modules};
use crate::name::{MonitorId, QueueName, RunId, Scope};
use crate::notice::Notice;
use crate::reconcile::{Reconciles, Step};
use crate::time::Time;
use crate::view::{QueueView, RemarkView, WatchView};

/// All controllers.
#[derive(Debug, Default)]
pub(crate) struct Controllers {
    pub(super) config: Arc<Config>,
    pub(super) all: BTreeMap<Arc<ControllerId>, Controller>,
    pub(super) monitors: BTreeMap<MonitorId, (Arc<ControllerId>, Role)>,
    pub(super) queues: BTreeMap<QueueName, Reconciles<ReconcileKey>>,
    /// The queue of each effect that is in flight.
    runs: BTreeMap<RunId, QueueName>,
    /// The processes among them.
    processes: BTreeSet<RunId>,
    /// What is in flight of controllers that were stopped since. Nobody begins with these objects before it has ended.
    pub(super) ending: BTreeMap<RunId, ReconcileKey>,
    pub(super) inheritance: Inheritance,
    pub(super) retirement: Retirement,
    /// The controllers whose keys wait for something that is not about a single key.
    pub(super) held_up: BTreeSet<Arc<ControllerId>>,
    /// The hooks that changed values, or flags, and why.
    followed: Vec<Followed>,
    /// Whether the first converge was through when it was looked last.
    was_converged: bool,
}

/// What a run of a hook led to that concerns others.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) scope: Scope,
    pub(crate) values_changed: bool,
    pub(crate) flags_changed: bool,
    pub(crate) cause: Cause,
}

impl Controllers {
    /// Returns no controllers.
    pub(crate) fn new(config: Arc<Config>) -> Self {
        Self { config, ..Self::default() }
    }

    /// Returns whether a watch is one of a controller.
    pub(crate) fn owns(&self, monitor: MonitorId) -> bool {
        self.monitors.contains_key(&monitor)
    }

    /// Returns whether a run is one of a controller.
    pub(crate) fn awaits(&self, run: RunId) -> bool {
        self.runs.contains_key(&run)
    }

    /// Returns what a watch of a controller is about, in words.
    pub(crate) fn watch_of(&self, monitor: MonitorId) -> String {
        let Some((id, role)) = self.monitors.get(&monitor) else { return String::new() };
        let watch = self.all.get(id).and_then(|controller| controller.watch(*role));
        format!("{} for {id}", watch.map_or("", |watch| &watch.name))
    }

    /// Handles a list of all objects of a watch.
    pub(crate) fn listed(&mut self, cx: &mut Context, monitor: MonitorId, objects: Objects) {
        self.observe(cx, monitor, |controller, role| controller.listed(role, objects));
    }

    /// Handles a list of the objects of a namespace.
    pub(crate) fn namespace_listed(
        &mut self,
        cx: &mut Context,
        monitor: MonitorId,
        namespace: &str,
        objects: Objects,
    ) {
        self.observe(cx, monitor, |controller, role| controller.namespace_listed(role, namespace, objects));
    }

    /// Handles a change of an object. Returns the watches that are not those of controllers, with their items.
    pub(crate) fn object_changed(
        &mut self,
        cx: &mut Context,
        key: &Key,
        is_gone: bool,
        items: &mut Vec<(MonitorId, Arc<Item>)>,
    ) {
        if self.monitors.is_empty() {
            return;
        }
        // All watches see the object before any key is looked at.
        let (ours, others): (Vec<_>, Vec<_>) =
            items.drain(..).partition(|(monitor, _)| self.monitors.contains_key(monitor));
        *items = others;
        for (monitor, item) in ours {
            self.observe(cx, monitor, |controller, role| controller.changed(role, key, is_gone, item));
        }
    }

    /// Handles that the work on an object is asked for, whether it changed or not.
    pub(crate) fn requested(&mut self, cx: &mut Context, kind: &ObjectKind, object: &Key) {
        for (id, controller) in &self.all {
            let is_meant =
                !controller.is_retired && controller.kind == *kind && controller.keys.contains_key(object);
            if is_meant && let Some(work) = self.queues.get_mut(&controller.queue) {
                let key = ReconcileKey { controller: Arc::clone(id), object: object.clone() };
                work.request(cx, &key, &Cause::outside("request"));
            }
        }
    }

    /// Handles that the kind of a watch does not exist: its objects are gone with it.
    pub(crate) fn kind_vanished(&mut self, cx: &mut Context, monitor: MonitorId, kind: String) {
        let now = cx.now;
        self.observe(cx, monitor, |controller, role| controller.vanished(role, kind, now));
    }

    /// Handles that the kind of a watch exists: it is listed next.
    pub(crate) fn kind_appeared(&mut self, monitor: MonitorId) {
        self.with_watch(monitor, super::watch::Watch::appear);
    }

    /// Handles that the objects of the kind of a watch are in no namespace.
    pub(crate) fn kind_is_cluster_wide(&mut self, monitor: MonitorId) {
        self.with_watch(monitor, |watch| watch.is_cluster_wide = true);
    }

    /// Handles that a watch broke. Returns whether people have to know: no work needs one that only looks for what was left.
    pub(crate) fn watch_failed(&mut self, monitor: MonitorId, failure: &Failure) -> bool {
        self.with_watch(monitor, |watch| watch.fail(failure));
        let Some((id, role)) = self.monitors.get(&monitor) else { return false };
        *role != Role::Strays && self.all.get(id).is_some_and(|controller| !controller.is_retired)
    }

    fn with_watch(&mut self, monitor: MonitorId, change: impl FnOnce(&mut super::watch::Watch)) {
        let Some((id, role)) = self.monitors.get(&monitor) else { return };
        if let Some(watch) = self.all.get_mut(id).and_then(|controller| controller.watch_mut(*role)) {
            change(watch);
        }
        // What its keys wait for is another thing now.
        self.held_up.insert(Arc::clone(id));
    }

    fn observe(
        &mut self,
        cx: &mut Context,
        monitor: MonitorId,
        look: impl FnOnce(&mut Controller, Role) -> Vec<Wake>,
    ) {
        let Some((id, role)) = self.monitors.get(&monitor).cloned() else { return };
        let Some(controller) = self.all.get_mut(&id) else { return };
        let before = controller.watch(role).and_then(super::watch::Watch::obstacle);
        let wakes = look(controller, role);
        // A list that was waited for may be of a kind that does not exist.
        if before != controller.watch(role).and_then(super::watch::Watch::obstacle) {
            self.held_up.insert(Arc::clone(&id));
        }
        let Some(work) = self.queues.get_mut(&controller.queue) else { return };
        let keys = controller.keys.len();
        if !controller.is_retired && controller.reported.replace(keys) != Some(keys) {
            let (hook, binding) = (id.hook.clone(), Arc::clone(&id.binding));
            cx.notify(Notice::ReconcileKeysChanged { hook, binding, keys });
        }
        wake(cx, controller, work, wakes);
    }

    /// Handles that a hook ended.
    pub(crate) fn hook_finished(
        &mut self,
        lower: &mut Lower<'_>,
        run: RunId,
        outcome: Result<HookOutput, Failure>,
        usage: Option<Usage>,
    ) {
        if self.processes.remove(&run) {
            lower.queues.process_ended();
        }
        self.answered(run, Answer::Hook(Box::new(outcome), usage));
    }

    /// Handles that objects were changed, or were not.
    pub(crate) fn patched(&mut self, run: RunId, outcome: Result<(), Failure>) {
        self.answered(run, Answer::Patched(outcome));
    }

    /// Handles that the ConfigMap was written for a hook, or not. Returns whether anybody waits for that.
    pub(crate) fn saved(&mut self, run: RunId, outcome: Result<String, Failure>) -> bool {
        self.answered(run, Answer::Saved(run, outcome))
    }

    fn answered(&mut self, run: RunId, answer: Answer) -> bool {
        let work = self.runs.remove(&run).and_then(|queue| self.queues.get_mut(&queue));
        let Some(key) = work.and_then(|work| work.finish(run)) else { return false };
        if let Some(over) = self.ending.remove(&run) {
            // Whoever looks after the object now did not ask for that, and may have waited for its end.
            let waiting = self.all.keys().filter(|id| id.is_kin(&over.controller));
            self.held_up.extend(waiting.cloned());
            return false;
        }
        let controller = self.all.get_mut(&key.controller);
        let state = controller.and_then(|controller| controller.keys.get_mut(&key.object));
        match state.filter(|state| !state.is_idle()) {
            Some(state) => {
                state.answer = Some(answer);
                true
            }
            None => false,
        }
    }

    /// Handles that files, or what is on, changed: whoever waits looks once more.
    pub(crate) fn look_again(&mut self) {
        self.held_up.extend(self.all.keys().cloned());
    }

    /// Handles that a module ran, or a converge is through: what hooks read may differ.
    pub(crate) fn values_may_differ(&mut self, modules: &Modules, lower: &mut Lower<'_>, scope: &Scope) {
        for (id, controller) in self.all.iter_mut().filter(|(id, _)| id.hook.scope == *scope) {
            let Some(read) = &controller.read else { continue };
            let now = modules.input(lower.configuration, scope);
            if (&read.global, &read.module) == (&now.global, &now.module) {
                continue;
            }
            let Some(work) = self.queues.get_mut(&controller.queue) else { continue };
            let cause = Cause::outside(format!("values of {scope}"));
            for (object, state) in &mut controller.keys {
                state.turns.clear();
                let key = ReconcileKey { controller: Arc::clone(id), object: object.clone() };
                work.request(lower.cx, &key, &cause);
            }
        }
        // Its first run may have been waited for.
        let same = |id: &&Arc<ControllerId>| id.hook.scope == *scope;
        self.held_up.extend(self.all.keys().filter(same).cloned());
    }

    /// Does everything that can be done.
    pub(crate) fn advance(&mut self, modules: &Modules, lower: &mut Lower<'_>, is_converged: bool) {
        self.switch(lower);
        self.settle_strays(lower);
        self.tell_leaving(lower);
        if is_converged && !std::mem::replace(&mut self.was_converged, is_converged) {
            self.look_again();
        }
        // Before that nobody knows what is off.
        if is_converged {
            self.retire(modules, lower);
        }
        if self.queues.is_empty() {
            return;
        }
        for (id, controller) in &mut self.all {
            if controller.is_look_due(lower.cx.now) {
                self.held_up.insert(Arc::clone(id));
            }
        }
        self.release_held_up();
        self.all.values_mut().for_each(|controller| controller.tell_overdue(lower.cx));
        self.queues.values_mut().for_each(|work| work.wake_due(lower.cx.now));
        // The bindings of a hook share its turns, so the one goes first whose key has waited longest.
        let mut names: Vec<(Option<Time>, QueueName)> =
            self.queues.iter().map(|(name, work)| (work.next_since(), name.clone())).collect();
        names.sort();
        for (_, name) in names {
            self.advance_queue(modules, lower, &name);
        }
        self.tell_leaving(lower);
        let is_used = |name: &QueueName| self.all.values().any(|controller| controller.queue == *name);
        let idle = self.queues.iter().filter(|(_, work)| work.entries() == 0);
        let unused: Vec<QueueName> =
            idle.map(|(name, _)| name).filter(|name| !is_used(name)).cloned().collect();
        for name in unused {
            self.queues.remove(&name);
        }
    }

    /// Lets the keys of controllers look once more that wait for what is not about a single key.
    fn release_held_up(&mut self) {
        for id in std::mem::take(&mut self.held_up) {
            let Some(controller) = self.all.get(&id) else { continue };
            let Some(work) = self.queues.get_mut(&controller.queue) else { continue };
            work.resume_all(|key| key.controller == id && !controller.is_pruning(&key.object));
        }
    }

    fn advance_queue(&mut self, modules: &Modules, lower: &mut Lower<'_>, queue: &QueueName) {
        let Some(work) = self.queues.get_mut(queue) else { return };
        while let Some(key) = work.peek() {
            // Of a controller whose queue is another one now, nothing is done in this one.
            let controller =
                self.all.get_mut(&key.controller).filter(|controller| controller.queue == *queue);
            let state = controller.as_ref().and_then(|controller| controller.keys.get(&key.object));
            let is_idle = state.is_some_and(super::key_state::KeyState::is_idle);
            if is_idle && !lower.queues.has_slot(queue) {
                break;
            }
            let Some(key) = work.take_next(lower.cx) else { break };
            let Some((controller, (task, cause))) = controller.zip(work.task(&key)) else {
                work.apply(lower.cx, lower.queues, &key, Step::Done);
                continue;
            };
            if let Some(over) = self.ending.values().find(|over| is_idle && over.is_in_place_of(&key)) {
                let reason = format!("the end of what {} began with it", over.controller);
                work.apply(lower.cx, lower.queues, &key, Step::Wait(reason));
                continue;
            }
            let mut around = Surroundings {
                config: &self.config,
                modules,
                lower: &mut *lower,
                is_converged: self.was_converged,
                head: Head { task, cause: cause.clone() },
                aftermath: Aftermath::default(),
            };
            let step = controller.step(&mut around, &key.object);
            let Aftermath { values_changed, flags_changed } = around.aftermath;
            if values_changed || flags_changed {
                let (scope, cause) =
                    (key.controller.hook.scope.clone(), cause.then(format!("hook {}", key.controller.hook)));
                self.followed.push(Followed { scope, values_changed, flags_changed, cause });
            }
            let step = told(lower, &key, step);
            announce(lower.cx, controller, &key, &step);
            controller.tell_remarks(lower.cx, &key);
            if let Step::Write(run, effect) | Step::Fetch(run, effect) = &step {
                self.runs.insert(*run, queue.clone());
                if matches!(**effect, Effect::RunHook { .. }) {
                    self.processes.insert(*run);
                }
            }
            work.apply(lower.cx, lower.queues, &key, step);
        }
        work.report_length(lower.cx);
    }

    /// Returns what runs of hooks led to that concerns others.
    pub(crate) fn take_followed(&mut self) -> Vec<Followed> {
        std::mem::take(&mut self.followed)
    }

    /// Returns when there is something to do by itself.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        let work = self.queues.values().filter_map(Reconciles::next_wakeup);
        let told = self.all.values().filter_map(|controller| Some(controller.overdue.first()?.0));
        let looks = self.all.values().filter_map(|controller| controller.look_at);
        work.chain(told).chain(looks).min()
    }

    /// Ends the processes that still run.
    pub(crate) fn cancel(&self, cx: &mut Context) {
        for run in &self.processes {
            cx.push(Effect::CancelRun { run: *run });
        }
    }

    /// Returns whether nothing is in flight.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds pictures of the work to those of queues.
    pub(crate) fn add_queue_views(&self, queues: &mut Vec<QueueView>, most_tasks: usize, now: Time) {
        for work in self.queues.values() {
            work.add_view(queues, most_tasks, now);
        }
        let on = self.all.values().filter(|controller| !controller.is_retired);
        let mut empty: BTreeSet<&QueueName> = on.map(|controller| &controller.queue).collect();
        for queue in &*queues {
            empty.remove(&queue.name);
        }
        let view =
            |name: &QueueName| QueueView { name: name.clone(), status: String::new(), tasks: Vec::new() };
        queues.extend(empty.into_iter().map(view).collect::<Vec<_>>());
    }

    /// Adds pictures of the watches of controllers to those of other bindings.
    pub(crate) fn add_watch_views(&self, watches: &mut Vec<WatchView>, now: Time) {
        watches.extend(self.all.values().flat_map(|controller| controller.watch_views(now)));
    }

    /// Returns what people should know about objects whose hooks do not fail.
    pub(crate) fn remarks(&self, now: Time) -> Vec<RemarkView> {
        let mut all = Vec::new();
        self.all.values().for_each(|controller| controller.add_remarks(&mut all, now));
        all
    }

    /// Returns how many objects are kept, and how many other things by name or number.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let work: usize = self.queues.values().map(Reconciles::entries).sum();
        let own = work + self.monitors.len() + self.runs.len();
        let own = own + self.retirement.entries() + self.inheritance.entries();
        self.all.values().map(Controller::sizes).fold((0, own), |all, one| (all.0 + one.0, all.1 + one.1))
    }
}

/// Has the keys of a controller that a change concerns look at it.
pub(super) fn wake(
    cx: &mut Context,
    controller: &mut Controller,
    work: &mut Reconciles<ReconcileKey>,
    wakes: Vec<Wake>,
) {
    let cause = Cause::outside("cluster");
    for Wake { key, role, is_end_of_child, is_own } in wakes {
        let state = controller.keys.get_mut(&key);
        let key = ReconcileKey { controller: Arc::clone(&controller.id), object: key };
        if !work.is_waiting(&key) {
            // What it wrote itself is what it waits for in the middle of its work.
            if is_own && work.is_resting(&key) && state.as_ref().is_some_and(|state| !state.is_idle()) {
                work.request(cx, &key, &cause);
                continue;
            }
            // An object that is gone leaves no work that did not begin.
            if !is_own && (state.is_some() || work.has(&key)) {
                match role {
                    Role::Parents | Role::Strays => work.request(cx, &key, &cause),
                    Role::Children(_) | Role::Related(_) => work.request_after_rest(cx, &key, &cause),
                }
                // What becomes of children while they are deleted is no news.
                if let Some(state) = state.filter(|_| !matches!(role, Role::Children(_))) {
                    state.is_stale = true;
                }
            }
            continue;
        }
        if let Some(state) = state {
            state.is_stale |= !is_end_of_child && !is_own;
        }
        work.resume(&key);
    }
}

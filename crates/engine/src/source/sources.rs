//! All configurations of sources: what is known about each, and who may change the registry.
//!
//! It is long because each event about them comes in here; what follows has files of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::adoption;
use super::commits::Commits;
use super::displaced::{Removals, is_removal};
use super::first_releases::FirstReleases;
use super::known::{Source, work_key};
use super::known_sources::{KnownSources, Role};
use super::line::Line;
use super::object::SourceObject;
use super::pass::{Pass, SourceAnswer, Sweep, sweep_key};
use super::patches;
use super::registration::{Change, Registration};
use super::status::{SourcePhase, Status};
use super::syncs::Syncs;
use super::watches::SourceWatches;
use crate::addon::{Digest, Fetched, RegisteredAddon, Registry, SourceKey, SourceKind};
use crate::cause::Cause;
use crate::config::Config;
use crate::context::Context;
use crate::effect::Effect;
use crate::event::StoreError;
use crate::failure::{Failure, FailureKind};
use crate::hook::snapshot::{Item, Key};
use crate::module::{Lower, Modules};
use crate::name::{CommandId, ModuleName, MonitorId, RunId, Scope};
use crate::notice::Notice;
use crate::reconcile::{Reconciles, Step, Terms, WorkKey};
use crate::time::Time;

/// All configurations of sources.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(super) config: Arc<Config>,
    pub(super) reconciles: Reconciles,
    pub(super) watches: SourceWatches,
    pub(super) known: KnownSources,
    pub(super) registration: Registration,
    /// What the holder of the registry is writing.
    pub(super) next: Option<Change>,
    /// Who may change the registry, and who waits for that.
    holder: Option<WorkKey>,
    waiting: Line,
    pub(super) commits: Commits,
    pub(super) sweep: Sweep,
    pub(super) removals: Removals,
    pub(super) first_releases: FirstReleases,
    /// The configurations whose objects can't be taken at their word, because something of them is not as they say.
    pub(super) unsettled: BTreeSet<SourceKey>,
    /// The bundles that are registered and could not be restored.
    pub(super) lost: BTreeSet<Digest>,
    /// Those of them whose modules were not loaded since: there may be releases without modules.
    pub(super) unloaded: BTreeSet<Digest>,
    /// Those of them that may be in the cluster: nobody has looked there yet.
    pub(super) unrestored: BTreeSet<Digest>,
    /// Whether there was no registry at the start: nothing was registered yet, or it is lost.
    pub(super) is_registry_lost: bool,
    pub(super) syncs: Syncs,
    /// Whether a converge came to its end, so that it is known which modules are off.
    pub(super) is_converged: bool,
    /// The configurations whose modules changed.
    refresh_later: BTreeSet<SourceKey>,
    /// The bundles that were on trial when this operator began, by configuration: it is to be counted that it did.
    pub(super) tried_before: BTreeMap<SourceKey, BTreeSet<Digest>>,
    /// How many times something changed of which configurations there are, or of what they registered.
    pub(super) edition: u64,
}

impl Sources {
    /// Returns whether a run is one of ours.
    pub(crate) fn awaits(&self, run: RunId) -> bool {
        self.reconciles.awaits(run) || self.syncs.awaits(run)
    }

    /// Returns what is registered and in force already.
    pub(crate) fn new(config: Arc<Config>, registry: Registry) -> Self {
        let is_registry_lost = !registry.is_written;
        let registration = Registration::new(registry);
        let mut tried_before: BTreeMap<SourceKey, BTreeSet<Digest>> = BTreeMap::new();
        for addon in registration.iter().filter(|addon| addon.is_active && addon.previous.is_some()) {
            tried_before.entry(addon.source.clone()).or_default().insert(addon.bundle.digest.clone());
        }
        Self {
            tried_before,
            reconciles: Reconciles::new(
                Arc::clone(&config),
                Terms { workers: config.source_workers, ..Terms::default() },
            ),
            config,
            registration,
            is_registry_lost,
            ..Self::default()
        }
    }

    /// Starts to watch the objects, if anybody is to look after them. Kinds that are missing are waited for.
    pub(crate) fn start(&mut self, lower: &mut Lower<'_>) {
        if self.config.source_workers == 0 {
            return;
        }
        if self.config.are_source_kinds_served {
            return self.watch(lower);
        }
        self.kind_vanished(lower.cx, SourceKind::Cluster.as_str().to_owned());
        lower.cx.push(Effect::AwaitSourceKinds);
    }

    /// Starts to watch the objects, unless they are watched: their kinds are there.
    pub(crate) fn watch(&mut self, lower: &mut Lower<'_>) {
        if self.watches.is_off() {
            self.watches.start(lower);
        }
    }

    /// Returns whether the watch is ours.
    pub(crate) fn owns(&self, monitor: MonitorId) -> bool {
        self.watches.kind_of(monitor).is_some()
    }

    /// Returns what a watch of ours is about, in words.
    pub(crate) fn watch_of(&self, monitor: MonitorId) -> String {
        let kind = self.watches.kind_of(monitor).map_or("", SourceKind::as_str);
        format!("{kind}s of module sources")
    }

    /// Handles a list of all objects of the kind that a watch is about.
    pub(crate) fn listed(&mut self, cx: &mut Context, monitor: MonitorId, objects: Vec<(Key, Arc<Item>)>) {
        let Some(kind) = self.watches.kind_of(monitor) else { return };
        let listed: BTreeSet<SourceKey> = objects.iter().map(|(key, _)| source_key(key)).collect();
        let is_gone = |key: &&SourceKey| !listed.contains(*key);
        let gone: Vec<SourceKey> = self.known.of_kind(kind).filter(is_gone).cloned().collect();
        for key in gone {
            self.gone(cx, &key);
        }
        if self.is_registry_lost && !self.watches.is_listed(kind) {
            self.take_up(cx, objects.iter().map(|(key, item)| (source_key(key), item)));
        }
        for (key, item) in objects {
            self.observe(cx, &source_key(&key), &item);
        }
        if !self.watches.is_any_listed() {
            // An operator that was killed had no time to remove them.
            self.commits.left_bundles();
            self.warn_of_lost(cx);
        }
        self.watches.listed(kind);
        let is_its = |key: &&SourceKey| key.kind == kind && !listed.contains(*key);
        self.registration.sources().filter(is_its).for_each(|key| self.sweep.want_of_gone(key));
        self.wake_dependents_of_kind(cx, kind);
        self.edition += 1;
        self.sweep.want();
    }

    /// Handles the change of an object.
    pub(crate) fn object_changed(&mut self, cx: &mut Context, key: &Key, is_gone: bool, item: &Item) {
        let key = source_key(key);
        if is_gone {
            self.gone(cx, &key);
        } else {
            self.observe(cx, &key, item);
        }
    }

    /// Handles that there is no such kind: that is fine, and told once.
    pub(crate) fn kind_vanished(&mut self, cx: &mut Context, kind: String) {
        if let Ok(kind) = kind.parse() {
            self.watches.absent(kind);
        }
        if self.watches.tells_absence() {
            cx.notify(Notice::SourcesAbsent { kind });
        }
    }

    fn observe(&mut self, cx: &mut Context, key: &SourceKey, item: &Item) {
        let mut object = SourceObject::read(key, item.object().unwrap_or_default());
        if self.known.get(key).is_none_or(|source| source.decided.is_none()) {
            object.status.complete(self.registration.of(key));
        }
        let has_waiting = self.has_waiting(key);
        let source = self.known.known(key);
        if source.object.is_none() {
            self.edition += 1;
        }
        let is_other = source.object.as_ref().is_none_or(|known| {
            known.generation != object.generation || known.is_deleting != object.is_deleting
        });
        if is_other {
            source.unfetched = 0;
        }
        let is_ending = object.is_deleting && source.is_there();
        let interval = object.spec.update_interval;
        let is_approval_other = source.object.as_ref().is_some_and(|known| known.approved != object.approved);
        source.object = Some(object);
        if is_ending {
            // Others may have kept what this one wanted.
            self.sweep.want();
        }
        source.is_doubted |= is_approval_other && has_waiting;
        let registration = &self.registration;
        // What another operator wrote names no modules.
        let is_known = |status: &Status| status.addons().next().is_none() || !registration.of(key).is_empty();
        let is_settled = !self.unsettled.contains(key);
        // The operator may have ended between the record of what a pass led to and the status that tells of it, or its registry
        // may be gone, or be an older one.
        let news = source.object.as_ref().filter(|object| {
            source.decided.is_none() && object.status.phase == SourcePhase::Ready && is_settled
        });
        let difference = news.and_then(|object| adoption::difference(registration.of(key), object));
        if let Some(what) = difference.as_ref().filter(|_| !registration.of(key).is_empty()) {
            let message = format!(
                "what is registered of {key} is not what its status says, and it is processed again: {what}"
            );
            cx.notify(Notice::Warned { scope: Scope::Global, message });
        }
        if source.adopt(|status| is_settled && is_known(status) && difference.is_none()) {
            // What it waits for may have come while nobody was there.
            source.is_doubted |= has_waiting;
            // Modules may have changed before anybody knew their configuration.
            self.refresh_later.insert(key.clone());
            source.process_at = interval.filter(|_| !source.is_suspended()).map(|delay| cx.now + delay);
        }
        if source.quarrels(cx.now) {
            let message = format!(
                "the status of {key} is written by somebody else, too; it is left alone until its spec changes. \
                 Does another operator look after the same objects?"
            );
            cx.notify(Notice::Warned { scope: Scope::Global, message });
        }
        let (has_work, is_due) = (source.has_work(), source.process_at.is_some());
        if is_other {
            // It may be ready, gone or suspended for those that wait for it.
            self.wake_dependents(cx, key);
        }
        if !(has_work || is_other && is_due) {
            return;
        }
        let work = work_key(key);
        if is_other && let Some(run) = self.reconciles.fetch_of(&work) {
            cx.push(Effect::CancelRun { run });
        }
        self.reconciles.request(cx, &work, &Cause::outside("cluster"));
    }

    fn gone(&mut self, cx: &mut Context, key: &SourceKey) {
        let Some(source) = self.known.get_mut(key) else { return };
        (source.object, source.waits_for) = (None, None);
        self.edition += 1;
        (source.announced, source.is_end_announced) = (None, false);
        self.sweep.want_of_gone(key);
        self.wake_dependents(cx, key);
        let work = work_key(key);
        if self.reconciles.has(&work) {
            if let Some(run) = self.reconciles.fetch_of(&work) {
                cx.push(Effect::CancelRun { run });
            }
            self.reconciles.resume(&work);
            self.reconciles.request(cx, &work, &Cause::outside("cluster"));
        } else {
            self.known.remove(key);
        }
    }

    /// Handles that the state of modules changed.
    pub(crate) fn modules_changed(&mut self, modules: &Modules, names: &BTreeSet<ModuleName>) {
        let mut keys = BTreeSet::new();
        for name in names {
            let Some(key) = self.registration.source_of(name) else { continue };
            keys.insert(key.clone());
            if self.is_deleting(key) {
                // What its removal waits for may be another thing by now.
                self.reconciles.resume(&work_key(key));
            }
            let Some(addon) = self.registration.of_module(key, name) else { continue };
            if self.is_tried(modules, addon) {
                self.sweep.want_of_tried(key);
            }
            let is_settled = addon.is_registered() && addon.left_namespaces.is_empty();
            if !is_settled || self.tried_before.contains_key(key) {
                self.sweep.want_of(key);
            }
        }
        for key in keys {
            let is_idle = |source: &Source| {
                source.is_there() && (source.is_decided() || source.is_held_back()) && !source.is_left_alone()
            };
            if self.known.get(&key).is_some_and(is_idle) {
                self.refresh_later.insert(key);
            }
        }
    }

    /// Handles that a converge came to its end.
    pub(crate) fn converged(&mut self) {
        if !std::mem::replace(&mut self.is_converged, true) {
            let adopted = self.known.in_role(Role::Adopted);
            self.refresh_later.extend(adopted.map(|(key, _)| key.clone()));
        }
    }

    /// Handles that the releases in the cluster are known.
    pub(crate) fn releases_listed(&mut self) {
        self.sweep.want();
    }

    /// Raises the counter of a configuration; the command is answered when that is done. What follows from it follows from the
    /// change of the object.
    ///
    /// # Errors
    ///
    /// If it is not there, or about to go.
    pub(crate) fn sync(&mut self, cx: &mut Context, id: CommandId, key: &SourceKey) -> Result<(), Failure> {
        let object = self.changeable(key)?;
        if object.spec.is_suspended {
            return Err(refused(
                format!("{key} is suspended: spec.suspend is true"),
                format!("`addon-operator source resume {}` has it looked after again", key.address()),
            ));
        }
        let Some((run, effect)) = patches::raise(cx, key, object) else {
            return Err(refused(
                format!("spec.reprocessRequest of {key} is as high as it can be"),
                "apply the object under another name, with deletionPolicy: Retain in this one before that is deleted",
            ));
        };
        cx.push(effect);
        self.syncs.await_end(run, id, format!("{key} is processed again"));
        Ok(())
    }

    /// Suspends a configuration, or ends that; the command is answered when its spec is written.
    ///
    /// # Errors
    ///
    /// If it is not there, or about to go.
    pub(crate) fn suspend(
        &mut self,
        cx: &mut Context,
        id: CommandId,
        key: &SourceKey,
        is_suspended: bool,
    ) -> Result<(), Failure> {
        let object = self.changeable(key)?;
        let (run, effect) = patches::suspend(cx, key, object, is_suspended);
        cx.push(effect);
        let what = if is_suspended {
            "is suspended: nothing is fetched or changed"
        } else {
            "is looked after again"
        };
        self.syncs.await_end(run, id, format!("{key} {what}"));
        Ok(())
    }

    /// Returns the object of a configuration whose spec a command may change.
    fn changeable(&self, key: &SourceKey) -> Result<&SourceObject, Failure> {
        let object = self.known.get(key).and_then(|source| source.object.as_ref());
        let Some(object) = object else {
            return Err(refused(format!("there is no {key}"), "`addon-operator source list` shows all"));
        };
        if object.is_deleting {
            let advice = "`addon-operator why source NAME` shows what that waits for";
            return Err(refused(format!("{key} is being deleted"), advice));
        }
        Ok(object)
    }

    /// Handles that an object was changed, or was not.
    pub(crate) fn patched(&mut self, cx: &mut Context, run: RunId, outcome: Result<(), Failure>) {
        if let Some(outcome) = self.syncs.answer(cx, run, outcome) {
            self.answered(run, SourceAnswer::Patched(outcome));
        }
    }

    /// Handles that sources were fetched.
    pub(crate) fn fetched(&mut self, run: RunId, outcome: Result<Fetched, Failure>) {
        self.answered(run, SourceAnswer::Fetched(outcome));
    }

    /// Handles that the registry was written.
    pub(crate) fn kept(&mut self, run: RunId, outcome: Result<(), StoreError>) {
        self.answered(run, SourceAnswer::Kept(outcome));
    }

    /// Handles that bundles were put into the store directory, but for those that are `lost`.
    pub(crate) fn bundles_restored(&mut self, run: RunId, lost: BTreeSet<Digest>) {
        self.answered(run, SourceAnswer::Restored(lost));
    }

    pub(super) fn answered(&mut self, run: RunId, answer: SourceAnswer) {
        let Some(work) = self.reconciles.finish(run) else { return };
        if work == sweep_key() {
            self.sweep.answer = Some(answer);
        } else if is_removal(&work) {
            self.removals.answered(work, answer);
            // Somebody may wait for it who wants the name.
            self.resume_all(Role::Storing);
        } else if let Some(source) = of_work(&work).and_then(|key| self.known.get_mut(&key)) {
            source.answer = Some(answer);
        }
    }

    /// Takes the registry for a key, if nobody holds it. Otherwise the key waits.
    pub(super) fn hold(&mut self, work: &WorkKey) -> Result<(), Step> {
        match &self.holder {
            Some(holder) if holder != work => {
                self.waiting.push(work);
                Err(Step::Wait(format!("the registry, which is written for {holder}")))
            }
            Some(_) | None => {
                self.holder = Some(work.clone());
                Ok(())
            }
        }
    }

    /// Lets the next one have the registry.
    pub(super) fn release(&mut self, work: &WorkKey) {
        self.waiting.remove(work);
        if self.holder.as_ref() != Some(work) {
            return;
        }
        self.holder = None;
        if self.next.take().is_some() {
            self.removals.want();
        }
        if let Some(next) = self.waiting.pop() {
            self.reconciles.resume(&next);
        }
    }

    /// Begins to write a registry. It is the registry when that has succeeded.
    pub(super) fn keep(&mut self, cx: &mut Context, mut change: Change) -> Step {
        let run = cx.ids.run();
        self.commits.writing();
        let (registry, lost) =
            (self.registration.registry_with(&mut change), self.lost.iter().cloned().collect());
        self.next = Some(change);
        Step::Write(run, Box::new(Effect::KeepBundles { run, registry, lost }))
    }

    /// Makes what was written the registry, and has it put into force.
    pub(super) fn registered(&mut self, modules: &Modules, cx: &mut Context) {
        let Some(change) = self.next.take() else { return };
        self.announce_retained(modules, cx, &change);
        self.announce_rollbacks(cx, &change);
        self.starts_counted(&change);
        self.commits.registered(&self.registration, &change);
        // Others may hold less than before. Who is at work writes its status anyway.
        let is_idle =
            |key: &SourceKey| self.known.get(key).is_some_and(|source| matches!(source.pass, Pass::Idle));
        let changed = || change.iter().map(|(key, _)| key);
        self.refresh_later.extend(changed().filter(|key| is_idle(key)).cloned());
        for key in changed() {
            self.sweep.want_of(key);
            if self.is_gone(key) {
                self.sweep.want_of_gone(key);
            }
        }
        let had_it = |addon: &&RegisteredAddon| {
            let before = self.registration.of_module(&addon.source, &addon.bundle.name);
            before.is_some_and(RegisteredAddon::is_registered)
        };
        let displaced = change.iter().flat_map(|(_, addons)| addons).filter(|addon| addon.is_displaced());
        let overtaken: BTreeSet<SourceKey> =
            displaced.filter(had_it).map(|addon| addon.source.clone()).collect();
        let before = change.iter().flat_map(|(key, _)| self.registration.of(key));
        self.first_releases.changed(before.chain(change.iter().flat_map(|(_, addons)| addons)));
        if self.registration.apply(change) {
            self.commits.left_bundles();
        }
        self.removals.forget_but(self.registration.displaced());
        self.edition += 1;
        // What was to be removed may be gone, or another one's by now.
        self.resume_removals();
        for key in overtaken {
            self.look_again(cx, &key);
        }
    }

    /// Has a configuration processed although it is decided, and not by what is in its object.
    pub(super) fn look_again(&mut self, cx: &mut Context, key: &SourceKey) {
        let Some(source) = self.known.get_mut(key).filter(|source| source.is_there()) else { return };
        source.is_doubted = true;
        self.reconciles.request(cx, &work_key(key), &Cause::outside("names of modules"));
    }

    /// Does everything that can be done. `are_asked` says whether hooks that are not in force any more answer the API server still.
    pub(crate) fn advance(&mut self, modules: &Modules, lower: &mut Lower<'_>, are_asked: bool) {
        if self.watches.is_off() && !self.is_any_due() {
            return;
        }
        self.reconciles.wake_due(lower.cx.now);
        loop {
            self.known.reindex();
            for key in std::mem::take(&mut self.refresh_later) {
                if self.is_status_stale(modules, lower.cx.now, &key) {
                    self.reconciles.request(lower.cx, &work_key(&key), &Cause::outside("module"));
                }
            }
            self.look_for_sweep(modules, lower.cx);
            let Some(work) = self.reconciles.take_next(lower.cx) else {
                // Nothing else may happen any more that would have a removal begun.
                if self.remove_displaced(lower) {
                    continue;
                }
                break;
            };
            let step = match of_work(&work) {
                None if is_removal(&work) => self.advance_removal(modules, lower.cx, &work),
                None => self.advance_sweep(modules, lower.cx, &work),
                Some(key) => self.advance_source(modules, lower.cx, &key),
            };
            let key = of_work(&work);
            self.reconciles.apply(lower.cx, lower.queues, &work, step);
            if let Some(key) = key
                && !self.reconciles.has(&work)
                && self.known.get(&key).is_some_and(|source| source.object.is_none())
            {
                self.known.remove(&key);
            }
        }
        self.reconciles.report_length(lower.cx);
        self.tell_releases(modules, lower);
        self.queue_commit(lower);
        self.drop_unused(lower, are_asked);
    }

    /// Returns when there is something to do by itself.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        self.reconciles.next_wakeup().into_iter().chain(self.commits.next_wakeup()).min()
    }

    /// Ends what only reads, as the operator ends.
    pub(crate) fn end(&self, cx: &mut Context) {
        self.reconciles.cancel_fetches(cx);
    }

    /// Returns whether nothing is in flight.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.reconciles.is_at_rest() && self.commits.is_at_rest() && self.syncs.is_empty()
    }

    /// Returns how many configurations and addons were looked at so far, but for those that were asked for by name.
    pub(crate) fn looked_at(&self) -> usize {
        self.known.looked_at().wrapping_add(self.registration.looked_at())
    }

    /// Returns how many things are kept by name or number.
    pub(crate) fn entries(&self) -> usize {
        self.reconciles.entries() + self.known.len() + self.syncs.len()
    }
}

fn refused(what: String, advice: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Files, what).advise(advice)
}

/// Returns the configuration that an object is: those of the cluster have no namespace.
fn source_key(key: &Key) -> SourceKey {
    let kind = if key.namespace.is_empty() { SourceKind::Cluster } else { SourceKind::Namespaced };
    SourceKey { kind, namespace: Arc::clone(&key.namespace), name: Arc::clone(&key.name) }
}

/// Returns the configuration that work is about, if it is about one.
fn of_work(work: &WorkKey) -> Option<SourceKey> {
    let kind = work.controller.parse().ok()?;
    Some(SourceKey { kind, namespace: Arc::clone(&work.namespace), name: Arc::clone(&work.name) })
}

//! What is known about the releases of modules, and when they are left alone.

use std::collections::BTreeSet;
use std::time::Duration;

use super::events::Change;
use super::lower::Lower;
use super::ownerless::Ownerless;
use super::release_drift::{DriftReport, PEACE};
use super::state::{Parked, Release, Upgrade};
use super::task_queue::queue_of;
use super::{ModuleState, Modules, Phase};
use crate::cause::Cause;
use crate::configuration::Configuration;
use crate::context::Context;
use crate::drift_settings::DriftMode;
use crate::effect::Effect;
use crate::event::{
    Drift, OwnedRelease, OwnedReleases, ReleaseAction, ReleaseOutcome, TakenFrom, TakenObject, UnwatchedKind,
};
use crate::failure::Failure;
use crate::name::{ModuleName, ReleaseName, Scope};
use crate::notice::Notice;
use crate::release_target::ReleaseTarget;
use crate::task::{ModuleDelete, ModulePurge, ModuleRun, Running, Task, TaskHead, TaskKind, Trigger};

/// How many upgrades alike make a loop.
const LOOP: usize = 3;

/// How close together they are.
const LOOP_TIME: Duration = Duration::from_mins(15);

impl Modules {
    /// Records and reports what happened to the release of the module `name`, which `running` upgraded or removed.
    pub(crate) fn release_ran(
        &mut self,
        cx: &mut Context,
        configuration: &Configuration,
        name: &ModuleName,
        running: &Running,
        outcome: &Result<ReleaseOutcome, Failure>,
    ) {
        let cause = &running.task.head.cause;
        let action = outcome.as_ref().ok().map(|outcome| outcome.action);
        if outcome.as_ref().is_err_and(Failure::is_cancelled) || action == Some(ReleaseAction::Unrecorded) {
            // The next start looks at what is left of it. What is not on record is done in a moment.
            return;
        }
        let (took, startup) = (cx.now.since(running.since), cause.is_of_start());
        cx.notify(Notice::ReleaseRan { module: name.clone(), action, took, startup });
        let is_leaving = running.task.module_run().is_some_and(ModuleRun::is_leaving);
        let place = if is_leaving { self.left_place(name) } else { None };
        let place = place.unwrap_or_else(|| self.release_place(configuration, name));
        if matches!(action, Some(ReleaseAction::Absent | ReleaseAction::Uninstalled)) {
            self.release_gone(&ReleaseName::from(name.as_str()), &place);
        }
        if is_leaving {
            return;
        }
        let Some(module) = self.states.get_mut(name) else { return };
        // Also when the answer is not wanted any more: the cluster is as it is.
        module.release = known_release(outcome);
        if outcome.is_err() && module.has_no_release(configuration) {
            module.release = Release::Absent;
        }
        let Some(outcome) = outcome.as_ref().ok().filter(|_| !running.dropped) else { return };
        match outcome.action {
            ReleaseAction::Installed | ReleaseAction::Upgraded => module.drift.upgraded(&outcome.taken_over),
            ReleaseAction::Absent | ReleaseAction::Uninstalled | ReleaseAction::Unmanaged => {
                module.drift.clear();
            }
            ReleaseAction::Unchanged | ReleaseAction::Unrecorded => {}
        }
        let is_managed = match outcome.action {
            ReleaseAction::Installed | ReleaseAction::Unchanged | ReleaseAction::Upgraded => {
                // A module in maintenance is left alone from this revision on, which says so.
                module.spec.settings.drift.mode != DriftMode::Off
                    && !configuration.is_in_maintenance(&module.spec.key)
            }
            ReleaseAction::Absent
            | ReleaseAction::Uninstalled
            | ReleaseAction::Unmanaged
            | ReleaseAction::Unrecorded => false,
        };
        if is_managed != module.release_watched {
            module.release_watched = is_managed;
            let drift = module.spec.settings.drift.clone();
            let (module, target) = (name.clone(), place.clone());
            cx.push(if is_managed {
                Effect::WatchRelease { module, target, drift }
            } else {
                Effect::ForgetRelease { module, target }
            });
        }
        self.await_readiness(cx, name, (outcome.action, place));
        if let Some(first) = outcome.taken_over.first() {
            let taken = taken_over(first, outcome.taken_over.len());
            self.announce(cx, name, Change::TookOver, Some(&taken));
        }
        let deployed = format!("revision {} of its release is deployed", outcome.revision);
        match outcome.action {
            ReleaseAction::Installed => self.announce(cx, name, Change::Installed, Some(&deployed)),
            ReleaseAction::Upgraded => self.announce(cx, name, Change::Upgraded, Some(&deployed)),
            ReleaseAction::Absent
            | ReleaseAction::Unchanged
            | ReleaseAction::Uninstalled
            | ReleaseAction::Unmanaged
            | ReleaseAction::Unrecorded => {}
        }
        if outcome.action == ReleaseAction::Upgraded {
            let root = cause.links().first().copied().unwrap_or_default().to_owned();
            let why = (root, outcome.changed.clone());
            self.count_upgrade(cx, configuration, name, why, outcome.checksum);
        }
    }

    /// Records an upgrade and parks the module if it goes round in circles.
    fn count_upgrade(
        &mut self,
        cx: &mut Context,
        configuration: &Configuration,
        name: &ModuleName,
        (cause, changed): (String, Option<String>),
        checksum: u64,
    ) {
        let (now, values) = (cx.now, configuration.read_by_chart(name));
        let Some(module) = self.states.get_mut(name) else { return };
        let content = module.spec.content;
        let upgrade = Upgrade { at: now, cause, checksum, changed, values: values.clone(), content };
        // Whoever follows other values or files goes round in no circle, also where these go back and forth.
        if module.upgrades.back().is_some_and(|last| !last.is_of_same_input(&upgrade)) {
            module.upgrades.clear();
        }
        module.upgrades.retain(|upgrade| now.since(upgrade.at) < LOOP_TIME);
        let alike = module.upgrades.iter().filter(|earlier| earlier.is_like(&upgrade)).count() + 1;
        module.upgrades.push_back(upgrade.clone());
        if alike < LOOP {
            return;
        }
        let Upgrade { cause, changed, .. } = upgrade;
        let what = changed.map(|changed| format!("; what keeps changing: {changed}")).unwrap_or_default();
        let why = format!(
            "its release was upgraded {LOOP} times within 15 minutes with the same result, each time because of: {cause}{what}; \
             its release is left alone until its values or its chart change, or `module resume {name}`"
        );
        module.parked = Some(Parked { why: why.clone(), values, content, stops_runs: false });
        self.set_phase(cx, configuration, name, Phase::Parked, Some(why));
    }

    /// Returns whether the module's release is left alone. A change of its values or files ends that.
    pub(super) fn is_release_left_alone(&mut self, configuration: &Configuration, name: &ModuleName) -> bool {
        let Some(module) = self.states.get_mut(name) else { return false };
        let Some(parked) = &module.parked else { return false };
        if parked.values == configuration.read_by_chart(name) && parked.content == module.spec.content {
            return true;
        }
        module.parked = None;
        module.upgrades.clear();
        false
    }

    /// Forgets a release that is gone from a place, and that objects were taken over from it.
    fn release_gone(&mut self, release: &ReleaseName, target: &ReleaseTarget) {
        self.place_left(release, target);
        self.ownerless.gone(&ModuleName::from(release.as_str()), target);
        let gone = format!("{}/{release}", target.namespace);
        for module in self.states.values_mut() {
            module.drift.release_gone(&gone);
        }
    }

    /// Records and reports which kinds of objects of a release can't be watched.
    pub(crate) fn release_unwatched(
        &mut self,
        cx: &mut Context,
        name: &ModuleName,
        kinds: Vec<UnwatchedKind>,
    ) {
        let Some(module) = self.states.get_mut(name).filter(|module| module.is_on()) else { return };
        for UnwatchedKind { kind, why } in module.drift.unwatched(kinds) {
            let message = format!(
                "objects of kind {kind} of its release are not watched, what is deleted comes back with its next run only: {why}"
            );
            cx.notify(Notice::Warned { scope: Scope::Module(name.clone()), message });
        }
    }

    /// Records and reports that a release differs from its chart, and queues a run of its module if that can help.
    ///
    /// A field that somebody else changed is reported only, or written back where the module asks for that: a run would run
    /// its hooks and write nothing, because the chart renders what it did before.
    pub(crate) fn release_drifted(&mut self, lower: &mut Lower<'_>, name: &ModuleName, drift: Drift) {
        let Lower { cx, queues, configuration, .. } = lower;
        let Some(module) = self.states.get_mut(name).filter(|module| module.is_on()) else { return };
        let (trigger, what) = match &drift {
            Drift::Absent(object) => (Trigger::AbsentResources, format!("{object} is gone")),
            Drift::Changed { object, place, writer } => {
                let Some(found) = module.drift.changed(object, place, writer.as_deref(), cx.now) else {
                    return;
                };
                let is_enforced = module.is_enforced(configuration);
                if is_enforced {
                    let wait = if found.is_quarrel { PEACE } else { Duration::ZERO };
                    self.mends.put(cx.now + wait, (name.clone(), object.as_str().into()));
                }
                let all = module.drift.writers(object).filter(|_| found.is_quarrel);
                let who = all.as_deref().or(writer.as_deref()).unwrap_or("others");
                let what = match (found.report, is_enforced) {
                    (None, _) => return,
                    (Some(DriftReport::Change), false) => format!("{object} was changed by {who} at {place}"),
                    (Some(DriftReport::Change), true) => {
                        format!("{object} was changed by {who} at {place}; it is put right")
                    }
                    (Some(DriftReport::Quarrel), false) => format!(
                        "{object} is changed by {who} again and again, now at {place}; this is not told any more until they leave it alone for an hour"
                    ),
                    (Some(DriftReport::Quarrel), true) => format!(
                        "{object} is changed by {who} again and again, now at {place}; it is put right once an hour only, until they leave it alone: \
                         have one of the two write this field, or name it in drift.ignore of module.yaml"
                    ),
                };
                cx.notify(Notice::ReleaseDrifted { module: name.clone(), drift, what });
                return;
            }
            Drift::Restored(object) => return module.drift.restored(object, cx.now),
            Drift::Status(what) => (Trigger::ReleaseStatus, what.clone()),
        };
        cx.notify(Notice::ReleaseDrifted { module: name.clone(), drift, what: what.clone() });
        let is_running = queues.in_flight().any(|running| {
            running.task.module_run().is_some_and(|run| run.module == *name && run.is_before_upgrade())
        });
        if !is_running {
            let cause = Cause::outside(format!("release {name} drifted: {what}"));
            self.queue_run(lower, name, trigger, &cause);
        }
    }

    /// Returns the tasks that remove those releases of ours that no module needs.
    pub(crate) fn removals(
        &mut self,
        cx: &mut Context,
        configuration: &Configuration,
        head: &TaskHead,
        lists: Vec<OwnedReleases>,
    ) -> Vec<Task> {
        self.are_releases_known = true;
        self.has_departures = true;
        self.ownerless = Ownerless::new(self.missing(configuration));
        let mut tasks = Vec::new();
        let mut sourced = Vec::new();
        let own = self.own_target();
        for OwnedReleases { target, outcome } in lists.into_iter().rev() {
            let releases = match outcome {
                Ok(releases) => releases,
                Err(failure) => {
                    warn_of_place(cx, &target, &failure);
                    tasks.extend(self.removals_in_the_dark(cx, configuration, head, &target));
                    continue;
                }
            };
            self.ownerless.listed(&target);
            self.forget_places(&target, &releases);
            for OwnedRelease { name: release, is_sourced } in releases.into_iter().rev() {
                if self.config.ignore_release.as_ref() == Some(&release) {
                    continue;
                }
                let name = ModuleName::from(release.as_str());
                let wanted = self.release_target(configuration, &name);
                let is_known = self.states.contains_key(&name);
                if target != own && target != wanted && !(is_known && self.may_be_in(&name, &target)) {
                    // Who may write Secrets there may have written it: it says nothing about modules of other places.
                    continue;
                }
                if is_known && target != wanted {
                    let places = (&target, &wanted);
                    tasks.extend(self.removal_of_left(cx, configuration, &head.cause, &name, places));
                    continue;
                }
                if !is_known {
                    self.ownerless.found(&name, &target);
                }
                let cause = head.cause.then(format!("release {release}"));
                let kind = match self.states.get_mut(&name) {
                    Some(module) if module.can_run() && module.wants_no_release(configuration) => {
                        module.release_found(&target, &wanted);
                        TaskKind::ModuleRun(module.next_run())
                    }
                    Some(module) if module.is_on() || module.phase == Phase::Orphaned => {
                        module.release_found(&target, &wanted);
                        continue;
                    }
                    Some(module) => {
                        module.places.found(&target, &wanted);
                        if module.release == Release::Unknown {
                            module.release = Release::Broken;
                        }
                        TaskKind::ModuleDelete(ModuleDelete::new(name))
                    }
                    None if is_sourced => {
                        sourced.push(release);
                        continue;
                    }
                    None if self.complete => {
                        TaskKind::ModulePurge(ModulePurge { release, target: target.clone() })
                    }
                    None => {
                        warn_of_ownerless(cx, &release);
                        continue;
                    }
                };
                let queue = &queue_of(configuration, &kind);
                tasks.push(Task::new(cx, queue, kind, Trigger::PostConvergeCleanup, cause, None));
            }
        }
        warn_of_bundles(cx, &sourced);
        tasks
    }

    /// Forgets that there may be releases in a place of modules that are off, and did nothing since the start: all that are there are
    /// listed.
    fn forget_places(&mut self, target: &ReleaseTarget, listed: &[OwnedRelease]) {
        let is_listed = |name: &ModuleName| listed.iter().any(|owned| owned.name.as_str() == name.as_str());
        for (name, module) in &mut self.states {
            let is_untouched = !module.is_on() && !module.is_active && module.release == Release::Unknown;
            if is_untouched && module.places.has(target) && !is_listed(name) {
                module.places.removed(target);
                self.changed.insert(name.clone());
            }
        }
    }

    /// Returns whether all modules that there are to be are there: what belongs to none of them belongs to nobody.
    pub(crate) fn are_complete(&self, configuration: &Configuration) -> bool {
        self.complete && self.missing(configuration).is_empty()
    }

    /// Returns the modules that are registered, and not there.
    pub(super) fn missing(&self, configuration: &Configuration) -> BTreeSet<ModuleName> {
        let is_missing = |name: &&ModuleName| !self.states.contains_key(*name);
        configuration.sourced_names().filter(is_missing).cloned().collect()
    }

    /// Returns the tasks that remove the modules of a target whose releases may not be listed. One that is withdrawn had
    /// something there, and nobody forgets it before that is gone.
    fn removals_in_the_dark(
        &mut self,
        cx: &mut Context,
        configuration: &Configuration,
        head: &TaskHead,
        target: &ReleaseTarget,
    ) -> Vec<Task> {
        let is_meant = |(name, module): &(&ModuleName, &ModuleState)| {
            let is_left = !module.is_on() && module.release == Release::Unknown;
            is_left && !module.has_no_release(configuration) && configuration.withdrawn_by(name).is_some()
        };
        let left = self.states.iter().filter(is_meant).map(|(name, _)| name.clone());
        let names: Vec<ModuleName> =
            left.filter(|name| self.release_target(configuration, name) == *target).collect();
        let mut tasks = Vec::new();
        for name in names {
            if let Some(module) = self.states.get_mut(&name) {
                module.release = Release::Broken;
            }
            let cause = head.cause.then(format!("release {name}"));
            let kind = TaskKind::ModuleDelete(ModuleDelete::new(name));
            let queue = queue_of(configuration, &kind);
            tasks.push(Task::new(cx, &queue, kind, Trigger::PostConvergeCleanup, cause, None));
        }
        tasks
    }

    /// Records that there is a release of a module in a place where it does not belong any more. Returns the task that
    /// removes it, if nobody else does: it goes when the release is where it belongs.
    fn removal_of_left(
        &mut self,
        cx: &mut Context,
        configuration: &Configuration,
        cause: &Cause,
        name: &ModuleName,
        (target, wanted): (&ReleaseTarget, &ReleaseTarget),
    ) -> Option<Task> {
        let module = self.states.get_mut(name)?;
        module.places.found(target, wanted);
        let kind = if module.phase == Phase::Orphaned {
            return None;
        } else if !module.is_on() {
            if module.release == Release::Unknown {
                module.release = Release::Broken;
            }
            TaskKind::ModuleDelete(ModuleDelete::new(name.clone()))
        } else if let Release::Deployed { .. } = module.release {
            let release = ReleaseName::from(name.as_str());
            TaskKind::ModulePurge(ModulePurge { release, target: target.clone() })
        } else {
            return None;
        };
        let (queue, cause) =
            (queue_of(configuration, &kind), cause.then(format!("release {name} in {target}")));
        Some(Task::new(cx, &queue, kind, Trigger::PostConvergeCleanup, cause, None))
    }

    /// Forgets an orphaned module whose release is gone.
    pub(crate) fn release_purged(
        &mut self,
        cx: &mut Context,
        configuration: &mut Configuration,
        ModulePurge { release, target }: &ModulePurge,
    ) {
        let name = ModuleName::from(release.as_str());
        let place = self.release_place(configuration, &name);
        self.release_gone(release, target);
        self.has_departures = true;
        if place == *target && self.states.get(&name).is_some_and(|module| module.phase == Phase::Orphaned) {
            self.forget_orphan(cx, configuration, &name);
        }
    }

    /// Forgets the orphaned modules of which nothing had begun, now that their releases were looked for and not found.
    pub(crate) fn forget_orphans_without_release(
        &mut self,
        cx: &mut Context,
        configuration: &mut Configuration,
    ) {
        let is_nothing = |(name, module): &(&ModuleName, &ModuleState)| {
            let never_began = module.phase == Phase::Orphaned && module.never_began;
            never_began
                && module.places.next().is_none()
                && self.ownerless.is_listed(&self.release_place(configuration, name))
        };
        let nothing: Vec<ModuleName> =
            self.states.iter().filter(is_nothing).map(|(name, _)| name.clone()).collect();
        for name in nothing {
            self.forget_orphan(cx, configuration, &name);
        }
    }

    fn forget_orphan(&mut self, cx: &mut Context, configuration: &mut Configuration, name: &ModuleName) {
        self.states.remove(name);
        self.files.forget(name);
        configuration.remove_module(cx, name);
        cx.notify(Notice::ModuleLeft { module: name.clone() });
    }
}

fn warn_of_place(cx: &mut Context, target: &ReleaseTarget, failure: &Failure) {
    let message = format!("what there is of releases in {target} is not known: {failure}");
    cx.notify(Notice::Warned { scope: Scope::Global, message });
}

fn warn_of_ownerless(cx: &mut Context, release: &ReleaseName) {
    let message = format!(
        "release {release} belongs to no module; it stays, because not all modules directories could be read or one is empty"
    );
    cx.notify(Notice::Warned { scope: Scope::Global, message });
}

/// Tells of releases whose bundles are not there.
fn warn_of_bundles(cx: &mut Context, releases: &[ReleaseName]) {
    if releases.is_empty() {
        return;
    }
    // Nothing is deleted because a bundle is not there: its repository or our copy of it may come back.
    let names = releases.iter().rev().map(ReleaseName::as_str).collect::<Vec<_>>().join(", ");
    let message = format!(
        "releases of modules whose bundles are not there stay: {names}; `addon-operator module purge NAME` removes one"
    );
    cx.notify(Notice::Warned { scope: Scope::Global, message });
}

/// Returns in words what was taken over.
fn taken_over(first: &TakenObject, count: usize) -> String {
    let more = if count > 1 { format!(" and {} more objects", count - 1) } else { String::new() };
    let object = &first.object;
    match &first.from {
        TakenFrom::Release(release) => {
            format!("{object} of release {release}{more}; one of the two charts should not render it")
        }
        TakenFrom::Writer { manager, field } => {
            format!("field {field} of {object} from {manager}{more}; one of the two should not write it")
        }
    }
}

fn known_release(outcome: &Result<ReleaseOutcome, Failure>) -> Release {
    match outcome {
        Err(_) => Release::Broken,
        Ok(outcome) => match outcome.action {
            ReleaseAction::Absent | ReleaseAction::Uninstalled | ReleaseAction::Unrecorded => Release::Absent,
            ReleaseAction::Unmanaged => Release::Unmanaged,
            ReleaseAction::Installed | ReleaseAction::Unchanged | ReleaseAction::Upgraded => {
                Release::Deployed { revision: outcome.revision, checksum: outcome.checksum }
            }
        },
    }
}

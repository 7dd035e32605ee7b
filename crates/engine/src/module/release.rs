//! What is known about the releases of modules, and when they are left alone.

use std::sync::Arc;
use std::time::Duration;

use super::events::Change;
use super::release_drift::DriftReport;
use super::state::{Parked, Release, Upgrade};
use super::{Modules, Phase};
use crate::cause::Cause;
use crate::configuration::Configuration;
use crate::context::Context;
use crate::effect::Effect;
use crate::event::{Drift, OwnedRelease, ReleaseAction, ReleaseOutcome, TakenObject, UnwatchedKind};
use crate::failure::Failure;
use crate::name::{ModuleName, ReleaseName, Scope};
use crate::notice::Notice;
use crate::queue::Queues;
use crate::task::{ModuleDelete, Running, Task, TaskHead, TaskKind, Trigger};

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
        if outcome.as_ref().is_err_and(Failure::is_cancelled) {
            // The next start looks at what is left of it.
            return;
        }
        let (took, startup) = (cx.now.since(running.since), cause.is_of_start());
        cx.notify(Notice::ReleaseRan { module: name.clone(), action, took, startup });
        let Some(module) = self.states.get_mut(name) else { return };
        // Also when the answer is not wanted any more: the cluster is as it is.
        module.release = known_release(outcome);
        let Some(outcome) = outcome.as_ref().ok().filter(|_| !running.dropped) else { return };
        match outcome.action {
            ReleaseAction::Installed | ReleaseAction::Upgraded => module.drift.upgraded(&outcome.taken_over),
            ReleaseAction::Absent | ReleaseAction::Uninstalled | ReleaseAction::Unmanaged => {
                module.drift.clear();
            }
            ReleaseAction::Unchanged => {}
        }
        let is_managed = match outcome.action {
            ReleaseAction::Installed | ReleaseAction::Unchanged | ReleaseAction::Upgraded => true,
            ReleaseAction::Absent | ReleaseAction::Uninstalled | ReleaseAction::Unmanaged => false,
        };
        if is_managed != module.release_watched {
            module.release_watched = is_managed;
            let module = name.clone();
            cx.push(if is_managed {
                Effect::WatchRelease { module }
            } else {
                Effect::ForgetRelease { module }
            });
        }
        if let Some(first) = outcome.taken_over.first() {
            let taken = taken_over(first, outcome.taken_over.len());
            self.announce(cx, name, Change::TookOver, Some(&taken));
        }
        if matches!(outcome.action, ReleaseAction::Absent | ReleaseAction::Uninstalled) {
            self.release_gone(&ReleaseName::from(name.as_str()));
        }
        let deployed = format!("revision {} of its release is deployed", outcome.revision);
        match outcome.action {
            ReleaseAction::Installed => self.announce(cx, name, Change::Installed, Some(&deployed)),
            ReleaseAction::Upgraded => self.announce(cx, name, Change::Upgraded, Some(&deployed)),
            ReleaseAction::Absent
            | ReleaseAction::Unchanged
            | ReleaseAction::Uninstalled
            | ReleaseAction::Unmanaged => {}
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
        let (now, values) = (cx.now, configuration.values_of(name));
        let Some(module) = self.states.get_mut(name) else { return };
        let content = module.spec.content;
        let upgrade = Upgrade { at: now, cause, checksum, changed, values: Arc::clone(&values), content };
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
        module.parked = Some(Parked { why: why.clone(), values, content });
        self.set_phase(cx, configuration, name, Phase::Parked, Some(why));
    }

    /// Returns whether the module's release is left alone. A change of its values or files ends that.
    pub(super) fn is_release_left_alone(&mut self, configuration: &Configuration, name: &ModuleName) -> bool {
        let Some(module) = self.states.get_mut(name) else { return false };
        let Some(parked) = &module.parked else { return false };
        if *parked.values == *configuration.values_of(name) && parked.content == module.spec.content {
            return true;
        }
        module.parked = None;
        module.upgrades.clear();
        false
    }

    /// Forgets that objects were taken over from a release that is gone.
    fn release_gone(&mut self, release: &ReleaseName) {
        let gone = format!("{}/{release}", self.config.namespace);
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
    /// A field that somebody else changed is reported only: a run would run its hooks and write nothing, because
    /// the chart renders what it did before.
    pub(crate) fn release_drifted(
        &mut self,
        cx: &mut Context,
        queues: &mut Queues,
        name: &ModuleName,
        drift: Drift,
    ) {
        let Some(module) = self.states.get_mut(name).filter(|module| module.is_on()) else { return };
        let (trigger, what) = match &drift {
            Drift::Absent(object) => (Trigger::AbsentResources, format!("{object} is gone")),
            Drift::Changed { object, place } => {
                let what = match module.drift.changed(object, place, cx.now) {
                    None => return,
                    Some(DriftReport::Change) => format!("{object} was changed by others at {place}"),
                    Some(DriftReport::Quarrel) => format!(
                        "{object} is changed by others again and again, now at {place}; this is not told any more until they leave it alone for an hour"
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
            self.queue_run(cx, queues, name, trigger, &cause);
        }
    }

    /// Returns the tasks that remove those releases of ours that no module needs.
    pub(crate) fn removals(
        &mut self,
        cx: &mut Context,
        head: &TaskHead,
        releases: Vec<OwnedRelease>,
    ) -> Vec<Task> {
        self.are_releases_known = true;
        let mut tasks = Vec::new();
        let mut sourced = Vec::new();
        for OwnedRelease { name: release, is_sourced } in releases.into_iter().rev() {
            if self.config.ignore_release.as_ref() == Some(&release) {
                continue;
            }
            let name = ModuleName::from(release.as_str());
            let cause = head.cause.then(format!("release {release}"));
            let kind = match self.states.get_mut(&name) {
                Some(module) if module.is_on() || module.phase == Phase::Orphaned => continue,
                Some(module) => {
                    if module.release == Release::Unknown {
                        module.release = Release::Broken;
                    }
                    TaskKind::ModuleDelete(ModuleDelete::new(name))
                }
                None if is_sourced => {
                    sourced.push(release);
                    continue;
                }
                None if self.complete => TaskKind::ModulePurge(release),
                None => {
                    let message = format!(
                        "release {release} belongs to no module; it stays, because not all modules directories could be read or one is empty"
                    );
                    cx.notify(Notice::Warned { scope: Scope::Global, message });
                    continue;
                }
            };
            tasks.push(Task::new(cx, &head.queue, kind, Trigger::PostConvergeCleanup, cause, None));
        }
        if !sourced.is_empty() {
            // Nothing is deleted because a bundle is not there: its repository or our copy of it may come back.
            let names = sourced.iter().rev().map(ReleaseName::as_str).collect::<Vec<_>>().join(", ");
            let message = format!(
                "releases of modules whose bundles are not there stay: {names}; `addon-operator module purge NAME` removes one"
            );
            cx.notify(Notice::Warned { scope: Scope::Global, message });
        }
        tasks
    }

    /// Forgets an orphaned module whose release is gone.
    pub(crate) fn orphan_purged(
        &mut self,
        cx: &mut Context,
        configuration: &mut Configuration,
        release: &ReleaseName,
    ) {
        self.release_gone(release);
        let name = ModuleName::from(release.as_str());
        if self.states.get(&name).is_some_and(|module| module.phase == Phase::Orphaned) {
            self.states.remove(&name);
            configuration.remove_module(cx, &name);
        }
    }
}

/// Writes an Event about objects that a module took over from other releases.
/// Returns in words what was taken over.
fn taken_over(first: &TakenObject, count: usize) -> String {
    let more = if count > 1 { format!(" and {} more objects", count - 1) } else { String::new() };
    format!("{} of release {}{more}; one of the two charts should not render it", first.object, first.release)
}

fn known_release(outcome: &Result<ReleaseOutcome, Failure>) -> Release {
    match outcome {
        Err(_) => Release::Broken,
        Ok(outcome) => match outcome.action {
            ReleaseAction::Absent | ReleaseAction::Uninstalled => Release::Absent,
            ReleaseAction::Unmanaged => Release::Unmanaged,
            ReleaseAction::Installed | ReleaseAction::Unchanged | ReleaseAction::Upgraded => {
                Release::Deployed { revision: outcome.revision, checksum: outcome.checksum }
            }
        },
    }
}

//! Releases whose modules are not there any more to remove them: the name of a module of a namespace went to a configuration of the
//! cluster or to a built-in module, or a bundle is lost and nobody wants it. The name is free at once; the release goes by the
//! rights of the account that made it, however long that takes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::displaced::{removal_key, removal_work};
use super::pass::SourceAnswer;
use super::registration::Fate;
use super::sources::Sources;
use crate::addon::{Bundle, RegisteredAddon, SourceKey, SourceKind};
use crate::cause::Cause;
use crate::context::Context;
use crate::effect::Effect;
use crate::failure::Failure;
use crate::module::{Lower, Modules};
use crate::name::{ModuleName, ReleaseName, RunId};
use crate::reconcile::{Step, WorkKey};
use crate::release_target::ReleaseTarget;

impl Sources {
    /// Has releases removed that are in the way of nobody, once nothing runs any more that could make one. Returns whether there
    /// were any to look at.
    pub(super) fn remove_displaced(&mut self, lower: &mut Lower<'_>) -> bool {
        if !self.removals.is_wanted() || self.commits.wanted() != self.commits.in_force() {
            return false;
        }
        self.commits.forget_ended_runs(lower.queues);
        if self.commits.has_old_runs() {
            return false;
        }
        self.removals.begun();
        let left = self.registration.displaced().filter(|addon| !self.removals.is_gone(addon));
        let works: Vec<WorkKey> = left.map(removal_key).collect();
        for work in &works {
            self.reconciles.request(lower.cx, work, &Cause::outside("names of modules"));
        }
        !works.is_empty()
    }

    /// Begins to remove the release of a key, or records that it is gone.
    pub(super) fn advance_removal(&mut self, modules: &Modules, cx: &mut Context, work: &WorkKey) -> Step {
        let outcome = self.removals.take_answer(work);
        let is_its = |addon: &&RegisteredAddon| removal_key(addon) == *work && !self.removals.is_gone(addon);
        let Some(addon) = self.registration.displaced().find(is_its).cloned() else { return Step::Done };
        match outcome {
            Some(SourceAnswer::Patched(Err(failure))) => {
                self.removals.failed(&addon, &failure);
                self.resume_removals();
                Step::Failed(failure)
            }
            Some(_) => {
                self.removals.gone(&addon);
                self.sweep.want_of(&addon.source);
                Step::Done
            }
            // Nothing is there, and nothing runs any more that could have made it.
            None if addon.is_unreleased => {
                self.removals.gone(&addon);
                self.sweep.want_of(&addon.source);
                Step::Done
            }
            None if self.fate(modules, &addon, Fate::Displace) == Fate::Forget => {
                self.sweep.want_of(&addon.source);
                Step::Done
            }
            // Whoever takes its name over has the release, too. If that can't be written, it is looked at again.
            None if self.next.as_ref().is_some_and(|change| change.removes(&addon)) => Step::Done,
            None => {
                let (run, release) = (cx.ids.run(), ReleaseName::from(addon.bundle.name.as_str()));
                let target = self.target_of(&addon);
                Step::Fetch(run, Box::new(Effect::UninstallRelease { run, release, target }))
            }
        }
    }

    /// Handles that such a release was removed, or was not.
    pub(crate) fn release_removed(&mut self, run: RunId, outcome: Result<(), Failure>) {
        self.answered(run, SourceAnswer::Patched(outcome));
    }

    /// Returns one of these modules whose release is just being removed where it would be: its upgrade has to wait for that.
    pub(super) fn being_removed<'b>(
        &self,
        key: &SourceKey,
        mut bundles: impl Iterator<Item = &'b Bundle>,
    ) -> Option<&'b ModuleName> {
        let is_it = |bundle: &&Bundle| {
            let work = removal_work(&key.namespace, &bundle.name);
            self.reconciles.fetch_of(&work).is_some()
        };
        bundles.find(is_it).map(|bundle| &bundle.name)
    }

    /// Returns whether a release with the name of this module is just being removed for a configuration of the cluster: a built-in
    /// module of the name has to wait for that. What configurations of namespaces leave is elsewhere.
    pub(crate) fn removes_release(&self, module: &ModuleName) -> bool {
        self.reconciles.fetch_of(&removal_work(&Arc::from(""), module)).is_some()
    }

    /// Returns the modules whose names went to others, each with where its release is.
    pub(crate) fn displaced(&self) -> Vec<(ModuleName, ReleaseTarget)> {
        let place = |addon: &RegisteredAddon| (addon.bundle.name.clone(), self.target_of(addon));
        self.registration.displaced().map(place).collect()
    }

    /// Handles that files changed: a built-in module may have the name of one of ours.
    pub(crate) fn files_changed(&mut self, modules: &Modules, cx: &mut Context) {
        let is_taken =
            |addon: &&RegisteredAddon| addon.is_active && modules.built_in(&addon.bundle.name).is_some();
        let keys: BTreeSet<SourceKey> =
            self.registration.iter().filter(is_taken).map(|addon| addon.source.clone()).collect();
        for key in keys {
            self.look_again(cx, &key);
        }
        self.sweep.want();
    }

    /// Returns what becomes of a module that its configuration does not bring any more, if it can still be switched off: `wanted`.
    pub(super) fn fate(&self, modules: &Modules, addon: &RegisteredAddon, wanted: Fate) -> Fate {
        let name = &addon.bundle.name;
        let is_of_namespace = addon.source.kind == SourceKind::Namespaced;
        if addon.is_displaced() {
            // What is in a directory now has the release in the same place.
            let is_taken = !is_of_namespace && modules.built_in(name).is_some();
            return if is_taken || self.removals.is_gone(addon) { Fate::Forget } else { Fate::Displace };
        }
        if addon.is_active && modules.built_in(name).is_some() {
            // Of one of the cluster, it has the release, too.
            return if is_of_namespace { Fate::Displace } else { Fate::Forget };
        }
        if addon.is_active && self.is_unloaded(modules, addon) {
            // There is nothing to switch off, but there may be a release.
            return if wanted == Fate::Withdraw { Fate::Displace } else { wanted };
        }
        if addon.is_active && addon.inherits_release && modules.is_gone(name) {
            // Its module may never have run, and so has nothing to switch off. Before it is there, nobody has said that it is off.
            let is_there = modules.bundle_of(name) == Some(&addon.bundle.digest);
            return if is_there || wanted == Fate::Withdraw { Fate::Displace } else { wanted };
        }
        if !addon.is_active || modules.is_gone(name) {
            return Fate::Forget;
        }
        let was_never_on = wanted == Fate::Withdraw && modules.was_never_on(name, addon.was_never_on);
        if was_never_on { Fate::Dismiss } else { wanted }
    }

    /// Returns where the release of an addon is whose module is not there.
    pub(super) fn target_of(&self, addon: &RegisteredAddon) -> ReleaseTarget {
        match addon.source.kind {
            SourceKind::Cluster => {
                let named = addon.bundle.namespace.as_deref();
                ReleaseTarget::of_operator(named.unwrap_or(&self.config.namespace))
            }
            SourceKind::Namespaced => ReleaseTarget::of_namespace(&addon.source.namespace),
        }
    }
}

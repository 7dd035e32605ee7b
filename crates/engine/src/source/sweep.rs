//! Looks after modules that are registered no more: they leave the registry when they are removed, and are removed when
//! nobody wants them any more.

use std::collections::BTreeSet;

use super::known_sources::Role;
use super::pass::{Swept, failed, sweep_key};
use super::registration::{Change, Fate};
use super::sources::Sources;
use super::status::SourcePhase;
use crate::addon::{RegisteredAddon, SourceKey};
use crate::cause::Cause;
use crate::context::Context;
use crate::module::Modules;
use crate::name::Scope;
use crate::notice::Notice;
use crate::reconcile::{Step, WorkKey};
use crate::release_target::ReleaseTarget;

impl Sources {
    /// Has the registry looked at, if something in it would change.
    pub(super) fn look_for_sweep(&mut self, modules: &Modules, cx: &mut Context) {
        let wanted = self.sweep.take();
        if self.is_another_due() {
            return self.reconciles.request(cx, &sweep_key(), &Cause::outside("modules"));
        }
        if !self.watches.is_any_listed() {
            return;
        }
        self.forget_ended_trials(modules);
        let keys = match wanted {
            Swept::All => self.registration.unsettled().clone(),
            Swept::Some(keys) if keys.is_empty() && self.sweep.tried().is_empty() => return,
            Swept::Some(mut keys) => {
                keys.retain(|key| self.registration.unsettled().contains(key));
                keys
            }
        };
        let vanished = self.vanished();
        self.sweep.keep_gone(&vanished);
        let change = self.swept(modules, &keys, &vanished);
        if !change.is_empty() {
            self.sweep.found(&change);
            self.reconciles.request(cx, &sweep_key(), &Cause::outside("modules"));
        }
    }

    pub(super) fn advance_sweep(&mut self, modules: &Modules, cx: &mut Context, work: &WorkKey) -> Step {
        if self.sweep.is_writing() {
            let failure = failed(self.sweep.answer.take());
            self.sweep.written(failure.is_none());
            if failure.is_none() {
                self.registered(modules, cx);
            }
            self.release(work);
            return failure.map_or(Step::Done, Step::Failed);
        }
        if let Err(step) = self.hold(work) {
            return step;
        }
        let vanished = self.vanished();
        let due = self.sweep.begin();
        let keys = due.intersection(self.registration.unsettled()).cloned().collect();
        let change = self.swept(modules, &keys, &vanished);
        if change.is_empty() {
            self.release(work);
            return Step::Done;
        }
        for key in vanished {
            let message = format!(
                "{key} is gone without its finalizer; its modules go on until they are switched off, or until it is there again and deleted"
            );
            cx.notify(Notice::Warned { scope: Scope::Global, message });
        }
        self.sweep.writes(due);
        self.keep(cx, change)
    }

    /// Forgets the configurations none of whose versions on trial has shown whether it is good.
    fn forget_ended_trials(&mut self, modules: &Modules) {
        let is_over = |key: &&SourceKey| {
            let mut addons = self.registration.of(key).iter();
            !addons.any(|addon| addon.is_active && self.is_tried(modules, addon))
        };
        let over: Vec<SourceKey> = self.sweep.tried().iter().filter(is_over).cloned().collect();
        for key in &over {
            self.sweep.forget_tried(key);
        }
    }

    /// Makes the configurations go on that wait for the removal of their modules.
    pub(super) fn resume_removals(&mut self) {
        self.resume_all(Role::Deleting);
    }

    /// Returns what changes in what `keys` have registered, and those that `vanished`.
    fn swept(&self, modules: &Modules, keys: &BTreeSet<SourceKey>, vanished: &BTreeSet<SourceKey>) -> Change {
        let mut change = Change::default();
        self.record_due(&mut change);
        if !self.watches.is_any_listed() {
            return change;
        }
        for key in vanished {
            // Its object went without us. Its modules go on until somebody says otherwise.
            let fate = |addon: &RegisteredAddon| self.fate(modules, addon, Fate::Retain);
            self.registration.replace(&mut change, key, Vec::new(), fate);
        }
        let keys: BTreeSet<SourceKey> = keys.union(vanished).cloned().collect();
        self.registration.settle(&mut change, &keys, |addon| {
            let wanted = match addon {
                addon if addon.is_withdrawn || self.is_orphan(addon) => Fate::Withdraw,
                addon if addon.is_held => Fate::Hold,
                _ => Fate::Retain,
            };
            self.fate(modules, addon, wanted)
        });
        self.registration.forget_left(&mut change, &keys, |addon, namespace| {
            let target = ReleaseTarget::of_operator(namespace.unwrap_or(&self.config.namespace));
            target != self.target_of(addon) && modules.may_be_in(&addon.bundle.name, &target)
        });
        self.count_starts(modules, &mut change);
        self.end_trials(modules, &mut change, self.sweep.tried());
        change
    }

    /// Returns the configurations that have registered addons and no object.
    fn vanished(&self) -> BTreeSet<SourceKey> {
        let has_any = |key: &&SourceKey| self.registration.of(key).iter().any(RegisteredAddon::holds_id);
        let known_kinds = self.sweep.gone().filter(|key| self.watches.is_listed(key.kind));
        known_kinds.filter(|key| self.is_gone(key)).filter(has_any).cloned().collect()
    }

    /// Returns whether a configuration has no object.
    pub(super) fn is_gone(&self, key: &SourceKey) -> bool {
        self.known.get(key).is_none_or(|source| source.object.is_none())
    }

    /// Returns whether the configuration of a module that goes on is ready without it, and nobody else wants it.
    fn is_orphan(&self, addon: &RegisteredAddon) -> bool {
        let source = self.known.get(&addon.source).filter(|source| source.is_there() && source.is_decided());
        let is_ready = source.is_some_and(|source| source.phase() == SourcePhase::Ready);
        is_ready && !self.known.is_wanted_elsewhere(&addon.source, addon)
    }
}

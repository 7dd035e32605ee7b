//! Looks after modules that are registered no more: they leave the registry when they are removed, and are removed when
//! nobody wants them any more.

use std::collections::BTreeSet;

use super::known::{Source, work_key};
use super::pass::{failed, sweep_key};
use super::registration::{Fate, Registration};
use super::sources::Sources;
use super::status::SourcePhase;
use crate::addon::{RegisteredAddon, SourceKey};
use crate::cause::Cause;
use crate::context::Context;
use crate::module::Modules;
use crate::name::Scope;
use crate::notice::Notice;
use crate::reconcile::{Step, WorkKey};

impl Sources {
    /// Has the registry looked at, if something in it would change.
    pub(super) fn look_for_sweep(&mut self, modules: &Modules, cx: &mut Context) {
        if !std::mem::take(&mut self.sweep.is_wanted) || !self.watches.is_any_listed() {
            return;
        }
        let may_differ =
            std::mem::take(&mut self.sweep.is_any_gone) || self.index.unsettled().next().is_some();
        if may_differ && self.swept(modules) != self.registration {
            self.reconciles.request(cx, &sweep_key(), &Cause::outside("modules"));
        }
    }

    pub(super) fn advance_sweep(&mut self, modules: &Modules, cx: &mut Context, work: &WorkKey) -> Step {
        if std::mem::take(&mut self.sweep.is_writing) {
            let failure = failed(self.sweep.answer.take());
            if failure.is_none() {
                self.registered(cx);
            }
            self.release(work);
            return failure.map_or(Step::Done, Step::Failed);
        }
        if let Err(step) = self.hold(work) {
            return step;
        }
        let next = self.swept(modules);
        if next == self.registration {
            self.release(work);
            return Step::Done;
        }
        self.warn_of_vanished(cx);
        self.sweep.is_writing = true;
        self.keep(cx, next)
    }

    /// Makes the configurations go on that wait for the removal of their modules.
    pub(super) fn resume_removals(&mut self) {
        let is_deleting = |source: &Source| source.object.as_ref().is_some_and(|object| object.is_deleting);
        let deleting = self.known.iter().filter(|(_, source)| is_deleting(source));
        let deleting: Vec<SourceKey> = deleting.map(|(key, _)| key.clone()).collect();
        for key in deleting {
            self.reconciles.resume(&work_key(&key));
        }
    }

    /// Returns the registry as it is to be.
    fn swept(&self, modules: &Modules) -> Registration {
        let mut next = self.registration.clone();
        for key in self.vanished() {
            // Its object went without us. Its modules go on until somebody says otherwise.
            next.replace(&key, Vec::new(), &BTreeSet::new(), |addon| self.fate(modules, addon, Fate::Retain));
        }
        next.settle(|addon| {
            let wanted = match addon {
                addon if addon.is_withdrawn || self.is_orphan(addon) => Fate::Withdraw,
                addon if addon.is_held => Fate::Hold,
                _ => Fate::Retain,
            };
            self.fate(modules, addon, wanted)
        });
        next
    }

    /// Returns the configurations that have registered addons and no object.
    fn vanished(&self) -> Vec<SourceKey> {
        let has_any = |key: &&SourceKey| self.registration.of(key).iter().any(RegisteredAddon::holds_id);
        let is_gone = |key: &&SourceKey| self.known.get(*key).is_none_or(|source| source.object.is_none());
        let known_kinds = self.registration.sources().filter(|key| self.watches.is_listed(key.kind));
        known_kinds.filter(is_gone).filter(has_any).cloned().collect()
    }

    fn warn_of_vanished(&self, cx: &mut Context) {
        for key in self.vanished() {
            let message = format!(
                "{key} is gone without its finalizer; its modules go on until they are switched off, or until it is there again and deleted"
            );
            cx.notify(Notice::Warned { scope: Scope::Global, message });
        }
    }

    /// Returns whether the configuration of a module that goes on is ready without it, and nobody else wants it.
    fn is_orphan(&self, addon: &RegisteredAddon) -> bool {
        let source = self.known.get(&addon.source).filter(|source| source.is_there() && source.is_decided());
        let is_ready = source.is_some_and(|source| source.phase() == SourcePhase::Ready);
        is_ready && !self.is_wanted_elsewhere(&addon.source, addon)
    }
}

//! The end of a configuration: its modules are removed, then those that failed may try again, then its object goes.

use std::collections::BTreeMap;

use super::known::{Source, work_key};
use super::known_sources::Role;
use super::pass::{DeletePass, Go, Pass, SourceAnswer, failed, store_failure};
use super::patches;
use super::registration::{Change, Fate};
use super::sources::Sources;
use super::status::SourcePhase;
use crate::addon::{DeletionPolicy, RegisteredAddon, SourceKey};
use crate::context::Context;
use crate::failure::Failure;
use crate::module::{Modules, Phase};
use crate::name::ModuleName;
use crate::notice::Notice;
use crate::reconcile::Step;

impl Sources {
    pub(super) fn advance_delete(
        &mut self,
        modules: &Modules,
        cx: &mut Context,
        key: &SourceKey,
        pass: DeletePass,
        answer: Option<SourceAnswer>,
    ) -> Go {
        let leave = |step| Go::Stop(Pass::Idle, step);
        let on = |next| Go::On(Pass::Deleting(next));
        match pass {
            DeletePass::Begin => self.withdraw(modules, cx, key),
            DeletePass::Keeping => {
                let outcome = match answer {
                    Some(SourceAnswer::Kept(Err(error))) => Err(store_failure(error)),
                    _ => Ok(()),
                };
                if outcome.is_ok() {
                    self.registered(modules, cx);
                }
                self.release(&work_key(key));
                match outcome {
                    Ok(()) => on(DeletePass::Removing),
                    Err(failure) => match self.tell_hanging(cx, key, &failure) {
                        Some(step) => Go::Stop(Pass::Deleting(DeletePass::Hanging), step),
                        None => leave(Step::Failed(failure)),
                    },
                }
            }
            DeletePass::Hanging => {
                let hanging = self.known.get_mut(key).and_then(|source| source.hanging.take());
                let failure = failed(answer);
                if failure.is_none() {
                    self.note_written(cx, key);
                }
                leave(failure.or(hanging).map_or(Step::Done, Step::Failed))
            }
            DeletePass::Removing => {
                let is_written = answer.is_some();
                if let Some(failure) = failed(answer) {
                    return leave(Step::Failed(failure));
                }
                if is_written {
                    self.note_written(cx, key);
                }
                if let Some(step) = self.await_removals(modules, cx, key) {
                    return Go::Stop(Pass::Deleting(DeletePass::Removing), step);
                }
                self.tell_removed(cx, key);
                self.choose_bumps(key);
                on(DeletePass::Bumping)
            }
            DeletePass::Bumping => match self.bump(cx, key, answer) {
                Some(Ok(step)) => Go::Stop(Pass::Deleting(DeletePass::Bumping), step),
                Some(Err(failure)) => leave(Step::Failed(failure)),
                None => {
                    let object = self.known.get(key).and_then(|source| source.object.as_ref());
                    match object.filter(|object| object.has_finalizer()) {
                        None => leave(Step::Done),
                        Some(object) => {
                            let step = patches::set_finalizer(cx, key, object, false);
                            self.announce_end(cx, key);
                            Go::Stop(Pass::Deleting(DeletePass::Unfinalizing), step)
                        }
                    }
                }
            },
            DeletePass::Unfinalizing => leave(self.unfinalized(cx, key, answer)),
        }
    }

    /// Goes on after the finalizer was removed, or was not.
    fn unfinalized(&mut self, cx: &mut Context, key: &SourceKey, answer: Option<SourceAnswer>) -> Step {
        if let Some(failure) = failed(answer) {
            return Step::Failed(failure);
        }
        // What the watch says may be older for a moment.
        let object = self.known.get_mut(key).and_then(|source| source.object.as_mut());
        if let Some(object) = object {
            object.finalizers.clear();
        }
        let message = format!("{key} is deleted: its finalizer is removed");
        cx.notify(Notice::SourceReleases { message });
        Step::Done
    }

    /// Takes what the configuration registered out of the registry, or has it removed first.
    fn withdraw(&mut self, modules: &Modules, cx: &mut Context, key: &SourceKey) -> Go {
        let policy = self.known.get(key).and_then(|source| {
            let object = source.object.as_ref().filter(|object| object.has_finalizer())?;
            Some(object.spec.deletion_policy)
        });
        let Some(policy) = policy else { return Go::Stop(Pass::Idle, Step::Done) };
        // Hooks of bundles that are found again run at the end of their modules.
        if let Some(go) = self.restore_bundles(cx, key) {
            return go;
        }
        if let Some(step) = self.await_restored(key) {
            return Go::Stop(Pass::Deleting(DeletePass::Begin), step);
        }
        if let Err(step) = self.hold(&work_key(key)) {
            return Go::Stop(Pass::Deleting(DeletePass::Begin), step);
        }
        let mut change = Change::default();
        let wanted = match policy {
            DeletionPolicy::Delete => Fate::Withdraw,
            DeletionPolicy::Retain => Fate::Retain,
        };
        let fate = |addon: &RegisteredAddon| self.fate(modules, addon, wanted);
        self.registration.replace(&mut change, key, Vec::new(), fate);
        if change.is_empty() {
            self.release(&work_key(key));
            return Go::On(Pass::Deleting(DeletePass::Removing));
        }
        let step = self.keep(cx, change);
        Go::Stop(Pass::Deleting(DeletePass::Keeping), step)
    }

    /// Says in the status why the deletion does not begin; `None` if that stands there.
    fn tell_hanging(&mut self, cx: &mut Context, key: &SourceKey, failure: &Failure) -> Option<Step> {
        let message = format!("it is being deleted, and waits until the registry can be written: {failure}");
        let now = self.config.time_of_day(cx.now);
        let source = self.known.get_mut(key)?;
        let object = source.object.as_ref()?;
        let status = object.status.hanging(&message);
        if object.status == status || source.is_left_alone() {
            return None;
        }
        let step = patches::set_status(cx, key, object, &status, (&now, &now));
        (source.desired, source.is_written) = (Some(status), false);
        // What it waits for next is something else.
        (source.hanging, source.removing) = (Some(failure.clone()), Some(BTreeMap::new()));
        self.announce(cx, key, (true, "RemovalFailed"), format!("{key}: {message}"));
        Some(step)
    }

    /// Tells in the log that the modules of a configuration that is being deleted are removed, or go on.
    fn tell_removed(&self, cx: &mut Context, key: &SourceKey) {
        let source = self.known.get(key).filter(|source| !source.is_bumped);
        let Some(object) = source.and_then(|source| source.object.as_ref()) else { return };
        let what = match object.spec.deletion_policy {
            DeletionPolicy::Delete => "what it brought is removed",
            DeletionPolicy::Retain => "what it brought goes on",
        };
        cx.notify(Notice::SourceReleases { message: format!("{key} is being deleted: {what}") });
    }

    /// Waits for the removal of the modules that are left, and says so in the status; `None` if none is.
    fn await_removals(&mut self, modules: &Modules, cx: &mut Context, key: &SourceKey) -> Option<Step> {
        let left = self.registration.of(key).iter().filter(|addon| addon.is_withdrawn);
        let left: BTreeMap<ModuleName, Option<String>> =
            left.map(|addon| (addon.bundle.name.clone(), self.removal_error(modules, addon))).collect();
        if left.is_empty() {
            return None;
        }
        let names: Vec<&str> = left.keys().map(ModuleName::as_str).collect();
        let what = format!("the removal of modules {}", names.join(", "));
        let failed = left.iter().find_map(|(name, error)| Some(format!("; {name}: {}", error.as_ref()?)));
        let wait_of = |name: &ModuleName| modules.removal_wait_of(name).map(str::to_owned);
        let removing: BTreeMap<ModuleName, Option<String>> =
            left.keys().map(|name| (name.clone(), wait_of(name))).collect();
        // What holds up an attempt that is under way counts for more than why the one before failed.
        let waits =
            removing.iter().find_map(|(name, wait)| Some(format!("; {name} waits for {}", wait.as_ref()?)));
        let detail = waits.as_ref().or(failed.as_ref()).map_or("", String::as_str);
        let message = format!("it is being deleted, and waits for {what}{detail}");
        let now = self.config.time_of_day(cx.now);
        let source = self.known.get_mut(key)?;
        let object = source.object.as_ref()?;
        // After a restart nothing was tried yet, and what the object says is still so.
        let is_same = source.removing.as_ref().map_or(waits.is_none(), |before| *before == removing);
        source.removing = Some(removing);
        let is_said = is_same && failed.is_none() && object.status.is_deleting;
        let status = object.status.deleting(&message, &left);
        if is_said || object.status == status || source.is_left_alone() {
            return Some(Step::Wait(what));
        }
        let step = patches::set_status(cx, key, object, &status, (&now, &now));
        (source.desired, source.is_written) = (Some(status), false);
        // Each attempt that fails alike would be told anew.
        if failed.is_some() && waits.is_none() && source.announced_removal != failed {
            source.announced_removal = failed;
            self.announce(cx, key, (true, "RemovalFailed"), format!("{key}: {message}"));
        }
        Some(step)
    }

    /// Returns why a module was not removed, if that was tried and failed.
    fn removal_error(&self, modules: &Modules, addon: &RegisteredAddon) -> Option<String> {
        if addon.is_displaced() {
            return self.removals.error_of(addon);
        }
        let is_tried =
            modules.get(&addon.bundle.name).is_some_and(|module| module.phase() == Phase::Deleting);
        is_tried.then(|| modules.error_of(&addon.bundle.name)).flatten()
    }

    /// Chooses all that failed in the scope, if the configuration was ready: what it had is free now.
    fn choose_bumps(&mut self, key: &SourceKey) {
        let Some(source) = self.known.get(key).filter(|source| !source.is_bumped) else { return };
        // The object says so until the end, also over a restart between the removal and this.
        let was_ready = source.object.as_ref().is_some_and(|object| object.status.was_ready());
        let failed = |other: &Source| other.is_there() && other.phase() == SourcePhase::Failed;
        let blocked = self.known.blocked_by(key).filter(|(_, other)| failed(other));
        let all = self.known.in_scope(Role::Failed, key).chain(blocked).filter(|(other, _)| *other != key);
        let bumps = all.map(|(other, _)| other.clone()).filter(|_| was_ready).collect();
        if let Some(source) = self.known.get_mut(key) {
            (source.bumps, source.is_bumped) = (bumps, true);
        }
    }
}

//! Changed files: only what differs is put into force.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::files::FileChanges;
use super::state::Release;
use super::{Lower, ModuleState, Modules, Phase, hooks};
use crate::catalog::{Catalog, Global, Hook, Module, clash};
use crate::cause::Cause;
use crate::drift_settings::DriftMode;
use crate::effect::Effect;
use crate::failure::{Failure, FailureKind};
use crate::name::{HookId, ModuleName, QueueName, Scope};
use crate::notice::Notice;
use crate::queue::End;

/// What changed files mean for modules.
#[derive(Debug, Default)]
pub(crate) struct Reloaded {
    /// These differ and have to run again.
    pub(crate) modules: BTreeSet<ModuleName>,
    /// Modules came or went.
    pub(crate) others: bool,
    /// All have to run again: a module moved, or something global differs.
    pub(crate) everything: bool,
}

impl Modules {
    /// Puts changed files into force. `is_converged` says whether the schedules of global hooks are on.
    pub(crate) fn reload(
        &mut self,
        lower: &mut Lower<'_>,
        new: Catalog,
        is_converged: bool,
        cause: &Cause,
    ) -> Reloaded {
        if self.warnings != new.warnings {
            let known: BTreeSet<&String> = self.warnings.iter().collect();
            for message in new.warnings.iter().filter(|message| !known.contains(message)) {
                lower.cx.notify(Notice::Warned { scope: Scope::Global, message: message.clone() });
            }
            self.warnings = new.warnings;
        }
        self.complete = new.complete;
        self.has_departures = true;
        let old = Arc::clone(&self.global);
        self.in_service += 1;
        self.global = self.broken_files.repair(lower.cx, lower.configuration, &old, &new.global);
        let everything = self.reload_global(lower, &old, is_converged, cause);
        let mut reloaded = self.reload_modules(lower, new.modules);
        reloaded.everything |= everything;
        reloaded
    }

    /// Puts changed global files into force. Returns whether all modules have to run again.
    fn reload_global(
        &mut self,
        lower: &mut Lower<'_>,
        old: &Arc<Global>,
        is_converged: bool,
        cause: &Cause,
    ) -> bool {
        let new = Arc::clone(&self.global);
        if Arc::ptr_eq(old, &new) || **old == *new {
            return false;
        }
        let mut everything = false;
        if old.static_values != new.static_values || old.schemas != new.schemas {
            let (statics, schemas) = (&new.static_values, &new.schemas);
            let scope = Scope::Global;
            match lower.configuration.set_statics(lower.cx, &scope, statics, schemas, &Arc::default()) {
                Ok(differs) => everything |= differs,
                Err(error) => {
                    let message = format!(
                        "the changed values of global can't be used, the old ones stay in force: {error}"
                    );
                    lower.cx.notify(Notice::Warned { scope: Scope::Global, message });
                }
            }
        }
        let find = |hooks: &[Arc<Hook>], id: &HookId| hooks.iter().find(|hook| hook.id == *id).cloned();
        for hook in &old.hooks {
            let now = find(&new.hooks, &hook.id);
            let same_bindings = now.as_ref().is_some_and(|now| has_same_bindings(now, hook));
            if !same_bindings {
                lower.bindings.disable(lower.cx, &hook.id);
            }
            lower.bindings.disable_schedules(hook, 0);
            if now.is_none() {
                lower.drop_tasks(|task| task.hook_run().is_none_or(|run| run.hook != hook.id));
            }
        }
        let mut fresh = Vec::new();
        for hook in &new.hooks {
            if find(&old.hooks, &hook.id).as_ref() == Some(hook) {
                continue;
            }
            everything |= hook.spec.is_of_converge();
            fresh.push(Arc::clone(hook));
        }
        self.index_global_hooks(lower);
        everything |= lower.configuration.retain_flags_of(&new.hooks);
        if is_converged {
            self.enable_global_schedules(lower.bindings);
        }
        let tasks = hooks::startup_tasks(lower.cx, &fresh, cause);
        lower.queues.put(lower.cx, &QueueName::main(), End::Back, tasks);
        everything
    }

    /// Puts changed modules into force.
    fn reload_modules(&mut self, lower: &mut Lower<'_>, new: Arc<Vec<Arc<Module>>>) -> Reloaded {
        let mut reloaded = Reloaded::default();
        let FileChanges { gone, came } = self.files.replace(new);
        for module in &gone {
            reloaded.others = true;
            self.orphan(lower, &module.name);
        }
        if !gone.is_empty() {
            let names: BTreeSet<&ModuleName> = gone.iter().map(|module| &module.name).collect();
            lower.drop_tasks(|task| !task.module().is_some_and(|name| names.contains(name)));
        }
        let mut added = Vec::new();
        let all = self.files.to_look_at(came);
        for module in &all {
            lower.configuration.undecided_mut().add(&module.name);
            let module = &self.with_hooks(&self.with_package(module));
            match self.states.get_mut(&module.name) {
                None => {
                    reloaded.others = true;
                    added.push(module.name.clone());
                    let mut state = ModuleState::new(Arc::clone(module), lower.cx.now);
                    // Its bundle may have been lost, and its release not.
                    let target = self.target_of(lower.configuration, &module.name, Some(&**module));
                    let may_be_there = self.ownerless.take(&module.name, &target);
                    // Only what was listed is known to be there.
                    state.is_active = may_be_there && self.are_releases_known;
                    state.may_have_run =
                        may_be_there || lower.configuration.withdrawn_by(&module.name).is_some();
                    self.add(lower, state);
                }
                Some(state) if state.phase == Phase::Orphaned => {
                    reloaded.others = true;
                    added.push(module.name.clone());
                    let (release, places) = (state.release, state.places.clone());
                    let mut state = ModuleState::new(Arc::clone(module), lower.cx.now);
                    (state.release, state.places) = (release, places);
                    // Its release is there: switched off, it has to be removed.
                    state.is_active = true;
                    self.add(lower, state);
                }
                Some(state) if Arc::ptr_eq(&state.spec, module) || *state.spec == **module => {
                    state.broken_version = None;
                    self.files.in_force(&module.name);
                }
                Some(state) => {
                    if let Some(failure) = module.broken.as_ref().filter(|_| state.spec.broken.is_none()) {
                        self.keep_old_version(lower, module, failure.clone());
                        continue;
                    }
                    if state.spec.order != module.order || state.spec.enabled != module.enabled {
                        reloaded.everything = true;
                        lower.configuration.undecided_mut().add_all();
                    }
                    match self.adopt_module(lower, module) {
                        Ok(()) => drop(reloaded.modules.insert(module.name.clone())),
                        Err(failure) => self.keep_old_version(lower, module, failure),
                    }
                }
            }
        }
        if !(gone.is_empty() && all.is_empty()) {
            lower.configuration.replace_keys(&gone, &all);
            lower.configuration.reread_config_map(lower.cx, &added, &gone);
        }
        self.find_circles(lower.configuration);
        reloaded
    }

    fn add(&mut self, lower: &mut Lower<'_>, state: ModuleState) {
        if state.spec.names_charts() {
            self.chart_changes.insert(state.spec.name.clone());
        }
        lower.configuration.add_module(lower.cx, &state.spec);
        lower.bindings.limit(&state.spec.hooks);
        self.files.adopted(&state.spec);
        let name = state.spec.name.clone();
        self.states.insert(name.clone(), state);
        self.note_left(lower.configuration, &name);
    }

    /// Leaves the old version of a module in force instead of the `new` one; its tasks wait until a better one comes.
    fn keep_old_version(&mut self, lower: &mut Lower<'_>, new: &Module, failure: Failure) {
        let name = &new.name;
        let Some(state) = self.states.get_mut(name) else { return };
        self.files.not_in_force(name, new.order);
        if state.broken_version.as_ref().is_some_and(|known| known.repeats(&failure)) {
            return;
        }
        let message = if state.spec.broken.is_none() {
            format!("the new version of module {name} can't be used, the old one stays in force: {failure}")
        } else {
            format!("module {name} still can't be used: {failure}")
        };
        lower.cx.notify(Notice::Warned { scope: Scope::Module(name.clone()), message });
        // What it quotes may not be a value any more when somebody reads it.
        state.broken_version = Some(lower.configuration.told(failure, Some(name), None));
    }

    /// Returns why a module can't be used beside the others: a hook of it has the finalizer of one of theirs for the same kind.
    pub(crate) fn clash(&self, module: &Module) -> Option<Failure> {
        let is_other = |other: &&ModuleState| {
            other.spec.name != module.name && other.spec.broken.is_none() && other.phase != Phase::Orphaned
        };
        let others = self.states.values().filter(is_other).flat_map(|other| &other.spec.hooks);
        let others: Vec<&Arc<Hook>> = self.global.hooks.iter().chain(others).collect();
        let mut controllers = module.hooks.iter().filter(|hook| !hook.spec.reconciles.is_empty());
        controllers.find_map(|hook| clash(others.iter().copied(), hook))
    }

    /// Puts a new version of a module's files into force.
    ///
    /// Configuration and patches of hooks stay; bindings that are gone or different are switched off.
    pub(crate) fn adopt_module(&mut self, lower: &mut Lower<'_>, new: &Arc<Module>) -> Result<(), Failure> {
        let new = &self.with_package(new);
        let name = &new.name;
        let Some(module) = self.states.get_mut(name) else { return Ok(()) };
        let scope = Scope::Module(name.clone());
        let (statics, schemas, presets) = (&new.static_values, &new.schemas, &new.plans.presets);
        lower.configuration.set_statics(lower.cx, &scope, statics, schemas, presets).map_err(|error| {
            Failure::of(FailureKind::Values, &error).advise("correct values.yaml of the module")
        })?;
        module.provisions = module.carried(new);
        let old = std::mem::replace(&mut module.spec, Arc::clone(new));
        if old.chart != new.chart || old.dependencies.named != new.dependencies.named {
            self.chart_changes.insert(name.clone());
        }
        if old.origin.digest() != new.origin.digest() {
            (module.package_failures, module.is_package_good) = (0, false);
        }
        if old.origin.digest() != new.origin.digest() && module.is_active {
            // Its code is new as a whole, whatever parts are as they were.
            module.started_hooks.clear();
            module.is_reloaded = true;
        }
        module.broken_version = None;
        self.in_service += 1;
        self.files.in_force(name);
        self.files.adopted(new);
        lower.configuration.undecided_mut().add(name);
        let schedules_on = std::mem::take(&mut module.schedules_on);
        for hook in &old.hooks {
            if schedules_on {
                lower.bindings.disable_schedules(hook, old.order);
            }
            let stays = new.hooks.iter().any(|other| other.id == hook.id && has_same_bindings(other, hook));
            if !stays || old.order != new.order {
                lower.bindings.disable(lower.cx, &hook.id);
            }
        }
        lower.bindings.limit(&new.hooks);
        self.note_lender(lower, &old, new);
        if schedules_on {
            self.enable_schedules(lower, name);
        }
        lower.configuration.reread_config_map(lower.cx, [name], &[]);
        if old.settings.drift != new.settings.drift {
            self.adopt_drift_settings(lower, name);
        }
        Ok(())
    }

    /// Has the objects of a release looked after as its module wants it now.
    fn adopt_drift_settings(&mut self, lower: &mut Lower<'_>, name: &ModuleName) {
        let target = self.release_place(lower.configuration, name);
        let Some(module) = self.states.get_mut(name).filter(|module| module.release_watched) else { return };
        let drift = module.spec.settings.drift.clone();
        let name = name.clone();
        match drift.mode {
            DriftMode::Off => {
                module.release_watched = false;
                module.drift.clear();
                lower.cx.push(Effect::ForgetRelease { module: name, target });
                return;
            }
            DriftMode::Watch => {}
            DriftMode::Enforce => {
                for object in module.drift.differing_objects() {
                    self.mends.put(lower.cx.now, (name.clone(), object.into()));
                }
            }
        }
        lower.cx.push(Effect::WatchRelease { module: name, target, drift });
    }

    /// Stops the hooks of a module whose directory is gone. Its release stays. Its tasks are still to be dropped.
    fn orphan(&mut self, lower: &mut Lower<'_>, name: &ModuleName) {
        let scope = Scope::Module(name.clone());
        let target = self.release_place(lower.configuration, name);
        self.disable_schedules(lower.bindings, name);
        lower.bindings.disable_scope(lower.cx, &scope);
        let Some(module) = self.states.get_mut(name) else { return };
        if module.spec.names_charts() {
            self.chart_changes.insert(name.clone());
        }
        let may_have_release = match module.release {
            Release::Absent => false,
            Release::Unknown => module.spec.has_chart && !self.are_releases_known,
            Release::Broken | Release::Deployed { .. } | Release::Unmanaged => true,
        };
        let leaves_something = module.is_active || (module.is_on() && may_have_release);
        if module.is_on() {
            lower.configuration.undecided_mut().add_all();
        }
        self.files.orphaned(name, leaves_something);
        if !leaves_something {
            // Nothing of it was ever begun, so nothing of it stays.
            self.states.remove(name);
            lower.configuration.remove_module(lower.cx, name);
            lower.cx.notify(Notice::ModuleLeft { module: name.clone() });
            return;
        }
        module.never_began = !module.is_active;
        module.reset();
        let was_watched = std::mem::take(&mut module.release_watched);
        let left = if module.may_have_release() { "its release stays" } else { "what its hooks did stays" };
        let why = format!("its directory is gone; {left} until the next start or `module purge`");
        self.set_phase(lower.cx, lower.configuration, name, Phase::Orphaned, Some(why));
        if was_watched {
            lower.cx.push(Effect::ForgetRelease { module: name.clone(), target });
        }
        lower.cx.notify(Notice::MetricsForgotten { scope });
    }
}

/// Returns whether two versions of a hook watch the same.
fn has_same_bindings(one: &Hook, other: &Hook) -> bool {
    (&one.spec.kubernetes, &one.spec.reconciles) == (&other.spec.kubernetes, &other.spec.reconciles)
}

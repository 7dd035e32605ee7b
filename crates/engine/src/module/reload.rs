//! Changed files: only what differs is taken up again.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::catalog::{Catalog, Global, Hook, Module};
use crate::cause::Cause;
use crate::configuration::sections::module_section;
use crate::effect::Effect;
use crate::engine::{Engine, Life};
use crate::hook::Lifecycle;
use crate::module::{ModuleState, Phase};
use crate::name::{HookId, ModuleName, QueueName, Scope};
use crate::notice::Notice;
use crate::queue::fifo::Reason;

impl Engine {
    /// Takes in that files changed.
    pub(crate) fn catalog_changed(&mut self, new: Catalog) {
        if self.life == Life::New {
            self.catalog = new;
            self.global = crate::configuration::sections::global_section(&self.catalog.global);
            self.modules.clear();
            self.sections.clear();
            self.index_catalog();
            return;
        }
        let cause = Cause::outside("files changed");
        for message in &new.warnings {
            if !self.catalog.warnings.contains(message) {
                self.notify(Notice::Warned { scope: Scope::Global, message: message.clone() });
            }
        }
        let old = std::mem::replace(&mut self.catalog, new);
        self.catalog.global = self.repaired(&old.global, &Arc::clone(&self.catalog.global));
        let everything = self.reload_global(&old.global, &cause);
        let changed = self.reload_modules(&old);
        self.cancel_main_backoff();
        self.queues
            .wake(|reason| matches!(reason, Reason::BrokenVersion(_) | Reason::Kind(_) | Reason::List(_)));
        if !self.converge.has_begun {
            return;
        }
        if everything || changed.set {
            self.restart_converge("ReloadAll-After-FilesChange", "ReloadAllModules", false, &cause);
        } else if !changed.modules.is_empty() {
            self.look_again(changed.modules, "Files-Changed-Modules", "ReloadAllModules", &cause);
        }
    }

    /// Takes up changed global files. Returns whether all modules have to run again.
    fn reload_global(&mut self, old: &Arc<Global>, cause: &Cause) -> bool {
        let new = Arc::clone(&self.catalog.global);
        if Arc::ptr_eq(old, &new) || **old == *new {
            return false;
        }
        let mut everything = false;
        if old.static_values != new.static_values || old.schemas != new.schemas {
            let statics = serde_json::Value::clone(&new.static_values);
            match self.global.with_statics(statics, Arc::clone(&new.schemas)) {
                Ok(section) => {
                    everything |= section.result() != self.global.result();
                    self.global = section;
                }
                Err(error) => {
                    let message = format!(
                        "the changed values of global can't be used, the old ones stay in force: {error}"
                    );
                    self.notify(Notice::Warned { scope: Scope::Global, message });
                }
            }
        }
        let find = |hooks: &[Arc<Hook>], id: &HookId| hooks.iter().find(|hook| hook.id == *id).cloned();
        for hook in &old.hooks {
            let now = find(&new.hooks, &hook.id);
            let same_bindings = now.as_ref().is_some_and(|now| now.spec.kubernetes == hook.spec.kubernetes);
            if !same_bindings {
                self.disable_hook_bindings(&hook.id);
            }
            self.schedules.disable(hook, 0);
            if now.is_none() {
                self.drop_tasks_of_hook(&hook.id);
            }
        }
        let mut fresh = Vec::new();
        for hook in &new.hooks {
            let before = find(&old.hooks, &hook.id);
            if before.as_ref().is_some_and(|before| before == hook) {
                continue;
            }
            everything |= hook.spec.order(Lifecycle::BeforeAll).is_some()
                || hook.spec.order(Lifecycle::AfterAll).is_some();
            fresh.push(Arc::clone(hook));
        }
        self.index_global_hooks();
        let before = self.dynamic_flags.len();
        let hooks = &self.global_hooks;
        self.dynamic_flags.retain(|_, flag| hooks.contains_key(&flag.hook.name));
        everything |= before != self.dynamic_flags.len();
        if self.is_ready() {
            self.enable_global_schedules();
        }
        let tasks = self.startup_tasks(&fresh, cause);
        self.put_back(&QueueName::main(), tasks);
        everything
    }

    fn drop_tasks_of_hook(&mut self, hook: &HookId) {
        for queue in self.queues.names() {
            let dropped =
                self.queues.retain(&queue, |task| task.hook_run().is_none_or(|run| run.hook != *hook));
            self.forget(&queue, &dropped);
        }
    }

    /// Takes up changed modules.
    fn reload_modules(&mut self, old: &Catalog) -> Reloaded {
        let mut reloaded = Reloaded::default();
        let new: Vec<Arc<Module>> = self.catalog.modules.clone();
        let names: BTreeSet<&ModuleName> = new.iter().map(|module| &module.name).collect();
        for module in old.modules.iter().filter(|module| !names.contains(&module.name)) {
            reloaded.set = true;
            self.orphan(&module.name);
        }
        for (place, module) in new.iter().enumerate() {
            match self.modules.get(&module.name) {
                None => {
                    reloaded.set = true;
                    let state = ModuleState::new(Arc::clone(module), self.now);
                    self.modules.insert(module.name.clone(), state);
                    self.sections.insert(module.name.clone(), module_section(module));
                    self.index_hooks(&module.hooks);
                }
                Some(state) if state.phase == Phase::Orphaned => {
                    reloaded.set = true;
                    self.adopt_orphan(module);
                }
                Some(state) if Arc::ptr_eq(&state.spec, module) || *state.spec == **module => {
                    if let Some(state) = self.modules.get_mut(&module.name) {
                        state.broken_version = None;
                    }
                }
                Some(state) => {
                    let is_new_break = module.broken.is_some() && state.spec.broken.is_none();
                    if is_new_break {
                        let in_force = Arc::clone(&state.spec);
                        self.keep_old_version(module, in_force, place);
                        continue;
                    }
                    reloaded.set |= state.spec.order != module.order || state.spec.enabled != module.enabled;
                    match self.adopt_module(module) {
                        Ok(()) => {
                            reloaded.modules.insert(module.name.clone());
                        }
                        Err(failure) => {
                            let broken = Module { broken: Some(failure), ..Module::clone(module) };
                            let in_force =
                                self.modules.get(&module.name).map(|state| Arc::clone(&state.spec));
                            self.keep_old_version(
                                &broken,
                                in_force.unwrap_or_else(|| Arc::clone(module)),
                                place,
                            );
                        }
                    }
                }
            }
        }
        self.order = self.catalog.modules.iter().map(|module| module.name.clone()).collect();
        self.keys = self
            .catalog
            .modules
            .iter()
            .map(|module| (Arc::clone(&module.key), module.name.clone()))
            .collect();
        self.reread_config(
            &self
                .order
                .iter()
                .filter(|name| !old.modules.iter().any(|m| m.name == **name))
                .cloned()
                .collect(),
        );
        reloaded
    }

    /// Leaves the old version of a module in force; its tasks wait until a better one comes.
    fn keep_old_version(&mut self, broken: &Module, in_force: Arc<Module>, place: usize) {
        let failure = broken.broken.clone();
        let message = failure.as_ref().map(ToString::to_string).unwrap_or_default();
        let message = format!(
            "the new version of module {} can't be used, the old one stays in force: {message}",
            broken.name
        );
        let is_known = self.modules.get(&broken.name).is_some_and(|state| state.broken_version == failure);
        if !is_known {
            self.notify(Notice::Warned { scope: Scope::Module(broken.name.clone()), message });
        }
        if let Some(entry) = self.catalog.modules.get_mut(place) {
            *entry = in_force;
        }
        if let Some(state) = self.modules.get_mut(&broken.name) {
            state.broken_version = failure;
        }
    }

    /// Stops the hooks of a module whose directory is gone. Its release stays.
    fn orphan(&mut self, name: &ModuleName) {
        self.disable_module_schedules(name);
        self.disable_bindings(&Scope::Module(name.clone()));
        let Some(module) = self.modules.get_mut(name) else { return };
        if !module.is_active && !module.is_on() {
            self.modules.remove(name);
            self.sections.remove(name);
            return;
        }
        module.reset();
        let was_watched = std::mem::take(&mut module.release_watched);
        let why =
            "its directory is gone; its release stays until the next start or `module purge`".to_owned();
        self.set_phase(name, Phase::Orphaned, Some(why));
        self.drop_tasks_of(name);
        for queue in self.queues.names() {
            let dropped = self.queues.retain(&queue, |task| task.module() != Some(name));
            self.forget(&queue, &dropped);
        }
        if was_watched {
            self.out.push(Effect::ForgetRelease { module: name.clone() });
        }
        self.notify(Notice::MetricsForgotten { scope: Scope::Module(name.clone()) });
    }

    /// Takes a module up again whose directory came back.
    fn adopt_orphan(&mut self, module: &Arc<Module>) {
        let release = self.modules.get(&module.name).map(|state| state.release);
        let mut state = ModuleState::new(Arc::clone(module), self.now);
        state.release = release.unwrap_or(crate::module::Release::Unknown);
        // Its release is there: switched off, it has to be removed.
        state.is_active = true;
        self.modules.insert(module.name.clone(), state);
        self.sections.insert(module.name.clone(), module_section(module));
        self.index_hooks(&module.hooks);
    }
}

/// What changed files mean for modules.
#[derive(Debug, Default)]
struct Reloaded {
    /// These differ and have to run again.
    modules: BTreeSet<ModuleName>,
    /// A module came, went or moved: that concerns all.
    set: bool,
}

//! The values of the catalog: a section for `global` and for each module.

use std::sync::Arc;

use serde_json::{Map, Value};
use values::Section;
use values::patch::Root;

use crate::binding::rate::Rate;
use crate::catalog::{Global, Hook, Module};
use crate::engine::Engine;
use crate::failure::{Failure, FailureKind};
use crate::module::ModuleState;
use crate::name::{ModuleName, Scope};

/// Returns the section of `global` before anything was configured.
pub(crate) fn global_section(global: &Global) -> Section {
    section(Root::Global, &global.static_values, &global.schemas)
}

/// Returns the section of a module before anything was configured.
pub(crate) fn module_section(module: &Module) -> Section {
    section(Root::Module(module.key.to_string()), &module.static_values, &module.schemas)
}

fn section(root: Root, statics: &Arc<Value>, schemas: &Arc<values::schema::Schemas>) -> Section {
    let statics = if statics.is_object() { Value::clone(statics) } else { Value::Object(Map::new()) };
    let made = Section::new(root.clone(), statics, Arc::clone(schemas));
    // Static values that are a map can only fail to merge with themselves; the empty map can't.
    made.or_else(|_| Section::new(root, Value::Object(Map::new()), Arc::default()))
        .unwrap_or_else(|_| unreachable!())
}

impl Engine {
    /// Makes the catalog known: its modules, keys, sections and limits.
    pub(crate) fn index_catalog(&mut self) {
        self.order = self.catalog.modules.iter().map(|module| module.name.clone()).collect();
        self.keys = self
            .catalog
            .modules
            .iter()
            .map(|module| (Arc::clone(&module.key), module.name.clone()))
            .collect();
        for module in self.catalog.modules.clone() {
            let name = module.name.clone();
            self.sections.entry(name.clone()).or_insert_with(|| module_section(&module));
            self.index_hooks(&module.hooks);
            let now = self.now;
            self.modules.entry(name).or_insert_with(|| ModuleState::new(module, now));
        }
        self.index_global_hooks();
    }

    /// Makes the global hooks known by name.
    pub(crate) fn index_global_hooks(&mut self) {
        let hooks = self.catalog.global.hooks.clone();
        self.global_hooks = hooks.iter().map(|hook| (hook.id.name.clone(), Arc::clone(hook))).collect();
        self.index_hooks(&hooks);
    }

    /// Makes the limits and queues of hooks known.
    pub(crate) fn index_hooks(&mut self, hooks: &[Arc<Hook>]) {
        for hook in hooks {
            if hook.spec.settings.execution_min_interval.is_zero() {
                self.rates.remove(&hook.id);
            } else {
                self.rates.entry(hook.id.clone()).or_insert_with(|| Rate::new(&hook.spec.settings));
            }
            if hook.id.scope == Scope::Global {
                for queue in hook.spec.queues() {
                    self.queues.ensure(queue);
                }
            }
        }
    }

    /// Puts a new version of a module's files into force.
    ///
    /// Configuration and patches of hooks stay; bindings that are gone or different are switched off.
    pub(crate) fn adopt_module(&mut self, new: &Arc<Module>) -> Result<(), Failure> {
        let name = new.name.clone();
        let Some(section) = self.sections.get(&name) else { return Ok(()) };
        let statics = if new.static_values.is_object() {
            Value::clone(&new.static_values)
        } else {
            Value::Object(Map::new())
        };
        let section = section.with_statics(statics, Arc::clone(&new.schemas)).map_err(|error| {
            Failure::of(FailureKind::Values, &error).advise("correct values.yaml of the module")
        })?;
        self.sections.insert(name.clone(), section);
        let Some(module) = self.modules.get_mut(&name) else { return Ok(()) };
        let old = std::mem::replace(&mut module.spec, Arc::clone(new));
        module.broken_version = None;
        let schedules_on = std::mem::take(&mut module.schedules_on);
        for hook in &old.hooks {
            if schedules_on {
                self.schedules.disable(hook, old.order);
            }
            let stays = new
                .hooks
                .iter()
                .any(|other| other.id == hook.id && other.spec.kubernetes == hook.spec.kubernetes);
            if !stays || old.order != new.order {
                self.disable_hook_bindings(&hook.id);
            }
        }
        self.index_hooks(&new.hooks);
        if schedules_on {
            self.enable_module_schedules(&name);
        }
        for place in &mut self.catalog.modules {
            if place.name == name {
                *place = Arc::clone(new);
            }
        }
        self.reread_config(&std::iter::once(name).collect());
        Ok(())
    }

    /// Returns the modules that a command may name.
    pub(crate) fn knows(&self, name: &ModuleName) -> bool {
        self.modules.contains_key(name)
    }
}

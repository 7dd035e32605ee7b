//! The sections of values: `global` and one for each module.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use redaction::Secrets;
use serde_json::{Map, Value};
use values::patch::Root;
use values::preset::Presets;
use values::schema::Schemas;
use values::{Section, SectionError};

use super::config_map::ConfigMap;
use super::decision::{DynamicFlag, SourcedModules};
use super::undecided::Undecided;
use crate::addon::RegisteredAddons;
use crate::catalog::{Global, Module};
use crate::config::Config;
use crate::config_object::{ConfigObject, ConfigText};
use crate::context::Context;
use crate::effect::{Basis, Effect, ModuleValues, ValuesInput};
use crate::failure::{Failure, FailureKind};
use crate::name::{CommandId, ModuleName, RunId, Scope};

/// All values, and who said what about which modules are on.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(super) config: Arc<Config>,
    pub(super) global: Section,
    pub(super) sections: BTreeMap<ModuleName, Section>,
    /// The modules by the keys of their sections.
    pub(super) keys: BTreeMap<Arc<str>, ModuleName>,
    pub(super) config_map: ConfigMap,
    /// What global hooks say about modules, by their keys; some of those modules may not be there.
    pub(super) dynamic_flags: BTreeMap<Arc<str>, DynamicFlag>,
    /// The modules of bundles.
    pub(super) sourced: SourcedModules,
    /// What those were read from.
    pub(super) registered: RegisteredAddons,
    /// The modules of which nothing was released, behind the namespaces of their configurations.
    pub(super) unreleased: BTreeSet<(Arc<str>, ModuleName)>,
    pub(super) undecided: Undecided,
    /// Writes of the ConfigMap that commands wait for, and what is answered.
    command_saves: BTreeMap<RunId, (CommandId, String)>,
}

impl Configuration {
    /// Returns the values of the files, before anything was configured.
    pub(crate) fn new(config: Arc<Config>, global: &Global) -> Self {
        Self {
            config,
            global: global_section(global),
            sections: BTreeMap::new(),
            keys: BTreeMap::new(),
            config_map: ConfigMap::default(),
            dynamic_flags: BTreeMap::new(),
            sourced: SourcedModules::new(),
            registered: RegisteredAddons::default(),
            unreleased: BTreeSet::new(),
            undecided: Undecided::default(),
            command_saves: BTreeMap::new(),
        }
    }

    /// Replaces all values by those of the files, before anything was configured.
    pub(crate) fn reset(&mut self, cx: &mut Context, global: &Global) {
        self.redact(cx);
        self.global = global_section(global);
        self.sections.clear();
        self.undecided.add_all();
    }

    /// Makes the keys of exactly these modules known.
    pub(crate) fn set_keys<'m>(&mut self, modules: impl IntoIterator<Item = &'m Arc<Module>>) {
        let keys = modules.into_iter().map(|module| (Arc::clone(&module.key), module.name.clone()));
        let old = std::mem::replace(&mut self.keys, keys.collect());
        for key in old.keys().filter(|key| !self.keys.contains_key(*key)) {
            self.config_map.forget_module(key);
        }
    }

    /// Makes the keys of modules known, and forgets those of others.
    pub(crate) fn replace_keys(&mut self, gone: &[Arc<Module>], came: &[Arc<Module>]) {
        for module in gone {
            if self.keys.get(&module.key) == Some(&module.name) {
                self.keys.remove(&module.key);
            }
        }
        for module in came {
            self.keys.insert(Arc::clone(&module.key), module.name.clone());
        }
        for module in gone.iter().filter(|module| !self.keys.contains_key(&module.key)) {
            self.config_map.forget_module(&module.key);
        }
    }

    /// Returns the modules whose flags may say something else than at the last discovery.
    pub(crate) fn undecided(&self) -> &Undecided {
        &self.undecided
    }

    /// Returns the same to add to it.
    pub(crate) fn undecided_mut(&mut self) -> &mut Undecided {
        &mut self.undecided
    }

    /// Gives a module the values of its files.
    pub(crate) fn add_module(&mut self, cx: &mut Context, module: &Module) {
        let root = Root::Module(module.key.to_string());
        let section = section(root, &module.static_values, &module.schemas);
        let section = section.with_presets(Arc::clone(&module.plans.presets)).unwrap_or(section);
        self.change(cx, &module.name, Some(section));
    }

    /// Removes the values of a module.
    pub(crate) fn remove_module(&mut self, cx: &mut Context, name: &ModuleName) {
        self.change(cx, name, None);
    }

    /// Removes what hooks wrote into the values of a module.
    pub(crate) fn remove_patches(&mut self, cx: &mut Context, name: &ModuleName) {
        if let Some(section) = self.sections.get(name).and_then(|section| section.without_patches().ok()) {
            self.change(cx, name, Some(section));
        }
    }

    /// Puts new values of files into force. Configuration and patches of hooks stay. Returns whether values differ.
    pub(crate) fn set_statics(
        &mut self,
        cx: &mut Context,
        scope: &Scope,
        statics: &Arc<Value>,
        schemas: &Arc<Schemas>,
        presets: &Arc<Presets>,
    ) -> Result<bool, SectionError> {
        let Some(old) = self.section(scope) else { return Ok(false) };
        let statics = if *scope == Scope::Global { Arc::clone(statics) } else { object(statics) };
        let section = old.with_presets(Arc::clone(presets))?.with_statics(statics, Arc::clone(schemas))?;
        let differs = section.result() != old.result();
        self.set_section(cx, scope, section);
        Ok(differs)
    }

    /// Replaces the section of `scope`.
    pub(super) fn set_section(&mut self, cx: &mut Context, scope: &Scope, section: Section) {
        match scope {
            Scope::Global => {
                self.redact(cx);
                self.global = section;
            }
            Scope::Module(name) => self.change(cx, name, Some(section)),
        }
    }

    fn change(&mut self, cx: &mut Context, name: &ModuleName, section: Option<Section>) {
        self.redact(cx);
        match section {
            Some(section) => self.sections.insert(name.clone(), section),
            None => self.sections.remove(name),
        };
    }

    /// Returns the section of `scope`, if it exists.
    pub(crate) fn section(&self, scope: &Scope) -> Option<&Section> {
        match scope {
            Scope::Global => Some(&self.global),
            Scope::Module(name) => self.sections.get(name),
        }
    }

    /// Returns the global values.
    pub(crate) fn global_values(&self) -> &Arc<Value> {
        self.global.result()
    }

    /// Returns the values of a module; null when it has none.
    pub(crate) fn values_of(&self, name: &ModuleName) -> Arc<Value> {
        self.sections.get(name).map(|section| Arc::clone(section.result())).unwrap_or_default()
    }

    /// Returns what the chart of a module reads: the global section, then that of the module.
    pub(crate) fn read_by_chart(&self, name: &ModuleName) -> [Arc<Value>; 2] {
        [Arc::clone(self.global.result()), self.values_of(name)]
    }

    /// Returns what an enabled script reads: the global section and its configuration, then those of the module.
    pub(crate) fn read_by_script(&self, name: &ModuleName) -> [Arc<Value>; 4] {
        let config = self.sections.get(name).map_or_else(Default::default, Section::config_or_null);
        [Arc::clone(self.global.result()), self.global.config_or_null(), self.values_of(name), config]
    }

    /// Returns what a hook, script or chart of `module` reads, or a global hook when it is `None`.
    pub(crate) fn input(&self, module: Option<&Module>, enabled: &Arc<[ModuleName]>) -> ValuesInput {
        let module = module.and_then(|module| {
            let section = self.sections.get(&module.name)?;
            let (key, values) = (Arc::clone(&module.key), Arc::clone(section.result()));
            Some(ModuleValues { key, values, config: section.config_or_null() })
        });
        ValuesInput {
            global: Arc::clone(self.global.result()),
            global_config: self.global.config_or_null(),
            enabled_modules: module.is_some().then(|| Arc::clone(enabled).into()),
            module,
            secret: self.config_secrets(),
        }
    }

    /// Returns the input of a module that is to come, or to take the place of one of its name.
    ///
    /// # Errors
    ///
    /// If the values do not fit it.
    pub(crate) fn planned_input(&self, new: &Module) -> Result<ValuesInput, Failure> {
        let old = match self.sections.get(&new.name) {
            Some(old) => old.clone(),
            None => self.section_to_come(new)?,
        };
        let section = old
            .with_presets(Arc::clone(&new.plans.presets))
            .and_then(|section| section.with_statics(object(&new.static_values), Arc::clone(&new.schemas)))
            .and_then(|section| {
                section.check_plan().and_then(|()| section.validate_helm()).map(|()| section)
            });
        let input = |section: Section| {
            let (key, values) = (Arc::clone(&new.key), Arc::clone(section.result()));
            let module = Some(ModuleValues { key, values, config: section.config_or_null() });
            ValuesInput { module, ..self.input(Some(new), &Arc::from([])) }
        };
        section.map(input).map_err(|error| Failure::of(FailureKind::Values, &error))
    }

    /// Returns why the values can't be given to the chart of a module, if so.
    pub(crate) fn problem_for_chart(&self, name: &ModuleName) -> Option<Failure> {
        let sections = [Some(&self.global), self.sections.get(name)];
        let error = sections.into_iter().flatten().find_map(|section| section.validate_helm().err())?;
        let failure = Failure::of(FailureKind::Values, &error);
        Some(failure.advise("correct the values in the ConfigMap or in values.yaml, or the schema"))
    }

    /// Returns why the section of a module can't be used as it is, if it picks no plan or breaks the schema of its plan.
    pub(crate) fn problem_of_plan(&self, name: &ModuleName) -> Option<Failure> {
        let section = self.sections.get(name)?;
        let error = section.check_plan().err()?;
        let object = self.config_map.holder(section.key());
        let failure = object.bad_key(section.key(), &error.to_string());
        Some(failure.advise(format!("correct this key of the {object}")))
    }

    /// Returns the name of the plan that the section of a module picks, if it has plans and picks one.
    pub(crate) fn plan_of(&self, name: &ModuleName) -> Option<Arc<str>> {
        let picked = self.sections.get(name)?.preset().ok()??;
        Some(Arc::clone(&picked.name))
    }

    /// Returns the module whose section has the key.
    pub(crate) fn module_by_key(&self, key: &str) -> Option<&ModuleName> {
        self.keys.get(key)
    }

    /// Writes whether a module is on into the ConfigMap, or into the Secret if that says so now; the command is answered
    /// when that is done.
    ///
    /// # Errors
    ///
    /// When nobody asks what they say, or somebody counts more.
    pub(crate) fn save_flag(
        &mut self,
        cx: &mut Context,
        id: CommandId,
        module: &Module,
        on: bool,
    ) -> Result<(), Failure> {
        if let Some(refusal) = self.flag_refusal(module, on) {
            return Err(refusal);
        }
        let key = format!("{}Enabled", module.key);
        let word = if on { "enabled" } else { "disabled" };
        let object = self.config_map.holder(&key);
        let message = format!("module {} is {word} by key {key} of {}", module.name, self.place(object));
        let run = cx.ids.run();
        self.command_saves.insert(run, (id, message));
        let text = Some(ConfigText(on.to_string()));
        // Whoever gives the command says what the key is to be, whatever it says now.
        cx.push(Effect::SaveConfigValues { run, object, key, text, basis: Basis::Nothing });
        Ok(())
    }

    /// Answers the command that waits for a write of the ConfigMap. Returns the outcome if none does.
    pub(crate) fn answer_save(
        &mut self,
        cx: &mut Context,
        run: RunId,
        outcome: Result<String, Failure>,
    ) -> Option<Result<String, Failure>> {
        let Some((id, message)) = self.command_saves.remove(&run) else { return Some(outcome) };
        // What was written comes back as a change of the ConfigMap, and takes effect then.
        cx.push(Effect::AnswerCommand { id, outcome: outcome.map(|_| message) });
        None
    }

    /// Returns whether a command waits for a write of the ConfigMap.
    pub(crate) fn is_saving(&self) -> bool {
        !self.command_saves.is_empty()
    }

    /// Returns how many things are kept by name or number.
    pub(crate) fn entries(&self) -> usize {
        self.command_saves.len() + self.dynamic_flags.len()
    }

    /// Returns one of the objects that users write values into, in words.
    pub(super) fn place(&self, object: ConfigObject) -> String {
        let name = match object {
            ConfigObject::ConfigMap => &self.config.config_map,
            ConfigObject::Secret => &self.config.config_secret,
        };
        format!("{object} {}/{name}", self.config.namespace)
    }

    /// Returns the values of the Secret that are in force for a section.
    pub(crate) fn secret_part(&self, key: &str) -> Option<&Arc<Value>> {
        Some(&self.config_map.layers(key)?.secret)
    }

    /// Returns the texts of the Secret, also those that it had before: no output quotes them unasked.
    pub(crate) fn config_secrets(&self) -> Arc<Secrets<'static>> {
        self.config_map.secrets()
    }
}

fn global_section(global: &Global) -> Section {
    section(Root::Global, &global.static_values, &global.schemas)
}

/// Returns a section with the values of files alone.
pub(super) fn section(root: Root, statics: &Arc<Value>, schemas: &Arc<Schemas>) -> Section {
    let made = Section::new(root.clone(), object(statics), Arc::clone(schemas));
    // Static values that are a map can only fail to merge with themselves; the empty map can't.
    made.or_else(|_| Section::new(root, Value::Object(Map::new()), Arc::default()))
        .unwrap_or_else(|_| unreachable!())
}

/// Returns the values of files as the object that they are to be.
fn object(statics: &Arc<Value>) -> Arc<Value> {
    if statics.is_object() { Arc::clone(statics) } else { Arc::new(Value::Object(Map::new())) }
}

//! Selects what runs in a test: one hook, a module, or everything.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use engine::hook::Lifecycle;
use engine::hook::reconcile::ObjectKind;
use engine::{Catalog, CronLine, EnabledFlag, Global, Hook, Module, ModuleName};
use serde_json::{Map, Value};

use super::node::nearest;
use super::target::{Target, stem};
use super::test_file::Test;

/// The catalog of a test.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    pub(super) catalog: Catalog,
    /// The trigger of the tested binding, if the start does not run it.
    pub(super) trigger: Option<Trigger>,
}

/// Triggers a binding that the start of the operator does not run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Trigger {
    /// The module with this key is switched off.
    Disable(String),
    /// A crontab line is due.
    Fire(CronLine),
}

/// The source of the enabled flags that a test sets.
const SOURCE: &str = "the test";

impl Selection {
    /// Returns the selection for `test` of the file `path`, or why there is none.
    pub(super) fn of(loaded: &Catalog, target: &Target, path: &Path, test: &Test) -> Result<Self, String> {
        let mut catalog = match target {
            Target::Global(_) => Catalog {
                global: Arc::new(Global {
                    hooks: vec![chosen_hook(&loaded.global.hooks, path, test.setup.hook.as_deref())?],
                    ..Global::clone(&loaded.global)
                }),
                modules: Arc::new(
                    loaded.modules.iter().map(|module| Arc::new(hollow(module, false))).collect(),
                ),
                ..loaded.clone()
            },
            Target::Module { dir, whole } => modules(loaded, dir, *whole, path, test)?,
            Target::All(_) => loaded.clone(),
        };
        if let Some(broken) = catalog.modules.iter().find_map(|module| module.broken.as_ref()) {
            return Err(format!("the module can't be used: {broken}"));
        }
        set_values(&mut catalog, &test.setup.values)?;
        let trigger = match &test.setup.run {
            Some(run) => select(&mut catalog, run)?,
            None => None,
        };
        Ok(Self { catalog, trigger })
    }

    /// Returns the crontab lines of schedules called `name`, or of that line.
    pub(super) fn crontab(&self, name: &str) -> Result<CronLine, String> {
        let bindings = || hooks(&self.catalog).flat_map(|hook| &hook.spec.schedules);
        let found = bindings().find(|binding| binding.name == name || binding.crontab.as_str() == name);
        found
            .map(|binding| binding.crontab.clone())
            .ok_or_else(|| unknown("schedule", name, bindings().map(|binding| binding.name.as_str())))
    }

    /// Returns the kind of an object that is one of a controller that runs in this test: with another one the step would test
    /// nothing.
    pub(super) fn controlled(&self, object: &Value) -> Result<ObjectKind, String> {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = ObjectKind { api_version: text("apiVersion"), kind: text("kind") };
        let kinds: BTreeSet<String> = hooks(&self.catalog)
            .flat_map(|hook| &hook.spec.reconciles)
            .map(|binding| binding.kind().to_string())
            .collect();
        let name = kind.to_string();
        if kinds.contains(&name) {
            return Ok(kind);
        }
        let unknown = unknown("controller of kind", &name, kinds.iter().map(String::as_str));
        Err(format!("{unknown} (the key apply writes any object)"))
    }
}

/// Returns all hooks, the global ones first.
pub(super) fn hooks(catalog: &Catalog) -> impl Iterator<Item = &Arc<Hook>> {
    catalog.global.hooks.iter().chain(catalog.modules.iter().flat_map(|module| &module.hooks))
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let hint = match nearest(known.iter().copied(), name) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None if known.is_empty() => "there is none".to_owned(),
        None => format!("known are {}", known.join(", ")),
    };
    format!("there is no {what} {name}; {hint}")
}

/// Returns the hook that is named, or that has the name of the test file.
fn chosen_hook(hooks: &[Arc<Hook>], path: &Path, named: Option<&str>) -> Result<Arc<Hook>, String> {
    let file =
        |hook: &Hook| Path::new(&*hook.path).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let wanted = stem(path).unwrap_or_default();
    let is_meant = |hook: &&Arc<Hook>| {
        let name = file(hook);
        if let Some(meant) = named {
            return hook.id.name.as_str() == meant || name == meant;
        }
        let has_name = name == wanted || name.rsplit_once('.').is_some_and(|(stem, _)| stem == wanted);
        has_name && Path::new(&*hook.path).parent() == path.parent()
    };
    let found = hooks.iter().find(is_meant);
    found.cloned().ok_or_else(|| {
        let hook_names = hooks.iter().map(|hook| hook.id.name.as_str());
        match named {
            Some(name) => unknown("hook", name, hook_names),
            None => format!(
                "no hook {wanted} lies beside the file; name one with the key hook ({})",
                hook_names.collect::<Vec<_>>().join(", ")
            ),
        }
    })
}

fn modules(loaded: &Catalog, dir: &Path, whole: bool, path: &Path, test: &Test) -> Result<Catalog, String> {
    let own = loaded.modules.iter().find(|module| Path::new(&*module.path) == dir);
    let own = own.ok_or_else(|| format!("{} is no module", dir.display()))?;
    let mut chosen = Vec::new();
    for module in loaded.modules.iter() {
        let is_named = test.setup.modules.iter().any(|name| name == module.name.as_str());
        if module.name == own.name {
            let mut module = Module::clone(module);
            module.enabled = Some(on());
            if !whole && module.broken.is_none() {
                module.hooks = vec![chosen_hook(&module.hooks, path, test.setup.hook.as_deref())?];
                module.enabled_script = None;
                module.has_chart = false;
            }
            chosen.push(Arc::new(module));
        } else if is_named {
            let module = if whole { Module::clone(module) } else { hollow(module, true) };
            chosen.push(Arc::new(Module { enabled: Some(on()), ..module }));
        }
    }
    for name in &test.setup.modules {
        if !chosen.iter().any(|module| module.name.as_str() == name) {
            let names = loaded.modules.iter().map(|module| module.name.as_str());
            return Err(unknown("module", name, names));
        }
    }
    // A test is about its module: what it requires counts as far as it is there.
    let names: BTreeSet<ModuleName> = chosen.iter().map(|module| module.name.clone()).collect();
    for module in &mut chosen {
        if module.settings.requires.iter().any(|required| !names.contains(&required.module)) {
            let requires = &mut Arc::make_mut(module).settings.requires;
            requires.retain(|required| names.contains(&required.module));
        }
    }
    let mut hooks = Vec::new();
    for name in &test.setup.global_hooks {
        hooks.push(chosen_hook(&loaded.global.hooks, path, Some(name))?);
    }
    let global = Arc::new(Global { hooks, ..Global::clone(&loaded.global) });
    Ok(Catalog { global, modules: Arc::new(chosen), ..loaded.clone() })
}

fn on() -> EnabledFlag {
    EnabledFlag { value: true, source: SOURCE.into() }
}

/// Returns a module with only its name and values.
fn hollow(module: &Module, is_on: bool) -> Module {
    Module {
        enabled: if is_on { Some(on()) } else { module.enabled.clone() },
        enabled_script: None,
        hooks: Vec::new(),
        has_unread_hooks: false,
        has_chart: false,
        chart: None,
        package: None,
        dependencies: engine::ChartDependencies::default(),
        crds: Vec::new(),
        broken: None,
        ..module.clone()
    }
}

/// Merges the values of a test over the static ones.
fn set_values(catalog: &mut Catalog, given: &Map<String, Value>) -> Result<(), String> {
    for (key, value) in given {
        let merged = |base: &Value| {
            values::merge::merged(base, value).map_err(|error| format!("values.{key}: {error}"))
        };
        if key == values::name::GLOBAL {
            let global = Global::clone(&catalog.global);
            let static_values = Arc::new(merged(&global.static_values)?);
            catalog.global = Arc::new(Global { static_values, ..global });
            continue;
        }
        let flag = |module: &Module| key.strip_suffix("Enabled").is_some_and(|stem| *module.key == *stem);
        let modules = Arc::make_mut(&mut catalog.modules);
        let Some(module) = modules.iter_mut().find(|module| *module.key == **key || flag(module)) else {
            let keys: Vec<&str> = catalog.modules.iter().map(|module| &*module.key).collect();
            return Err(unknown("section of values", key, keys.into_iter().chain([values::name::GLOBAL])));
        };
        let changed = if *module.key == **key {
            Module { static_values: Arc::new(merged(&module.static_values)?), ..Module::clone(module) }
        } else {
            let value = value.as_bool().ok_or_else(|| format!("values.{key} should be true or false"))?;
            Module { enabled: Some(EnabledFlag { value, source: SOURCE.into() }), ..Module::clone(module) }
        };
        *module = Arc::new(changed);
    }
    Ok(())
}

/// Turns off all bindings but `run`. Returns its trigger.
fn select(catalog: &mut Catalog, run: &str) -> Result<Option<Trigger>, String> {
    let mut names: Vec<String> = Vec::new();
    for hook in hooks(catalog) {
        names.extend(hook.spec.lifecycle.keys().map(|point| point.as_str().to_owned()));
        names.extend(hook.spec.schedules.iter().map(|binding| binding.name.clone()));
        names.extend(hook.spec.kubernetes.iter().map(|binding| binding.name.clone()));
        names.extend(hook.spec.reconciles.iter().map(|binding| binding.name.clone()));
    }
    if !names.iter().any(|name| name == run) {
        return Err(unknown("binding", run, names.iter().map(String::as_str)));
    }
    let mut trigger = None;
    let global = Global::clone(&catalog.global);
    let muted = global.hooks.iter().map(|hook| Arc::new(muted(hook, run, &mut trigger, None))).collect();
    catalog.global = Arc::new(Global { hooks: muted, ..global });
    for module in Arc::make_mut(&mut catalog.modules) {
        let key = Some(&*module.key);
        let hooks =
            module.hooks.iter().map(|hook| Arc::new(self::muted(hook, run, &mut trigger, key))).collect();
        *module = Arc::new(Module { hooks, ..Module::clone(module) });
    }
    Ok(trigger)
}

/// Returns a hook whose only binding is `run`; the others keep their snapshots up to date.
fn muted(hook: &Hook, run: &str, trigger: &mut Option<Trigger>, key: Option<&str>) -> Hook {
    let mut hook = hook.clone();
    hook.spec.lifecycle.retain(|point, _| point.as_str() == run);
    let deletes = [Lifecycle::BeforeDeleteHelm, Lifecycle::AfterDeleteHelm];
    if let Some(key) = key.filter(|_| hook.spec.lifecycle.keys().any(|point| deletes.contains(point))) {
        *trigger = Some(Trigger::Disable(key.to_owned()));
    }
    hook.spec.schedules.retain(|binding| binding.name == run);
    hook.spec.reconciles.retain(|binding| binding.name == run);
    if let Some(binding) = hook.spec.schedules.first() {
        *trigger = Some(Trigger::Fire(binding.crontab.clone()));
    }
    for binding in hook.spec.kubernetes.iter_mut().filter(|binding| binding.name != run) {
        binding.execute_on_synchronization = false;
        binding.execute_on_events.clear();
    }
    hook
}

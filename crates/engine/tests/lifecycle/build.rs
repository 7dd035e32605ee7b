//! Catalogs and events in few words.

use std::sync::Arc;

use engine::hook::{HookKind, WatchEvent, config};
use engine::snapshot::{Item, Key};
use engine::{
    Catalog, ConfigData, ConfigObject, CronLine, Drift, EnabledFlag, Event, Failure, FailureKind, Global,
    Hook, HookId, HookOutput, Module, ModuleName, MonitorId, Scope, Script,
};
use serde_json::{Value, json};
use values::patch::{Patch, Root, Target};

/// The configuration of a hook that watches Pods.
pub(crate) const PODS: &str = "kubernetes: [{name: pods, kind: Pod}]";
/// The configuration of a hook that runs each minute.
pub(crate) const TICK: &str = "schedule: [{name: tick, crontab: '* * * * *'}]";
/// The configuration of a hook that runs each minute in a queue of its own.
pub(crate) const TICK_IN_SIDE: &str = "schedule: [{name: tick, crontab: '* * * * *', queue: side}]";

/// A catalog that is being put together.
#[derive(Clone, Default)]
pub(crate) struct Files {
    pub(crate) global: Global,
    pub(crate) modules: Vec<Module>,
    pub(crate) warnings: Vec<String>,
    /// Whether there may be modules that were not read.
    pub(crate) is_incomplete: bool,
}

pub(crate) fn files() -> Files {
    Files::default()
}

impl Files {
    /// Adds an enabled module that is a chart.
    pub(crate) fn module(mut self, order: u32, name: &str) -> Self {
        let key = values::name::camel(name);
        self.modules.push(Module {
            name: ModuleName::from(name),
            key: key.as_str().into(),
            chart_key: key.as_str().into(),
            order,
            namespace: None,
            path: format!("/modules/{order:03}-{name}").into(),
            content: 1,
            origin: engine::Origin::Files,
            enabled: Some(EnabledFlag { value: true, source: "modules/values.yaml".into() }),
            enabled_script: None,
            static_values: Arc::new(json!({})),
            schemas: Arc::default(),
            hooks: Vec::new(),
            layout: engine::ValuesLayout::Section,
            plans: engine::Plans::default(),
            has_unread_hooks: false,
            has_chart: true,
            chart: None,
            package: None,
            version: None,
            settings: engine::ModuleSettings::default(),
            dependencies: engine::ChartDependencies::default(),
            crds: Vec::new(),
            broken: None,
        });
        self
    }

    /// Changes the module that was added last.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Module)) -> Self {
        change(self.modules.last_mut().unwrap());
        self
    }

    /// Gives the files of a module another content.
    pub(crate) fn content(mut self, name: &str, content: u64) -> Self {
        self.modules.iter_mut().find(|module| module.name.as_str() == name).unwrap().content = content;
        self
    }

    /// Makes the last module one without chart.
    pub(crate) fn hooks_only(self) -> Self {
        self.with(|module| module.has_chart = false)
    }

    /// Switches the last module off in its files.
    pub(crate) fn off(self) -> Self {
        self.with(|module| module.enabled = None)
    }

    /// Gives the last module an enabled script.
    pub(crate) fn script(self) -> Self {
        self.with(|module| module.enabled_script = Some(Script { path: "enabled".into(), content: 1 }))
    }

    /// Sets the static values of the last module.
    pub(crate) fn values(self, values: Value) -> Self {
        self.with(|module| module.static_values = Arc::new(values))
    }

    /// Gives the last module schemas.
    pub(crate) fn schema(self, config: &str, values: Option<&str>) -> Self {
        let schemas = values::schema::Schemas::compile(
            Some(("config-values.yaml", config)),
            values.map(|text| ("values.yaml", text)),
        );
        self.with(|module| module.schemas = Arc::new(schemas.unwrap()))
    }

    /// Adds a hook to the last module.
    pub(crate) fn hook(self, name: &str, config: &str) -> Self {
        self.with(|module| {
            let scope = Scope::Module(module.name.clone());
            module.hooks.push(hook(scope, name, config));
        })
    }

    /// Adds a global hook.
    pub(crate) fn global_hook(mut self, name: &str, config: &str) -> Self {
        self.global.hooks.push(hook(Scope::Global, name, config));
        self
    }

    pub(crate) fn catalog(&self) -> Catalog {
        let mut modules: Vec<Arc<Module>> = self.modules.iter().cloned().map(Arc::new).collect();
        modules.sort_by(|a, b| (a.order, &a.name).cmp(&(b.order, &b.name)));
        Catalog {
            global: Arc::new(self.global.clone()),
            modules: Arc::new(modules),
            complete: !self.is_incomplete,
            warnings: self.warnings.clone(),
        }
    }
}

fn hook(scope: Scope, name: &str, config_text: &str) -> Arc<Hook> {
    let kind = if scope == Scope::Global { HookKind::Global } else { HookKind::Module };
    let text = match config_text.strip_prefix('{') {
        Some(rest) => format!("{{configVersion: v1, {rest}"),
        None => format!("configVersion: v1\n{config_text}"),
    };
    let text = if config_text.contains("onKubernetesEvent") { config_text.to_owned() } else { text };
    let spec = config::parse(name.into(), kind, &text).unwrap_or_else(|error| panic!("{name}: {error}"));
    Arc::new(Hook {
        id: HookId { scope, name: name.into() },
        path: name.into(),
        content: 1,
        launch: engine::Launch::default(),
        spec,
    })
}

/// A hook output that adds `value` at `path` of the values.
pub(crate) fn sets(path: &str, value: &Value) -> HookOutput {
    patches(&json!([{"op": "add", "path": path, "value": value}]))
}

/// A hook output with a values patch.
pub(crate) fn patches(operations: &Value) -> HookOutput {
    HookOutput { values_patch: patch(operations, Target::Values), ..HookOutput::default() }
}

/// A hook output with a patch of the user's configuration.
pub(crate) fn configures(path: &str, value: &Value) -> HookOutput {
    let operations = json!([{"op": "add", "path": path, "value": value}]);
    HookOutput { config_patch: patch(&operations, Target::ConfigValues), ..HookOutput::default() }
}

fn patch(operations: &Value, target: Target) -> Patch {
    let path = operations[0]["path"].as_str().unwrap();
    let key = path.split('/').nth(1).unwrap();
    let is_global = key == "global" || key.ends_with("Enabled");
    let root = if is_global { Root::Global } else { Root::Module(key.to_owned()) };
    Patch::read(operations.to_string().as_bytes(), target, &root).unwrap()
}

/// The ConfigMap's data.
pub(crate) fn data(pairs: &[(&str, &str)]) -> Arc<ConfigData> {
    Arc::new(ConfigData(pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()))
}

/// An edit of the ConfigMap.
pub(crate) fn config(version: u64, pairs: &[(&str, &str)]) -> Event {
    let (object, version) = (ConfigObject::ConfigMap, version.to_string());
    Event::ConfigChanged { object, version, data: Some(data(pairs)) }
}

/// An edit of the Secret over the ConfigMap.
pub(crate) fn secret(version: u64, pairs: &[(&str, &str)]) -> Event {
    let (object, version) = (ConfigObject::Secret, version.to_string());
    Event::ConfigChanged { object, version, data: Some(data(pairs)) }
}

/// A schedule with this line is due.
pub(crate) fn cron(line: &str) -> Event {
    Event::CronFired { line: CronLine::from(line) }
}

/// An object of a release is no longer as its chart says.
pub(crate) fn drifted(module: &str, drift: Drift) -> Event {
    Event::ReleaseDrifted { module: module.into(), drift }
}

/// The first watch failed.
pub(crate) fn watch_failed(kind: FailureKind, message: &str) -> Event {
    Event::WatchFailed { monitor: MonitorId::new(1), failure: Failure::new(kind, message) }
}

/// The files were read again.
pub(crate) fn reread(files: &Files) -> Event {
    Event::CatalogChanged { catalog: files.catalog() }
}

/// An object of a watch.
pub(crate) fn item(text: &str) -> Arc<Item> {
    Arc::new(Item::unfiltered(json!({"is": text}).to_string().as_bytes().into(), true))
}

pub(crate) fn key(name: &str) -> Key {
    Key::new("ns", name)
}

/// Returns the change of an object that one watch sees.
pub(crate) fn changed(monitor: MonitorId, change: WatchEvent, key: Key, item: Arc<Item>) -> Event {
    Event::ObjectChanged { key, is_gone: change == WatchEvent::Deleted, items: vec![(monitor, item)] }
}

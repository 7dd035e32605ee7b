//! What only the owner of the operator may see: values, patches, snapshots.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use values::patch::Operation;

use crate::binding::Tally;
use crate::catalog::Module;
use crate::effect::ValuesInput;
use crate::engine::Engine;
use crate::hook::snapshot::Snapshot;
use crate::name::{HookId, ModuleName, Scope};

/// All values and snapshots. For the unix socket only: they can hold secrets.
#[derive(Clone)]
pub struct Inspection {
    /// The `global` section and global hooks.
    pub global: ScopeInspection,
    /// Each module.
    pub modules: BTreeMap<ModuleName, ScopeInspection>,
}

/// The values and snapshots of one scope.
#[derive(Clone)]
pub struct ScopeInspection {
    /// The key of its section.
    pub key: String,
    /// Its values as hooks see them.
    pub values: Arc<Value>,
    /// What the user configured; null when nothing.
    pub config: Arc<Value>,
    /// What hooks changed, compacted.
    pub patches: Vec<Operation>,
    /// The snapshots of its hooks, by hook and binding; only hooks with kubernetes bindings are there.
    pub snapshots: BTreeMap<String, Vec<(String, WatchedObjects)>>,
}

/// What a binding knows of the cluster.
#[derive(Clone, Debug, Default)]
pub struct WatchedObjects {
    /// The objects.
    pub snapshot: Snapshot,
    /// What happened to them since the watch began.
    pub since_start: Tally,
    /// What happened to them since its hook was started last.
    pub since_run: Tally,
}

impl Engine {
    /// Returns all values and snapshots. They share their content with the engine.
    pub fn inspect(&self) -> Inspection {
        let modules = self
            .modules
            .keys()
            .filter_map(|name| Some((name.clone(), self.inspect_scope(&Scope::Module(name.clone()))?)));
        let empty = || ScopeInspection {
            key: values::name::GLOBAL.to_owned(),
            values: Arc::default(),
            config: Arc::default(),
            patches: Vec::new(),
            snapshots: BTreeMap::new(),
        };
        Inspection {
            global: self.inspect_scope(&Scope::Global).unwrap_or_else(empty),
            modules: modules.collect(),
        }
    }

    /// Returns a module with the values that its chart would be rendered with now.
    pub fn chart_input(&self, name: &ModuleName) -> Option<(Arc<Module>, ValuesInput)> {
        let module = Arc::clone(&self.modules.get(name)?.spec);
        let values = ValuesInput { enabled_modules: None, ..self.values_for(&Scope::Module(name.clone())) };
        Some((module, values))
    }

    fn watched_objects(&self, hook: &HookId, index: usize) -> Option<WatchedObjects> {
        let monitor = self.watches.monitor_of(hook, index)?;
        let seen = self.watches.binding(hook, index)?.seen;
        Some(WatchedObjects {
            snapshot: monitor.snapshot.clone(),
            since_start: monitor.tally,
            since_run: monitor.tally.since(seen),
        })
    }

    /// Returns the values and snapshots of one scope, if it exists.
    pub fn inspect_scope(&self, scope: &Scope) -> Option<ScopeInspection> {
        let section = self.section(scope)?;
        let hooks = match scope {
            Scope::Global => &self.catalog.global.hooks,
            Scope::Module(name) => &self.modules.get(name)?.spec.hooks,
        };
        let mut snapshots = BTreeMap::new();
        for hook in hooks.iter().filter(|hook| !hook.spec.kubernetes.is_empty()) {
            let bindings = hook.spec.kubernetes.iter().enumerate().map(|(index, binding)| {
                (binding.name.clone(), self.watched_objects(&hook.id, index).unwrap_or_default())
            });
            snapshots.insert(hook.id.name.to_string(), bindings.collect());
        }
        Some(ScopeInspection {
            key: section.key().to_owned(),
            values: Arc::clone(section.result()),
            config: section.config_or_null(),
            patches: section.patches().to_vec(),
            snapshots,
        })
    }
}

// Values can hold secrets.
impl fmt::Debug for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspection")
            .field("modules", &self.modules.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ScopeInspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeInspection").field("key", &self.key).finish_non_exhaustive()
    }
}

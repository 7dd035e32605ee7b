//! What only the owner of the operator may see: values, patches, snapshots.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use redaction::Secrets;
use serde_json::Value;
use values::Section;
use values::patch::Operation;

use crate::binding::{Bindings, WatchedObjects};
use crate::catalog::Hook;
use crate::name::ModuleName;
use crate::release_target::ReleaseTarget;

/// All values and snapshots. For the unix socket only: they can hold secrets.
#[derive(Clone)]
pub struct Inspection {
    /// The `global` section and global hooks.
    pub global: ScopeInspection,
    /// Each module.
    pub modules: BTreeMap<ModuleName, ScopeInspection>,
    /// Where the release of each module is, or belongs if there is none.
    pub places: BTreeMap<ModuleName, ReleaseTarget>,
    /// Where there may be releases, the operator's own namespace first.
    pub targets: Vec<ReleaseTarget>,
    /// The texts that are shown only to who asks for them: those of the Secret over the ConfigMap.
    pub secrets: Arc<Secrets<'static>>,
}

/// The values and snapshots of one scope.
#[derive(Clone, Default)]
pub struct ScopeInspection {
    /// The key of its section.
    pub key: String,
    /// Its values as hooks see them.
    pub values: Arc<Value>,
    /// What the user configured; null when nothing.
    pub config: Arc<Value>,
    /// What of that comes from the Secret over the ConfigMap.
    pub secret: Option<Arc<Value>>,
    /// What hooks changed, compacted.
    pub patches: Vec<Operation>,
    /// The snapshots of its hooks, by hook and binding; only hooks with kubernetes bindings are there.
    pub snapshots: BTreeMap<String, Vec<(String, WatchedObjects)>>,
}

impl ScopeInspection {
    /// Returns the values of a section, and what the bindings of its hooks know.
    pub(crate) fn new(
        section: &Section,
        secret: Option<Arc<Value>>,
        hooks: &[Arc<Hook>],
        bindings: &Bindings,
    ) -> Self {
        let mut snapshots = BTreeMap::new();
        for hook in hooks.iter().filter(|hook| !hook.spec.kubernetes.is_empty()) {
            let watched = hook.spec.kubernetes.iter().enumerate().map(|(index, binding)| {
                (binding.name.clone(), bindings.watched_objects(&hook.id, index).unwrap_or_default())
            });
            snapshots.insert(hook.id.name.to_string(), watched.collect());
        }
        Self {
            key: section.key().to_owned(),
            values: Arc::clone(section.result()),
            config: section.config_or_null(),
            secret,
            patches: section.patches().to_vec(),
            snapshots,
        }
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

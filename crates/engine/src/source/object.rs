//! The object of a configuration as it was seen last.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::status::{Conditions, ModuleLine, ModuleLineState, RepositoryLine, SourcePhase, Status};
use crate::addon::{Bundle, BundleKind, RegisteredAddon, SourceKey, SourceKind, SourceSpec};

/// The finalizer of all configurations.
pub(super) const FINALIZER: &str = "addons.kyma-project.io";

/// The order number of a module whose bundle gives none.
const WEIGHT: u32 = 1;

/// The object of a configuration.
#[derive(Debug)]
pub(super) struct SourceObject {
    pub(super) uid: String,
    pub(super) version: String,
    pub(super) generation: i64,
    pub(super) is_deleting: bool,
    pub(super) finalizers: Vec<String>,
    /// What it asks for. If that can't be read, it names no repositories.
    pub(super) spec: Arc<SourceSpec>,
    /// Why what it asks for can't be read.
    pub(super) problem: Option<String>,
    /// When its status was written last, as that says.
    pub(super) processed_at: String,
    pub(super) status: Status,
    pub(super) conditions: Conditions,
    /// The annotation that names the versions which may come.
    pub(super) approved: String,
}

/// The parts of an object. Each is read by itself, so that what can't be read of one leaves the others alone, and what nobody
/// asks for, such as who manages its fields, is passed over.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Document<'j> {
    #[serde(borrow)]
    metadata: Option<&'j RawValue>,
    #[serde(borrow)]
    spec: Option<&'j RawValue>,
    #[serde(borrow)]
    status: Option<&'j RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    deletion_timestamp: Option<IgnoredAny>,
    finalizers: Option<Vec<String>>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Times {
    last_processed_time: Option<String>,
}

fn read<'j, T: Default + Deserialize<'j>>(part: &'j RawValue) -> T {
    serde_json::from_str(part.get()).unwrap_or_default()
}

impl SourceObject {
    /// Returns the object that JSON describes.
    pub(super) fn read(key: &SourceKey, json: &[u8]) -> Self {
        let Document { metadata, spec, status } = serde_json::from_slice(json).unwrap_or_default();
        let Metadata { uid, resource_version, generation, deletion_timestamp, finalizers, annotations } =
            metadata.map(read).unwrap_or_default();
        let Times { last_processed_time } = status.map(read).unwrap_or_default();
        let (status, conditions) = status.map(Status::read).unwrap_or_default();
        let spec: Value = spec.map(read).unwrap_or_default();
        let (spec, problem) = match SourceSpec::read(key.kind, &key.namespace, &spec) {
            Ok(spec) => (spec, None),
            Err(error) => (SourceSpec::read_policies(&spec), Some(error.to_string())),
        };
        Self {
            uid: uid.unwrap_or_default(),
            version: resource_version.unwrap_or_default(),
            generation: generation.unwrap_or_default(),
            is_deleting: deletion_timestamp.is_some(),
            finalizers: finalizers.unwrap_or_default(),
            spec: Arc::new(spec),
            problem,
            processed_at: last_processed_time.unwrap_or_default(),
            status,
            conditions,
            approved: annotations.unwrap_or_default().remove(SourceKey::APPROVED).unwrap_or_default(),
        }
    }

    /// Returns the addons that are registered or go on as the status says. What does not stand there is what it is without a word
    /// about it, until they are fetched again.
    pub(super) fn registered(&self, key: &SourceKey) -> Vec<RegisteredAddon> {
        let mut addons: Vec<RegisteredAddon> = Vec::new();
        let lines = |repository: &RepositoryLine| {
            repository.addons.iter().map(|line| (repository.url.clone(), line.clone())).collect::<Vec<_>>()
        };
        for (url, line) in self.status.repositories.iter().flat_map(lines) {
            let is_module = |module: &ModuleLine| !(module.state.is_held_back() || module.is_other_version());
            let Some(module) = line.module.filter(is_module) else { continue };
            let Ok(digest) = line.digest.parse() else { continue };
            let goes_on = module.state == ModuleLineState::Retained || !line.reason.is_empty();
            let addon = RegisteredAddon {
                is_retained: goes_on || self.status.phase == SourcePhase::Failed,
                auto_enable: self.spec.auto_enable,
                ..RegisteredAddon::new(
                    key.clone(),
                    url,
                    Bundle {
                        id: line.id,
                        name: module.name,
                        version: line.version,
                        digest,
                        order: WEIGHT,
                        kind: BundleKind::Module,
                        namespace: None,
                    },
                )
            };
            let is_its = match key.kind {
                SourceKind::Cluster => true,
                // Nobody has the module of another namespace by what stands in a status.
                SourceKind::Namespaced => {
                    addon.name() == line.name && addon.bundle.name.as_str() != line.name
                }
            };
            if is_its && !addons.iter().any(|other| other.bundle.name == addon.bundle.name) {
                addons.push(addon);
            }
        }
        addons
    }

    /// Returns whether our finalizer is on it.
    pub(super) fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|name| name == FINALIZER)
    }
}

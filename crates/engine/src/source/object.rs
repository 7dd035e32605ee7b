//! The object of a configuration as it was seen last.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::status::{Conditions, Status};
use crate::addon::{SourceKey, SourceSpec};

/// The finalizer of all configurations.
pub(super) const FINALIZER: &str = "addons.kyma-project.io";

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

    /// Returns whether our finalizer is on it.
    pub(super) fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|name| name == FINALIZER)
    }
}

//! The object of a configuration as it was seen last.

use std::sync::Arc;

use serde_json::Value;

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

impl SourceObject {
    /// Returns the object that JSON describes.
    pub(super) fn read(key: &SourceKey, json: &[u8]) -> Self {
        let object: Value = serde_json::from_slice(json).unwrap_or_default();
        let metadata = object.get("metadata");
        let field = |name| metadata.and_then(|metadata: &Value| metadata.get(name));
        let (status, conditions) = object.get("status").map(Status::read).unwrap_or_default();
        let finalizers = field("finalizers").and_then(Value::as_array).into_iter().flatten();
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let (spec, problem) = match SourceSpec::read(key.kind, &key.namespace, spec) {
            Ok(spec) => (spec, None),
            Err(error) => (SourceSpec::read_policies(spec), Some(error.to_string())),
        };
        Self {
            uid: field("uid").and_then(Value::as_str).unwrap_or_default().to_owned(),
            version: field("resourceVersion").and_then(Value::as_str).unwrap_or_default().to_owned(),
            generation: field("generation").and_then(Value::as_i64).unwrap_or_default(),
            is_deleting: field("deletionTimestamp").is_some_and(|at| !at.is_null()),
            finalizers: finalizers.filter_map(Value::as_str).map(str::to_owned).collect(),
            spec: Arc::new(spec),
            problem,
            processed_at: object
                .pointer("/status/lastProcessedTime")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            status,
            conditions,
            approved: field("annotations")
                .and_then(|all| all.get(SourceKey::APPROVED)?.as_str())
                .unwrap_or_default()
                .to_owned(),
        }
    }

    /// Returns whether our finalizer is on it.
    pub(super) fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|name| name == FINALIZER)
    }
}

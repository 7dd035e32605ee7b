//! Patches, and the refusals of those that do not fit.

use objects::decode::{self, Node};
use objects::go_value;
use objects::patch::patched_text::{Touched, patched_text};
use objects::patch::{self, json::PatchError};
use objects::types::Shape;
use serde_json::{Value, json};

use super::typing::{METADATA, embedded_error};
use crate::registry::Resource;
use crate::status::{ApiError, Cause, Outcome};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    /// What a manager wants, whole.
    Apply,
    /// A list of operations.
    Json,
    /// A tree that is laid over the object.
    Merge,
    /// A tree that is laid over the object, with lists merged by their keys.
    Strategic,
}

pub(crate) fn patched(resource: &Resource, kind: PatchKind, old: &Value, patch: &Value) -> Outcome<Value> {
    match kind {
        PatchKind::Json => {
            let operations = patch::json::operations(patch.clone()).map_err(|error| refuse_json(&error))?;
            patch::json::apply(old.clone(), &operations).map_err(|error| refuse_json(&error))
        }
        PatchKind::Merge if patch.is_null() => Err(ApiError::bad_request("Invalid JSON Patch")),
        PatchKind::Merge if !patch.is_object() => {
            let found = go_value::json_type(patch);
            let why =
                format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
            Err(ApiError::bad_request(format!("error decoding patch: {why}")))
        }
        PatchKind::Merge | PatchKind::Apply => Ok(patch::merge::apply(old.clone(), patch.clone())),
        PatchKind::Strategic if !patch.is_object() && !patch.is_null() => {
            let found = go_value::json_type(patch);
            let why =
                format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
            Err(ApiError::bad_request(why))
        }
        PatchKind::Strategic => {
            // A patch that is null changes nothing.
            let patch = if patch.is_null() { json!({}) } else { patch.clone() };
            let merged = patch::strategic::apply(old.clone(), patch, &resource.shape).map_err(|error| {
                let reason = match error.code() {
                    400 => "BadRequest",
                    422 => "Invalid",
                    _ => "",
                };
                ApiError::new(error.code(), reason, error.to_string())
            });
            merged.map(|merged| with_type_of(old, merged))
        }
    }
}

/// A merge cannot change kind and version of an object.
fn with_type_of(old: &Value, mut merged: Value) -> Value {
    for name in ["kind", "apiVersion"] {
        if let (Some(kept), Some(Value::String(said))) = (old.get(name), merged.get_mut(name)) {
            kept.as_str().unwrap_or_default().clone_into(said);
        }
    }
    merged
}

fn refuse_json(error: &PatchError) -> ApiError {
    match error {
        PatchError::Decode(_) => ApiError::bad_request(error.to_string()),
        PatchError::TooMany(_) => {
            ApiError::new(413, "RequestEntityTooLarge", format!("Request entity too large: {error}"))
        }
        PatchError::Apply { .. } => {
            let message = "the server rejected our request due to an error in our request";
            ApiError::new(422, "Invalid", message).with_details(crate::status::Details::default())
        }
    }
}

/// Returns the refusal of a patch after which an object does not fit its type, if this is why it was refused.
pub(crate) fn type_error(
    resource: &Resource,
    kind: PatchKind,
    patch: &Value,
    new: &Value,
) -> Option<ApiError> {
    if resource.custom.is_none() {
        return type_error_of(&resource.shape, kind, patch, new);
    }
    if !matches!(kind, PatchKind::Json | PatchKind::Merge) {
        return None;
    }
    let metadata = || decode::typed(Node::from(new.get("metadata").cloned().unwrap_or_default()), &METADATA);
    let embedded = || embedded_error(resource, new);
    let why =
        header_error(new).or_else(|| metadata().err().map(|error| error.to_string())).or_else(embedded)?;
    Some(misfit(&String::from_utf8_lossy(&golang::json::bytes(new)), &why))
}

/// Returns the refusal of a patch that made this of an object.
fn misfit(shown: &str, why: &str) -> ApiError {
    let message = format!("Invalid value: {shown:?}: {why}");
    let cause = Cause { reason: "FieldValueInvalid".into(), message, field: "patch".into() };
    let message = format!(" \"\" is invalid: patch: {}", cause.message);
    ApiError::new(422, "Invalid", message).with_causes(vec![cause])
}

/// Returns what is wrong with the types of kind and version.
fn header_error(new: &Value) -> Option<String> {
    let wrong = |name: &str| new.get(name).is_some_and(|value| !value.is_string() && !value.is_null());
    if !wrong("kind") && !wrong("apiVersion") {
        return None;
    }
    let why = decode::header_error(&Node::from(new.clone()))?;
    Some(format!("couldn't get version/kind; json parse error: {why}"))
}

/// Returns whether kind and version are texts, which reading an object does not ask.
pub(crate) fn has_header(new: &Value) -> bool {
    header_error(new).is_none()
}

/// Returns the refusal of a patch that gives an object fields that its kind does not have, or has keys twice.
pub(crate) fn strict_error(
    resource: &Resource,
    kind: PatchKind,
    patch: &Value,
    new: &Value,
    found: &[String],
) -> ApiError {
    let shown = if kind == PatchKind::Strategic {
        go_value::printed(patch)
    } else if resource.custom.is_some() {
        String::from_utf8_lossy(&golang::json::bytes(new)).into_owned()
    } else {
        return strict_error_of(&resource.shape, kind, patch, new, found);
    };
    misfit(&shown, &strict_text(found))
}

fn strict_text(found: &[String]) -> String {
    format!("strict decoding error: {}", found.join(", "))
}

/// Returns the refusal of a patch of a tree or of operations that gives `shape` fields that it does not have.
pub(crate) fn strict_error_of(
    shape: &Shape,
    kind: PatchKind,
    patch: &Value,
    new: &Value,
    found: &[String],
) -> ApiError {
    let is_json = kind == PatchKind::Json;
    let touched = if is_json { Touched::by_operations(patch) } else { Touched::by_merge(patch) };
    misfit(&patched_text(new, shape, &touched), &strict_text(found))
}

/// Returns the refusal of a patch after which something does not fit `shape`.
pub(crate) fn type_error_of(shape: &Shape, kind: PatchKind, patch: &Value, new: &Value) -> Option<ApiError> {
    let why = || {
        header_error(new)
            .or_else(|| decode::typed(Node::from(new.clone()), shape).err().map(|error| error.to_string()))
    };
    let (shown, why) = match kind {
        PatchKind::Apply => return None,
        PatchKind::Strategic => {
            (go_value::printed(patch), patch::unstructured::conversion_error(new, shape)?)
        }
        PatchKind::Json => (patched_text(new, shape, &Touched::by_operations(patch)), why()?),
        PatchKind::Merge => (patched_text(new, shape, &Touched::by_merge(patch)), why()?),
    };
    Some(misfit(&shown, &why))
}

//! What a kind means: types, defaults, validation and the owners of fields. The one place where the verbs ask.

use jiff::Timestamp;
use serde_json::Value;

use crate::decode::{self, Decoded, Node};
use crate::managed_fields::{self, ApplyError, Change, FieldSet};
use crate::patch::{self, json::PatchError};
use crate::registry::Resource;
use crate::status::{ApiError, Cause, Outcome};
use crate::write::seconds;

/// How the objects of a kind behave where kinds differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of kinds, as data")]
pub(crate) struct Traits {
    /// Changes of the specification are counted.
    pub(crate) has_generation: bool,
    /// A PUT makes an object that does not exist.
    pub(crate) creates_on_update: bool,
    /// A deletion shows the object instead of a bare success.
    pub(crate) shows_deleted: bool,
    /// A PUT must name the version that it changes.
    pub(crate) needs_revision: bool,
}

/// Returns how the objects of a built-in kind behave.
pub(crate) fn traits(resource: &Resource) -> Traits {
    let kind = &resource.kind;
    if resource.custom.is_some() {
        return Traits { has_generation: true, needs_revision: true, ..Traits::default() };
    }
    let (group, plural) = (&*kind.group, &*kind.plural);
    Traits {
        has_generation: matches!(
            (group, plural),
            ("apps", "daemonsets" | "deployments" | "replicasets" | "statefulsets")
                | ("batch", "cronjobs" | "jobs")
                | ("", "pods" | "replicationcontrollers")
                | ("networking.k8s.io", "ingresses" | "ingressclasses" | "networkpolicies")
                | ("policy", "poddisruptionbudgets")
                | ("scheduling.k8s.io", "priorityclasses")
                | (
                    "admissionregistration.k8s.io" | "flowcontrol.apiserver.k8s.io" | "apiextensions.k8s.io",
                    _
                )
                | ("discovery.k8s.io", "endpointslices")
        ),
        creates_on_update: false,
        shows_deleted: matches!(
            (group, plural),
            (
                "",
                "pods"
                    | "services"
                    | "serviceaccounts"
                    | "persistentvolumes"
                    | "persistentvolumeclaims"
                    | "podtemplates"
                    | "resourcequotas"
            )
        ),
        needs_revision: false,
    }
}

/// Checks types and drops unknown fields; returns the object and what was dropped or came twice.
pub(crate) fn conform(resource: &Resource, body: Node) -> Outcome<Decoded> {
    let kind = &resource.kind;
    if resource.custom.is_some() {
        return Ok(decode::untyped(body));
    }
    decode::typed(body, &resource.shape).map_err(|error| {
        let message = format!(
            "{} in version {:?} cannot be handled as a {}: {error}",
            kind.kind, kind.version, kind.kind
        );
        ApiError::bad_request(message)
    })
}

/// Sets the defaults of a new object.
#[expect(clippy::unnecessary_wraps, reason = "defaults of custom kinds can be refused")]
pub(crate) fn default_new(_resource: &Resource, _object: &mut Value) -> Outcome<()> {
    Ok(())
}

/// Sets the defaults of a new version.
#[expect(clippy::unnecessary_wraps, reason = "defaults of custom kinds can be refused")]
pub(crate) fn default_changed(_resource: &Resource, _old: &Value, _new: &mut Value) -> Outcome<()> {
    Ok(())
}

/// Returns what is wrong with a new object.
pub(crate) fn validate_new(_resource: &Resource, _object: &Value, _warnings: &mut Vec<String>) -> Vec<Cause> {
    Vec::new()
}

/// Returns what is wrong with a new version.
pub(crate) fn validate_changed(
    _resource: &Resource,
    _subresource: Option<&str>,
    _old: &Value,
    _new: &Value,
    _warnings: &mut Vec<String>,
) -> Vec<Cause> {
    Vec::new()
}

/// Records in the managed fields what the owner changed.
pub(crate) fn own(resource: &Resource, old: Option<&Value>, object: &mut Value, owner: &Owner<'_>) {
    let (now, ignored) = (seconds(owner.now), ignored(resource, owner.subresource));
    managed_fields::update(old, object, &owner.change(resource, &now, &ignored));
}

/// Returns the fields that a write through this part of an object does not change.
fn ignored(resource: &Resource, subresource: &str) -> FieldSet {
    match subresource {
        "" if resource.kind.has_status() => FieldSet::of_fields(&["status"]),
        "status" if resource.custom.is_some() => FieldSet::of_fields(&["spec", "metadata"]),
        "status" => FieldSet::of_fields(&["spec"]),
        _ => FieldSet::default(),
    }
}

/// How a patch is written.
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

/// Who writes, through which part, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    pub(crate) manager: &'a str,
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) now: Timestamp,
}

impl<'a> Owner<'a> {
    fn change(&self, resource: &'a Resource, now: &'a str, ignored: &'a FieldSet) -> Change<'a>
    where
        Self: 'a,
    {
        Change {
            shape: &resource.shape,
            api_version: &resource.api_version,
            subresource: self.subresource,
            manager: self.manager,
            now,
            ignored,
        }
    }
}

/// Returns the object after a patch.
pub(crate) fn patched(resource: &Resource, kind: PatchKind, old: &Value, patch: &Value) -> Outcome<Value> {
    match kind {
        PatchKind::Json => {
            let bytes = serde_json::to_vec(patch).unwrap_or_default();
            let operations = patch::json::parse(&bytes).map_err(|error| refuse_json(&error))?;
            patch::json::apply(old.clone(), &operations).map_err(|error| refuse_json(&error))
        }
        PatchKind::Merge | PatchKind::Apply => Ok(patch::merge::apply(old.clone(), patch.clone())),
        PatchKind::Strategic => {
            patch::strategic::apply(old.clone(), patch.clone(), &resource.shape).map_err(|error| {
                let reason = if error.code() == 422 { "Invalid" } else { "BadRequest" };
                ApiError::new(error.code(), reason, error.to_string())
            })
        }
    }
}

fn refuse_json(error: &PatchError) -> ApiError {
    match error {
        PatchError::Decode(_) => ApiError::bad_request(error.to_string()),
        PatchError::TooMany(_) => ApiError::new(413, "RequestEntityTooLarge", error.to_string()),
        PatchError::Apply { .. } => {
            let message = "the server rejected our request due to an error in our request";
            ApiError::new(422, "Invalid", message).with_details(crate::status::Details::default())
        }
    }
}

/// Returns the object after `owner` applied what it wants, with its managed fields.
pub(crate) fn applied(
    resource: &Resource,
    old: Option<&Value>,
    wanted: &Value,
    owner: &Owner<'_>,
    force: bool,
) -> Outcome<Value> {
    let (now, ignored) = (seconds(owner.now), ignored(resource, owner.subresource));
    let change = owner.change(resource, &now, &ignored);
    match managed_fields::apply(old, wanted, &change, force) {
        Ok(applied) => Ok(applied.object),
        Err(ApplyError::Conflicts(conflicts)) => {
            let message = ApplyError::Conflicts(conflicts.clone()).to_string();
            let causes = conflicts.into_iter().map(|conflict| Cause {
                reason: "FieldManagerConflict".into(),
                message: format!("conflict with {}", conflict.owner),
                field: conflict.field,
            });
            Err(ApiError::new(409, "Conflict", message).with_causes(causes.collect()))
        }
        Err(error @ ApplyError::BadRequest(_)) => Err(ApiError::bad_request(error.to_string())),
        Err(error @ (ApplyError::Typed { .. } | ApplyError::Other(_))) => {
            Err(ApiError::new(500, "", error.to_string()))
        }
    }
}

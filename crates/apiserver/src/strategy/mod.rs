//! What a kind means: types, defaults, validation and the owners of fields. The one place where the verbs ask.

pub(crate) mod conversion;

use std::sync::LazyLock;

use jiff::Timestamp;
use objects::decode::{self, Decoded, Node};
use objects::managed_fields::{self, ApplyError, Change, FieldSet};
use objects::patch::text::Touched;
use objects::patch::{self, json::PatchError};
use objects::schema::FieldError;
use objects::types::{self, Shape};
use serde_json::{Map, Value, json};

use crate::defaults;
use crate::registry::Resource;
use crate::status::{ApiError, Cause, Outcome};
use crate::validation::{self, Report};
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
                | ("", "pods" | "podtemplates" | "replicationcontrollers")
                | ("networking.k8s.io", "ingresses" | "ingressclasses" | "networkpolicies")
                | ("policy", "poddisruptionbudgets")
                | ("scheduling.k8s.io", "priorityclasses")
                | (
                    "admissionregistration.k8s.io" | "flowcontrol.apiserver.k8s.io" | "apiextensions.k8s.io",
                    _
                )
                | ("discovery.k8s.io", "endpointslices")
        ),
        creates_on_update: matches!(
            (group, plural),
            ("rbac.authorization.k8s.io" | "coordination.k8s.io" | "node.k8s.io" | "events.k8s.io", _)
                | ("", "services" | "endpoints" | "events" | "limitranges")
        ),
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
            ) | ("storage.k8s.io", "csidrivers" | "csinodes" | "storageclasses")
        ),
        needs_revision: matches!(
            (group, plural),
            (
                "admissionregistration.k8s.io"
                    | "apiextensions.k8s.io"
                    | "apiregistration.k8s.io"
                    | "coordination.k8s.io"
                    | "flowcontrol.apiserver.k8s.io"
                    | "node.k8s.io"
                    | "policy",
                _
            ) | ("storage.k8s.io", "csidrivers" | "csinodes" | "csistoragecapacities" | "volumeattachments")
        ),
    }
}

/// Checks types and drops unknown fields; returns the object and what was dropped or came twice.
pub(crate) fn conform(resource: &Resource, body: Node) -> Outcome<Decoded> {
    let kind = &resource.kind;
    if let Some(version) = resource.version() {
        let mut decoded = conform_custom(kind, body)?;
        let unknown = version.structural.prune(&mut decoded.value);
        decoded.strict.extend(unknown.into_iter().map(|path| format!("unknown field \"{path}\"")));
        return Ok(decoded);
    }
    decode::typed(body, &resource.shape).map_err(|error| {
        let message = format!(
            "{} in version {:?} cannot be handled as a {}: {error}",
            kind.kind, kind.version, kind.kind
        );
        ApiError::bad_request(message)
    })
}

/// Only the metadata of custom objects has a type that is built in.
fn conform_custom(kind: &crate::kind::Kind, body: Node) -> Outcome<Decoded> {
    let mut decoded = decode::untyped(body);
    let metadata = decoded.value.get_mut("metadata").map(Value::take).unwrap_or_default();
    let typed = decode::typed(Node::from(metadata), &METADATA).map_err(|error| {
        let (kind, version) = (&kind.kind, &kind.version);
        ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {error}"))
    })?;
    let strict = typed.strict.into_iter().map(|text| text.replacen("field \"", "field \"metadata.", 1));
    decoded.strict.extend(strict);
    if let Some(fields) = decoded.value.as_object_mut() {
        fields.insert("metadata".into(), typed.value);
    }
    Ok(decoded)
}

/// The type of the metadata of objects.
static METADATA: LazyLock<Shape> = LazyLock::new(|| {
    let map = types::of_kind("", "v1", "ConfigMap").and_then(|map| map.field("metadata"));
    map.map_or(Shape::Any, |metadata| metadata.shape.clone())
});

/// Returns the status that a new object begins with, whatever the client sent.
pub(crate) fn first_status(
    resource: &Resource,
    object: &Map<String, Value>,
    now: Timestamp,
) -> Option<Value> {
    if resource.custom.is_some() {
        return None;
    }
    let mut status = decode::empty(&resource.shape).get("status").cloned()?;
    let fields = status.as_object_mut()?;
    match (&*resource.kind.group, &*resource.kind.plural) {
        ("", "pods") => {
            fields.insert("phase".into(), json!("Pending"));
            fields.insert("qosClass".into(), json!(quality(object.get("spec"))));
        }
        ("", "persistentvolumeclaims") => {
            fields.insert("phase".into(), json!("Pending"));
        }
        ("", "persistentvolumes") => {
            fields.insert("phase".into(), json!("Pending"));
            fields.insert("lastPhaseTransitionTime".into(), json!(seconds(now)));
        }
        ("", "nodes") => {
            let given = object.get("status").cloned().unwrap_or_default();
            let capacity = given.get("capacity").cloned();
            status = given;
            if let (Some(capacity), Some(fields)) = (capacity, status.as_object_mut()) {
                fields.entry("allocatable").or_insert(capacity);
            }
        }
        _ => {}
    }
    Some(status)
}

/// Returns how well a pod's needs are known.
fn quality(spec: Option<&Value>) -> &'static str {
    let list = |name: &str| spec.and_then(|spec| spec.get(name)).and_then(Value::as_array);
    let containers = list("containers").into_iter().chain(list("initContainers")).flatten();
    let (mut none, mut guaranteed) = (true, true);
    for container in containers {
        for name in ["cpu", "memory"] {
            let amount = |part: &str| {
                let amount = container.pointer(&format!("/resources/{part}/{name}"));
                amount.filter(|amount| !matches!(amount.as_str(), Some("0")))
            };
            let (limit, request) = (amount("limits"), amount("requests"));
            none &= limit.is_none() && request.is_none();
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (none, guaranteed) {
        (true, _) => "BestEffort",
        (false, true) => "Guaranteed",
        (false, false) => "Burstable",
    }
}

/// Sets the defaults of an object.
pub(crate) fn complete(resource: &Resource, object: &mut Value) {
    match resource.version() {
        Some(version) => version.structural.complete(object),
        None => defaults::apply(object, &resource.shape),
    }
}

/// Returns what is wrong with a new object.
pub(crate) fn validate_new(resource: &Resource, object: &Value, warnings: &mut Vec<String>) -> Vec<Cause> {
    let Some(version) = resource.version() else {
        return told(validation::create(&resource.kind, object), warnings);
    };
    let mut causes = told(validation::create_custom(object), warnings);
    causes.extend(version.structural.validate(object, "").into_iter().map(cause));
    causes.extend(version.scale.as_ref().and_then(|scale| replicas(object, &scale.spec_replicas)));
    causes
}

/// Returns what is wrong with the number of replicas at a path like `.spec.replicas`.
fn replicas(object: &Value, path: &str) -> Option<Cause> {
    let steps = path.split('.').filter(|step| !step.is_empty());
    let found = steps.into_iter().try_fold(object, |at, step| at.get(step))?;
    let message = match found.as_i64() {
        Some(number) if number < 0 => format!("Invalid value: {number}: should be a non-negative integer"),
        Some(_) => return None,
        None => {
            let (shown, kind) = (patch::convert::printed(found), managed_fields::go_type(found));
            format!("Invalid value: 0: {path} accessor error: {shown} is of the type {kind}, expected int64")
        }
    };
    Some(Cause { reason: "FieldValueInvalid".into(), message, field: path.to_owned() })
}

/// Returns what is wrong with a new version.
pub(crate) fn validate_changed(
    resource: &Resource,
    subresource: Option<&str>,
    old: &Value,
    new: &Value,
    warnings: &mut Vec<String>,
) -> Vec<Cause> {
    let Some(version) = resource.version() else {
        // The specification of what is kept was valid once, and is not what is written here.
        let parts = ["status", "finalize", "approval", "ephemeralcontainers", "resize"];
        if subresource.is_some_and(|part| parts.contains(&part)) {
            return Vec::new();
        }
        return told(validation::update(&resource.kind, new, old), warnings);
    };
    let mut causes = told(validation::update_custom(new, old), warnings);
    causes.extend(version.structural.validate(new, "").into_iter().map(cause));
    causes.extend(version.scale.as_ref().and_then(|scale| replicas(new, &scale.spec_replicas)));
    causes
}

fn told(report: Report, warnings: &mut Vec<String>) -> Vec<Cause> {
    for warning in report.warnings {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    report.errors.into_iter().map(cause).collect()
}

fn cause(error: FieldError) -> Cause {
    Cause { reason: error.reason.to_owned(), message: error.message, field: error.field }
}

/// Records in the managed fields what the owner changed.
pub(crate) fn own(resource: &Resource, old: Option<&Value>, object: &mut Value, owner: &Owner<'_>) {
    let (now, ignored) = (seconds(owner.now), ignored(resource, owner.subresource));
    managed_fields::update(old, object, &owner.change(resource, &now, &ignored));
}

/// Returns the managed fields of a new object as JSON; nothing if the client sent some or nobody owns anything.
pub(crate) fn first_owner(resource: &Resource, object: &Value, owner: &Owner<'_>) -> Option<Vec<u8>> {
    if object.pointer("/metadata/managedFields").is_some() {
        return None;
    }
    let (now, ignored) = (seconds(owner.now), ignored(resource, owner.subresource));
    managed_fields::first(object, &owner.change(resource, &now, &ignored))
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
        PatchKind::Merge if !patch.is_object() => {
            let found = patch::json::go_kind(patch);
            let why =
                format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
            Err(ApiError::bad_request(format!("error decoding patch: {why}")))
        }
        PatchKind::Merge | PatchKind::Apply => Ok(patch::merge::apply(old.clone(), patch.clone())),
        PatchKind::Strategic if !patch.is_object() && !patch.is_null() => {
            let found = patch::json::go_kind(patch);
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

/// What is merged into an object stays what it is, whatever it says of itself.
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
        PatchError::TooMany(_) => ApiError::new(413, "RequestEntityTooLarge", error.to_string()),
        PatchError::Apply { .. } => {
            let message = "the server rejected our request due to an error in our request";
            ApiError::new(422, "Invalid", message).with_details(crate::status::Details::default())
        }
    }
}

/// Returns the refusal of a patch after which an object does not fit its type, if this is why it was refused.
pub(crate) fn misfit(resource: &Resource, kind: PatchKind, patch: &Value, new: &Value) -> Option<ApiError> {
    if resource.custom.is_some() { None } else { misfit_of(&resource.shape, kind, patch, new) }
}

/// Returns the refusal of a patch after which something does not fit `shape`.
pub(crate) fn misfit_of(shape: &Shape, kind: PatchKind, patch: &Value, new: &Value) -> Option<ApiError> {
    let why = || decode::typed(Node::from(new.clone()), shape).err().map(|error| error.to_string());
    let (shown, why) = match kind {
        PatchKind::Apply => return None,
        PatchKind::Strategic => (patch::convert::printed(patch), patch::convert::misfit(new, shape)?),
        PatchKind::Json => (patch::text::shown(new, shape, &Touched::by_operations(patch)), why()?),
        PatchKind::Merge => (patch::text::shown(new, shape, &Touched::by_merge(patch)), why()?),
    };
    let message = format!("Invalid value: {shown:?}: {why}");
    let cause = Cause { reason: "FieldValueInvalid".into(), message, field: "patch".into() };
    let message = format!(" \"\" is invalid: patch: {}", cause.message);
    Some(ApiError::new(422, "Invalid", message).with_causes(vec![cause]))
}

/// Refuses what cannot be applied because it does not fit its type.
pub(crate) fn check_applied(resource: &Resource, wanted: &Value) -> Outcome<()> {
    managed_fields::check(wanted, &resource.shape, &resource.api_version).map_err(|error| match error {
        error @ ApplyError::BadRequest(_) => ApiError::bad_request(error.to_string()),
        error @ (ApplyError::Typed { .. } | ApplyError::Other(_) | ApplyError::Conflicts(_)) => {
            ApiError::new(500, "", error.to_string())
        }
    })
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

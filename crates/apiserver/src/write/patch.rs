//! Partial changes in four content types.

use std::sync::Arc;

use axum::body::Body;
use http::Response;
use http::header::CONTENT_TYPE;
use objects::decode::Decoded;
use serde_json::{Value, json};

use super::body::patch as read_patch;
use super::create::create_object;
use super::metadata;
use super::pipeline::{self, Chain};
use super::update::ATTEMPTS;
use crate::request::Call;
use crate::request::options::WriteOptions;
use crate::status::{ApiError, Outcome};
use crate::strategy::{self, PatchKind};

/// Answers a PATCH.
pub(crate) fn patch(call: &Call, name: &str) -> Outcome<Response<Body>> {
    let content_type = call.header(CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    let kind = patch_kind(content_type, call.resource.custom.is_some())?;
    let options = WriteOptions::of(&call.query, &call.headers, "PatchOptions")?;
    let decoded = match kind {
        PatchKind::Apply => objects::decode::untyped(crate::yaml::read(&call.body)?),
        PatchKind::Json | PatchKind::Merge | PatchKind::Strategic => read_patch(&call.body)?,
    };
    if kind == PatchKind::Apply {
        check_apply(call, name, &options, &decoded)?;
    } else if options.force {
        let cause = crate::status::Cause {
            reason: "FieldValueForbidden".into(),
            message: "Forbidden: may not be specified for non-apply patch".into(),
            field: "force".into(),
        };
        return Err(crate::request::options::invalid_options("PatchOptions", vec![cause]));
    }
    let mut warnings = Vec::new();
    for _ in 0..ATTEMPTS {
        match attempt(call, name, kind, &decoded, &options, &mut warnings) {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => {}
            Err(error) => return Ok(crate::response::warned_refusal(&error, &warnings)),
        }
    }
    Err(ApiError::modified(&call.resource.kind, name))
}

pub(crate) fn patch_kind(content_type: &str, custom: bool) -> Outcome<PatchKind> {
    Ok(match content_type {
        "application/json-patch+json" => PatchKind::Json,
        "application/merge-patch+json" => PatchKind::Merge,
        "application/strategic-merge-patch+json" if !custom => PatchKind::Strategic,
        "application/apply-patch+yaml" => PatchKind::Apply,
        "application/strategic-merge-patch+json" => {
            let accepted = [
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/apply-patch+yaml",
            ];
            return Err(ApiError::unsupported_media_type(&accepted));
        }
        _ => {
            let error = ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
            return Err(error.with_details(crate::status::Details::default()));
        }
    })
}

fn check_apply(call: &Call, name: &str, options: &WriteOptions, decoded: &Decoded) -> Outcome<()> {
    if !options.named_manager {
        let cause = crate::status::Cause {
            reason: "FieldValueRequired".into(),
            message: "Required value: is required for apply patch".into(),
            field: "fieldManager".into(),
        };
        return Err(crate::request::options::invalid_options("PatchOptions", vec![cause]));
    }
    let managed = decoded.value.pointer("/metadata/managedFields");
    if managed.is_some_and(|list| !list.is_null() && list != &json!([])) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let given = metadata::text(&decoded.value, "name");
    if !given.is_empty() && given != name {
        let message = format!("the name of the object ({given}) does not match the name on the URL ({name})");
        return Err(ApiError::bad_request(message));
    }
    let text = |field: &str| decoded.value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if kind.is_empty() || version != call.resource.api_version {
        let slash = if version.contains('/') { "" } else { "/" };
        return Err(ApiError::bad_request(format!("invalid object type: {slash}{version}, Kind={kind}")));
    }
    Ok(())
}

fn attempt(
    call: &Call,
    name: &str,
    kind: PatchKind,
    decoded: &Decoded,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Outcome<Option<Response<Body>>> {
    let resource = &call.resource;
    let old = call.cluster.get(&resource.table, call.namespace.as_deref(), name);
    let Some(old) = old else {
        if kind != PatchKind::Apply || call.subresource.is_some() {
            return Err(ApiError::not_found(&resource.kind, name));
        }
        return create_applied(call, name, decoded, options, warnings).map(Some);
    };
    let old_value = pipeline::kept(&old, resource);
    let mut chain = Chain { call, options, warnings };
    let written = match kind {
        PatchKind::Apply => {
            let applied = chain.conform_applied(decoded)?;
            // The namespace of the path is no field that the client wants to own.
            metadata::place_in_namespace(call, &mut applied.clone())?;
            chain.apply(&old, &old_value, applied)?
        }
        PatchKind::Json | PatchKind::Merge | PatchKind::Strategic => {
            let new = strategy::patched(resource, kind, &old_value, &decoded.value)?;
            let conformed = chain.conform(new.clone().into(), &decoded.strict);
            let mut new = conformed
                .map_err(|error| strategy::misfit(resource, kind, &decoded.value, &new).unwrap_or(error))?;
            metadata::place_in_namespace(call, &mut new)?;
            metadata::prepare_patched(call, name, &old_value, &mut new)?;
            chain.change(&old, &old_value, new)?
        }
    };
    written.map(|written| written.answer(call, 200, warnings)).transpose()
}

/// An apply makes an object that does not exist.
fn create_applied(
    call: &Call,
    name: &str,
    decoded: &Decoded,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Outcome<Response<Body>> {
    if !metadata::text(&decoded.value, "uid").is_empty() {
        let kind = &call.resource.kind;
        let uid = metadata::text(&decoded.value, "uid");
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(ApiError::conflict(kind, name, &why));
    }
    let body = decoded.value.clone().into();
    let written = create_object(call, body, Some(name), &options.applying(), warnings)?;
    written.answer(call, 201, warnings)
}

impl Chain<'_> {
    fn apply(
        &mut self,
        old: &Arc<crate::store::Stored>,
        old_value: &Value,
        mut applied: Value,
    ) -> Outcome<Option<super::create::Written>> {
        let call = self.call;
        let revision = metadata::text(&applied, "resourceVersion").to_owned();
        if !revision.is_empty() && revision != old.revision.to_string() {
            return Err(ApiError::modified(&call.resource.kind, old.name()));
        }
        if let Some(fields) = applied.get_mut("metadata").and_then(Value::as_object_mut) {
            fields.retain(|_, value| !value.is_null());
            for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "selfLink"] {
                fields.remove(field);
            }
        }
        let new = self.applied(Some(old_value), &applied)?;
        let mut new = strategy::conform(&call.resource, new.into())?.value;
        metadata::keep(old_value, metadata::of_mut(&mut new)?);
        strategy::complete(&call.resource, &mut new);
        crate::admission::convert_changed(call, old_value, &mut new);
        self.prepare_change(old_value, &mut new)?;
        self.finish_change(old, old_value, new)
    }
}

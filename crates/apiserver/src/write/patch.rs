//! Partial changes in four content types.

use std::sync::Arc;

use axum::body::Body;
use http::Response;
use objects::decode::Decoded;
use serde_json::{Value, json};

use super::body::patch as read_patch;
use super::create::create_object;
use super::metadata;
use super::pipeline::Pipeline;
use crate::cluster::ATTEMPTS;
use crate::object_meta;
use crate::request::{RequestContext, WriteOptions};
use crate::response;
use crate::status::{ApiError, Outcome};
use crate::strategy::{self, PatchKind};

pub(crate) fn patch(request: &RequestContext, name: &str) -> Outcome<Response<Body>> {
    let kind = patch_kind(request.media_type(), request.resource.custom.is_some())?;
    let options = WriteOptions::of_patch(&request.query, &request.headers, kind == PatchKind::Apply)?;
    if kind != PatchKind::Apply && request.find(name).is_none() {
        return Err(request.absent(name));
    }
    let decoded = match kind {
        PatchKind::Apply => objects::decode::untyped(crate::yaml::read(&request.body)?),
        PatchKind::Json | PatchKind::Merge | PatchKind::Strategic => read_patch(&request.body, kind)?,
    };
    if kind == PatchKind::Apply {
        check_apply(&request.resource.api_version, "", name, &decoded)?;
    }
    let mut warnings = Vec::new();
    for _ in 0..ATTEMPTS {
        match attempt(request, name, kind, &decoded, &options, &mut warnings) {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => {}
            Err(error) => return Ok(response::warned_refusal(&error, &warnings)),
        }
    }
    Err(ApiError::modified(&request.resource.kind, name))
}

pub(crate) fn patch_kind(content_type: &str, custom: bool) -> Outcome<PatchKind> {
    Ok(match content_type {
        "application/json-patch+json" => PatchKind::Json,
        "application/merge-patch+json" => PatchKind::Merge,
        "application/strategic-merge-patch+json" if !custom => PatchKind::Strategic,
        "application/apply-patch+yaml" => PatchKind::Apply,
        _ if custom => {
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

/// Checks what is applied to the object `name`. An empty kind stands for each one.
pub(crate) fn check_apply(api_version: &str, wanted: &str, name: &str, decoded: &Decoded) -> Outcome<()> {
    let managed = decoded.value.pointer("/metadata/managedFields");
    if managed.is_some_and(|list| !list.is_null() && list != &json!([])) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let given = object_meta::text(&decoded.value, "name");
    if !given.is_empty() && given != name {
        let message = format!("the name of the object ({given}) does not match the name on the URL ({name})");
        return Err(ApiError::bad_request(message));
    }
    let text = |field: &str| decoded.value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if kind.is_empty() || version != api_version || (!wanted.is_empty() && kind != wanted) {
        let slash = if version.contains('/') { "" } else { "/" };
        return Err(ApiError::bad_request(format!("invalid object type: {slash}{version}, Kind={kind}")));
    }
    Ok(())
}

fn attempt(
    request: &RequestContext,
    name: &str,
    kind: PatchKind,
    decoded: &Decoded,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Outcome<Option<Response<Body>>> {
    let resource = &request.resource;
    let old = request.find(name);
    let Some(old) = old else {
        if kind != PatchKind::Apply || request.subresource.is_some() {
            return Err(ApiError::not_found(&resource.kind, name));
        }
        return create_applied(request, name, decoded, options, warnings).map(Some);
    };
    let old_value = request.in_version(&old)?;
    let mut pipeline = Pipeline { request, options, warnings };
    let written = match kind {
        PatchKind::Apply => {
            let applied = pipeline.conform_applied(decoded)?;
            // The namespace of the path is no field that the client wants to own.
            metadata::place_in_namespace(request, &mut applied.clone())?;
            pipeline.apply(&old, &old_value, applied)?
        }
        PatchKind::Json | PatchKind::Merge | PatchKind::Strategic => {
            let new = strategy::patched(resource, kind, &old_value, &decoded.value)?;
            if !strategy::has_header(&new)
                && let Some(error) = strategy::type_error(resource, kind, &decoded.value, &new)
            {
                return Err(error);
            }
            let conformed = pipeline.conform_patched(kind, decoded, &new);
            let mut new = conformed.map_err(|error| {
                strategy::type_error(resource, kind, &decoded.value, &new).unwrap_or(error)
            })?;
            metadata::place_in_namespace(request, &mut new)?;
            metadata::drop_repeated_owners(&mut new, true, pipeline.warnings);
            metadata::check_name(name, &new)?;
            let revision = object_meta::text(&new, "resourceVersion").to_owned();
            let mut new = pipeline.admit_change(&old_value, new)?;
            metadata::prepare_patched(request, name, &old_value, (&mut new, &revision))?;
            pipeline.change(&old, &old_value, new)?
        }
    };
    written.map(|written| written.answer(request, 200, warnings)).transpose()
}

/// An apply makes an object that does not exist.
fn create_applied(
    request: &RequestContext,
    name: &str,
    decoded: &Decoded,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Outcome<Response<Body>> {
    if !object_meta::text(&decoded.value, "uid").is_empty() {
        let kind = &request.resource.kind;
        let uid = object_meta::text(&decoded.value, "uid");
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(ApiError::conflict(kind, name, &why));
    }
    let body = decoded.value.clone().into();
    let written = create_object(request, body, Some(name), &options.applying(), warnings)?;
    written.answer(request, 201, warnings)
}

impl Pipeline<'_> {
    fn apply(
        &mut self,
        old: &Arc<crate::store::Stored>,
        old_value: &Value,
        mut applied: Value,
    ) -> Outcome<Option<super::create::Written>> {
        let request = self.request;
        let revision = object_meta::text(&applied, "resourceVersion").to_owned();
        if !revision.is_empty() && revision != old.revision.to_string() {
            return Err(ApiError::modified(&request.resource.kind, old.name()));
        }
        if let Some(fields) = applied.get_mut("metadata").and_then(Value::as_object_mut) {
            fields.retain(|_, value| !value.is_null());
            for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "selfLink"] {
                fields.remove(field);
            }
        }
        let new = self.applied(Some(old_value), &applied)?;
        let mut new = strategy::conform(&request.resource, new.into())?.value;
        metadata::keep(old_value, object_meta::of_mut(&mut new)?);
        metadata::drop_repeated_owners(&mut new, true, self.warnings);
        strategy::complete_applied(&request.resource, &mut new)?;
        crate::admission::convert_changed(request, old_value, &mut new);
        let mut new = self.admit_owned(old_value, new)?;
        self.prepare_change(old_value, &mut new)?;
        self.finish_change(old, old_value, new)
    }
}

//! Requests for scales: reading one, and changing an object's replicas through it.

use axum::body::Body;
use http::Response;
use serde_json::Value;

use super::{asked, scale};
use crate::cluster::ATTEMPTS;
use crate::kind::Verb;
use crate::request::{RequestContext, WriteOptions};
use crate::response;
use crate::status::{ApiError, Outcome};
use crate::strategy::{self, PatchKind};
use crate::write::body::patch as read_patch;
use crate::write::create::Written;
use crate::write::patch_kind;
use crate::write::pipeline::Pipeline;

pub(crate) fn answer(request: &RequestContext, name: &str, verb: Verb) -> Outcome<Response<Body>> {
    match verb {
        Verb::Get => {
            let object = request.find(name).ok_or_else(|| request.absent(name))?;
            scale::show(request, &object.value())
        }
        Verb::Update => {
            let options = WriteOptions::of(&request.query, &request.headers, "UpdateOptions")?;
            change(request, name, &options, None)
        }
        Verb::Patch => {
            let kind = patch_kind(request.media_type(), request.resource.custom.is_some())?;
            let options = WriteOptions::of_patch(&request.query, &request.headers, kind == PatchKind::Apply)?;
            change(request, name, &options, Some(kind))
        }
        Verb::Create | Verb::Delete | Verb::DeleteCollection | Verb::List | Verb::Watch => {
            Err(ApiError::method_not_allowed())
        }
    }
}

/// Changes the replicas of an object by a scale, or by a patch of its scale.
fn change(
    request: &RequestContext,
    name: &str,
    options: &WriteOptions,
    patch: Option<PatchKind>,
) -> Outcome<Response<Body>> {
    let mut warnings = Vec::new();
    let body = match patch {
        Some(PatchKind::Apply) => crate::yaml::read(&request.body)?.into(),
        Some(kind @ (PatchKind::Json | PatchKind::Merge | PatchKind::Strategic)) => {
            read_patch(&request.body, kind)?.value
        }
        None => asked::read(request, ("autoscaling", "v1", "Scale"), options, &mut warnings)?,
    };
    let answer = changed(request, name, options, patch, &body, &mut warnings);
    Ok(response::warned(answer, &warnings))
}

fn changed(
    request: &RequestContext,
    name: &str,
    options: &WriteOptions,
    patch: Option<PatchKind>,
    body: &Value,
    warnings: &mut Vec<String>,
) -> Outcome<Response<Body>> {
    let resource = &request.resource;
    for _ in 0..ATTEMPTS {
        let old = request.find(name).ok_or_else(|| ApiError::not_found(&resource.kind, name))?;
        let old_value = request.in_version(&old)?;
        // Merge patches of all kinds are one here, and are refused in the same words.
        let kind = patch.map(|kind| if kind == PatchKind::Json { kind } else { PatchKind::Merge });
        let wanted = match kind {
            Some(kind) => strategy::patched(resource, kind, &scale::of(request, &old_value)?, body)?,
            None => body.clone(),
        };
        let checked = kind.filter(|_| patch != Some(PatchKind::Apply));
        if let Some(error) =
            checked.and_then(|kind| strategy::type_error_of(&scale::SHAPE, kind, body, &wanted))
        {
            return Err(error);
        }
        let mut new = old_value.clone();
        scale::set(request, &mut new, &old, &wanted)?;
        let mut pipeline = Pipeline { request, options, warnings };
        // Replicas without an owner stay so.
        let changed = if scale::is_owned(request, &old_value) {
            pipeline.change(&old, &old_value, new)?
        } else {
            pipeline.change_unowned(&old, &old_value, new)?
        };
        match changed {
            Some(Written::Stored(object)) => return scale::show(request, &object.value()),
            Some(Written::DryRun(object)) => return scale::show(request, &object),
            None => {}
        }
    }
    Err(ApiError::modified(&resource.kind, name))
}

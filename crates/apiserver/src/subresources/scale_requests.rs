//! Requests for scales: reading one, and changing an object's replicas through it.

use axum::body::Body;
use http::Response;
use objects::decode::{self, Node};
use serde_json::Value;

use super::{asked, scale};
use crate::admission::configured::is_reviewed;
use crate::admission::webhook::{self, Asked, Named, Operation};
use crate::cluster::ATTEMPTS;
use crate::kind::Verb;
use crate::object_meta;
use crate::request::options::FieldValidation;
use crate::request::{RequestContext, WriteOptions};
use crate::response;
use crate::status::{ApiError, Outcome};
use crate::strategy::{self, FieldOwner, PatchKind};
use crate::write::body::patch as read_patch;
use crate::write::create::Written;
use crate::write::metadata::place_in_namespace;
use crate::write::pipeline::Pipeline;
use crate::write::{check_apply, patch_kind, report_dropped};

pub(crate) fn answer(request: &RequestContext, name: &str, verb: Verb) -> Outcome<Response<Body>> {
    match verb {
        Verb::Get => {
            let object = request.find(name).ok_or_else(|| request.absent(name))?;
            let object = object.value();
            scale::check_shown(request, &object)?;
            scale::show(request, &object)
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
        Some(PatchKind::Apply) => {
            let applied = decode::untyped(crate::yaml::read(&request.body)?);
            check_apply("autoscaling/v1", "Scale", name, &applied)?;
            applied
        }
        Some(kind @ (PatchKind::Json | PatchKind::Merge | PatchKind::Strategic)) => {
            read_patch(&request.body, kind)?
        }
        None => decode::Decoded {
            value: asked::read(request, ("autoscaling", "v1", "Scale"), options, &mut warnings)?,
            strict: Vec::new(),
        },
    };
    let answer = changed(request, name, options, patch, &body, &mut warnings);
    Ok(response::warned(answer, &warnings))
}

fn changed(
    request: &RequestContext,
    name: &str,
    options: &WriteOptions,
    patch: Option<PatchKind>,
    body: &decode::Decoded,
    warnings: &mut Vec<String>,
) -> Outcome<Response<Body>> {
    let resource = &request.resource;
    let decode::Decoded { value: body, strict: repeated } = body;
    let applies = patch == Some(PatchKind::Apply);
    for _ in 0..ATTEMPTS {
        let old = request.find(name).ok_or_else(|| ApiError::not_found(&resource.kind, name))?;
        let old_value = request.in_version(&old)?;
        // Merge patches of all kinds are one here, and are refused in the same words.
        let kind = patch.map(|kind| if kind == PatchKind::Json { kind } else { PatchKind::Merge });
        let old_scale = scale::of(request, &old_value)?;
        let wanted = match kind {
            Some(_) if applies => applied(request, options, (&old_value, &old_scale), body)?,
            Some(kind) => strategy::patched(resource, kind, &old_scale, body)?,
            None => body.clone(),
        };
        let checked = kind.filter(|_| !applies);
        if let Some(error) =
            checked.and_then(|kind| strategy::type_error_of(&scale::SHAPE, kind, body, &wanted))
        {
            return Err(error);
        }
        // A body was read by its type before.
        if let Some(kind) = kind {
            report_unknown(request, options, kind, (body, &wanted), repeated, warnings)?;
        }
        let wanted = reviewed(request, options, applies, (&old_value, old_scale, wanted), warnings)?;
        scale::check(request, &old, &wanted)?;
        let mut new = old_value.clone();
        scale::set(request, &mut new, &old, &wanted)?;
        let mut pipeline = Pipeline { request, options, warnings };
        if applies {
            new = pipeline.admit_change(&old_value, new)?;
            scale::give_owners(request, (&old_value, &mut new), &wanted)?;
            scale::forget_time(&mut new);
        } else if scale::is_owned(request, &old_value) {
            // Replicas without an owner stay so.
            new = pipeline.admit_change(&old_value, new)?;
            scale::forget_time(&mut new);
        }
        match pipeline.change(&old, &old_value, new)? {
            Some(Written::Stored(object)) => return scale::show(request, &object.value()),
            Some(Written::DryRun(object)) => return scale::show(request, &object),
            None => {}
        }
    }
    Err(ApiError::modified(&resource.kind, name))
}

/// Returns the scale of an object after a manager applied what it wants of it.
fn applied(
    request: &RequestContext,
    options: &WriteOptions,
    (object, scale): (&Value, &Value),
    wanted: &Value,
) -> Outcome<Value> {
    let resource = request.resource.spoken("scale").ok_or_else(ApiError::unknown_resource)?;
    let mut scale = scale.clone();
    let owners = scale::owners(request, object);
    object_meta::of_mut(&mut scale)?.extend(owners.map(|owners| ("managedFields".to_owned(), owners)));
    let owner = FieldOwner { manager: &options.field_manager, subresource: "scale" };
    strategy::applied(&resource, Some(&scale), wanted, owner, request.now, options.force)
}

/// Returns a scale as mutating webhooks leave it. They see it with its owners, and what the object has otherwise is not theirs to see.
fn reviewed(
    request: &RequestContext,
    options: &WriteOptions,
    applies: bool,
    (object, mut old, mut wanted): (&Value, Value, Value),
    warnings: &mut Vec<String>,
) -> Outcome<Value> {
    let Some(resource) = request.resource.spoken("scale").filter(|_| is_reviewed(request)) else {
        return Ok(wanted);
    };
    place_in_namespace(request, &mut wanted)?;
    resource.put_type(&mut wanted);
    scale::drop_zero(&mut wanted);
    let owners = scale::owners(request, object).map(|owners| ("managedFields".to_owned(), owners));
    object_meta::of_mut(&mut old)?.extend(owners.clone());
    strategy::complete(&resource, &mut wanted)?;
    // What is applied has its owners already.
    if !applies {
        object_meta::of_mut(&mut wanted)?.extend(owners);
        let owner = FieldOwner { manager: &options.field_manager, subresource: "scale" };
        strategy::own(&resource, Some(&old), &mut wanted, owner, request.now);
    }
    let asked = Asked {
        request,
        operation: Operation::Update,
        named: Named::Itself,
        object: None,
        old: Some(&old),
        is_dry_run: options.dry_run,
        options: &options.shown,
    };
    match webhook::mutate(asked, &wanted, warnings)? {
        Some(changed) => strategy::conform_mutated(&resource, changed.into()),
        None => Ok(wanted),
    }
}

/// Warns of fields that a patch gives a scale and that scales do not have, or refuses them.
fn report_unknown(
    request: &RequestContext,
    options: &WriteOptions,
    kind: PatchKind,
    (patch, wanted): (&Value, &Value),
    repeated: &[String],
    warnings: &mut Vec<String>,
) -> Outcome<()> {
    let decoded = decode::typed(Node::from(wanted.clone()), &scale::SHAPE);
    let mut found = repeated.to_vec();
    found.extend(decoded.into_iter().flat_map(|decoded| decoded.strict));
    if options.validation == FieldValidation::Strict && !found.is_empty() {
        return Err(strategy::strict_error_of(&scale::SHAPE, kind, patch, wanted, &found));
    }
    report_dropped(&request.resource.kind, options, found, warnings)
}

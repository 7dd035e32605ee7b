//! Creation of objects.

use std::sync::Arc;

use axum::body::Body;
use http::Response;
use http::header::CONTENT_TYPE;
use objects::decode::Node;
use serde_json::Value;

use super::body::{form, object};
use super::metadata;
use super::pipeline::Pipeline;
use crate::admission;
use crate::admission::webhook::Operation;
use crate::authorization;
use crate::cluster::check_size;
use crate::object_meta;
use crate::read::ObjectEncoder;
use crate::request::{RequestContext, WriteOptions};
use crate::response;
use crate::status::{ApiError, Outcome};
use crate::store::{Encoded, ObjectRef, Refusal, Stored, Write, split_key};
use crate::strategy;

/// What a write made of an object.
#[derive(Debug)]
pub(crate) enum Written {
    Stored(Arc<Stored>),
    DryRun(Value),
}

impl Written {
    pub(crate) fn answer(
        &self,
        request: &RequestContext,
        status: u16,
        warnings: &[String],
    ) -> Outcome<Response<Body>> {
        let encoder = ObjectEncoder::of(request);
        let mut answer = match self {
            Written::Stored(object) => encoder.answer(status, object)?,
            Written::DryRun(object) => {
                let bytes = serde_json::to_vec(object).unwrap_or_default();
                encoder.answer_value(status, &encoder.value(&bytes, true))?
            }
        };
        response::warn(&mut answer, warnings);
        Ok(answer)
    }
}

pub(crate) fn create(request: &RequestContext, name: Option<&str>) -> Outcome<Response<Body>> {
    form(request.header(CONTENT_TYPE))?;
    let options = WriteOptions::of(&request.query, &request.headers, "CreateOptions")?;
    let body = object(&request.body, request.header(CONTENT_TYPE), &request.resource.kind)?;
    let mut warnings = Vec::new();
    match create_object(request, body, name, &options, &mut warnings) {
        Ok(written) => written.answer(request, 201, &warnings),
        Err(error) => Ok(response::warned_refusal(&error, &warnings)),
    }
}

/// Creates an object. `name` is the name in the path if there is one: the request is a change then, and needs another right.
pub(crate) fn create_object(
    request: &RequestContext,
    body: Node,
    name: Option<&str>,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Outcome<Written> {
    let resource = &request.resource;
    let mut pipeline = Pipeline { request, options, warnings };
    let mut object =
        if options.applies { pipeline.conform_new_applied(body)? } else { pipeline.conform(body, &[])? };
    metadata::place_in_namespace(request, &mut object)?;
    if let Some(name) = name {
        metadata::check_name(name, &object)?;
    }
    metadata::drop_repeated_owners(&mut object, options.applies, pipeline.warnings);
    let complete = if options.applies { strategy::complete_applied } else { strategy::complete };
    complete(resource, &mut object)?;
    admission::convert_new(request, &mut object);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        object_meta::of_mut(&mut object)?.remove(field);
    }
    // What admission and the strategy of the kind fill in has no owner.
    let owned = if options.applies { None } else { pipeline.own_new(&mut object) };
    admission::check_namespace(request, object_meta::name_or_base(&object))?;
    admission::admit_new(request, &mut object)?;
    if let Some(changed) = pipeline.mutate(Operation::Create, None, &object)? {
        object = changed;
        admission::admit_new(request, &mut object)?;
    }
    metadata::name_limit_range(request, &mut object)?;
    metadata::check_name_given(request, &object)?;
    if name.is_none() {
        metadata::check_new_revision(&object, options)?;
    }
    metadata::prepare_new(request, &mut object, options)?;
    pipeline.first_status(&mut object);
    admission::prepare_new(request, &mut object)?;
    strategy::conversion::settle(&mut object, resource);
    pipeline.validate_create(&object)?;
    if let Some(name) = name {
        authorization::check_creation(request, name)?;
    }
    pipeline.ask_validating(Operation::Create, None, &object)?;
    admission::complete_new(request, &mut object);
    let object_ref = request.object_ref(object_meta::text(&object, "name"));
    commit_new(request, &object_ref, object, owned, options)
}

fn commit_new(
    request: &RequestContext,
    object_ref: &ObjectRef,
    mut object: Value,
    owned: Option<Vec<u8>>,
    options: &WriteOptions,
) -> Outcome<Written> {
    let resource = &request.resource;
    let name = split_key(&object_ref.key).1;
    let exists = || ApiError::already_exists(&resource.kind, name);
    strategy::settle_stored(resource, &mut object);
    if options.dry_run {
        if request.cluster.storage.get(object_ref).is_some() {
            return Err(exists());
        }
        if let Some(owned) = owned {
            let owned = objects::decode::read(&owned).unwrap_or_default();
            object_meta::of_mut(&mut object)?.insert("managedFields".into(), owned);
        }
        return Ok(Written::DryRun(object));
    }
    request.convert_to_stored(&mut object)?;
    let encoded = Encoded::owned(&object, owned.as_deref(), &resource.fields);
    check_size(&encoded)?;
    match request.cluster.commit(object_ref, Write::Create(encoded)) {
        Ok(committed) => Ok(Written::Stored(Arc::clone(committed.object()))),
        Err(Refusal::Exists | Refusal::Missing | Refusal::Changed) => Err(exists()),
        Err(Refusal::NotKept(why)) => Err(ApiError::internal(why)),
    }
}

//! Creation of objects.

use std::sync::Arc;

use axum::body::Body;
use http::Response;
use http::header::CONTENT_TYPE;
use objects::decode::Node;
use serde_json::Value;

use super::body::object;
use super::metadata;
use super::pipeline::{self, Chain};
use crate::admission;
use crate::request::Call;
use crate::request::options::WriteOptions;
use crate::status::{ApiError, Outcome};
use crate::store::{Encoded, Place, Refusal, Stored, Write, key_of};
use crate::strategy;

/// What a write left behind.
#[derive(Debug)]
pub(crate) enum Written {
    /// The object as it is kept.
    Kept(Arc<Stored>),
    /// The object as it would be kept.
    Tried(Value),
}

impl Written {
    /// Returns the answer that shows the object.
    pub(crate) fn answer(&self, call: &Call, status: u16, warnings: &[String]) -> Outcome<Response<Body>> {
        let presenter = call.presenter();
        let mut answer = match self {
            Written::Kept(object) => presenter.answer(status, object)?,
            Written::Tried(object) => {
                let bytes = serde_json::to_vec(object).unwrap_or_default();
                presenter.answer_value(status, &presenter.value(&bytes, true))?
            }
        };
        crate::response::warn(&mut answer, warnings);
        Ok(answer)
    }
}

/// Answers with the object that was created.
pub(crate) fn create(call: &Call, name: Option<&str>) -> Outcome<Response<Body>> {
    let options = WriteOptions::of(&call.query, &call.headers, "CreateOptions")?;
    let body = object(&call.body, call.header(CONTENT_TYPE), &call.resource.kind)?;
    let mut warnings = Vec::new();
    match create_object(call, body, name, &options, &mut warnings) {
        Ok(written) => written.answer(call, 201, &warnings),
        Err(error) => Ok(crate::response::warned_refusal(&error, &warnings)),
    }
}

/// Creates an object. `name` is the name in the path if there is one.
pub(crate) fn create_object(
    call: &Call,
    body: Node,
    name: Option<&str>,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Outcome<Written> {
    let resource = &call.resource;
    let mut chain = Chain { call, options, warnings };
    let mut object =
        if options.applies { chain.conform_new_applied(body)? } else { chain.conform(body, &[])? };
    if let Some(name) = name
        && metadata::text(&object, "name").is_empty()
    {
        metadata::of_mut(&mut object)?.insert("name".into(), name.into());
    }
    metadata::place_in_namespace(call, &mut object)?;
    strategy::complete(resource, &mut object);
    admission::convert_new(call, &mut object);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata::of_mut(&mut object)?.remove(field);
    }
    // What admission and the strategy of the kind fill in belongs to nobody.
    let owned = if options.applies { None } else { chain.own_new(&mut object) };
    metadata::check_name_given(call, &object, options)?;
    metadata::prepare_new(call, &mut object, pipeline::has_generation(resource))?;
    admission::check_namespace(call, metadata::text(&object, "name"))?;
    chain.first_status(&mut object);
    admission::admit_new(call, &mut object, options)?;
    chain.validate_create(&object)?;
    let key = key_of(call.namespace.as_deref(), metadata::text(&object, "name"));
    let place = Place { table: Arc::clone(&resource.table), key };
    commit_new(call, &place, object, owned, options)
}

fn commit_new(
    call: &Call,
    place: &Place,
    mut object: Value,
    owned: Option<Vec<u8>>,
    options: &WriteOptions,
) -> Outcome<Written> {
    let resource = &call.resource;
    let name = crate::store::split_key(&place.key).1;
    let exists = || ApiError::already_exists(&resource.kind, name);
    if options.dry_run {
        if call.cluster.at(place).is_some() {
            return Err(exists());
        }
        if let Some(owned) = owned {
            let owned = serde_json::from_slice(&owned).unwrap_or_default();
            metadata::of_mut(&mut object)?.insert("managedFields".into(), owned);
        }
        return Ok(Written::Tried(object));
    }
    crate::strategy::conversion::to_stored(&mut object, resource);
    let encoded = Encoded::owned(&object, owned.as_deref(), &resource.fields);
    pipeline::check_size(&encoded)?;
    match call.cluster.commit(place, Write::Create(encoded)) {
        Ok(committed) => {
            crate::definitions::observe(&call.cluster, place, Some(&object));
            Ok(Written::Kept(Arc::clone(committed.object())))
        }
        Err(Refusal::Exists | Refusal::Missing | Refusal::Changed) => Err(exists()),
    }
}

//! Changes of objects that exist.

use std::sync::Arc;

use axum::body::Body;
use http::Response;
use http::header::CONTENT_TYPE;
use objects::decode::Node;
use serde_json::Value;

use super::body::object;
use super::create::{Written, create_object};
use super::metadata;
use super::pipeline::{self, Chain};
use crate::admission;
use crate::cluster::Cluster;
use crate::registry::Resource;
use crate::request::Call;
use crate::request::options::WriteOptions;
use crate::status::{ApiError, Outcome};
use crate::store::{Encoded, Place, Refusal, Stored, Write, key_of};
use crate::strategy;

/// How often a change that met another one is computed again.
pub(crate) const ATTEMPTS: usize = 16;

/// Answers a PUT.
pub(crate) fn update(call: &Call, name: &str) -> Outcome<Response<Body>> {
    let options = WriteOptions::of(&call.query, &call.headers, "UpdateOptions")?;
    let body = object(&call.body, call.header(CONTENT_TYPE), &call.resource.kind)?;
    let mut warnings = Vec::new();
    match replace(call, name, &body, &options, &mut warnings) {
        Ok(answer) => Ok(answer),
        Err(error) => Ok(crate::response::warned_refusal(&error, &warnings)),
    }
}

fn replace(
    call: &Call,
    name: &str,
    body: &Node,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Outcome<Response<Body>> {
    let resource = &call.resource;
    for _ in 0..ATTEMPTS {
        let Some(old) = call.cluster.get(&resource.table, call.namespace.as_deref(), name) else {
            if call.subresource.is_none() && pipeline::creates_on_update(resource) {
                let written = create_object(call, body.clone(), Some(name), options, warnings)?;
                return written.answer(call, 201, warnings);
            }
            return Err(ApiError::not_found(&resource.kind, name));
        };
        let mut chain = Chain { call, options, warnings };
        let mut new = chain.conform(body.clone(), &[])?;
        metadata::place_in_namespace(call, &mut new)?;
        let old_value = pipeline::kept(&old, resource);
        let conditional = metadata::prepare_update(call, name, &old_value, &mut new)?;
        pipeline::check_conditional(resource, name, conditional)?;
        match chain.change(&old, &old_value, new)? {
            Some(written) => return written.answer(call, 200, warnings),
            None if conditional => break,
            None => {}
        }
    }
    Err(ApiError::modified(&resource.kind, name))
}

impl Chain<'_> {
    /// Takes a new version through the chain; nothing is returned when another change came first.
    pub(crate) fn change(
        &mut self,
        old: &Arc<Stored>,
        old_value: &Value,
        mut new: Value,
    ) -> Outcome<Option<Written>> {
        pipeline::separate_status(self.call, old_value, &mut new);
        strategy::complete(&self.call.resource, &mut new);
        admission::convert_changed(self.call, old_value, &mut new);
        self.own(Some(old_value), &mut new);
        self.prepare_change(old_value, &mut new)?;
        self.finish_change(old, old_value, new)
    }

    /// Takes a new version through the chain that says nothing about who owns what.
    pub(crate) fn change_unowned(
        &mut self,
        old: &Arc<Stored>,
        old_value: &Value,
        mut new: Value,
    ) -> Outcome<Option<Written>> {
        self.prepare_change(old_value, &mut new)?;
        self.finish_change(old, old_value, new)
    }

    /// Separates status and the rest, admits, counts the generation and validates.
    pub(crate) fn prepare_change(&mut self, old: &Value, new: &mut Value) -> Outcome<()> {
        let call = self.call;
        pipeline::separate_status(call, old, new);
        admission::keep_unsaid(call, old, new);
        admission::admit_change(call, old, new)?;
        pipeline::count_generation(&call.resource, old, new)?;
        self.validate_update(old, new)
    }

    /// Commits a new version, or the deletion that it completes.
    pub(crate) fn finish_change(
        &mut self,
        old: &Arc<Stored>,
        old_value: &Value,
        mut new: Value,
    ) -> Outcome<Option<Written>> {
        let resource = &self.call.resource;
        if pipeline::is_same(old_value, &new) {
            return Ok(Some(Written::Kept(Arc::clone(old))));
        }
        if self.options.dry_run {
            return Ok(Some(Written::Tried(new)));
        }
        crate::strategy::conversion::to_stored(&mut new, resource);
        let place = Place { table: Arc::clone(&resource.table), key: old.key.clone() };
        let committed = commit_change(&self.call.cluster, resource, &place, old, &new)?;
        // The answer shows what was written even if that let the object go.
        let gone = metadata::is_deleting(&new) && !pipeline::holds_back(resource, &new);
        Ok(committed.map(|kept| if gone { Written::Tried(new) } else { Written::Kept(kept) }))
    }
}

/// Commits a new version of an object; one that waited only for its finalizers is deleted.
fn commit_change(
    cluster: &Cluster,
    resource: &Resource,
    place: &Place,
    old: &Stored,
    new: &Value,
) -> Outcome<Option<Arc<Stored>>> {
    let encoded = Encoded::new(new, &resource.fields);
    pipeline::check_size(&encoded)?;
    let expected = old.revision;
    let gone = metadata::is_deleting(new) && !pipeline::holds_back(resource, new);
    let write = if gone { Write::Delete { expected } } else { Write::Update { expected, object: encoded } };
    match cluster.commit(place, write) {
        Ok(committed) => {
            crate::definitions::observe(cluster, place, (!gone).then_some(new));
            Ok(Some(Arc::clone(committed.object())))
        }
        Err(Refusal::Missing) => Err(ApiError::not_found(&resource.kind, old.name())),
        Err(Refusal::Changed | Refusal::Exists) => Ok(None),
    }
}

/// What is to be done with an object after somebody looked at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// Nothing.
    Keep,
    /// The changed version is kept.
    Write,
}

/// In whose name the server changes an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hand {
    pub(crate) manager: &'static str,
    pub(crate) subresource: &'static str,
}

/// Changes an object on behalf of the server itself, past validation; does nothing if it is gone.
pub(crate) fn modify(
    cluster: &Cluster,
    resource: &Resource,
    place: &Place,
    hand: Hand,
    mut edit: impl FnMut(&mut Value) -> Edit,
) -> Outcome<Option<Arc<Stored>>> {
    for _ in 0..ATTEMPTS {
        let Some(old) = cluster.at(place) else {
            return Ok(None);
        };
        let mut new = old.value();
        let before = new.clone();
        if edit(&mut new) == Edit::Keep {
            return Ok(Some(old));
        }
        let owner =
            strategy::Owner { manager: hand.manager, subresource: hand.subresource, now: cluster.now() };
        strategy::own(resource, Some(&before), &mut new, &owner);
        if let Some(kept) = commit_change(cluster, resource, place, &old, &new)? {
            return Ok(Some(kept));
        }
    }
    Err(ApiError::modified(&resource.kind, key_name(place)))
}

fn key_name(place: &Place) -> &str {
    crate::store::split_key(&place.key).1
}

/// Returns the place of an object of the call's resource.
pub(crate) fn place_of(call: &Call, name: &str) -> Place {
    Place { table: Arc::clone(&call.resource.table), key: key_of(call.namespace.as_deref(), name) }
}

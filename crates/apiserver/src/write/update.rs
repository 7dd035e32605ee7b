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
use super::pipeline::Pipeline;
use crate::admission;
use crate::admission::webhook::Operation;
use crate::cluster::ATTEMPTS;
use crate::object_meta;
use crate::request::{RequestContext, WriteOptions};
use crate::response;
use crate::status::{ApiError, Outcome};
use crate::store::{ObjectRef, Stored};
use crate::strategy::{self, Strategy, conversion};

pub(crate) fn update(request: &RequestContext, name: &str) -> Outcome<Response<Body>> {
    let options = WriteOptions::of(&request.query, &request.headers, "UpdateOptions")?;
    let body = object(&request.body, request.header(CONTENT_TYPE), &request.resource.kind)?;
    let mut warnings = Vec::new();
    match replace(request, name, &body, &options, &mut warnings) {
        Ok(answer) => Ok(answer),
        Err(error) => Ok(response::warned_refusal(&error, &warnings)),
    }
}

fn replace(
    request: &RequestContext,
    name: &str,
    body: &Node,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Outcome<Response<Body>> {
    let resource = &request.resource;
    for _ in 0..ATTEMPTS {
        let Some(old) = request.find(name) else {
            let mut new = Pipeline { request, options, warnings }.conform(body.clone(), &[])?;
            metadata::place_in_namespace(request, &mut new)?;
            metadata::check_name(name, &new)?;
            if request.subresource.is_none() && Strategy::of(resource).creates_on_update {
                metadata::check_uid(request, name, "", &new)?;
                metadata::named_revision(object_meta::text(&new, "resourceVersion"))?;
                // It is read once more, and warned of then.
                warnings.clear();
                let written = create_object(request, body.clone(), Some(name), options, warnings)?;
                return written.answer(request, 201, warnings);
            }
            return Err(request.absent(name));
        };
        let mut pipeline = Pipeline { request, options, warnings };
        let mut new = pipeline.conform(body.clone(), &[])?;
        metadata::drop_repeated_owners(&mut new, false, pipeline.warnings);
        metadata::place_in_namespace(request, &mut new)?;
        let old_value = request.in_version(&old)?;
        metadata::check_identity(request, name, &old_value, &new)?;
        let revision = object_meta::text(&new, "resourceVersion").to_owned();
        let mut new = pipeline.admit_change(&old_value, new)?;
        let conditional = metadata::check_revision(request, name, &old_value, &revision)?;
        metadata::keep(&old_value, object_meta::of_mut(&mut new)?);
        strategy::check_conditional(resource, name, conditional)?;
        match pipeline.change(&old, &old_value, new)? {
            Some(written) => return written.answer(request, 200, warnings),
            None if conditional => break,
            None => {}
        }
    }
    Err(ApiError::modified(&resource.kind, name))
}

impl Pipeline<'_> {
    /// Returns a new version with its owners, as admission leaves it.
    ///
    /// Webhooks see what the client sent, whatever part of it may be changed.
    pub(crate) fn admit_change(&mut self, old: &Value, mut new: Value) -> Outcome<Value> {
        let (request, resource) = (self.request, &self.request.resource);
        let part = request.subresource.as_deref();
        if !self.is_reviewed() || part == Some("scale") {
            metadata::keep_deletion(old, object_meta::of_mut(&mut new)?);
            // Whoever writes the status of a custom object owns what it sends beside it, though that is not written.
            let owns_sent = part == Some("status") && resource.custom.is_some();
            if owns_sent {
                self.own(Some(old), &mut new);
            }
            strategy::separate_status(resource, part, old, &mut new);
            strategy::complete(resource, &mut new)?;
            admission::convert_changed(request, old, &mut new);
            if !owns_sent {
                self.own(Some(old), &mut new);
            }
            return Ok(new);
        }
        strategy::complete(resource, &mut new)?;
        admission::convert_changed(request, old, &mut new);
        let mut owned = new.clone();
        metadata::keep_deletion(old, object_meta::of_mut(&mut owned)?);
        if part != Some("status") || resource.custom.is_none() {
            strategy::separate_status(resource, part, old, &mut owned);
        }
        self.own(Some(old), &mut owned);
        let owners = owned.pointer_mut("/metadata/managedFields").map(Value::take);
        let metadata = object_meta::of_mut(&mut new)?;
        match owners {
            Some(owners) => metadata.insert("managedFields".into(), owners),
            None => metadata.remove("managedFields"),
        };
        self.admit_owned(old, new)
    }

    /// Returns a new version that has its owners as mutating webhooks leave it.
    pub(crate) fn admit_owned(&mut self, old: &Value, mut new: Value) -> Outcome<Value> {
        if self.request.subresource.is_none() && self.request.resource.is("", "pods") && self.is_reviewed() {
            admission::admit_change(self.request, old, &mut new)?;
        }
        let Some(mut changed) = self.mutate(Operation::Update, Some(old), &new)? else { return Ok(new) };
        admission::convert_changed(self.request, old, &mut changed);
        Ok(changed)
    }

    /// Takes a new version that was admitted through the pipeline; nothing is returned when another change came first.
    pub(crate) fn change(
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
        let request = self.request;
        let part = request.subresource.as_deref();
        strategy::separate_status(&request.resource, part, old, new);
        strategy::keep_implied(&request.resource, part, old, new);
        admission::keep_unsaid(request, old, new);
        admission::admit_change(request, old, new)?;
        conversion::settle(new, &request.resource);
        strategy::count_generation(&request.resource, part, old, new)?;
        self.validate_update(old, new)?;
        self.ask_validating(Operation::Update, Some(old), new)
    }

    /// Commits a new version, or the deletion that it completes.
    pub(crate) fn finish_change(
        &mut self,
        old: &Arc<Stored>,
        old_value: &Value,
        mut new: Value,
    ) -> Outcome<Option<Written>> {
        let resource = &self.request.resource;
        strategy::settle_stored(resource, &mut new);
        // What is stored in an older version is written even if nothing else changes: so it comes into the present one.
        if strategy::is_same(old_value, &new) && !conversion::is_stale(&old.body, resource) {
            return Ok(Some(Written::Stored(Arc::clone(old))));
        }
        if self.options.dry_run {
            return Ok(Some(Written::DryRun(new)));
        }
        self.request.convert_to_stored(&mut new)?;
        let object_ref = ObjectRef { table: Arc::clone(&resource.table), key: old.key.clone() };
        let committed = self.request.cluster.commit_change(resource, &object_ref, old, &new)?;
        // The answer shows what was written even if that removed the object.
        let gone = object_meta::is_deleting(&new) && !strategy::holds_back(resource, &new);
        Ok(committed.map(|stored| if gone { Written::DryRun(new) } else { Written::Stored(stored) }))
    }
}

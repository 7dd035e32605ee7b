//! OpenAPI schemas: of values, as go-openapi reads them, and of custom resources, as kube-apiserver does.
//!
//! [`Schema`] is the one model of both. What breaks a schema is found as data ([`Finding`]) and put into words by
//! whoever asked ([`Words`]). [`Structural`] adds what only custom resources have.

mod compile;
mod correlation;
mod defaults;
mod duplicates;
mod embedded;
mod evaluate;
mod finding;
mod format;
mod node;
mod prune;
mod shape;

use std::sync::Arc;

use serde_json::{Map, Value};

pub use compile::{Problem, child_pointer, resolve_reference};
pub use finding::{Finding, Step, Words};
pub use node::{Limit, Schema};

use crate::types::Shape;

/// The structural schema of one version of a custom resource.
#[derive(Clone, Debug)]
pub struct Structural(Arc<Schema>);

impl Structural {
    /// Reads `openAPIV3Schema`. Keywords whose values make no sense are left out.
    pub fn of(schema: &Value) -> Structural {
        Structural(Arc::new(Schema::structural(schema)))
    }

    /// Removes what the schema does not know; returns the paths of it, sorted.
    ///
    /// `apiVersion`, `kind` and `metadata` of the object stay.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(&self.0, object)
    }

    /// Fills in defaults, also in place of nulls that may not be.
    ///
    /// Returns whether there was room for all: they may take 16 MiB, since each item of a list may get its own.
    #[must_use]
    pub fn complete(&self, object: &mut Value) -> bool {
        self.0.complete_structural(object, false)
    }

    /// Fills in defaults in what was applied. Nulls stay that may not be and have no default: they are refused there.
    ///
    /// Returns whether there was room for all, as [`Structural::complete`] does.
    #[must_use]
    pub fn complete_applied(&self, object: &mut Value) -> bool {
        self.0.complete_structural(object, true)
    }

    /// Returns what is wrong with the types in the first object inside of `object` in which any is: the path of its kind,
    /// version or metadata, and why.
    pub fn embedded_error(&self, object: &Value) -> Option<(String, String)> {
        embedded::objects(&self.0, object).iter().find_map(|(path, inner)| embedded::type_error(path, inner))
    }

    /// Returns the objects inside of `object`, with their paths.
    pub fn embedded<'v>(&self, object: &'v Value) -> Vec<(String, &'v Map<String, Value>)> {
        embedded::objects(&self.0, object)
    }

    /// Returns what is wrong with a value: first what breaks the rules, then the items that come again.
    pub fn validate<W: Words>(&self, value: &Value, words: &W) -> Vec<W::Message> {
        self.0.validate(value, words)
    }

    /// Returns what is wrong with a new version of an object. Errors of values that are as they were are not told: the schema may
    /// have become stricter. Items that come again are left to [`Structural::new_duplicates`].
    pub fn validate_change<W: Words>(&self, change: (&Value, &Value), words: &W) -> Vec<W::Message> {
        self.0.validate_change(change, words)
    }

    /// Like [`Structural::validate_change`], for a change of the status: it is held against its own schema, and paths begin in it.
    pub fn validate_status_change<W: Words>(&self, change: (&Value, &Value), words: &W) -> Vec<W::Message> {
        self.0.validate_status_change(change, words)
    }

    /// Returns the items that come again in the lists of a new version of an object, if none did before.
    pub fn new_duplicates<W: Words>(&self, change: (&Value, &Value), words: &W) -> Vec<W::Message> {
        self.0.new_duplicates(change, words)
    }

    /// Returns the type of the whole object, for managed fields.
    pub fn shape(&self) -> Shape {
        shape::of_schema(&self.0)
    }

    /// Returns the schema as published: with what every object has.
    pub fn published(schema: &Value) -> Value {
        shape::published(schema)
    }
}

#[cfg(test)]
mod tests;

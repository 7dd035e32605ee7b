//! Carries out the operations of a hook in order.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use engine::object_patch::{Existing, ObjectPatch, Operation, Propagation, Purpose};
use engine::{Failure, FailureKind, PatchAuthor};
use jq::{Filter, Threads};
use kube::Api;
use kube::Client;
use kube::api::{DynamicObject, Patch, TypeMeta};
use serde_json::Value;

use super::error::PatchError;
use super::object::Object;
use super::outcome::Outcome;
use crate::cluster::{Discovery, ResolveError, Resource, is_not_found};

/// Changes objects for hooks, with a client of its own.
pub struct Patcher {
    discovery: Discovery,
    client: Client,
    timeout: Duration,
    threads: Threads,
}

impl Patcher {
    /// Returns a patcher whose single requests take at most `timeout`.
    pub fn new(client: Client, discovery: Discovery, timeout: Duration) -> Self {
        Self { discovery, client, timeout, threads: Threads::default() }
    }

    /// Has filters run on these threads.
    #[must_use]
    pub fn on(self, threads: Threads) -> Self {
        Self { threads, ..self }
    }

    /// Carries out all patches in order.
    ///
    /// Nothing is done if one of them can't be right on any object. Otherwise each is tried, also after one that
    /// failed; the failure names all that failed and says what was done. Only when the API server is silent, or one failed that
    /// holds the rest, that is left.
    pub async fn apply(&self, author: &PatchAuthor, patches: &[ObjectPatch]) -> Result<(), Failure> {
        let mut outcome = Outcome::new(author, patches);
        let mut steps = Vec::with_capacity(patches.len());
        for (place, patch) in patches.iter().enumerate() {
            match Step::of(&patch.operation) {
                Ok(step) => steps.push(step),
                Err(failure) => return Err(outcome.impossible(place, failure)),
            }
        }
        if let Some((place, failure)) = self.without_namespace(patches).await {
            return Err(outcome.impossible(place, failure));
        }
        for (patch, step) in patches.iter().zip(steps) {
            outcome.record(self.apply_one(patch, step).await);
            if outcome.is_over() {
                break;
            }
        }
        outcome.into_result()
    }

    /// Returns the first operation that lacks a namespace. A kind that is not there yet may be brought by an operation
    /// before: it is looked for again at its turn.
    async fn without_namespace(&self, patches: &[ObjectPatch]) -> Option<(usize, Failure)> {
        for (place, patch) in patches.iter().enumerate() {
            let target = &patch.target;
            if !target.namespace.is_empty() {
                continue;
            }
            match self.discovery.resolve(&target.api_version, &target.kind).await {
                Ok(resource) if resource.namespaced => return Some((place, no_namespace(&resource, patch))),
                Ok(_) | Err(ResolveError::Unknown(_)) => {}
                // The operations will fail by it, one by one.
                Err(ResolveError::Cluster(_)) => return None,
            }
        }
        None
    }

    async fn apply_one(&self, patch: &ObjectPatch, step: Step<'_>) -> Result<(), PatchError> {
        let target = &patch.target;
        let resource = self.discovery.resolve(&target.api_version, &target.kind).await?;
        if resource.namespaced && target.namespace.is_empty() {
            return Err(PatchError::Failure(no_namespace(&resource, patch)));
        }
        let object = Object {
            client: &self.client,
            threads: &self.threads,
            timeout: self.timeout,
            api: self.api(&resource, &target.namespace),
            resource,
            target,
        };
        let outcome = match step.with_kind(&object.resource) {
            Step::Create { object: value, parsed, existing: Existing::Update } => {
                object.create_or_update(&value, &parsed).await
            }
            Step::Create { parsed, existing, .. } => object.create(&parsed, existing).await,
            Step::Delete(propagation) => object.delete(propagation).await,
            Step::MergePatch(change) if patch.purpose == Purpose::Status => {
                object.set_status(change, target.subresource.as_deref().unwrap_or_default()).await
            }
            Step::MergePatch(patch) => object.patch(&Patch::Merge(patch)).await,
            Step::JsonPatch(operations) if takes(&operations) => {
                let written = serde_json::to_string(&operations).unwrap_or_default();
                object.json_patch(operations).await.map_err(|problem| problem.of_taken(written))
            }
            Step::JsonPatch(operations) => object.json_patch(operations).await,
            Step::Apply { object: value, force } => object.server_side_apply(&value, force).await,
            Step::ApplyChild { object: value } => object.apply_child(&value).await,
            Step::TryCreate { object: value, parsed } => object.try_create(&value, &parsed).await,
            Step::Filter { filter, text } => object.filter(filter, text).await,
        };
        let Err(problem) = &outcome else { return outcome };
        if !problem.request().is_some_and(is_not_found) {
            return outcome;
        }
        object.has_subresource().await?;
        if patch.ignore_missing_object { Ok(()) } else { outcome }
    }

    fn api(&self, resource: &Resource, namespace: &str) -> Api<DynamicObject> {
        let kind = resource.api_resource();
        if resource.namespaced {
            Api::namespaced_with(self.client.clone(), namespace, &kind)
        } else {
            Api::all_with(self.client.clone(), &kind)
        }
    }
}

/// Returns why an operation on an object of a namespace that it does not name is not carried out. The namespace of the
/// operator would be a guess.
fn no_namespace(resource: &Resource, patch: &ObjectPatch) -> Failure {
    let field = match patch.operation {
        Operation::Apply { .. }
        | Operation::ApplyChild { .. }
        | Operation::Create { .. }
        | Operation::TryCreate { .. } => "metadata.namespace of the object",
        Operation::Delete(_)
        | Operation::Jq { .. }
        | Operation::JsonPatch { .. }
        | Operation::MergePatch { .. } => "the field namespace of the operation",
    };
    let text =
        format!("an object of kind {} is in a namespace, and none is given: set {field}", resource.kind);
    Failure::new(FailureKind::HookOutput, text)
}

/// An operation whose parts were checked before the first operation is carried out.
enum Step<'a> {
    Apply { object: Cow<'a, Value>, force: bool },
    ApplyChild { object: Cow<'a, Value> },
    Create { object: Cow<'a, Value>, parsed: Box<DynamicObject>, existing: Existing },
    Delete(Propagation),
    Filter { filter: Arc<Filter>, text: &'a str },
    JsonPatch(json_patch::Patch),
    MergePatch(&'a Value),
    TryCreate { object: Cow<'a, Value>, parsed: Box<DynamicObject> },
}

impl<'a> Step<'a> {
    fn of(operation: &'a Operation) -> Result<Self, Failure> {
        let wrong = |text: String| Failure::new(FailureKind::HookOutput, text);
        Ok(match operation {
            Operation::Apply { object, force } => {
                Self::Apply { object: Cow::Borrowed(object), force: *force }
            }
            Operation::ApplyChild { object } => Self::ApplyChild { object: Cow::Borrowed(object) },
            Operation::Create { object, existing } => {
                let parsed = parsed(object).map_err(wrong)?;
                Self::Create { object: Cow::Borrowed(object), parsed, existing: *existing }
            }
            Operation::TryCreate { object } => {
                Self::TryCreate { object: Cow::Borrowed(object), parsed: parsed(object).map_err(wrong)? }
            }
            Operation::Delete(propagation) => Self::Delete(*propagation),
            Operation::Jq { filter: text } => {
                let filter = Filter::compile(text).map_err(|error| wrong(error.to_string()))?;
                Self::Filter { filter: Arc::new(filter), text }
            }
            Operation::JsonPatch { patch } => {
                let patch = serde_json::from_value(patch.clone());
                Self::JsonPatch(patch.map_err(|error| wrong(format!("this is no JSON Patch: {error}")))?)
            }
            Operation::MergePatch { patch } => Self::MergePatch(patch),
        })
    }

    /// Has objects say of which kind they are as the API server calls it. Hooks may leave out the version, or write the
    /// plural; a body that does so is refused.
    fn with_kind(self, resource: &Resource) -> Self {
        match self {
            Self::Apply { object, force } => Self::Apply { object: of_kind(object, resource), force },
            Self::ApplyChild { object } => Self::ApplyChild { object: of_kind(object, resource) },
            Self::Create { object, mut parsed, existing } => {
                parsed.types = Some(types(resource));
                Self::Create { object: of_kind(object, resource), parsed, existing }
            }
            Self::TryCreate { object, mut parsed } => {
                parsed.types = Some(types(resource));
                Self::TryCreate { object: of_kind(object, resource), parsed }
            }
            Self::Delete(_) | Self::Filter { .. } | Self::JsonPatch(_) | Self::MergePatch(_) => self,
        }
    }
}

/// Returns whether a patch puts data of the object elsewhere in it.
fn takes(patch: &json_patch::Patch) -> bool {
    use json_patch::PatchOperation::{Add, Copy, Move, Remove, Replace, Test};
    patch.iter().any(|operation| match operation {
        Copy(_) | Move(_) => true,
        Add(_) | Remove(_) | Replace(_) | Test(_) => false,
    })
}

fn parsed(object: &Value) -> Result<Box<DynamicObject>, String> {
    serde_json::from_value(object.clone())
        .map(Box::new)
        .map_err(|error| format!("this is no object: {error}"))
}

fn types(resource: &Resource) -> TypeMeta {
    TypeMeta { api_version: resource.api_version(), kind: resource.kind.clone() }
}

fn of_kind<'a>(mut object: Cow<'a, Value>, resource: &Resource) -> Cow<'a, Value> {
    for (field, found) in [("apiVersion", &resource.api_version()), ("kind", &resource.kind)] {
        if object.get(field).and_then(Value::as_str) != Some(found)
            && let Value::Object(fields) = object.to_mut()
        {
            fields.insert(field.to_owned(), found.as_str().into());
        }
    }
    object
}

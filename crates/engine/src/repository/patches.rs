//! Changes of the objects of chart repositories.

use std::sync::Arc;

use serde_json::{Value, json};

use super::object::Object;
use crate::context::Context;
use crate::effect::{Effect, PatchAuthor};
use crate::hook::object_patch::{Existing, ObjectPatch, Operation, Propagation, Purpose, Target};
use crate::package::RepositoryKey;
use crate::reconcile::Step;

/// A change of an object.
#[derive(Clone, PartialEq)]
pub(super) struct Change {
    pub(super) key: RepositoryKey,
    pub(super) operation: Operation,
    /// Whether it is one of the status.
    is_status: bool,
}

impl Change {
    /// Returns the change that makes an object as `object` says, whether it is there or not.
    pub(super) fn apply(key: RepositoryKey, mut object: Value) -> Self {
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), RepositoryKey::API_VERSION.into());
            fields.insert("kind".to_owned(), key.kind.as_str().into());
        }
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.insert("name".to_owned(), (&*key.name).into());
        }
        let operation = Operation::Create { object, existing: Existing::Update };
        Self { key, operation, is_status: false }
    }

    /// Returns the change that merges `patch` into an object.
    pub(super) fn merge(key: RepositoryKey, patch: Value) -> Self {
        Self { key, operation: Operation::MergePatch { patch }, is_status: false }
    }

    /// Returns the change of the status of an object.
    pub(super) fn status(key: RepositoryKey, status: &Value) -> Self {
        let patch = json!({ "status": status });
        Self { key, operation: Operation::MergePatch { patch }, is_status: true }
    }

    /// Returns the deletion of an object.
    pub(super) fn delete(key: RepositoryKey) -> Self {
        Self { key, operation: Operation::Delete(Propagation::Background), is_status: false }
    }

    /// Returns the change that adds a finalizer to an object, or removes it. It has to be the one that was seen.
    pub(super) fn finalizer<S>(key: RepositoryKey, object: &Object<S>, name: &str, is_on: bool) -> Self {
        let others = object.finalizers.iter().map(String::as_str).filter(|other| *other != name);
        let names: Vec<&str> = others.chain(is_on.then_some(name)).collect();
        let patch = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": object.version},
            {"op": "add", "path": "/metadata/finalizers", "value": names},
        ]);
        Self { key, operation: Operation::JsonPatch { patch }, is_status: false }
    }

    /// Begins to carry it out on behalf of `author`.
    pub(super) fn begin(self, cx: &mut Context, author: &RepositoryKey) -> Step {
        let run = cx.ids.run();
        let target = Target {
            api_version: RepositoryKey::API_VERSION.to_owned(),
            kind: self.key.kind.as_str().to_owned(),
            namespace: String::new(),
            name: self.key.name.to_string(),
            subresource: self.is_status.then(|| "status".to_owned()),
        };
        // What is gone meanwhile needs no change.
        let may_be_gone = !matches!(self.operation, Operation::Create { .. });
        let patch = ObjectPatch {
            target,
            operation: self.operation,
            ignore_missing_object: may_be_gone,
            ignore_hook_error: false,
            purpose: Purpose::Asked,
        };
        let author = PatchAuthor::Repository(author.clone());
        let patches = Arc::from([patch]);
        Step::Write(run, Box::new(Effect::PatchObjects { run, author, patches }))
    }
}

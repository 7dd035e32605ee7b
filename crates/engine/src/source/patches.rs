//! Changes of the objects of configurations. Each has the precondition that the object is the one that was looked at.

use std::sync::Arc;

use serde_json::{Value, json};

use super::object::{FINALIZER, SourceObject};
use super::status::Status;
use crate::addon::SourceKey;
use crate::context::Context;
use crate::effect::{Effect, PatchAuthor};
use crate::hook::object_patch::{ObjectPatch, Operation, Purpose, Target};
use crate::name::RunId;
use crate::reconcile::Step;

/// Begins to add our finalizer, or to remove it.
pub(super) fn set_finalizer(cx: &mut Context, key: &SourceKey, object: &SourceObject, is_on: bool) -> Step {
    let others = object.finalizers.iter().map(String::as_str).filter(|name| *name != FINALIZER);
    let names: Vec<&str> = others.chain(is_on.then_some(FINALIZER)).collect();
    let patch = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": object.version},
        {"op": "add", "path": "/metadata/finalizers", "value": names},
    ]);
    patched(cx, (key, key), None, Operation::JsonPatch { patch }, !is_on)
}

/// Begins to raise the counter of an object, so that it is processed again, because of what happened to `author`; `None` if it
/// can't be raised any more.
pub(super) fn bump(
    cx: &mut Context,
    author: &SourceKey,
    key: &SourceKey,
    object: &SourceObject,
) -> Option<Step> {
    Some(patched(cx, (author, key), None, raised(object)?, true))
}

/// Returns what raises the counter of an object because a person asked for it; `None` if it can't be raised any more.
pub(super) fn raise(cx: &mut Context, key: &SourceKey, object: &SourceObject) -> Option<(RunId, Effect)> {
    Some(patch_of(cx, (key, key), None, raised(object)?, false))
}

/// Returns what suspends an object, or ends that, because a person asked for it.
pub(super) fn suspend(
    cx: &mut Context,
    key: &SourceKey,
    object: &SourceObject,
    is_suspended: bool,
) -> (RunId, Effect) {
    let patch = json!([
        {"op": "test", "path": "/metadata/generation", "value": object.generation},
        {"op": "add", "path": "/spec/suspend", "value": is_suspended},
    ]);
    patch_of(cx, (key, key), None, Operation::JsonPatch { patch }, false)
}

fn raised(object: &SourceObject) -> Option<Operation> {
    let counter = object.spec.reprocess_request.checked_add(1)?;
    let patch = json!([
        {"op": "test", "path": "/metadata/generation", "value": object.generation},
        {"op": "add", "path": "/spec/reprocessRequest", "value": counter},
    ]);
    Some(Operation::JsonPatch { patch })
}

/// Begins to write a status: the time of day when it was found, and that of now.
pub(super) fn set_status(
    cx: &mut Context,
    key: &SourceKey,
    object: &SourceObject,
    status: &Status,
    (processed_at, now): (&str, &str),
) -> Step {
    let patch: Value = status.patch(&object.conditions, processed_at, now);
    patched(cx, (key, key), Some("status".to_owned()), Operation::MergePatch { patch }, true)
}

/// Begins to change an object. `may_be_gone` says whether it is fine that it is not there any more.
fn patched(
    cx: &mut Context,
    whose: (&SourceKey, &SourceKey),
    subresource: Option<String>,
    operation: Operation,
    may_be_gone: bool,
) -> Step {
    let (run, effect) = patch_of(cx, whose, subresource, operation, may_be_gone);
    Step::Write(run, Box::new(effect))
}

fn patch_of(
    cx: &mut Context,
    (author, key): (&SourceKey, &SourceKey),
    subresource: Option<String>,
    operation: Operation,
    may_be_gone: bool,
) -> (RunId, Effect) {
    let run = cx.ids.run();
    let target = Target {
        api_version: SourceKey::API_VERSION.to_owned(),
        kind: key.kind.as_str().to_owned(),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        subresource,
    };
    let patch = ObjectPatch {
        target,
        operation,
        ignore_missing_object: may_be_gone,
        ignore_hook_error: false,
        purpose: Purpose::Asked,
    };
    let author = PatchAuthor::Source(author.clone());
    (run, Effect::PatchObjects { run, author, patches: Arc::from([patch]) })
}

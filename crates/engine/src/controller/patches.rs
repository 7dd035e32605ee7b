//! Changes of objects that controllers ask for.

use serde_json::{Value, json};

use super::observed::Metadata;
use crate::hook::object_patch::{ObjectPatch, Operation, Propagation, Target};
use crate::hook::reconcile::{MADE_BY, ObjectKind};
use crate::hook::snapshot::Key;

/// Returns the server-side apply of a child. Fields are taken over that others changed. Children come in order: those behind one
/// that is refused are left.
pub(super) fn apply(kind: &ObjectKind, key: &Key, object: Value) -> ObjectPatch {
    let patch = patch(kind, key, None, Operation::Apply { object, force: true });
    ObjectPatch { holds_rest: true, ..patch }
}

/// Returns what makes a child that is not seen. What is there in its place is touched only if it names the same parent.
pub(super) fn make(kind: &ObjectKind, key: &Key, object: Value) -> ObjectPatch {
    let patch = patch(kind, key, None, Operation::ApplyChild { object });
    ObjectPatch { holds_rest: true, ..patch }
}

/// Returns what writes on a child which binding makes it.
pub(super) fn mark(kind: &ObjectKind, key: &Key, mark: &str) -> ObjectPatch {
    let change = json!({"metadata": {"annotations": {MADE_BY: mark}}});
    patch(kind, key, None, Operation::MergePatch { patch: change })
}

/// Returns the deletion of a child. It is not waited for.
pub(super) fn delete(kind: &ObjectKind, key: &Key) -> ObjectPatch {
    patch(kind, key, None, Operation::Delete(Propagation::Background))
}

/// Returns what adds a finalizer to an object, or removes it, if the object is as it was seen.
pub(super) fn set_finalizer(
    kind: &ObjectKind,
    key: &Key,
    seen: &Metadata,
    (finalizer, is_on): (&str, bool),
) -> ObjectPatch {
    let names = finalizers(seen, (finalizer, is_on));
    let change = json!({"metadata": {"resourceVersion": seen.resource_version, "finalizers": names}});
    let patch = patch(kind, key, None, Operation::MergePatch { patch: change });
    ObjectPatch { ignore_missing_object: !is_on, ..patch }
}

/// Returns the finalizers of an object with this one, or without it.
pub(super) fn finalizers(seen: &Metadata, (finalizer, is_on): (&str, bool)) -> Vec<String> {
    let others = seen.finalizers.iter().filter(|name| **name != finalizer).cloned();
    others.chain(is_on.then(|| finalizer.to_owned())).collect()
}

/// Returns what writes a status, if the object is as it was seen.
pub(super) fn set_status(kind: &ObjectKind, key: &Key, seen: &Metadata, status: &Value) -> ObjectPatch {
    let change = json!({"metadata": {"resourceVersion": seen.resource_version}, "status": status});
    let patch = patch(kind, key, Some("status".to_owned()), Operation::MergePatch { patch: change });
    ObjectPatch { ignore_missing_object: true, ..patch }
}

fn patch(kind: &ObjectKind, key: &Key, subresource: Option<String>, operation: Operation) -> ObjectPatch {
    let target = Target {
        api_version: kind.api_version.clone(),
        kind: kind.kind.clone(),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        subresource,
    };
    ObjectPatch {
        target,
        operation,
        ignore_missing_object: false,
        ignore_hook_error: false,
        holds_rest: false,
    }
}

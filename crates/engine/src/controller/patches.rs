//! Changes of objects that controllers ask for.

use serde_json::{Value, json};

use super::observed::Metadata;
use crate::hook::object_patch::{ObjectPatch, Operation, Propagation, Target};
use crate::hook::reconcile::ObjectKind;
use crate::hook::snapshot::Key;

/// Returns the server-side apply of a child. `force` takes fields over that others changed.
pub(super) fn apply(kind: &ObjectKind, key: &Key, object: Value, force: bool) -> ObjectPatch {
    patch(kind, key, None, Operation::Apply { object, force })
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
    let change = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": seen.resource_version},
        {"op": "add", "path": "/metadata/finalizers", "value": names},
    ]);
    let patch = patch(kind, key, None, Operation::JsonPatch { patch: change });
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
    ObjectPatch { target, operation, ignore_missing_object: false, ignore_hook_error: false }
}

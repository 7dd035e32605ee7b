//! Changes of objects that controllers ask for.

use serde_json::{Map, Value, json};

use super::observed::{Metadata, ORDER};
use crate::hook::object_patch::{ObjectPatch, Operation, Propagation, Purpose, Target};
use crate::hook::reconcile::{MADE_BY, ObjectKind};
use crate::hook::snapshot::Key;

/// Returns the server-side apply of a child. Fields are taken over that others changed.
pub(super) fn apply(kind: &ObjectKind, key: &Key, object: Value) -> ObjectPatch {
    patch(kind, key, Purpose::Child, Operation::Apply { object, force: true })
}

/// Returns what makes a child that is not seen. What is there in its place is touched only if it names the same parent.
pub(super) fn make(kind: &ObjectKind, key: &Key, object: Value) -> ObjectPatch {
    patch(kind, key, Purpose::Child, Operation::ApplyChild { object })
}

/// Returns the question whether the API server would make this in the place of a child that is to go. Nothing is written.
pub(super) fn try_make(kind: &ObjectKind, key: &Key, object: Value) -> ObjectPatch {
    patch(kind, key, Purpose::Child, Operation::TryCreate { object })
}

/// Returns what takes from a child what others added where its hook alone has a say.
pub(super) fn take(kind: &ObjectKind, key: &Key, change: Value) -> ObjectPatch {
    patch(kind, key, Purpose::Child, Operation::MergePatch { patch: change })
}

/// Returns what writes on a child which place it has among those that are made with it.
pub(super) fn place(kind: &ObjectKind, key: &Key, place: usize) -> ObjectPatch {
    note(kind, key, ORDER, &place.to_string())
}

/// Returns what writes on a child which binding makes it.
pub(super) fn mark(kind: &ObjectKind, key: &Key, mark: &str) -> ObjectPatch {
    note(kind, key, MADE_BY, mark)
}

fn note(kind: &ObjectKind, key: &Key, annotation: &str, text: &str) -> ObjectPatch {
    let change = json!({"metadata": {"annotations": {annotation: text}}});
    patch(kind, key, Purpose::Child, Operation::MergePatch { patch: change })
}

/// Returns the same for a child that may be gone meanwhile.
pub(super) fn take_over(kind: &ObjectKind, key: &Key, by: &str) -> ObjectPatch {
    ObjectPatch { ignore_missing_object: true, ..mark(kind, key, by) }
}

/// Returns the deletion of a child. It is not waited for.
pub(super) fn delete(kind: &ObjectKind, key: &Key) -> ObjectPatch {
    patch(kind, key, Purpose::Child, Operation::Delete(Propagation::Background))
}

/// Returns what gives an object the finalizers that these fields of its metadata name, if it is as it was seen.
pub(super) fn set_finalizers(
    kind: &ObjectKind,
    key: &Key,
    seen: &Metadata,
    fields: &Map<String, Value>,
) -> ObjectPatch {
    let mut metadata = fields.clone();
    metadata.insert("resourceVersion".to_owned(), seen.resource_version.as_str().into());
    let change = json!({ "metadata": metadata });
    let patch = patch(kind, key, Purpose::Finalizer, Operation::MergePatch { patch: change });
    // Nothing is left to do for an object that is gone.
    ObjectPatch { ignore_missing_object: seen.is_deleting(), ..patch }
}

/// Returns what writes a status, if the object is as it was seen.
pub(super) fn set_status(kind: &ObjectKind, key: &Key, seen: &Metadata, status: &Value) -> ObjectPatch {
    let change = json!({"metadata": {"resourceVersion": seen.resource_version}, "status": status});
    let mut patch = patch(kind, key, Purpose::Status, Operation::MergePatch { patch: change });
    patch.target.subresource = Some("status".to_owned());
    ObjectPatch { ignore_missing_object: true, ..patch }
}

fn patch(kind: &ObjectKind, key: &Key, purpose: Purpose, operation: Operation) -> ObjectPatch {
    let target = Target {
        api_version: kind.api_version.clone(),
        kind: kind.kind.clone(),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        subresource: None,
    };
    ObjectPatch { target, operation, ignore_missing_object: false, ignore_hook_error: false, purpose }
}

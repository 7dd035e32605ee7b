//! Garbage collection: dependents are deleted with their owners, or before them.

use std::sync::Arc;

use serde_json::Value;

use super::finalizer::{edit, remove_finalizer};
use crate::cluster::{Cluster, Edit};
use crate::object_meta::finalizers;
use crate::store::{ObjectRef, Stored};
use crate::write::Propagation;
use crate::write::loopback::remove;

/// Removes a deleted object from the owners of its dependents, as its finalizer `orphan` asks.
pub(super) fn orphan_dependents(cluster: &Cluster, object_ref: &ObjectRef, owner: &Stored) {
    for dependent in cluster.storage.dependents_of(&owner.uid) {
        disown(cluster, &dependent, &[owner.uid.to_string()]);
    }
    remove_finalizer(cluster, object_ref, "orphan");
}

/// Removes owners of an object, which are named by their identities.
pub(super) fn disown(cluster: &Cluster, object_ref: &ObjectRef, uids: &[String]) {
    edit(cluster, object_ref, |object| {
        let list = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
        let Some(list) = list else {
            return Edit::Keep;
        };
        let before = list.len();
        list.retain(|owner| {
            let uid = owner.get("uid").and_then(Value::as_str).unwrap_or_default();
            !uids.iter().any(|lost| lost == uid)
        });
        if list.len() == before {
            return Edit::Keep;
        }
        if list.is_empty()
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("ownerReferences");
        }
        Edit::Write
    });
}

/// Deletes the dependents of an object that is deleted after them, and the object when none holds it back.
pub(super) fn delete_dependents(cluster: &Arc<Cluster>, object_ref: &ObjectRef, owner: &Stored) {
    for dependent in cluster.storage.dependents_of(&owner.uid) {
        check_owners(cluster, &dependent);
    }
    let left = cluster.storage.dependents_of(&owner.uid);
    let blocked = left.iter().any(|dependent| {
        cluster.storage.get(dependent).is_some_and(|object| blocks(&object.value(), &owner.uid))
    });
    if !blocked {
        remove_finalizer(cluster, object_ref, FOREGROUND);
    }
}

const FOREGROUND: &str = "foregroundDeletion";

fn blocks(object: &Value, uid: &str) -> bool {
    owners(object).any(|owner| {
        owner.get("uid").and_then(Value::as_str) == Some(uid)
            && owner.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
    })
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten()
}

/// What the owners of an object are, by their identities.
#[derive(Debug, Default)]
struct Owners {
    /// They exist, and their dependents stay with them.
    solid: Vec<String>,
    /// They do not exist.
    absent: Vec<String>,
    /// They wait for the deletion of their dependents.
    waiting: Vec<String>,
}

impl Owners {
    /// Returns the owners of an object; nothing if one cannot be looked for.
    fn of(cluster: &Cluster, value: &Value, namespace: &str) -> Option<Owners> {
        let mut found = Owners::default();
        for owner in owners(value) {
            let uid = owner.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned();
            match owner_state(cluster, owner, &uid, namespace) {
                OwnerState::Absent => found.absent.push(uid),
                OwnerState::Waiting => found.waiting.push(uid),
                OwnerState::Solid => found.solid.push(uid),
                OwnerState::Unknown => return None,
            }
        }
        Some(found)
    }
}

/// Does what the owners of an object ask for: one that another owner keeps loses those that are gone or go; one that
/// none keeps is deleted.
pub(super) fn check_owners(cluster: &Arc<Cluster>, object_ref: &ObjectRef) {
    let Some(object) = cluster.storage.get(object_ref).filter(|object| !object.owners.is_empty()) else {
        return;
    };
    // A deletion that has begun comes to its end without its owners.
    if object.deleting {
        return;
    }
    let value = object.value();
    let Some(owners) = Owners::of(cluster, &value, object.namespace()) else {
        return;
    };
    if !owners.solid.is_empty() {
        let mut lost = owners.absent;
        lost.extend(owners.waiting);
        if !lost.is_empty() {
            disown(cluster, object_ref, &lost);
        }
        return;
    }
    let dependents = cluster.storage.dependents_of(&object.uid);
    if !owners.waiting.is_empty() && !dependents.is_empty() {
        // Owners in a circle would wait for each other.
        if dependents.iter().any(|dependent| waits_for_dependents(cluster, dependent)) {
            unblock(cluster, object_ref);
        }
        remove(cluster, object_ref, Some(Propagation::Foreground));
        return;
    }
    let finalizers = finalizers(&value);
    let propagation = if finalizers.contains(&"orphan") {
        Propagation::Orphan
    } else if finalizers.contains(&FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    remove(cluster, object_ref, Some(propagation));
}

fn waits_for_dependents(cluster: &Cluster, object_ref: &ObjectRef) -> bool {
    cluster.storage.get(object_ref).is_some_and(|object| is_waiting(&object))
}

/// Returns whether an object waits for the deletion of its dependents.
fn is_waiting(object: &Stored) -> bool {
    object.deleting && finalizers(&object.value()).contains(&FOREGROUND)
}

/// Lets the owners of an object go before it.
fn unblock(cluster: &Cluster, object_ref: &ObjectRef) {
    edit(cluster, object_ref, |object| {
        let list = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
        let mut changed = Edit::Keep;
        for owner in list.into_iter().flatten().filter_map(Value::as_object_mut) {
            if owner.get("blockOwnerDeletion") == Some(&Value::Bool(true)) {
                owner.insert("blockOwnerDeletion".into(), Value::Bool(false));
                changed = Edit::Write;
            }
        }
        changed
    });
}

enum OwnerState {
    Absent,
    /// It is deleted after its dependents.
    Waiting,
    Solid,
    /// The owner's kind is not served, or lives in namespaces while the dependent does not: nobody knows which is meant.
    Unknown,
}

fn owner_state(cluster: &Cluster, owner: &Value, uid: &str, namespace: &str) -> OwnerState {
    let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default();
    let Some(resource) = cluster.registry.resources().find_kind(text("apiVersion"), text("kind")).cloned()
    else {
        return OwnerState::Unknown;
    };
    if resource.kind.namespaced && namespace.is_empty() {
        return OwnerState::Unknown;
    }
    let namespace = Some(namespace).filter(|_| resource.kind.namespaced);
    match cluster.storage.find(&resource.table, namespace, text("name")) {
        Some(found) if &*found.uid == uid && is_waiting(&found) => OwnerState::Waiting,
        Some(found) if &*found.uid == uid => OwnerState::Solid,
        Some(_) | None => OwnerState::Absent,
    }
}

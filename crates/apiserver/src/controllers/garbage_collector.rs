//! Garbage collection: dependents are deleted with their owners, or before them.

use std::sync::Arc;

use serde_json::Value;

use super::finalizer::{edit, remove_finalizer};
use crate::cluster::{Cluster, Edit};
use crate::store::{ObjectRef, Stored};
use crate::write::Propagation;
use crate::write::loopback::remove;

/// Removes a deleted object from the owners of its dependents, as its finalizer `orphan` asks.
pub(super) fn orphan_dependents(cluster: &Cluster, object_ref: &ObjectRef, owner: &Stored) {
    for dependent in cluster.storage.dependents_of(&owner.uid) {
        disown(cluster, &dependent, &owner.uid);
    }
    remove_finalizer(cluster, object_ref, "orphan");
}

/// Removes the owner `uid` from the owners of an object.
fn disown(cluster: &Cluster, object_ref: &ObjectRef, uid: &str) {
    edit(cluster, object_ref, |object| {
        let list = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
        let Some(list) = list else {
            return Edit::Keep;
        };
        list.retain(|owner| owner.get("uid").and_then(Value::as_str) != Some(uid));
        if list.is_empty()
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("ownerReferences");
        }
        Edit::Write
    });
}

/// Deletes the dependents of an object that is deleted after them.
pub(super) fn delete_dependents(cluster: &Arc<Cluster>, object_ref: &ObjectRef, owner: &Stored) {
    let mut blocked = false;
    for dependent in cluster.storage.dependents_of(&owner.uid) {
        let Some(object) = cluster.storage.get(&dependent) else {
            continue;
        };
        if !object.deleting {
            let has_dependents = !cluster.storage.dependents_of(&object.uid).is_empty();
            let propagation = if has_dependents { Propagation::Foreground } else { Propagation::Background };
            remove(cluster, &dependent, Some(propagation));
        }
        blocked |= cluster.storage.get(&dependent).is_some_and(|object| blocks(&object.value(), &owner.uid));
    }
    if !blocked {
        remove_finalizer(cluster, object_ref, "foregroundDeletion");
    }
}

fn blocks(object: &Value, uid: &str) -> bool {
    owners(object).any(|owner| {
        owner.get("uid").and_then(Value::as_str) == Some(uid)
            && owner.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
    })
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten()
}

/// Deletes an object whose owners are all gone; removes owners that are gone from one that has others.
pub(super) fn check_owners(cluster: &Arc<Cluster>, object_ref: &ObjectRef) {
    let Some(object) = cluster.storage.get(object_ref).filter(|object| !object.owners.is_empty()) else {
        return;
    };
    let value = object.value();
    let mut absent = Vec::new();
    let mut present = 0;
    for owner in owners(&value) {
        let uid = owner.get("uid").and_then(Value::as_str).unwrap_or_default();
        match owner_state(cluster, owner, uid, object.namespace()) {
            OwnerState::Absent => absent.push(uid.to_owned()),
            OwnerState::Deleting if object.deleting => present += 1,
            OwnerState::Deleting | OwnerState::Present | OwnerState::Unknown => present += 1,
        }
    }
    if absent.is_empty() || object.deleting {
        return;
    }
    if present > 0 {
        for uid in absent {
            disown(cluster, object_ref, &uid);
        }
        return;
    }
    remove(cluster, object_ref, None);
}

enum OwnerState {
    Absent,
    Deleting,
    Present,
    /// The owner's kind is not served, so that it is not known whether it exists.
    Unknown,
}

fn owner_state(cluster: &Cluster, owner: &Value, uid: &str, namespace: &str) -> OwnerState {
    let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default();
    let Some(resource) = cluster.registry.resources().find_kind(text("apiVersion"), text("kind")).cloned()
    else {
        return OwnerState::Unknown;
    };
    let namespace = Some(namespace).filter(|namespace| resource.kind.namespaced && !namespace.is_empty());
    match cluster.storage.find(&resource.table, namespace, text("name")) {
        Some(found) if &*found.uid == uid && found.deleting => OwnerState::Deleting,
        Some(found) if &*found.uid == uid => OwnerState::Present,
        Some(_) | None => OwnerState::Absent,
    }
}

//! Which objects are a controller's own: it adopts orphans that its selector selects, and lets go of what it selects no
//! more.

use std::sync::Arc;

use objects::selector::LabelSelector;
use serde_json::{Value, json};

use super::status::{CONTROLLER, text};
use crate::cluster::{Cluster, Edit};
use crate::controllers::garbage_collector::disown;
use crate::object_meta;
use crate::store::{ObjectRef, Stored};

/// What a controller looks for in a table.
pub(super) struct Wanted<'a> {
    pub(super) table: &'static str,
    /// Whether an object of this name can be its own, if it is selected.
    pub(super) fits: &'a dyn Fn(&str) -> bool,
    /// Whether it looks at an object at all.
    pub(super) counts: &'a dyn Fn(&Value) -> bool,
}

impl Wanted<'static> {
    /// Looks for everything in a table.
    pub(super) fn all(table: &'static str) -> Wanted<'static> {
        Wanted { table, fits: &|_| true, counts: &|_| true }
    }
}

/// Returns the objects that are `owner`'s own, decoded, without those that are being deleted.
pub(super) fn claim(cluster: &Cluster, owner: &Value, wanted: &Wanted<'_>) -> Vec<(ObjectRef, Value)> {
    let uid = text(owner, "/metadata/uid");
    let selector = selector(owner);
    let selects = |object: &Stored| {
        (wanted.fits)(object.name()) && selector.as_ref().is_some_and(|selector| selector.selects(object))
    };
    let is_owned = |object: &Stored| object.owners.iter().any(|owner| &**owner == uid);
    let store = cluster.storage.read();
    let candidates: Vec<(ObjectRef, Arc<Stored>)> = store
        .select(wanted.table, Some(text(owner, "/metadata/namespace")), &|object| {
            !object.deleting && (is_owned(object) || selects(object))
        })
        .into_iter()
        .map(|object| (ObjectRef { table: wanted.table.into(), key: object.key.clone() }, object))
        .collect();
    drop(store);
    let own = candidates.into_iter().filter_map(|(object_ref, object)| {
        let value = object.value();
        if !(wanted.counts)(&value) {
            return None;
        }
        let value = match (controller(&value), selects(&object)) {
            (Some(other), _) if other != uid => return None,
            (Some(_), true) => value,
            (Some(_), false) => {
                disown(cluster, &object_ref, &[uid.to_owned()]);
                return None;
            }
            (None, true) => adopt(cluster, &object_ref, owner)?,
            (None, false) => return None,
        };
        Some((object_ref, value))
    });
    own.collect()
}

/// Returns the selector of a controller; nothing if it has none, and selects nothing.
fn selector(owner: &Value) -> Option<LabelSelector> {
    let given = owner.pointer("/spec/selector").filter(|selector| !selector.is_null())?;
    if text(owner, "/kind") == "ReplicationController" {
        return Some(LabelSelector::of(&json!({"matchLabels": given})));
    }
    Some(LabelSelector::of(given))
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten()
}

/// Returns the identity of the owner that controls an object.
pub(super) fn controller(object: &Value) -> Option<&str> {
    let controls = |owner: &&Value| owner.get("controller") == Some(&Value::Bool(true));
    owners(object).find(controls).map(|owner| text(owner, "/uid"))
}

/// Returns the reference of a dependent to its owner.
pub(super) fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner.get("apiVersion"),
        "kind": owner.get("kind"),
        "name": text(owner, "/metadata/name"),
        "uid": text(owner, "/metadata/uid"),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Makes `owner` the controller of an orphan. Returns the orphan as it is then; nothing if it is none any more, or the
/// owner goes.
fn adopt(cluster: &Cluster, object_ref: &ObjectRef, owner: &Value) -> Option<Value> {
    let resource = cluster.registry.of_table(&object_ref.table)?;
    let uid = text(owner, "/metadata/uid");
    let mut is_adopted = false;
    let kept = cluster.modify(&resource, object_ref, CONTROLLER, |object| {
        is_adopted = !object_meta::is_deleting(object) && controller(object).is_none() && stays(cluster, uid);
        let Ok(metadata) = object_meta::of_mut(object) else {
            return Edit::Keep;
        };
        if !is_adopted {
            return Edit::Keep;
        }
        let list = metadata.entry("ownerReferences").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            // One that was an owner among others is the controller now.
            list.retain(|known| text(known, "/uid") != uid);
            list.push(reference(owner));
        }
        Edit::Write
    });
    match kept {
        Ok(kept) => kept.filter(|_| is_adopted).map(|object| object.value()),
        Err(error) => {
            tracing::warn!(table = %object_ref.table, key = %object_ref.key, %error, "an orphan could not be adopted");
            None
        }
    }
}

/// Returns whether the object with this identity is there, and is not being deleted.
fn stays(cluster: &Cluster, uid: &str) -> bool {
    let store = cluster.storage.read();
    let found = store.find_by_uid(uid).and_then(|found| store.get(&found.table, &found.key));
    found.is_some_and(|object| !object.deleting)
}

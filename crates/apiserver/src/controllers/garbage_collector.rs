//! What goes when something else goes: dependents of owners, contents of namespaces, instances of definitions.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::request::Call;
use crate::store::{Place, Range, Stored, split_key};
use crate::work_queue::{Chore, DEFINITIONS};
use crate::write::{DeleteOptions, Edit, Hand, Propagation, delete_object, finalizers, modify};

/// In whose name the server tidies up.
const COLLECTOR: Hand = Hand { manager: "kube-controller-manager", subresource: "" };

/// Carries out one chore. A chore that cannot be carried out is left: the change that stops it is the next chore.
pub(crate) fn carry_out(cluster: &Arc<Cluster>, chore: Chore) {
    match chore {
        Chore::Deleting(place) => advance(cluster, &place),
        Chore::Due(place) => crate::controllers::simulation::due(cluster, &place),
        Chore::Simulate(place) => crate::controllers::simulation::step(cluster, &place),
        Chore::Owned(place) => check_owners(cluster, &place),
        Chore::OwnerGone(uid) => {
            for dependent in dependents(cluster, &uid) {
                check_owners(cluster, &dependent);
            }
        }
    }
}

fn dependents(cluster: &Cluster, uid: &str) -> Vec<Place> {
    cluster.read().dependents_of(uid).cloned().collect()
}

/// Does what an object that waits for its deletion waits for.
fn advance(cluster: &Arc<Cluster>, place: &Place) {
    let Some(object) = cluster.at(place).filter(|object| object.deleting) else {
        return;
    };
    let value = object.value();
    let waits_for = finalizers(&value);
    if waits_for.contains(&"orphan") {
        for dependent in dependents(cluster, &object.uid) {
            disown(cluster, &dependent, &object.uid);
        }
        remove_finalizer(cluster, place, "orphan");
    }
    if waits_for.contains(&"foregroundDeletion") {
        delete_dependents(cluster, place, &object);
    }
    match &*place.table {
        "/namespaces" => empty_namespace(cluster, place, &object),
        DEFINITIONS => crate::definitions::clean_up(cluster, place, &value),
        "/persistentvolumeclaims" => release_claim(cluster, place, &object),
        "/persistentvolumes" if value.pointer("/spec/claimRef").is_none() => {
            remove_finalizer(cluster, place, "kubernetes.io/pv-protection");
        }
        _ => {}
    }
}

pub(crate) fn remove_finalizer(cluster: &Cluster, place: &Place, name: &str) {
    edit(cluster, place, |object| {
        let list = object.pointer_mut("/metadata/finalizers").and_then(Value::as_array_mut);
        let Some(list) = list else {
            return Edit::Keep;
        };
        let before = list.len();
        list.retain(|finalizer| finalizer != name);
        let (changed, empty) = (list.len() != before, list.is_empty());
        if empty && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("finalizers");
        }
        if changed { Edit::Write } else { Edit::Keep }
    });
}

fn edit(cluster: &Cluster, place: &Place, change: impl FnMut(&mut Value) -> Edit) {
    if let Some(resource) = cluster.resource_of(&place.table)
        && let Err(error) = modify(cluster, &resource, place, COLLECTOR, change)
    {
        tracing::warn!(table = %place.table, key = %place.key, %error, "an object could not be changed");
    }
}

/// Removes the owner `uid` from the owners of an object.
fn disown(cluster: &Cluster, place: &Place, uid: &str) {
    edit(cluster, place, |object| {
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

/// Deletes the dependents of an object that goes after them.
fn delete_dependents(cluster: &Arc<Cluster>, place: &Place, owner: &Stored) {
    let mut blocked = false;
    for dependent in dependents(cluster, &owner.uid) {
        let Some(object) = cluster.at(&dependent) else {
            continue;
        };
        if !object.deleting {
            let has_dependents = !dependents(cluster, &object.uid).is_empty();
            let propagation = if has_dependents { Propagation::Foreground } else { Propagation::Background };
            remove(cluster, &dependent, Some(propagation));
        }
        blocked |= cluster.at(&dependent).is_some_and(|object| blocks(&object.value(), &owner.uid));
    }
    if !blocked {
        remove_finalizer(cluster, place, "foregroundDeletion");
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

/// Deletes an object in the name of the server.
pub(crate) fn remove(cluster: &Arc<Cluster>, place: &Place, propagation: Option<Propagation>) {
    let Some(resource) = cluster.resource_of(&place.table) else {
        return;
    };
    let (namespace, name) = split_key(&place.key);
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    let call = Call::own(cluster, &resource, namespace);
    let options = DeleteOptions { propagation, ..DeleteOptions::default() };
    if let Err(error) = delete_object(&call, name, &options)
        && error.code() != 404
    {
        tracing::warn!(table = %place.table, key = %place.key, %error, "an object could not be deleted");
    }
}

/// Deletes an object none of whose owners is left; forgets owners that are gone.
fn check_owners(cluster: &Arc<Cluster>, place: &Place) {
    let Some(object) = cluster.at(place).filter(|object| !object.owners.is_empty()) else {
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
            disown(cluster, place, &uid);
        }
        return;
    }
    remove(cluster, place, None);
}

enum OwnerState {
    Absent,
    Deleting,
    Present,
    /// The owner's kind is not served: nobody can say.
    Unknown,
}

fn owner_state(cluster: &Cluster, owner: &Value, uid: &str, namespace: &str) -> OwnerState {
    let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default();
    let Some(resource) = cluster.registry().find_kind(text("apiVersion"), text("kind")).cloned() else {
        return OwnerState::Unknown;
    };
    let namespace = Some(namespace).filter(|namespace| resource.kind.namespaced && !namespace.is_empty());
    match cluster.get(&resource.table, namespace, text("name")) {
        Some(found) if &*found.uid == uid && found.deleting => OwnerState::Deleting,
        Some(found) if &*found.uid == uid => OwnerState::Present,
        Some(_) | None => OwnerState::Absent,
    }
}

/// Deletes what is in a namespace, and the namespace when nothing is left.
fn empty_namespace(cluster: &Arc<Cluster>, place: &Place, namespace: &Stored) {
    let left = contents(cluster, namespace.name());
    for object in &left {
        if cluster.at(object).is_some_and(|object| !object.deleting || &*place.table == "/pods") {
            remove_now(cluster, object);
        }
    }
    let left = contents(cluster, namespace.name());
    if left.is_empty() {
        edit(cluster, place, |object| {
            let spec = object.get_mut("spec").and_then(Value::as_object_mut);
            match spec.and_then(|spec| spec.remove("finalizers")) {
                Some(_) => Edit::Write,
                None => Edit::Keep,
            }
        });
        return;
    }
    let waiting = left.iter().filter_map(|place| cluster.at(place));
    let mut names: Vec<String> = waiting
        .flat_map(|object| {
            finalizers(&object.value()).iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()
        })
        .collect();
    names.sort();
    names.dedup();
    let now = crate::write::seconds(cluster.now());
    let message = format!("Some content in the namespace has finalizers remaining: {}", names.join(", "));
    edit(cluster, place, |object| {
        let condition = json!({
            "type": "NamespaceFinalizersRemaining",
            "status": "True",
            "reason": "SomeFinalizersRemain",
            "message": message,
            "lastTransitionTime": now,
        });
        let status = object.get_mut("status").and_then(Value::as_object_mut);
        let known = status.as_ref().and_then(|status| status.get("conditions")).is_some();
        match status {
            Some(status) if !known => {
                status.insert("conditions".into(), json!([condition]));
                Edit::Write
            }
            Some(_) | None => Edit::Keep,
        }
    });
}

/// Pods of a namespace that goes are not waited for: no node runs them.
fn remove_now(cluster: &Arc<Cluster>, place: &Place) {
    let Some(resource) = cluster.resource_of(&place.table) else {
        return;
    };
    let (namespace, name) = split_key(&place.key);
    let options = DeleteOptions {
        grace: Some(0),
        propagation: Some(Propagation::Background),
        ..DeleteOptions::default()
    };
    // An object that somebody else deletes meanwhile is as gone as it should be.
    let _ = delete_object(&Call::own(cluster, &resource, Some(namespace)), name, &options);
}

fn contents(cluster: &Cluster, namespace: &str) -> Vec<Place> {
    let store = cluster.read();
    let range = Range { namespace: Some(namespace.to_owned()), ..Range::default() };
    let mut found = Vec::new();
    for table in store.tables() {
        let page = store.list(table, &range, None, &|_| true).unwrap_or_default();
        found.extend(page.items.iter().map(|item| Place { table: Arc::clone(table), key: item.key.clone() }));
    }
    found
}

/// Lets a claim go that no pod uses.
fn release_claim(cluster: &Cluster, place: &Place, claim: &Stored) {
    let range = Range { namespace: Some(claim.namespace().to_owned()), ..Range::default() };
    let pods = cluster.read().list("/pods", &range, None, &|_| true).unwrap_or_default();
    let uses = |pod: &Value| {
        let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
        let mut names =
            volumes.into_iter().flatten().filter_map(|v| v.pointer("/persistentVolumeClaim/claimName"));
        names.any(|name| name == claim.name())
    };
    if !pods.items.iter().any(|pod| uses(&pod.value())) {
        remove_finalizer(cluster, place, "kubernetes.io/pvc-protection");
    }
}

//! Custom resource definitions: what they define, the conditions they get, and what happens when they go.

mod naming;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::registry::Definition;
use crate::store::{Place, Range};
use crate::work_queue::DEFINITIONS;
use crate::write::{Edit, Hand, finalizers, modify, seconds};

/// Whose the status of definitions is.
const CONTROLLER: Hand = Hand { manager: "kube-apiserver", subresource: "status" };

/// The finalizer that keeps a definition until its instances are gone.
const CLEAN_UP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Fills in what the server decides for a definition before it is stored.
pub(crate) fn admit(object: &mut Value) {
    let Some(spec) = object.get("spec") else {
        return;
    };
    let versions = spec.get("versions").and_then(Value::as_array);
    let storage =
        versions.into_iter().flatten().find(|version| version.get("storage") == Some(&Value::Bool(true)));
    let storage = storage.and_then(|version| version.get("name")).and_then(Value::as_str).map(str::to_owned);
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let status = fields.entry("status").or_insert_with(|| json!({}));
    if status.is_null() {
        *status = json!({});
    }
    let Some(status) = status.as_object_mut() else {
        return;
    };
    status.entry("acceptedNames").or_insert_with(|| json!({"plural": "", "kind": ""}));
    status.entry("conditions").or_insert(Value::Null);
    let stored = status.entry("storedVersions").or_insert_with(|| json!([]));
    if stored.is_null() {
        *stored = json!([]);
    }
    if let (Some(stored), Some(storage)) = (stored.as_array_mut(), storage)
        && !stored.iter().any(|version| *version == storage)
    {
        stored.push(json!(storage));
    }
}

/// Lets a definition wait for its instances when it is deleted.
pub(crate) fn hold_back(object: &mut Value) {
    if finalizers(object).contains(&CLEAN_UP) {
        return;
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let list = metadata.entry("finalizers").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(json!(CLEAN_UP));
        }
    }
}

/// Follows a committed change of an object: a definition is served, changed or withdrawn at once.
pub(crate) fn observe(cluster: &Cluster, place: &Place, object: Option<&Value>) {
    if &*place.table != DEFINITIONS {
        return;
    }
    let Some(object) = object else {
        cluster.define(&place.key, None);
        return;
    };
    let verdict = naming::verdict(cluster, object);
    let now = seconds(cluster.now());
    let Some(resource) = cluster.resource_of(&place.table) else {
        return;
    };
    let updated = modify(cluster, &resource, place, CONTROLLER, |object| {
        if naming::write_status(object, &verdict, &now) { Edit::Write } else { Edit::Keep }
    });
    let Ok(Some(kept)) = updated else {
        return;
    };
    let kept = kept.value();
    if !naming::is_established(&kept) {
        return;
    }
    match Definition::read(&kept) {
        Ok(definition) => {
            let known = cluster.definition(&place.key);
            if known.is_none_or(|known| *known != definition) {
                cluster.define(&place.key, Some(Arc::new(definition)));
            }
        }
        Err(error) => tracing::warn!(definition = %place.key, %error, "a definition cannot be served"),
    }
}

/// Serves a definition that was read from a state file.
pub(crate) fn restore(cluster: &Cluster, place: &Place, object: &Value) {
    if &*place.table == DEFINITIONS
        && naming::is_established(object)
        && let Ok(definition) = Definition::read(object)
    {
        cluster.define(&place.key, Some(Arc::new(definition)));
    }
}

/// Shows in the status of a definition that it waits for its deletion.
pub(crate) fn terminate(object: &mut Value, now: Timestamp) {
    if !finalizers(object).contains(&CLEAN_UP) {
        return;
    }
    let condition = json!({
        "type": "Terminating",
        "status": "True",
        "lastTransitionTime": seconds(now),
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    naming::set_condition(object, condition);
}

/// Deletes the instances of a definition that goes, and lets it go when there are none.
pub(crate) fn clean_up(cluster: &Arc<Cluster>, place: &Place, object: &Value) {
    if !finalizers(object).contains(&CLEAN_UP) {
        return;
    }
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let table = crate::registry::table_name(text("/spec/group"), text("/spec/names/plural"));
    let instances = |cluster: &Cluster| {
        let page = cluster.read().list(&table, &Range::default(), None, &|_| true).unwrap_or_default();
        page.items
            .iter()
            .map(|item| Place { table: Arc::clone(&table), key: item.key.clone() })
            .collect::<Vec<_>>()
    };
    for instance in instances(cluster) {
        crate::controllers::garbage_collector::remove(cluster, &instance, None);
    }
    if instances(cluster).is_empty() {
        crate::controllers::garbage_collector::remove_finalizer(cluster, place, CLEAN_UP);
    }
}

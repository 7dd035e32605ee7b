//! What the simulated controllers share: statuses, conditions, and looking into objects.

use serde_json::{Value, json};

use crate::cluster::{Cluster, Edit};
use crate::store::ObjectRef;
use crate::strategy::FieldOwner;

/// Who owns the statuses that are written.
const STATUS: FieldOwner<'_> = FieldOwner { manager: "kube-controller-manager", subresource: "status" };

/// Who owns the other fields that are changed.
pub(super) const CONTROLLER: FieldOwner<'_> =
    FieldOwner { manager: "kube-controller-manager", subresource: "" };

/// Puts fields into the status of an object; nulls remove them, what is there otherwise stays.
pub(super) fn set_status(cluster: &Cluster, object_ref: &ObjectRef, status: &Value) {
    let Some(resource) = cluster.registry.of_table(&object_ref.table) else {
        return;
    };
    let written = cluster.modify(&resource, object_ref, STATUS, |object| {
        let before = object.get("status").cloned().unwrap_or_default();
        let Some(fields) = object.as_object_mut() else {
            return Edit::Keep;
        };
        let own = fields.entry("status").or_insert_with(|| json!({}));
        if let (Some(own), Some(status)) = (own.as_object_mut(), status.as_object()) {
            for (name, value) in status {
                if value.is_null() {
                    own.remove(name);
                } else {
                    own.insert(name.clone(), value.clone());
                }
            }
        }
        if fields.get("status") == Some(&before) { Edit::Keep } else { Edit::Write }
    });
    if let Err(error) = written {
        tracing::warn!(table = %object_ref.table, key = %object_ref.key, %error, "a status could not be simulated");
    }
}

/// Returns a condition; one of the same kind and status keeps its time.
pub(super) fn condition(
    object: &Value,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: &str,
) -> Value {
    let known = object.pointer("/status/conditions").and_then(Value::as_array);
    let known = known.into_iter().flatten().find(|c| c.get("type").is_some_and(|t| t == kind));
    let time = known
        .filter(|known| known.get("status").is_some_and(|s| s == status))
        .and_then(|known| known.get("lastTransitionTime"))
        .cloned()
        .unwrap_or_else(|| json!(now));
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time})
}

/// Returns a text of an object, empty if it is absent.
pub(super) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a number as statuses show it that leave zeros out.
pub(super) fn count(number: i64) -> Value {
    if number == 0 { Value::Null } else { json!(number) }
}

pub(super) fn number(object: &Value, path: &str, absent: i64) -> i64 {
    object.pointer(path).and_then(Value::as_i64).unwrap_or(absent)
}

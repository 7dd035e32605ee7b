//! Custom resource definitions: what the server writes into them before they are stored.

pub(crate) mod naming;

use jiff::Timestamp;
use objects::time::format_seconds;
use serde_json::{Value, json};

use crate::object_meta::{add_finalizer, finalizers};

/// The finalizer that keeps a definition until its instances are gone.
pub(crate) const CLEAN_UP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Fills in what the server decides for a definition before it is stored.
pub(crate) fn prepare(object: &mut Value) {
    drop_empty_webhook(object);
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

/// Drops a webhook for conversions of which nothing is said.
fn drop_empty_webhook(object: &mut Value) {
    let Some(conversion) = object.pointer_mut("/spec/conversion").and_then(Value::as_object_mut) else {
        return;
    };
    let says_nothing = |webhook: &Value| {
        let versions = webhook.get("conversionReviewVersions").and_then(Value::as_array);
        webhook.get("clientConfig").is_none_or(Value::is_null) && versions.is_none_or(Vec::is_empty)
    };
    if conversion.get("webhook").is_some_and(says_nothing) {
        conversion.remove("webhook");
    }
}

/// Makes a definition that is deleted wait for its instances.
pub(crate) fn hold_back(object: &mut Value) {
    // What has no metadata that is an object cannot wait; validation has refused it before.
    let _ = add_finalizer(object, CLEAN_UP);
}

/// Writes into the status of a definition that it waits for its deletion.
pub(crate) fn terminate(object: &mut Value, now: Timestamp) {
    if !finalizers(object).contains(&CLEAN_UP) {
        return;
    }
    let condition = json!({
        "type": "Terminating",
        "status": "True",
        "lastTransitionTime": format_seconds(now),
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    naming::set_condition(object, condition);
}

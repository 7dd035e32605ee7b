//! Requests for certificates: who asks, and who approved it when.

use objects::time::format_seconds;
use serde_json::{Value, json};

use crate::authentication::User;
use crate::fields::{list, text};
use crate::request::RequestContext;

/// Writes the user into a request for a certificate, whatever the client wrote.
pub(super) fn sign_for(user: &User, signing_request: &mut Value) {
    if let Some(spec) = signing_request.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("username".into(), json!(user.name));
        spec.insert("uid".into(), json!(user.uid));
        spec.insert("groups".into(), json!(user.groups));
    }
}

/// Restores what is asked for, and what others than the approver say; gives new conditions their times.
pub(super) fn keep(request: &RequestContext, old: &Value, new: &mut Value) {
    let is_approval = request.subresource.as_deref() == Some("approval");
    let said = new.pointer_mut("/status/conditions").map(Value::take);
    let Some(fields) = new.as_object_mut() else { return };
    fields.extend(old.get("spec").map(|spec| ("spec".to_owned(), spec.clone())));
    if is_approval {
        fields.insert("status".into(), old.get("status").cloned().unwrap_or_else(|| json!({})));
    }
    let Some(Value::Array(mut conditions)) = said else { return };
    if !is_approval {
        keep_decisions(old, &mut conditions);
    }
    let now = format_seconds(request.now);
    for condition in &mut conditions {
        let is_same =
            |known: &&Value| ["type", "status"].iter().all(|name| text(known, name) == text(condition, name));
        let since = list(old, "status.conditions").iter().find(is_same);
        let since = since.map(|known| text(known, "lastTransitionTime").to_owned());
        let Some(fields) = condition.as_object_mut() else { continue };
        for (name, time) in
            [("lastUpdateTime", now.clone()), ("lastTransitionTime", since.unwrap_or_else(|| now.clone()))]
        {
            if fields.get(name).is_none_or(Value::is_null) {
                fields.insert(name.to_owned(), json!(time));
            }
        }
    }
    if let Some(status) = fields.get_mut("status").and_then(Value::as_object_mut) {
        status.insert("conditions".into(), Value::Array(conditions));
    }
}

/// Restores what was decided, which signers do not change. That they add or remove some is refused later.
fn keep_decisions(old: &Value, conditions: &mut [Value]) {
    for kind in ["Approved", "Denied"] {
        let is_kind = |condition: &Value| text(condition, "type") == kind;
        let known: Vec<&Value> = list(old, "status.conditions").iter().filter(|one| is_kind(one)).collect();
        let said: Vec<&mut Value> = conditions.iter_mut().filter(|one| is_kind(one)).collect();
        if said.len() == known.len() {
            said.into_iter().zip(known).for_each(|(said, known)| *said = known.clone());
        }
    }
}

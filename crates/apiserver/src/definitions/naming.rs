//! Names of custom kinds: whether they are free, and the conditions in the status that say so.

use serde_json::{Value, json};

use crate::registry::Resources;

/// Whether the names of a definition are free.
pub(crate) struct Verdict {
    accepted: Value,
    /// Why a name is not free: reason and text.
    conflict: Option<(&'static str, String)>,
}

/// Returns whether the names of a definition are free among the other kinds of its group.
pub(crate) fn verdict(resources: &Resources, object: &Value) -> Verdict {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let own = text("/metadata/name");
    let group = text("/spec/group");
    let asked = object.pointer("/spec/names").cloned().unwrap_or_else(|| json!({}));
    let field = |name: &str| asked.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let others = resources
        .all()
        .filter(|other| other.kind.group == group && format!("{}.{group}", other.kind.plural) != own);
    let mut conflict = None;
    for other in others {
        let kind = &other.kind;
        let names: Vec<&str> =
            [&kind.plural, &kind.singular].into_iter().chain(&kind.short_names).map(|name| &**name).collect();
        let kinds = [&*kind.kind, &*kind.list_kind];
        let short = asked.get("shortNames").and_then(Value::as_array);
        conflict = if names.contains(&field("plural").as_str()) {
            Some(("PluralConflict", format!("{:?} is already in use", field("plural"))))
        } else if names.contains(&field("singular").as_str()) {
            Some(("SingularConflict", format!("{:?} is already in use", field("singular"))))
        } else if kinds.contains(&field("kind").as_str()) {
            Some(("KindConflict", format!("{:?} is already in use", field("kind"))))
        } else if kinds.contains(&field("listKind").as_str()) {
            Some(("ListKindConflict", format!("{:?} is already in use", field("listKind"))))
        } else {
            let taken =
                short.into_iter().flatten().filter_map(Value::as_str).find(|name| names.contains(name));
            taken.map(|name| ("ShortNamesConflict", format!("{name:?} is already in use")))
        };
        if conflict.is_some() {
            break;
        }
    }
    Verdict { accepted: asked, conflict }
}

/// Writes the verdict into the status; returns whether that changed anything.
pub(crate) fn write_status(object: &mut Value, verdict: &Verdict, now: &str) -> bool {
    let before = object.get("status").cloned();
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": status,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        })
    };
    let was_established = is_established(object);
    match &verdict.conflict {
        None => {
            if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
                status.insert("acceptedNames".into(), verdict.accepted.clone());
            }
            set_condition(object, condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"));
            if !was_established {
                let message = "the initial names have been accepted";
                set_condition(object, condition("Established", "True", "InitialNamesAccepted", message));
            }
        }
        Some((reason, message)) => {
            set_condition(object, condition("NamesAccepted", "False", reason, message));
            if !was_established {
                set_condition(
                    object,
                    condition("Established", "False", "NotAccepted", "not all names are accepted"),
                );
            }
        }
    }
    before.as_ref() != object.get("status")
}

/// Returns whether the kind is served.
pub(crate) fn is_established(object: &Value) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        condition.get("type").and_then(Value::as_str) == Some("Established")
            && condition.get("status").and_then(Value::as_str) == Some("True")
    })
}

/// Sets a condition; one whose status is the same as before keeps its time.
pub(crate) fn set_condition(object: &mut Value, mut condition: Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let status = fields.entry("status").or_insert_with(|| json!({}));
    let Some(status) = status.as_object_mut() else {
        return;
    };
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if conditions.is_null() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    let kind = condition.get("type").cloned();
    let Some(known) = conditions.iter_mut().find(|known| known.get("type") == kind.as_ref()) else {
        conditions.push(condition);
        return;
    };
    if known.get("status") == condition.get("status")
        && let (Some(fields), Some(time)) = (condition.as_object_mut(), known.get("lastTransitionTime"))
    {
        fields.insert("lastTransitionTime".into(), time.clone());
    }
    *known = condition;
}

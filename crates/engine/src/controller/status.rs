//! The status of an object: what is to be written, if it differs from what is there.

use serde_json::{Map, Value};

use crate::hook::object_patch::FIELD_MANAGER;
use crate::hook::reconcile::{Condition, ObjectKind, ReconcileResult};

/// What the status of an object should be, and the merge patch that makes it so.
#[derive(Debug, PartialEq)]
pub(super) struct StatusChange {
    pub(super) status: Value,
    pub(super) patch: Value,
}

/// Returns the change of a status that a result asks for; `None` if it is so already or nothing was said of it.
///
/// Fields that the result does not name go, but for conditions of other types. `generation` is that of the object that the
/// hook was shown, `now` the time of day. One that was written before moves whatever the hook leaves out. One of another controller
/// stays: that says with it what it has seen.
pub(super) fn change(
    kind: &ObjectKind,
    object: &Value,
    result: &ReconcileResult,
    (generation, now): (i64, &str),
) -> Option<StatusChange> {
    let empty = Map::new();
    let current = object.get("status").and_then(Value::as_object).unwrap_or(&empty);
    let is_ours = !kind.is_of_kubernetes();
    let is_observed = is_ours && is_observed(object);
    if !(result.says_status() || is_observed) {
        return None;
    }
    let may_observe = is_ours && (result.status.is_some() || is_observed || !current.contains_key(OBSERVED));
    let mut wanted = match &result.status {
        Some(status) => {
            let mut status = without_nulls(status);
            if let Some(conditions) = current.get("conditions") {
                status.insert("conditions".to_owned(), conditions.clone());
            }
            status
        }
        None => current.clone(),
    };
    if let Some(conditions) = &result.conditions {
        let living =
            current.get("conditions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        wanted.insert("conditions".to_owned(), Value::Array(merged(living, conditions, now)));
    }
    if may_observe && generation > 0 {
        wanted.insert(OBSERVED.to_owned(), generation.into());
    } else if let Some(observed) = current.get(OBSERVED) {
        wanted.insert(OBSERVED.to_owned(), observed.clone());
    }
    let patch = difference(current, &wanted);
    (!patch.is_empty()).then_some(StatusChange { status: Value::Object(wanted), patch: Value::Object(patch) })
}

/// The field that says which state of the object its hook was shown last.
const OBSERVED: &str = "observedGeneration";
/// The same among the fields that somebody manages.
const OBSERVED_FIELD: &str = "f:observedGeneration";

/// Returns whether the text of an object has that field, perhaps. It costs less than to read the object.
pub(super) fn may_be_observed(object: &[u8]) -> bool {
    mentions(object, OBSERVED)
}

/// Returns whether that field is there and was written for a hook. Many kinds have one that their own controller writes.
fn is_observed(object: &Value) -> bool {
    let writers = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let is_ours = |writer: &Value| {
        text(writer, "manager") == Some(FIELD_MANAGER)
            && writer.pointer("/fieldsV1/f:status").is_some_and(|fields| fields.get(OBSERVED_FIELD).is_some())
    };
    object.pointer("/status").is_some_and(|status| status.get(OBSERVED).is_some())
        && writers.into_iter().flatten().any(is_ours)
}

/// The condition of an object whose hook can't run; without it, it can. Its reasons are ours.
const STALLED: &str = "Stalled";
const OURS: [&str; 2] = [KIND_MISSING, RIGHT_MISSING];

/// The reason if a kind does not exist.
pub(super) const KIND_MISSING: &str = "KindMissing";
/// The reason if a kind may not be listed.
pub(super) const RIGHT_MISSING: &str = "RightMissing";

/// Returns whether the text of an object has the condition, perhaps. It costs less than to read the object.
pub(super) fn may_be_stalled(object: &[u8]) -> bool {
    mentions(object, STALLED)
}

/// Returns whether a word is anywhere in the text of an object.
fn mentions(object: &[u8], word: &str) -> bool {
    std::str::from_utf8(object).is_ok_and(|text| text.contains(word))
}

/// Returns the merge patch of a status that says why the hook can't run, or takes that back; `None` if it is so already.
pub(super) fn stalled(object: &Value, why: Option<(&str, &str)>, now: &str) -> Option<Value> {
    let living = object.pointer("/status/conditions").and_then(Value::as_array);
    let living = living.map(Vec::as_slice).unwrap_or_default();
    let is_ours = |condition: &Value| {
        text(condition, "type") == Some(STALLED)
            && text(condition, "reason").is_some_and(|reason| OURS.contains(&reason))
    };
    let conditions = match why {
        Some((reason, message)) => {
            let said = Condition {
                kind: STALLED.to_owned(),
                status: "True".to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message.to_owned()),
            };
            merged(living, &[said], now)
        }
        None => living.iter().filter(|condition| !is_ours(condition)).cloned().collect(),
    };
    (conditions != living).then(|| serde_json::json!({ "conditions": conditions }))
}

fn without_nulls(fields: &Map<String, Value>) -> Map<String, Value> {
    let kept = fields.iter().filter(|(_, value)| !value.is_null());
    let clean = |value: &Value| match value.as_object() {
        Some(fields) => Value::Object(without_nulls(fields)),
        None => value.clone(),
    };
    kept.map(|(key, value)| (key.clone(), clean(value))).collect()
}

/// Returns the conditions of an object with those that a hook says; the time of one moves only with its status.
fn merged(living: &[Value], said: &[Condition], now: &str) -> Vec<Value> {
    let mut all: Vec<Value> = living.to_vec();
    for condition in said {
        let is_same = |other: &Value| text(other, "type") == Some(&condition.kind);
        let place = all.iter().position(is_same);
        let old = place.and_then(|place| all.get(place));
        let time = old.filter(|old| text(old, "status") == Some(&condition.status));
        let time = time.and_then(|old| text(old, "lastTransitionTime")).unwrap_or(now).to_owned();
        let mut new = old.and_then(Value::as_object).cloned().unwrap_or_default();
        let fields = [("type", Some(&condition.kind)), ("status", Some(&condition.status))];
        let more = [("reason", condition.reason.as_ref()), ("message", condition.message.as_ref())];
        for (field, value) in fields.into_iter().chain(more) {
            match value {
                Some(value) => drop(new.insert(field.to_owned(), value.as_str().into())),
                None => drop(new.remove(field)),
            }
        }
        new.insert("lastTransitionTime".to_owned(), time.into());
        match place.and_then(|place| all.get_mut(place)) {
            Some(old) => *old = Value::Object(new),
            None => all.push(Value::Object(new)),
        }
    }
    all
}

fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field).and_then(Value::as_str)
}

/// Returns the JSON Merge Patch that makes `new` of `old`.
fn difference(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        let change = match (old.get(key), value) {
            (Some(known), value) if known == value => continue,
            (Some(Value::Object(known)), Value::Object(value)) => Value::Object(difference(known, value)),
            (_, value) => value.clone(),
        };
        patch.insert(key.clone(), change);
    }
    patch
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hook::reconcile::parse;

    fn changed(object: &Value, result: &Value) -> Option<Value> {
        changed_of("example.com/v1", object, result)
    }

    fn changed_of(api_version: &str, object: &Value, result: &Value) -> Option<Value> {
        let result = parse(result.to_string().as_bytes()).unwrap();
        let kind = ObjectKind { api_version: api_version.to_owned(), kind: "Site".to_owned() };
        change(&kind, object, &result, (3, "now")).map(|change| change.patch)
    }

    #[test]
    fn what_another_controller_says_it_has_seen_stays() {
        let status = json!({"replicas": 1, "observedGeneration": 2});
        let by = |manager: &str| json!([{"manager": manager, "fieldsV1": {"f:status": {"f:observedGeneration": {}}}}]);
        let object = |manager: &str| json!({"metadata": {"managedFields": by(manager)}, "status": status});
        let conditions = json!({"conditions": [{"type": "Safe", "status": "True"}]});
        let observed = |api_version: &str, manager: &str, result: &Value| {
            let patch = changed_of(api_version, &object(manager), result).unwrap();
            patch.get("observedGeneration").cloned()
        };
        // Conditions are beside what the controller of the kind writes.
        assert_eq!(observed("example.com/v1", "kube-controller-manager", &conditions), None);
        assert_eq!(observed("example.com/v1", "addon-operator", &conditions), Some(json!(3)));
        let none = json!({"status": {"replicas": 1}});
        assert_eq!(changed(&none, &conditions).unwrap()["observedGeneration"], 3, "nobody else writes it");
        // Who says the whole status owns it, but for kinds of Kubernetes.
        let whole = json!({"status": {"replicas": 2}});
        assert_eq!(observed("example.com/v1", "kube-controller-manager", &whole), Some(json!(3)));
        for result in [&whole, &conditions] {
            assert_eq!(observed("apps/v1", "addon-operator", result), None);
            assert_eq!(observed("networking.k8s.io/v1", "addon-operator", result), None);
        }
        assert_eq!(changed_of("apps/v1", &object("addon-operator"), &json!({"children": []})), None);
    }

    #[test]
    fn what_is_so_already_is_not_written() {
        let status = json!({"ready": true, "observedGeneration": 3});
        let object = json!({"status": status});
        assert_eq!(changed(&object, &json!({"status": {"ready": true}})), None);
        assert_eq!(changed(&object, &json!({"status": {"ready": true, "phase": null}})), None);
        assert_eq!(changed(&json!({}), &json!({"children": []})), None);
        assert_eq!(changed(&object, &json!({"status": {}})), Some(json!({"ready": null})));
    }

    #[test]
    fn a_generation_that_is_there_moves_also_if_the_hook_says_nothing_of_the_status() {
        let by = |manager: &str| json!([{"manager": manager, "fieldsV1": {"f:status": {"f:observedGeneration": {}}}}]);
        let status = json!({"ready": true, "observedGeneration": 2});
        let object = json!({"metadata": {"managedFields": by("addon-operator")}, "status": status});
        let foreign = json!({"metadata": {"managedFields": by("kube-controller-manager")}, "status": status});
        for silent in [json!({}), json!({"children": []}), json!({"status": null, "conditions": null})] {
            assert_eq!(changed(&object, &silent), Some(json!({"observedGeneration": 3})));
            assert_eq!(changed(&foreign, &silent), None, "its own controller writes it");
            let none =
                json!({"metadata": {"managedFields": by("addon-operator")}, "status": {"ready": true}});
            assert_eq!(changed(&none, &silent), None, "it is gone");
        }
        assert!(may_be_observed(object.to_string().as_bytes()) && !may_be_observed(b"{}"));
    }

    #[test]
    fn fields_that_are_not_named_any_more_go_and_foreign_conditions_stay() {
        let foreign = json!({"type": "Paused", "status": "False"});
        let object = json!({"status": {"old": 1, "deep": {"a": 1, "b": 2}, "conditions": [foreign], "observedGeneration": 2}});
        let patch = changed(&object, &json!({"status": {"deep": {"a": 1, "c": 3}}})).unwrap();
        assert_eq!(patch, json!({"old": null, "deep": {"b": null, "c": 3}, "observedGeneration": 3}));
    }

    #[test]
    fn why_a_hook_can_not_run_is_a_condition_beside_the_others_that_goes_without_a_trace() {
        let (foreign, why) = (json!({"type": "Paused", "status": "False"}), Some((KIND_MISSING, "no kind")));
        let object = json!({"status": {"conditions": [foreign]}});
        let ours = json!({"type": "Stalled", "status": "True", "reason": "KindMissing", "message": "no kind", "lastTransitionTime": "now"});
        assert_eq!(stalled(&object, why, "now"), Some(json!({"conditions": [foreign, ours]})));
        assert_eq!(stalled(&json!({}), why, "now"), Some(json!({"conditions": [ours]})));
        let object = json!({"status": {"conditions": [ours, foreign]}});
        assert_eq!(stalled(&object, why, "later"), None);
        assert_eq!(stalled(&object, None, "later"), Some(json!({"conditions": [foreign]})));
        // What a hook says under this name is its own.
        let theirs =
            json!({"status": {"conditions": [{"type": "Stalled", "status": "True", "reason": "Full"}]}});
        assert_eq!((stalled(&theirs, None, "now"), stalled(&json!({}), None, "now")), (None, None));
        assert!(may_be_stalled(theirs.to_string().as_bytes()) && !may_be_stalled(b"{}"));
    }

    #[test]
    fn the_time_of_a_condition_moves_only_with_its_status() {
        let ready = |status: &str, time: &str| json!({"type": "Ready", "status": status, "reason": "A", "lastTransitionTime": time, "extra": 1});
        let foreign = json!({"type": "Paused", "status": "False"});
        let object =
            json!({"status": {"observedGeneration": 3, "conditions": [foreign, ready("True", "then")]}});
        let said = |status: &str, reason: &str| json!({"conditions": [{"type": "Ready", "status": status, "reason": reason}]});
        assert_eq!(changed(&object, &said("True", "A")), None);
        let patch = changed(&object, &said("True", "B")).unwrap();
        assert_eq!(patch["conditions"][1]["lastTransitionTime"], "then");
        assert_eq!(patch["conditions"][1]["reason"], "B");
        let patch = changed(&object, &said("False", "A")).unwrap();
        assert_eq!(patch["conditions"], json!([foreign, ready("False", "now")]));
    }
}

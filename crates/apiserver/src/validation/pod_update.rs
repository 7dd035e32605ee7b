//! Changes of pods that exist: little may change, and more while nothing has been scheduled.

use serde_json::{Map, Value};

use super::errors::{Report, at, item};
use super::pod;
use crate::fields::{get, has, int, list, map, text};

const REQUIRED: &str = "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";

/// Checks the specification of a new version of a pod.
pub(super) fn update(new: &Value, old: &Value, report: &mut Report) {
    let (is, was) = (get(new, "spec"), get(old, "spec"));
    specification(is, report);
    for field in ["containers", "initContainers"] {
        let place = at("spec", field);
        if list(is, field).len() != list(was, field).len() {
            report.forbidden(&place, "pod updates may not add or remove containers");
            return;
        }
        for (index, container) in list(is, field).iter().enumerate() {
            image(text(container, "image"), &at(&item(&place, index), "image"), report);
        }
    }
    if !deadline(is, was, report) {
        return;
    }
    tolerations(is, was, report);
    gates(is, was, report);
    let mut munged = is.clone();
    if let Some(munged) = munged.as_object_mut() {
        keep_mutable(munged, was);
    }
    if !list(was, "schedulingGates").is_empty() {
        while_gated(&mut munged, was, report);
    }
    if munged != *was {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        report.forbidden("spec", detail);
    }
}

/// Checks a specification that exists: changes of pods are not warned of, as it is programs that make them.
pub(super) fn specification(spec: &Value, report: &mut Report) {
    let mut whole = Report::default();
    pod::own_spec(spec, &mut whole);
    // Such containers come by a request of their own and stay, and so does the node.
    whole.errors.retain(|error| error.field != "spec.ephemeralContainers" && error.field != "spec.nodeName");
    report.errors.extend(whole.errors);
}

fn image(image: &str, path: &str, report: &mut Report) {
    if image.is_empty() {
        report.required(path, "");
    } else if image.trim() != image {
        report.invalid(path, image, "must not have leading or trailing whitespace");
    }
}

/// Checks that a deadline does not come later; returns whether the other fields are checked, too.
fn deadline(is: &Value, was: &Value, report: &mut Report) -> bool {
    const PATH: &str = "spec.activeDeadlineSeconds";
    let (is, was) = (int(is, "activeDeadlineSeconds"), int(was, "activeDeadlineSeconds"));
    match (is, was) {
        (Some(is), _) if !(0..=i64::from(i32::MAX)).contains(&is) => {
            report.invalid(PATH, is, "must be between 0 and 2147483647, inclusive");
            false
        }
        (Some(is), Some(was)) if is > was => {
            report.invalid(PATH, is, "must be less than or equal to previous value");
            false
        }
        (None, Some(_)) => {
            report.invalid(PATH, Value::Null, "must not update from a positive integer to nil value");
            true
        }
        (_, _) => true,
    }
}

/// Tolerations stay, and may last longer or shorter; others are added.
fn tolerations(is: &Value, was: &Value, report: &mut Report) {
    let plain = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(fields) = toleration.as_object_mut() {
            fields.remove("tolerationSeconds");
        }
        toleration
    };
    let now: Vec<Value> = list(is, "tolerations").iter().map(plain).collect();
    if list(was, "tolerations").iter().any(|before| !now.contains(&plain(before))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        report.forbidden("spec.tolerations", detail);
        return;
    }
    pod::tolerations(is, "spec", report);
}

fn gates(is: &Value, was: &Value, report: &mut Report) {
    let before: Vec<&str> = list(was, "schedulingGates").iter().map(|gate| text(gate, "name")).collect();
    for (index, gate) in list(is, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        if !before.contains(&name) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            report.forbidden(&at(&item("spec.schedulingGates", index), "name"), &detail);
        }
    }
}

/// Takes over from the old version what may change in each pod.
fn keep_mutable(munged: &mut Map<String, Value>, was: &Value) {
    for field in ["containers", "initContainers"] {
        let slots = munged.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
        for (slot, before) in slots.zip(list(was, field)) {
            if let Some(container) = slot.as_object_mut() {
                container.insert("image".to_owned(), get(before, "image").clone());
            }
        }
    }
    let mut kept = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    let was_negative = int(was, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0);
    if was_negative && munged.get("terminationGracePeriodSeconds").and_then(Value::as_i64) == Some(1) {
        kept.push("terminationGracePeriodSeconds");
    }
    for field in kept {
        take(munged, field, was);
    }
}

/// Takes a field from the old version.
fn take(fields: &mut Map<String, Value>, field: &str, was: &Value) {
    match get(was, field) {
        Value::Null => fields.remove(field),
        value => fields.insert(field.to_owned(), value.clone()),
    };
}

/// Checks what may become narrower while a pod is held back from scheduling, and takes it over.
fn while_gated(munged: &mut Value, was: &Value, report: &mut Report) {
    const DETAIL: &str = "only additions are allowed (no mutations or deletions)";
    let now = map(munged, "nodeSelector");
    if map(was, "nodeSelector").iter().any(|(name, value)| now.get(name) != Some(value)) {
        let shown = get(munged, "nodeSelector").clone();
        report.invalid("spec.nodeSelector", shown, DETAIL);
    }
    let affinity = |spec: &Value| get(spec, "affinity").clone();
    let (now, before) = (affinity(munged), affinity(was));
    if get(&now, "nodeAffinity") != get(&before, "nodeAffinity") {
        let (terms, old_terms) = (list(&now, REQUIRED), list(&before, REQUIRED));
        let place = format!("spec.affinity.{REQUIRED}");
        if has(&before, REQUIRED) && terms.len() != old_terms.len() {
            let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
            report.invalid(&place, Value::Array(terms.to_vec()), detail);
        } else {
            for (index, (term, old)) in terms.iter().zip(old_terms).enumerate() {
                let keeps = ["matchExpressions", "matchFields"]
                    .iter()
                    .all(|field| list(term, field).starts_with(list(old, field)));
                if !keeps {
                    report.invalid(&item(&place, index), term.clone(), DETAIL);
                }
            }
        }
    }
    let Some(fields) = munged.as_object_mut() else {
        return;
    };
    take(fields, "nodeSelector", was);
    let mut now = now;
    if let Some(affinity) = now.as_object_mut() {
        take(affinity, "nodeAffinity", &before);
        let is_empty = affinity.is_empty() && before.is_null();
        if is_empty {
            fields.remove("affinity");
        } else {
            fields.insert("affinity".to_owned(), now);
        }
    } else if has(&before, "nodeAffinity") {
        take(fields, "affinity", was);
    }
}

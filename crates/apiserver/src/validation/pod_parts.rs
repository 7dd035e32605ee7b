//! Changes of parts of pods that have requests of their own: what containers may take, and containers to look into a pod.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::container::{Surroundings, containers, images};
use super::errors::{Report, at, item};
use super::{metadata, pod_update};
use crate::fields::{get, has, list, map, text};
use crate::pod_resources::{Amounts, amounts, quality};

/// The annotation of pods that a node runs by itself.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The path of errors about the pod as a whole.
const WHOLE: &str = "[]";

/// Returns what is wrong with the resources that containers of a pod are to have.
///
/// Nodes here can change the resources of what runs, so that is not asked.
pub(crate) fn resize(new: &Value, old: &Value) -> Report {
    let (is, was) = (get(new, "spec"), get(old, "spec"));
    let asks = |spec: &Value| ["requests", "limits"].iter().any(|part| has(get(spec, "resources"), part));
    let never = [
        (asks(is) || asks(was), "pods with pod-level resources cannot be resized"),
        (is_mirror(old), "static pods cannot be resized"),
        (text(was, "os.name") == "windows", "windows pods cannot be resized"),
    ];
    if let Some((_, detail)) = never.iter().find(|(is_so, _)| *is_so) {
        return refusal(detail);
    }
    let mut report = Report::default();
    metadata::validate_update(new, old, &mut report);
    pod_update::specification(is, &mut report);
    let kept = match text(old, "status.qosClass") {
        "" => quality(was),
        class => class,
    };
    if quality(is) != kept {
        report.invalid("spec", kept, "Pod QOS Class may not change as a result of resizing");
    }
    let before = report.errors.len();
    for field in ["containers", "initContainers"] {
        order(list(is, field), list(was, field), field, &mut report);
    }
    if report.errors.len() > before {
        return report;
    }
    let stays = |container: &Value| text(container, "restartPolicy") == "Always";
    for (field, is_init) in [("initContainers", true), ("containers", false)] {
        for (index, (is, was)) in list(is, field).iter().zip(list(was, field)).enumerate() {
            if !is_init || stays(was) {
                let path = at(&item(&at("spec", field), index), "resources");
                removed(get(is, "resources"), get(was, "resources"), &path, &mut report);
            }
        }
    }
    for (field, is_init) in [("containers", false), ("initContainers", true)] {
        for (is, was) in list(is, field).iter().zip(list(was, field)) {
            let detail = match (is_init, stays(was)) {
                (true, false) if is != was => "resources for non-sidecar init containers are immutable",
                (true, true) if !is_resized(is, was) => {
                    "only cpu and memory resources for sidecar containers are mutable"
                }
                (false, _) if !is_resized(is, was) => "only cpu and memory resources are mutable",
                _ => continue,
            };
            report.forbidden("spec", detail);
        }
    }
    report
}

/// Returns what is wrong with the ephemeral containers of a pod: those that are there stay as they are.
pub(crate) fn ephemeral(new: &Value, old: &Value) -> Report {
    const PATH: &str = "spec.ephemeralContainers";
    if is_mirror(old) {
        return refusal("static pods do not support ephemeral containers");
    }
    let mut report = Report::default();
    metadata::validate_update(new, old, &mut report);
    let spec = get(new, "spec");
    pod_update::specification(spec, &mut report);
    let names = |field: &str| list(spec, field).iter().map(|one| text(one, "name"));
    let mut around = Surroundings {
        volumes: list(spec, "volumes").iter().map(|volume| text(volume, "name")).collect(),
        names: names("containers").chain(names("initContainers")).collect(),
        ..Surroundings::default()
    };
    let wanted = list(spec, "ephemeralContainers");
    containers(wanted, PATH, false, &mut around, &mut report);
    images(wanted, PATH, &mut report);
    for (index, container) in wanted.iter().enumerate() {
        let path = item(PATH, index);
        let target = text(container, "targetContainerName");
        if !target.is_empty()
            && !names("containers").chain(names("initContainers")).any(|name| name == target)
        {
            report.not_found(&at(&path, "targetContainerName"), target);
        }
        for field in [
            "ports",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle",
            "resources",
            "resizePolicy",
        ] {
            if is_set(get(container, field)) {
                let path = at(&path, field);
                // It does not matter what is in it.
                report.errors.retain(|error| !error.field.starts_with(&path));
                report.forbidden(&path, "cannot be set for an Ephemeral Container");
            }
        }
    }
    for old in list(old, PATH) {
        let name = text(old, "name");
        match wanted.iter().find(|new| text(new, "name") == name) {
            None => report
                .forbidden(PATH, &format!("existing ephemeral containers {name:?} may not be removed\n")),
            Some(new) if new != old => {
                report
                    .forbidden(PATH, &format!("existing ephemeral containers {name:?} may not be changed\n"));
            }
            Some(_) => {}
        }
    }
    report
}

fn is_mirror(pod: &Value) -> bool {
    map(pod, "metadata.annotations").contains_key(MIRROR)
}

/// Returns whether something is in a field; an empty list or object is as good as none.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        other => !other.is_null(),
    }
}

fn refusal(detail: &str) -> Report {
    let mut report = Report::default();
    report.forbidden(WHOLE, detail);
    report
}

/// Reports containers that are not where they were.
fn order(is: &[Value], was: &[Value], field: &str, report: &mut Report) {
    let path = at("spec", field);
    if is.len() != was.len() {
        return report.forbidden(&path, &format!("{field} may not be added or removed on resize"));
    }
    for (index, (is, was)) in is.iter().zip(was).enumerate() {
        if text(is, "name") != text(was, "name") {
            let detail = format!("{field} may not be renamed or reordered on resize");
            report.forbidden(&at(&item(&path, index), "name"), &detail);
        }
    }
}

fn removed(is: &Value, was: &Value, path: &str, report: &mut Report) {
    for part in ["requests", "limits"] {
        if map(was, part).keys().any(|name| !map(is, part).contains_key(name)) {
            report.forbidden(&at(path, part), &format!("resource {part} cannot be removed"));
        }
    }
}

/// Returns whether a container differs in nothing but how much processor and memory it takes.
fn is_resized(is: &Value, was: &Value) -> bool {
    let rest = |container: &Value| -> Map<String, Value> {
        let mut fields = container.as_object().cloned().unwrap_or_default();
        fields.remove("resources");
        fields
    };
    let other = |amounts: Amounts| -> Amounts {
        amounts.into_iter().filter(|(name, _)| !matches!(&**name, "cpu" | "memory")).collect()
    };
    let same = |part: &str| {
        let path = at("resources", part);
        let (is, was) = (other(amounts(is, &path)), other(amounts(was, &path)));
        // Where nothing was said of a part, anything may come.
        is.len() == was.len()
            && is.iter().zip(&was).all(|((name, amount), (other, before))| {
                name == other && amount.compare(*before) == Ordering::Equal
            })
    };
    let had = |part: &str| !map(was, &at("resources", part)).is_empty();
    rest(is) == rest(was) && ["requests", "limits"].iter().all(|part| !had(part) || same(part))
}

//! Changes of what runs pods: what stays as it was made.

use serde_json::{Map, Value};

use super::errors::Report;
use crate::fields::{flag, get, has, text};

/// Checks the template of a job: while it is suspended and has not begun, it may change where its pods run.
fn job_template(new: &Value, old: &Value, report: &mut Report) {
    let mut template = get(new, "spec.template").clone();
    if flag(old, "spec.suspend") && !has(old, "status.startTime") {
        let was = get(old, "spec.template");
        take(&mut template, &["metadata"], &["annotations", "labels"], was);
        take(&mut template, &["spec"], &["nodeSelector", "tolerations", "schedulingGates"], was);
        take(&mut template, &["spec", "affinity"], &["nodeAffinity"], was);
    }
    if template != *get(old, "spec.template") {
        report.invalid("spec.template", get(new, "spec.template").clone(), "field is immutable");
    }
}

/// Takes fields below `path` from another version of an object. What holds nothing else goes with them.
fn take(object: &mut Value, path: &[&str], fields: &[&str], from: &Value) {
    let Some(own) = object.as_object_mut() else {
        return;
    };
    let Some((first, rest)) = path.split_first() else {
        for field in fields {
            match from.get(field) {
                Some(value) => own.insert((*field).to_owned(), value.clone()),
                None => own.remove(*field),
            };
        }
        return;
    };
    let was = get(from, first);
    let inner = own.entry(*first).or_insert_with(|| Value::Object(Map::new()));
    take(inner, rest, fields, was);
    if was.is_null() && inner.as_object().is_some_and(Map::is_empty) {
        own.remove(*first);
    }
}

/// Checks that a job that counts its pods needs as many as run at once, if their number changes.
fn elastic(new: &Value, old: &Value, report: &mut Report) {
    let completions = get(new, "spec.completions");
    let changes = completions != get(old, "spec.completions");
    if changes && completions.is_null() && text(old, "spec.completionMode") == "Indexed" {
        return report.required("spec.completions", "when completion mode is Indexed");
    }
    if changes && text(old, "spec.completionMode") == "Indexed" && completions != get(new, "spec.parallelism")
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        report.invalid("spec.completions", completions.clone(), detail);
    }
}

pub(super) fn update(plural: &str, new: &Value, old: &Value, report: &mut Report) {
    let mut fixed = |path: &str| {
        if get(new, path) != get(old, path) {
            report.invalid(path, get(new, path).clone(), "field is immutable");
        }
    };
    match plural {
        "deployments" | "replicasets" | "daemonsets" => fixed("spec.selector"),
        "jobs" => {
            fixed("spec.selector");
            fixed("spec.completionMode");
            fixed("spec.managedBy");
            fixed("spec.backoffLimitPerIndex");
            fixed("spec.podFailurePolicy");
            fixed("spec.successPolicy");
            if text(old, "spec.completionMode") != "Indexed" {
                fixed("spec.completions");
            }
            job_template(new, old, report);
            elastic(new, old, report);
        }
        "statefulsets" => {
            let keep = |object: &Value| {
                let mut spec = get(object, "spec").clone();
                if let Some(spec) = spec.as_object_mut() {
                    for field in [
                        "replicas",
                        "ordinals",
                        "template",
                        "updateStrategy",
                        "revisionHistoryLimit",
                        "persistentVolumeClaimRetentionPolicy",
                        "minReadySeconds",
                    ] {
                        spec.remove(field);
                    }
                }
                spec
            };
            if keep(new) != keep(old) {
                let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
                report.forbidden("spec", detail);
            }
        }
        _ => {}
    }
}

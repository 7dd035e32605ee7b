//! Validation of questions about what somebody may do.

use objects::patch::patched_text::{Touched, patched_text};
use objects::types::{self, Shape};
use serde_json::{Value, json};

use super::errors::{Report, at};
use crate::fields::{get, has, list, map, text};

/// Returns what is wrong with a review of access of this kind, which is posted to `namespace` if it is a local one.
pub(crate) fn access_review(kind: &str, review: &Value, namespace: Option<&str>) -> Report {
    let mut report = Report::default();
    let (is_self, is_local) = (kind == "SelfSubjectAccessReview", kind == "LocalSubjectAccessReview");
    let spec = get(review, "spec");
    let (resource, url) = (get(spec, "resourceAttributes"), get(spec, "nonResourceAttributes"));
    if !resource.is_null() && !url.is_null() {
        let detail = "cannot be specified in combination with resourceAttributes";
        report.invalid_shown("spec.nonResourceAttributes", &shown_url(url), detail);
    }
    if resource.is_null() && url.is_null() {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        report.invalid("spec.resourceAttributes", Value::Null, detail);
    }
    if !is_self && text(spec, "user").is_empty() && list(spec, "groups").is_empty() {
        report.invalid("spec.user", "", "at least one of user or group must be specified");
    }
    for field in ["fieldSelector", "labelSelector"] {
        if has(resource, field) {
            selector(get(resource, field), &at("spec.resourceAttributes", field), &mut report);
        }
    }
    let is_own = |name: &str| name == "managedFields" || (is_local && name == "namespace");
    if map(review, "metadata").keys().any(|name| !is_own(name)) {
        let detail = if is_local { "must be empty except for namespace" } else { "must be empty" };
        report.invalid_shown("metadata", &shown_metadata(get(review, "metadata")), detail);
    }
    if is_local {
        let given = text(resource, "namespace");
        if !resource.is_null() && Some(given) != namespace {
            report.invalid("spec.resourceAttributes.namespace", given, "must match metadata.namespace");
        }
        if !url.is_null() {
            let detail = "disallowed on this kind of request";
            report.invalid_shown("spec.nonResourceAttributes", &shown_url(url), detail);
        }
    }
    report
}

/// Checks what narrows down the objects that are asked about.
fn selector(selector: &Value, path: &str, report: &mut Report) {
    let (raw, has_requirements) = (text(selector, "rawSelector"), !list(selector, "requirements").is_empty());
    if !raw.is_empty() && has_requirements {
        let detail = "may not specified at the same time as requirements";
        report.invalid(&at(path, "rawSelector"), raw, detail);
    }
    if raw.is_empty() && !has_requirements {
        let detail = format!("when {path} is specified, requirements or rawSelector is required");
        report.required(&at(path, "requirements"), &detail);
    }
}

fn shown_url(url: &Value) -> String {
    format!("{{\"Path\":{:?},\"Verb\":{:?}}}", text(url, "path"), text(url, "verb"))
}

fn shown_metadata(metadata: &Value) -> String {
    // Below what is touched, fields have the order of their type.
    let shape = types::name_of_kind("", "v1", "ConfigMap").map_or(Shape::Any, Shape::Named);
    let shown = patched_text(&json!({ "metadata": metadata }), &shape, &Touched::default());
    let inner = shown.strip_prefix("{\"metadata\":").and_then(|shown| shown.strip_suffix('}'));
    inner.unwrap_or_default().to_owned()
}

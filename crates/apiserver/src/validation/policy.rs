//! Validation of policies of admission and of their bindings.

use std::collections::BTreeSet;

use objects::names;
use serde_json::Value;

use super::errors::{Report, at, item};
use super::{metadata, webhook};
use crate::admission::policy::compiled;
use crate::fields::{get, has, list, text, texts};

/// How many annotations of the audit log a policy may have.
const MAX_ANNOTATIONS: usize = 20;

/// How long the expression of such an annotation may be, in bytes.
const MAX_ANNOTATION: usize = 5 * 1024;

/// What a policy may give as the reason of a refusal.
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

pub(super) fn policy(object: &Value, report: &mut Report) {
    let spec = get(object, "spec");
    match text(spec, "failurePolicy") {
        "" => report.required("spec.failurePolicy", ""),
        given => report.one_of("spec.failurePolicy", given, &["Fail", "Ignore"]),
    }
    let has_params = has(spec, "paramKind");
    if has_params {
        param_kind(get(spec, "paramKind"), report);
    }
    if has(spec, "matchConstraints") {
        resources(get(spec, "matchConstraints"), "spec.matchConstraints", report);
        if list(spec, "matchConstraints.resourceRules").is_empty() {
            report.required("spec.matchConstraints.resourceRules", "");
        }
    } else {
        report.required("spec.matchConstraints", "");
    }
    webhook::conditions(spec, has_params, "spec.matchConditions", report);
    let compiled = compiled::read(spec);
    let problem = |place: &str, report: &mut Report| {
        if let Some((_, expression, problem)) = compiled.problems.iter().find(|(known, ..)| known == place) {
            report.invalid(&at("spec", place), expression.as_str(), problem);
        }
    };
    for (index, variable) in list(spec, "variables").iter().enumerate() {
        let place = item("variables", index);
        let name = text(variable, "name");
        if name.trim().is_empty() {
            report.required(&format!("spec.{place}.name"), "name is not specified");
        } else if expressions::escape(name).as_deref() != Some(name) {
            report.invalid(&format!("spec.{place}.name"), name, "must be a valid CEL identifier");
        }
        if text(variable, "expression").trim().is_empty() {
            report.required(&format!("spec.{place}.expression"), "expression is not specified");
        }
        problem(&at(&place, "expression"), report);
    }
    if list(spec, "validations").is_empty() && list(spec, "auditAnnotations").is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        report.required("spec.validations", detail);
        report.required("spec.auditAnnotations", detail);
        return;
    }
    for (index, validation) in list(spec, "validations").iter().enumerate() {
        let place = item("validations", index);
        if text(validation, "expression").trim().is_empty() {
            report.required(&format!("spec.{place}.expression"), "expression is not specified");
        }
        problem(&at(&place, "expression"), report);
        messages(validation, &at("spec", &place), report);
        problem(&at(&place, "messageExpression"), report);
    }
    annotations(object, &problem, report);
}

/// Checks message and reason of a validation.
fn messages(validation: &Value, path: &str, report: &mut Report) {
    let (made, message) = (text(validation, "messageExpression"), text(validation, "message"));
    let empty = "must be non-empty if specified";
    if !made.is_empty() && made.trim().is_empty() {
        report.invalid(&at(path, "messageExpression"), made, empty);
    }
    if !message.is_empty() && message.trim().is_empty() {
        report.invalid(&at(path, "message"), message, empty);
    } else if message.trim().contains(['\n', '\r']) {
        report.invalid(&at(path, "message"), message, "must not contain line breaks");
    }
    if let Some(reason) = get(validation, "reason").as_str() {
        report.one_of(&at(path, "reason"), reason, &REASONS);
    }
}

fn annotations(object: &Value, problem: &dyn Fn(&str, &mut Report), report: &mut Report) {
    let given = list(object, "spec.auditAnnotations");
    if given.len() > MAX_ANNOTATIONS {
        let detail = format!("must not have more than {MAX_ANNOTATIONS} auditAnnotations");
        report.invalid("spec.auditAnnotations", Value::Array(given.to_vec()), &detail);
    }
    let name = text(object, "metadata.name");
    let mut seen = BTreeSet::new();
    for (index, annotation) in given.iter().enumerate() {
        let place = item("auditAnnotations", index);
        let path = at("spec", &place);
        let key = text(annotation, "key");
        if name.is_empty() {
            report.invalid(&at(&path, "key"), key, "requires metadata.name be non-empty");
        } else {
            let full = format!("{name}/{key}");
            report.invalid_all(&at(&path, "key"), &full, names::qualified(&full));
        }
        let expression = text(annotation, "valueExpression").trim();
        let value = at(&path, "valueExpression");
        if expression.is_empty() {
            report.required(&value, "valueExpression is not specified");
        } else if expression.len() > MAX_ANNOTATION {
            report.required(&value, &format!("must not exceed {MAX_ANNOTATION} bytes in length"));
        } else {
            problem(&at(&place, "valueExpression"), report);
        }
        if !seen.insert(key) {
            report.duplicate(&at(&path, "key"), key);
        }
    }
}

fn param_kind(kind: &Value, report: &mut Report) {
    const VERSION: &str = "spec.paramKind.apiVersion";
    const KIND: &str = "spec.paramKind.kind";
    let (version, name) = (text(kind, "apiVersion"), text(kind, "kind"));
    let parts: Vec<&str> = version.split('/').collect();
    match parts.as_slice() {
        [""] => report.required(VERSION, ""),
        [number] => version_number(version, number, report),
        [group, number] => {
            if !group.is_empty() {
                let wrong = names::subdomain(group);
                if !wrong.is_empty() {
                    report.invalid(VERSION, *group, &wrong.join(","));
                }
            }
            version_number(version, number, report);
        }
        _ => report.invalid(VERSION, version, &format!("unexpected GroupVersion string: {version}")),
    }
    if name.is_empty() {
        return report.required(KIND, "");
    }
    let wrong = names::dns_1035(&name.to_lowercase());
    if !wrong.is_empty() {
        let detail = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
        report.invalid(KIND, name, &detail);
    }
}

fn version_number(version: &str, number: &str, report: &mut Report) {
    const PATH: &str = "spec.paramKind.apiVersion";
    if number.is_empty() {
        return report.invalid(PATH, version, "version must be specified");
    }
    let wrong = names::dns_1035(number);
    if !wrong.is_empty() {
        report.invalid(PATH, number, &wrong.join(","));
    }
}

/// Checks which resources are meant.
fn resources(given: &Value, path: &str, report: &mut Report) {
    match text(given, "matchPolicy") {
        "" => report.required(&at(path, "matchPolicy"), ""),
        policy => report.one_of(&at(path, "matchPolicy"), policy, &["Equivalent", "Exact"]),
    }
    for field in ["namespaceSelector", "objectSelector"] {
        if has(given, field) {
            metadata::selector(get(given, field), &at(path, field), report);
        } else {
            report.required(&at(path, field), "");
        }
    }
    for field in ["resourceRules", "excludeResourceRules"] {
        for (index, rule) in list(given, field).iter().enumerate() {
            let path = item(&at(path, field), index);
            let mut seen = BTreeSet::new();
            for (index, name) in texts(rule, "resourceNames").enumerate() {
                let path = item(&at(&path, "resourceNames"), index);
                report.invalid_all(&path, name, names::path_segment(name));
                if !seen.insert(name) {
                    report.duplicate(&path, name);
                }
            }
            webhook::rule(rule, &path, report);
        }
    }
}

pub(super) fn binding(object: &Value, report: &mut Report) {
    let spec = get(object, "spec");
    match text(spec, "policyName") {
        "" => report.required("spec.policyName", ""),
        name => report.invalid_all("spec.policyName", name, names::subdomain(name)),
    }
    if has(spec, "paramRef") {
        param_ref(get(spec, "paramRef"), report);
    }
    if has(spec, "matchResources") {
        resources(get(spec, "matchResources"), "spec.matchResources", report);
    }
    actions(list(spec, "validationActions"), report);
}

fn param_ref(given: &Value, report: &mut Report) {
    const PATH: &str = "spec.paramRef";
    const BOTH: &str = "name and selector are mutually exclusive";
    let (name, has_selector) = (text(given, "name"), has(given, "selector"));
    if !name.is_empty() {
        report.invalid_all(&at(PATH, "name"), name, names::path_segment(name));
        if has_selector {
            report.forbidden(&at(PATH, "name"), BOTH);
        }
    }
    if has_selector {
        metadata::selector(get(given, "selector"), &at(PATH, "selector"), report);
        if !name.is_empty() {
            report.forbidden(&at(PATH, "selector"), BOTH);
        }
    }
    if name.is_empty() && !has_selector {
        report.required(PATH, "one of name or selector must be specified");
    }
    match text(given, "parameterNotFoundAction") {
        "" => report.required(&at(PATH, "parameterNotFoundAction"), ""),
        action => report.one_of(&at(PATH, "parameterNotFoundAction"), action, &["Deny", "Allow"]),
    }
}

fn actions(given: &[Value], report: &mut Report) {
    const PATH: &str = "spec.validationActions";
    let mut seen = BTreeSet::new();
    for (index, action) in given.iter().filter_map(Value::as_str).enumerate() {
        report.one_of(&item(PATH, index), action, &["Audit", "Deny", "Warn"]);
        if !seen.insert(action) {
            report.duplicate(&item(PATH, index), action);
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        report.invalid(PATH, Value::Array(given.to_vec()), detail);
    }
    if seen.is_empty() {
        report.required(PATH, "at least one validation action is required");
    }
}

//! Validation of the configurations of admission webhooks.

use std::collections::BTreeSet;

use expressions::{Program, Type};
use golang::url::Url;
use objects::names;
use serde_json::Value;

use super::errors::{Report, at, item};
use super::metadata;
use crate::fields::{get, has, int, list, text, texts};

/// Checks the webhooks of a configuration; mutating ones may ask to be called again.
pub(super) fn configuration(object: &Value, mutating: bool, report: &mut Report) {
    for (index, hook) in list(object, "webhooks").iter().enumerate() {
        let path = item("webhooks", index);
        webhook(hook, &path, report);
        let policy = text(hook, "reinvocationPolicy");
        if mutating {
            report.one_of_or_empty(&at(&path, "reinvocationPolicy"), policy, &["IfNeeded", "Never"]);
        }
    }
    let names: Vec<&str> = list(object, "webhooks").iter().map(|hook| text(hook, "name")).collect();
    for (index, name) in names.iter().enumerate() {
        if names.iter().take(index).any(|before| before == name) {
            report.duplicate(&at(&item("webhooks", index), "name"), *name);
        }
    }
}

fn webhook(hook: &Value, path: &str, report: &mut Report) {
    qualified(text(hook, "name"), &at(path, "name"), report);
    for (index, rule) in list(hook, "rules").iter().enumerate() {
        self::rule(rule, &item(&at(path, "rules"), index), report);
    }
    for (field, values) in [("failurePolicy", ["Fail", "Ignore"]), ("matchPolicy", ["Equivalent", "Exact"])] {
        report.one_of_or_empty(&at(path, field), text(hook, field), &values);
    }
    let effects = at(path, "sideEffects");
    match get(hook, "sideEffects").as_str() {
        None => report.required(&effects, "must specify one of None, NoneOnDryRun"),
        Some(given) => report.one_of(&effects, given, &["None", "NoneOnDryRun"]),
    }
    if let Some(seconds) = int(hook, "timeoutSeconds").filter(|seconds| !(1..=30).contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        report.invalid(&at(path, "timeoutSeconds"), seconds, detail);
    }
    for field in ["namespaceSelector", "objectSelector"] {
        metadata::selector(get(hook, field), &at(path, field), report);
    }
    client(get(hook, "clientConfig"), &at(path, "clientConfig"), report);
    let versions = list(hook, "admissionReviewVersions");
    let missing = "must specify one of v1, v1beta1";
    review_versions(versions, missing, &at(path, "admissionReviewVersions"), report);
    conditions(hook, false, &at(path, "matchConditions"), report);
}

/// Checks a name that says whose it is: a domain with three labels at least.
fn qualified(name: &str, path: &str, report: &mut Report) {
    if name.is_empty() {
        return report.required(path, "");
    }
    let wrong = names::subdomain(name);
    if !wrong.is_empty() {
        report.invalid(path, name, &wrong.join(","));
    } else if name.split('.').count() < 3 {
        report.invalid(path, name, "should be a domain with at least three segments separated by dots");
    }
}

pub(super) fn rule(rule: &Value, path: &str, report: &mut Report) {
    const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    for (field, others) in
        [("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions")]
    {
        let (place, given) = (at(path, field), list(rule, field));
        if given.is_empty() {
            report.required(&place, "");
        }
        if given.len() > 1 && texts(rule, field).any(|text| text == "*") {
            let detail = format!("if '*' is present, must not specify other {others}");
            report.invalid(&place, Value::Array(given.to_vec()), &detail);
        }
        for (index, text) in texts(rule, field).enumerate() {
            match field {
                "operations" => report.one_of(&item(&place, index), text, &OPERATIONS),
                "apiVersions" if text.is_empty() => report.required(&item(&place, index), ""),
                _ => {}
            }
        }
    }
    resources(rule, &at(path, "resources"), report);
    let scope = text(rule, "scope");
    report.one_of_or_empty(&at(path, "scope"), scope, &["*", "Cluster", "Namespaced"]);
}

/// Checks resources like `pods`, `pods/log`, `*/log`, `pods/*` and `*/*`: what is covered is not named again.
fn resources(rule: &Value, path: &str, report: &mut Report) {
    let given = list(rule, "resources");
    if given.is_empty() {
        report.required(path, "");
    }
    let (mut all_parts_of, mut part_of_all) = (BTreeSet::new(), BTreeSet::new());
    let mut plain = false;
    for (index, resource) in texts(rule, "resources").enumerate() {
        let place = item(path, index);
        if resource.is_empty() {
            report.required(&place, "");
            continue;
        }
        let Some((name, part)) = resource.split_once('/') else {
            plain = resource != "*";
            continue;
        };
        if all_parts_of.contains(name) {
            let detail = format!("if '{name}/*' is present, must not specify {resource}");
            report.invalid(&place, resource, &detail);
        }
        if part_of_all.contains(part) {
            let detail = format!("if '*/{part}' is present, must not specify {resource}");
            report.invalid(&place, resource, &detail);
        }
        if part == "*" {
            all_parts_of.insert(name);
        }
        if name == "*" {
            part_of_all.insert(part);
        }
    }
    let has = |wanted: &str| texts(rule, "resources").any(|resource| resource == wanted);
    if given.len() > 1 && has("*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        report.invalid(path, Value::Array(given.to_vec()), detail);
    }
    if has("*") && plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        report.invalid(path, Value::Array(given.to_vec()), detail);
    }
}

/// Checks where a webhook is reached.
pub(super) fn client(config: &Value, path: &str, report: &mut Report) {
    match (get(config, "url").as_str(), has(config, "service")) {
        (None, false) | (Some(_), true) => {
            report.required(path, "exactly one of url or service is required");
        }
        (Some(url), false) => address(url, &at(path, "url"), report),
        (None, true) => service(get(config, "service"), &at(path, "service"), report),
    }
}

fn address(given: &str, path: &str, report: &mut Report) {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match Url::parse(given) {
        Ok(url) => url,
        Err(error) => return report.required(path, &format!("url must be a valid URL: {error}{FORM}")),
    };
    if url.scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        report.invalid(path, url.scheme.as_str(), &detail);
    }
    if url.host.is_empty() {
        report.invalid(path, "", &format!("host must be specified{FORM}"));
    }
    if let Some(user) = &url.user {
        let password = user.password.as_ref().map(|password| format!(":{password}"));
        let shown = format!("{}{}", user.name, password.unwrap_or_default());
        report.invalid(path, shown, "user information is not permitted in the URL");
    }
    for (part, what) in [(&url.fragment, "fragments"), (&url.query, "query parameters")] {
        if !part.is_empty() {
            report.invalid(path, part.as_str(), &format!("{what} are not permitted in the URL"));
        }
    }
}

fn service(service: &Value, path: &str, report: &mut Report) {
    for field in ["name", "namespace"] {
        if text(service, field).is_empty() {
            report.required(&at(path, field), "");
        }
    }
    let port = int(service, "port").unwrap_or_default();
    let wrong = names::port_number(port);
    if !wrong.is_empty() {
        let detail = format!("port is not valid: {}", wrong.join(", "));
        report.invalid(&at(path, "port"), port, &detail);
    }
    let given = text(service, "path");
    let place = at(path, "path");
    match given {
        "" | "/" => return,
        "//" => return report.invalid(&place, given, "segment[0] may not be empty"),
        _ if given.starts_with('/') => {}
        _ => report.invalid(&place, given, "must start with a '/'"),
    }
    // The first character is left out, whatever it is.
    let rest = given.chars().next().map_or("", |first| given.get(first.len_utf8()..).unwrap_or_default());
    for (index, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if step.is_empty() {
            report.invalid(&place, given, &format!("segment[{index}] may not be empty"));
            continue;
        }
        for wrong in names::subdomain(step) {
            report.invalid(&place, given, &format!("segment[{index}]: {wrong}"));
        }
    }
}

/// Checks in which versions a webhook is asked; `missing` is told where there is none.
pub(super) fn review_versions(versions: &[Value], missing: &str, path: &str, report: &mut Report) {
    if versions.is_empty() {
        return report.required(path, missing);
    }
    let mut known = BTreeSet::new();
    for (index, version) in versions.iter().filter_map(Value::as_str).enumerate() {
        let place = item(path, index);
        if known.insert(version) {
            report.invalid_all(&place, version, names::dns_1035(version));
        } else {
            report.invalid(&place, version, "duplicate version");
        }
    }
    if !known.contains("v1") && !known.contains("v1beta1") {
        report.invalid(path, versions.to_vec(), "must include at least one of v1, v1beta1");
    }
}

/// Checks conditions: their names, and whether their expressions can be evaluated.
pub(super) fn conditions(hook: &Value, has_params: bool, path: &str, report: &mut Report) {
    const MOST: usize = 64;
    let given = list(hook, "matchConditions");
    if given.len() > MOST {
        report.too_many(path, given.len(), MOST);
    }
    let environment = expressions::admission(has_params, true);
    let mut seen = BTreeSet::new();
    for (index, condition) in given.iter().enumerate() {
        let path = item(path, index);
        let expression = text(condition, "expression");
        if expression.trim().is_empty() {
            report.required(&at(&path, "expression"), "");
        } else if let Err(problem) = Program::compile_to(expression, &environment, &[Type::Bool]) {
            report.invalid(&at(&path, "expression"), expression, &problem);
        }
        let name = text(condition, "name");
        if name.is_empty() {
            report.required(&at(&path, "name"), "");
            continue;
        }
        report.invalid_all(&at(&path, "name"), name, names::qualified(name));
        if !seen.insert(name) {
            report.duplicate(&at(&path, "name"), name);
        }
    }
}

//! Validation of roles and their bindings.

use objects::names;
use serde_json::Value;

use super::errors::{Report, at, item};
use crate::fields::{get, has, list, text};

pub(super) fn role(object: &Value, namespaced: bool, report: &mut Report) {
    for (index, rule) in list(object, "rules").iter().enumerate() {
        let path = item("rules", index);
        if list(rule, "verbs").is_empty() {
            report.required(&at(&path, "verbs"), "verbs must contain at least one value");
        }
        let urls = list(rule, "nonResourceURLs");
        let resources = !list(rule, "apiGroups").is_empty() || !list(rule, "resources").is_empty();
        if !urls.is_empty() {
            let place = at(&path, "nonResourceURLs");
            let shown = Value::Array(urls.to_vec());
            if namespaced {
                report.invalid(&place, shown, "namespaced rules cannot apply to non-resource URLs");
            } else if resources {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                report.invalid(&place, shown, detail);
            }
            continue;
        }
        if list(rule, "apiGroups").is_empty() {
            report.required(&at(&path, "apiGroups"), "resource rules must supply at least one api group");
        }
        if list(rule, "resources").is_empty() {
            report.required(&at(&path, "resources"), "resource rules must supply at least one resource");
        }
    }
    if has(object, "aggregationRule") && list(object, "aggregationRule.clusterRoleSelectors").is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        report.required("aggregationRule.clusterRoleSelectors", detail);
    }
}

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn binding(object: &Value, namespaced: bool, report: &mut Report) {
    let reference = |field: &str| text(get(object, "roleRef"), field);
    if reference("apiGroup") != GROUP {
        report.unsupported("roleRef.apiGroup", reference("apiGroup"), &[GROUP]);
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&reference("kind")) {
        report.unsupported("roleRef.kind", reference("kind"), kinds);
    }
    if reference("name").is_empty() {
        report.required("roleRef.name", "");
    } else {
        report.invalid_all("roleRef.name", reference("name"), names::path_segment(reference("name")));
    }
    for (index, subject) in list(object, "subjects").iter().enumerate() {
        self::subject(subject, &item("subjects", index), namespaced, report);
    }
}

fn subject(subject: &Value, path: &str, namespaced: bool, report: &mut Report) {
    let (name, group) = (text(subject, "name"), text(subject, "apiGroup"));
    if name.is_empty() {
        report.required(&at(path, "name"), "");
    }
    match text(subject, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                report.invalid_all(&at(path, "name"), name, names::subdomain(name));
            }
            if !group.is_empty() {
                report.unsupported(&at(path, "apiGroup"), group, &[""]);
            }
            if !namespaced && text(subject, "namespace").is_empty() {
                report.required(&at(path, "namespace"), "");
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                report.unsupported(&at(path, "apiGroup"), group, &[GROUP]);
            }
        }
        other => report.unsupported(&at(path, "kind"), other, &["ServiceAccount", "User", "Group"]),
    }
}

pub(super) fn binding_update(new: &Value, old: &Value, report: &mut Report) {
    if get(new, "roleRef") != get(old, "roleRef") {
        let part = |field: &str| get(get(new, "roleRef"), field).clone();
        let (group, kind, name) = (part("apiGroup"), part("kind"), part("name"));
        let shown = format!("{{\"APIGroup\":{group},\"Kind\":{kind},\"Name\":{name}}}");
        report.invalid_shown("roleRef", &shown, "cannot change roleRef");
    }
}

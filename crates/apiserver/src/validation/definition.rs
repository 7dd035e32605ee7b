//! Validation of custom resource definitions.

use std::collections::BTreeSet;

use objects::names;
use serde_json::Value;

use super::errors::{Report, at, item};
use super::{metadata, selectable_fields, structural};
use crate::fields::{flag, get, has, list, text, texts};

pub(super) fn definition(object: &Value, report: &mut Report) {
    let spec = get(object, "spec");
    let name = text(object, "metadata.name");
    let (group, plural) = (text(spec, "group"), text(spec, "names.plural"));
    if name != format!("{plural}.{group}") {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        report.invalid("metadata.name", name, detail);
    }
    match group {
        "" => report.required("spec.group", ""),
        group => {
            let wrong = names::subdomain(group);
            let valid = wrong.is_empty();
            report.invalid_all("spec.group", group, wrong);
            if valid && !group.contains('.') {
                report.invalid("spec.group", group, "should be a domain with at least one dot");
            }
        }
    }
    match text(spec, "scope") {
        "" => report.required("spec.scope", ""),
        "Cluster" | "Namespaced" => {}
        scope => report.unsupported("spec.scope", scope, &["Cluster", "Namespaced"]),
    }
    versions(spec, report);
    selectable_fields::validate(list(spec, "versions"), report);
    if flag(spec, "preserveUnknownFields") {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        report.invalid("spec.preserveUnknownFields", true, detail);
    }
    naming(get(spec, "names"), report);
    conversion(get(spec, "conversion"), report);
    stored_versions(object, report);
}

fn shown_version(version: &Value) -> String {
    format!(
        "{{\"Name\":{:?},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
        text(version, "name"),
        flag(version, "served"),
        flag(version, "storage"),
        flag(version, "deprecated"),
    )
}

fn versions(spec: &Value, report: &mut Report) {
    let versions = list(spec, "versions");
    let shown = || format!("[{}]", versions.iter().map(shown_version).collect::<Vec<_>>().join(","));
    let one = versions.len() == 1;
    let mut known = BTreeSet::new();
    let mut unique = true;
    for (index, version) in versions.iter().enumerate() {
        let path = item("spec.versions", index);
        let name = text(version, "name");
        report.invalid_all(&at(&path, "name"), name, names::dns_1035(name));
        if one {
            report.invalid_all("spec.version", name, names::dns_1035(name));
        }
        unique &= known.insert(name);
        // With one version the texts name the fields of the oldest form of definitions.
        let (schema, outer) = if one {
            ("spec.validation.openAPIV3Schema".to_owned(), "spec".to_owned())
        } else {
            (at(&path, "schema.openAPIV3Schema"), path.clone())
        };
        if has(version, "schema.openAPIV3Schema") {
            structural::validate(get(version, "schema.openAPIV3Schema"), &schema, report);
        } else {
            report.required(&at(&path, "schema.openAPIV3Schema"), "");
        }
        scale(version, &at(&outer, "subresources.scale"), report);
        columns(version, &at(&outer, "additionalPrinterColumns"), report);
    }
    if !unique {
        report.invalid_shown("spec.versions", &shown(), "must contain unique version names");
    }
    if versions.iter().filter(|version| flag(version, "storage")).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        report.invalid_shown("spec.versions", &shown(), detail);
    }
}

fn scale(version: &Value, path: &str, report: &mut Report) {
    let scale = get(version, "subresources.scale");
    if scale.is_null() {
        return;
    }
    for (field, prefix) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        match text(scale, field) {
            "" => report.required(&at(path, field), ""),
            value if !value.starts_with(prefix) => {
                let detail = format!("should be a json path under {}", prefix.trim_end_matches('.'));
                report.invalid(&at(path, field), value, &detail);
            }
            _ => {}
        }
    }
}

fn columns(version: &Value, path: &str, report: &mut Report) {
    const TYPES: &str = "must be one of boolean,date,integer,number,string";
    for (index, column) in list(version, "additionalPrinterColumns").iter().enumerate() {
        let path = item(path, index);
        if text(column, "name").is_empty() {
            report.required(&at(&path, "name"), "");
        }
        match text(column, "type") {
            "" => report.required(&at(&path, "type"), TYPES),
            "boolean" | "date" | "integer" | "number" | "string" => {}
            kind => report.invalid(&at(&path, "type"), kind, TYPES),
        }
        if text(column, "jsonPath").is_empty() {
            report.required(&at(&path, "JSONPath"), "");
        }
    }
}

fn naming(own: &Value, report: &mut Report) {
    const PATH: &str = "spec.names";
    for field in ["plural", "singular", "kind", "listKind"] {
        let name = text(own, field);
        let place = at(PATH, field);
        if name.is_empty() {
            report.required(&place, "");
        } else if matches!(field, "plural" | "singular") {
            report.invalid_all(&place, name, names::dns_1035(name));
        } else {
            metadata::mixed_case(&place, name, report);
        }
    }
    for (field, what) in [("shortNames", "shortNames"), ("categories", "categories")] {
        for (index, name) in texts(own, field).enumerate() {
            report.invalid_all(&item(&at(PATH, what), index), name, names::dns_1035(name));
        }
    }
    let kind = text(own, "kind");
    if !kind.is_empty() && kind == text(own, "listKind") {
        report.invalid(&at(PATH, "listKind"), kind, "kind and listKind may not be the same");
    }
}

fn conversion(conversion: &Value, report: &mut Report) {
    const PATH: &str = "spec.conversion";
    match text(conversion, "strategy") {
        "" => report.required(&at(PATH, "strategy"), ""),
        "None" => {}
        "Webhook" => {
            if !has(conversion, "webhook.clientConfig") {
                let detail = "required when strategy is set to Webhook";
                report.required(&at(PATH, "webhookClientConfig"), detail);
            }
            if list(conversion, "webhook.conversionReviewVersions").is_empty() {
                report.required(&at(PATH, "conversionReviewVersions"), "");
            }
        }
        strategy => report.unsupported(&at(PATH, "strategy"), strategy, &["None", "Webhook"]),
    }
}

fn stored_versions(object: &Value, report: &mut Report) {
    const PATH: &str = "status.storedVersions";
    let stored = list(object, "status.storedVersions");
    if stored.is_empty() {
        return report.invalid(PATH, Value::Null, "must have at least one stored version");
    }
    let versions = list(object, "spec.versions");
    for (index, name) in stored.iter().enumerate() {
        if !versions.iter().any(|version| get(version, "name") == name) {
            report.invalid(&item(PATH, index), name.clone(), "must appear in spec.versions");
        }
    }
    let last = versions.iter().rfind(|version| flag(version, "storage"));
    if let Some(name) = last.map(|version| get(version, "name"))
        && !stored.contains(name)
    {
        let detail = format!("must have the storage version {}", name.as_str().unwrap_or_default());
        report.invalid(PATH, Value::Array(stored.to_vec()), &detail);
    }
}

pub(super) fn update(new: &Value, old: &Value, report: &mut Report) {
    for path in ["spec.group", "spec.names.plural", "spec.scope", "spec.names.kind"] {
        if get(new, path) != get(old, path) {
            report.invalid(path, get(new, path).clone(), "field is immutable");
        }
    }
}

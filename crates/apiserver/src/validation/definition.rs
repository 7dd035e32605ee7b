//! Validation of custom resource definitions.

use std::collections::BTreeSet;

use golang::url::Url;
use objects::names;
use serde_json::Value;

use super::errors::{Report, at, item, key};
use super::{metadata, selectable_fields, structural, webhook};
use crate::fields::{flag, get, has, list, map, text, texts};

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
    approval(object, report);
}

/// The annotation in which those who look after the groups of Kubernetes approve of a definition.
const APPROVED: &str = "api-approved.kubernetes.io";

/// What an annotation says of the approval of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Approval {
    Missing,
    Given,
    Waived,
    Unreadable,
}

impl Approval {
    fn of(object: &Value) -> Self {
        let text = map(object, "metadata.annotations").get(APPROVED).and_then(Value::as_str);
        let text = text.unwrap_or_default();
        let is_url = || Url::parse(text).is_ok_and(|url| !url.scheme.is_empty() && !url.host.is_empty());
        match text {
            "" => Self::Missing,
            _ if text.starts_with("unapproved") => Self::Waived,
            _ if is_url() => Self::Given,
            _ => Self::Unreadable,
        }
    }
}

/// Checks that a definition in a group of Kubernetes is approved, or says why not.
///
/// One that says nothing is taken with a warning, where kube-apiserver refuses it: definitions are tried here that are written by hand
/// for clients of such groups.
fn approval(object: &Value, report: &mut Report) {
    const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    let group = text(object, "spec.group");
    let is_in =
        |domain: &str| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if !is_in("k8s.io") && !is_in("kubernetes.io") {
        return;
    }
    let path = approval_path();
    let must = format!("protected groups must have approval annotation {APPROVED:?}");
    match Approval::of(object) {
        Approval::Given | Approval::Waived => {}
        Approval::Missing => report.warn(&path, Some(format!("kube-apiserver refuses this: {must}, {SEE}"))),
        Approval::Unreadable => {
            let given = map(object, "metadata.annotations").get(APPROVED).cloned().unwrap_or_default();
            let detail = format!("{must} with either a URL or a reason starting with \"unapproved\", {SEE}");
            report.invalid(&path, given, &detail);
        }
    }
}

fn approval_path() -> String {
    key("metadata.annotations", APPROVED)
}

/// What is wrong with a path that does not begin as one.
const NO_PATH: &str = "must be a simple json path starting with .";

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
        deprecation(version, &at(&path, "deprecationWarning"), report);
        unique &= known.insert(name);
        // With one version the texts name the fields of the oldest form of definitions.
        let (schema, outer) = if one {
            ("spec.validation.openAPIV3Schema".to_owned(), "spec".to_owned())
        } else {
            (at(&path, "schema.openAPIV3Schema"), path.clone())
        };
        if has(version, "schema.openAPIV3Schema") {
            let has_status = has(version, "subresources.status");
            structural::validate(get(version, "schema.openAPIV3Schema"), &schema, has_status, report);
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

/// Checks what clients of a version are warned of.
fn deprecation(version: &Value, path: &str, report: &mut Report) {
    const LONGEST: usize = 256;
    let Some(warning) = get(version, "deprecationWarning").as_str() else { return };
    let mut wrong = Vec::new();
    if !flag(version, "deprecated") {
        wrong.push("can only be set for deprecated versions".to_owned());
    } else if warning.is_empty() {
        wrong.push("must not be an empty string".to_owned());
    } else {
        if warning.len() > LONGEST {
            wrong.push(format!("must be <= {LONGEST} characters long"));
        }
        let hidden = warning.char_indices().find(|(_, letter)| !golang::unicode::is_print(*letter));
        wrong.extend(hidden.map(|(index, _)| {
            format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {index}"
            )
        }));
    }
    report.invalid_all(path, warning, wrong);
}

fn scale(version: &Value, path: &str, report: &mut Report) {
    let scale = get(version, "subresources.scale");
    if scale.is_null() {
        return;
    }
    for (field, prefix) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        match text(scale, field) {
            "" => report.required(&at(path, field), ""),
            value if !value.starts_with('.') => report.invalid(&at(path, field), value, NO_PATH),
            value if !value.starts_with(prefix) => {
                let detail = format!("should be a json path under {}", prefix.trim_end_matches('.'));
                report.invalid(&at(path, field), value, &detail);
            }
            _ => {}
        }
    }
    let place = at(path, "labelSelectorPath");
    match text(scale, "labelSelectorPath") {
        "" => {}
        value if !value.starts_with('.') => report.invalid(&place, value, NO_PATH),
        value if !value.starts_with(".spec.") && !value.starts_with(".status.") => {
            report.invalid(&place, value, "should be a json path under either .spec or .status");
        }
        _ => {}
    }
}

fn columns(version: &Value, path: &str, report: &mut Report) {
    const TYPES: &str = "must be one of boolean,date,integer,number,string";
    const FORMATS: &str = "byte,date,date-time,double,float,int32,int64,password";
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
        let format = text(column, "format");
        if !format.is_empty() && !FORMATS.split(',').any(|known| known == format) {
            report.invalid(&at(&path, "format"), format, &format!("must be one of {FORMATS}"));
        }
        match text(column, "jsonPath") {
            "" => report.required(&at(&path, "JSONPath"), ""),
            json_path if json_path.starts_with('.') => {}
            json_path => report.invalid(&at(&path, "JSONPath"), json_path, NO_PATH),
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
    // The texts name the fields of the oldest form of definitions.
    let (client_path, versions_path) =
        (at(PATH, "webhookClientConfig"), at(PATH, "conversionReviewVersions"));
    let (client, versions) =
        (get(conversion, "webhook.clientConfig"), list(conversion, "webhook.conversionReviewVersions"));
    let strategy = text(conversion, "strategy");
    match strategy {
        "" => report.required(&at(PATH, "strategy"), ""),
        "None" | "Webhook" => {}
        strategy => report.unsupported(&at(PATH, "strategy"), strategy, &["None", "Webhook"]),
    }
    if strategy == "Webhook" {
        if client.is_null() {
            report.required(&client_path, "required when strategy is set to Webhook");
        } else {
            webhook::client(client, &client_path, report);
        }
        webhook::review_versions(versions, "", &versions_path, report);
        return;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if !client.is_null() {
        report.forbidden(&client_path, detail);
    }
    if !versions.is_empty() {
        report.forbidden(&versions_path, detail);
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
    if Approval::of(new) == Approval::of(old) {
        let path = approval_path();
        report.errors.retain(|error| error.field != path);
    }
    // Before a definition is served, its kind may still change.
    let served: &[&str] = if is_established(old) { &["spec.scope", "spec.names.kind"] } else { &[] };
    for path in ["spec.group", "spec.names.plural"].iter().chain(served) {
        if get(new, path) != get(old, path) {
            report.invalid(path, get(new, path).clone(), "field is immutable");
        }
    }
}

fn is_established(definition: &Value) -> bool {
    list(definition, "status.conditions")
        .iter()
        .any(|condition| text(condition, "type") == "Established" && text(condition, "status") == "True")
}

//! Validation of the schemas in custom resource definitions: they must be structural.

use expressions::rules::{Problem, ProblemKind};
use objects::schema::Structural;
use serde_json::{Value, json};

use super::errors::{Report, at, key};
use super::keywords::{self, typed_as};
use super::{nested, schema};
use crate::fields::{flag, get, has, map, text};

/// Checks the schema of a whole object; `has_status` says whether its status is written separately.
pub(super) fn validate(schema: &Value, path: &str, has_status: bool, report: &mut Report) {
    let first = report.errors.len();
    if has_status {
        separable(schema, path, report);
    }
    if flag(schema, "nullable") {
        report.forbidden(&at(path, "nullable"), "nullable cannot be true at the root");
    }
    let unsupported = unsupported(schema);
    let before = report.errors.len();
    if unsupported.is_none() {
        form(schema, path, report);
        if report.errors.len() == before {
            defaults(schema, path, report);
        }
    }
    let is_structural = unsupported.is_none() && report.errors.len() == before;
    keywords::below(schema, path, report);
    if report.errors.len() == first
        && let Some(keyword) = unsupported
    {
        report.invalid(path, "", &format!("OpenAPIV3Schema '{keyword}' is not supported"));
    }
    if is_structural && report.errors.len() == before {
        rules(schema, path, report);
    }
}

/// Returns a keyword with which a schema is not structural, wherever it stands.
fn unsupported(schema: &Value) -> Option<&'static str> {
    const NAMES: [(&str, &str); 7] = [
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"),
        ("additionalItems", "additionalItems"),
        ("definitions", "definitions"),
    ];
    if let Some((_, name)) = NAMES.iter().find(|(keyword, _)| has(schema, keyword)) {
        return Some(name);
    }
    // These have a refusal of their own, and no name is shown for them.
    if get(schema, "items").is_array() || get(schema, "x-kubernetes-preserve-unknown-fields") == false {
        return Some("items");
    }
    keywords::parts(schema).into_iter().find_map(|part| unsupported(part.schema))
}

/// Checks that a schema says of everything what it is.
fn form(schema: &Value, path: &str, report: &mut Report) {
    match text(schema, "type") {
        "" if is_free(schema) => {}
        "" => report.required(&at(path, "type"), "must not be empty at the root"),
        "object" => {}
        other => report.invalid(&at(path, "type"), other, "must be object at the root"),
    }
    if has(schema, "additionalProperties") {
        report.forbidden(&at(path, "additionalProperties"), "must not be used at the root");
    }
    if !is_plain_metadata(get(schema, "properties.metadata")) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        report.forbidden(&key(&at(path, "properties"), "metadata"), detail);
    }
    header(schema, path, report);
    below(schema, path, report);
    nested::complete(schema, path, report);
}

/// Refuses keywords that would be lost for a status that is held against its own schema.
fn separable(schema: &Value, path: &str, report: &mut Report) {
    const LOST: [&str; 15] = [
        "default",
        "enum",
        "maxProperties",
        "minProperties",
        "allOf",
        "oneOf",
        "anyOf",
        "not",
        "additionalProperties",
        "nullable",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    ];
    let is_there = |field: &str| !matches!(get(schema, field), Value::Null | Value::Bool(false));
    if let Some(field) = LOST.iter().find(|field| is_there(field)) {
        let detail = "is not allowed at the root of the schema if the status subresource is enabled";
        report.invalid_omitted(path, &format!("{field} {detail}"));
    }
}

/// Returns whether a schema says of the metadata of objects nothing but what their names have to be.
fn is_plain_metadata(schema: &Value) -> bool {
    let is_name = |field: &String| matches!(field.as_str(), "name" | "generateName");
    schema.as_object().into_iter().flatten().all(|(keyword, value)| match keyword.as_str() {
        "type" | "default" | "example" | "externalDocs" => true,
        "properties" => value.as_object().is_none_or(|names| names.keys().all(is_name)),
        _ => value.is_null(),
    })
}

/// Checks the types of what every object has.
fn header(schema: &Value, path: &str, report: &mut Report) {
    for (field, expected) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
        let Some(part) = map(schema, "properties").get(field) else { continue };
        let found = text(part, "type");
        if found != expected {
            let place = at(&key(&at(path, "properties"), field), "type");
            report.invalid(&place, found, &format!("must be {expected}"));
        }
    }
}

/// Returns whether a level need not say its type.
fn is_free(schema: &Value) -> bool {
    flag(schema, "x-kubernetes-preserve-unknown-fields") || flag(schema, "x-kubernetes-int-or-string")
}

/// Checks the rules of a schema whose form is right.
fn rules(schema: &Value, path: &str, report: &mut Report) {
    for problem in expressions::rules::problems(schema, path) {
        let Problem { field, kind, detail } = problem;
        match kind {
            ProblemKind::Required => report.required(&field, &detail),
            ProblemKind::Forbidden => report.forbidden(&field, &detail),
            ProblemKind::Invalid(shown) => report.invalid_shown(&field, &shown, &detail),
            ProblemKind::NotSupported(value, supported) => report.unsupported(&field, value, supported),
        }
    }
}

fn below(schema: &Value, path: &str, report: &mut Report) {
    own(schema, path, report);
    for (name, part) in map(schema, "properties") {
        let place = key(&at(path, "properties"), name);
        typed(part, &place, "must not be empty for specified object fields", report);
        below(part, &place, report);
    }
    if let Value::Object(_) = get(schema, "items") {
        let place = at(path, "items");
        typed(get(schema, "items"), &place, "must not be empty for specified array items", report);
        below(get(schema, "items"), &place, report);
    }
    if let Value::Object(_) = get(schema, "additionalProperties") {
        let place = at(path, "additionalProperties");
        let detail = "must not be empty for specified object fields";
        typed(get(schema, "additionalProperties"), &place, detail, report);
        below(get(schema, "additionalProperties"), &place, report);
    }
}

fn typed(schema: &Value, path: &str, detail: &str, report: &mut Report) {
    let is_embedded = flag(schema, "x-kubernetes-embedded-resource");
    if text(schema, "type").is_empty() && !is_free(schema) && !is_embedded {
        report.required(&at(path, "type"), detail);
    }
}

/// Checks what only levels have that say what there is.
fn own(schema: &Value, path: &str, report: &mut Report) {
    keywords::pattern(schema, path, report);
    nested::validate(schema, path, report);
    if text(schema, "type") == "array" && !has(schema, "items") {
        report.required(&at(path, "items"), "must be specified");
    }
    if flag(schema, "x-kubernetes-int-or-string") {
        for field in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if flag(schema, field) {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                report.invalid(&at(path, field), true, detail);
            }
        }
    }
    if flag(schema, "x-kubernetes-embedded-resource") {
        embedded(schema, path, report);
    }
}

/// Checks a level that has objects inside of objects.
fn embedded(schema: &Value, path: &str, report: &mut Report) {
    header(schema, path, report);
    typed_as("object", "must be object if x-kubernetes-embedded-resource is true", (schema, path), report);
    if has(schema, "additionalProperties") {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        report.forbidden(&at(path, "additionalProperties"), detail);
    }
    if !flag(schema, "x-kubernetes-preserve-unknown-fields") && map(schema, "properties").is_empty() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        report.required(&at(path, "properties"), detail);
    }
}

/// Checks the defaults of a schema whose form is right.
fn defaults(schema: &Value, path: &str, report: &mut Report) {
    if has(schema, "default") {
        let (place, value) = (at(path, "default"), get(schema, "default"));
        // Below a field, nothing counts as known because every object has it.
        let within = Structural::of(&json!({"type": "object", "properties": {"default": schema}}));
        if !within.prune(&mut json!({ "default": value })).is_empty() {
            report.invalid(&place, value.clone(), "must not have unknown fields");
        }
        report.errors.extend(schema::validate(&Structural::of(schema), value, &place));
    }
    for (name, part) in map(schema, "properties") {
        defaults(part, &key(&at(path, "properties"), name), report);
    }
    if get(schema, "items").is_object() {
        defaults(get(schema, "items"), &at(path, "items"), report);
    }
}

//! Validation of the schemas in custom resource definitions: they must be structural.

use expressions::rules::{Problem, ProblemKind};
use golang::regexp::Regexp;
use objects::schema::Structural;
use serde_json::Value;

use super::errors::{FieldError, Report, at, key};
use super::schema;
use crate::fields::{flag, get, has, list, map, text, texts};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

pub(super) fn validate(schema: &Value, path: &str, report: &mut Report) {
    let preserves = get(schema, "x-kubernetes-preserve-unknown-fields");
    if preserves == &Value::Bool(false) {
        let detail = "must be true or undefined";
        report.invalid(&at(path, "x-kubernetes-preserve-unknown-fields"), false, detail);
    }
    match text(schema, "type") {
        "" => report.required(&at(path, "type"), "must not be empty at the root"),
        "object" => {}
        other => report.invalid(&at(path, "type"), other, "must be object at the root"),
    }
    let metadata = map(schema, "properties.metadata.properties");
    if metadata.keys().any(|field| !matches!(field.as_str(), "name" | "generateName")) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        report.forbidden(&key(&at(path, "properties"), "metadata"), detail);
    }
    let before = report.errors.len();
    below(schema, path, report);
    if report.errors.len() == before {
        defaults(schema, path, report);
    }
    if report.errors.len() == before {
        rules(schema, path, report);
    }
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
    let free =
        flag(schema, "x-kubernetes-preserve-unknown-fields") || flag(schema, "x-kubernetes-int-or-string");
    if text(schema, "type").is_empty() && !free && !has(schema, "$ref") {
        report.required(&at(path, "type"), detail);
    }
}

fn own(schema: &Value, path: &str, report: &mut Report) {
    let kind = text(schema, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        report.unsupported(&at(path, "type"), kind, &TYPES);
    }
    if has(schema, "$ref") {
        report.forbidden(&at(path, "$ref"), "$ref is not supported");
    }
    if kind == "array" && !has(schema, "items") {
        report.required(&at(path, "items"), "must be specified");
    }
    if flag(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        report.forbidden(&at(path, "uniqueItems"), detail);
    }
    if has(schema, "additionalProperties") && !map(schema, "properties").is_empty() {
        let detail = "additionalProperties and properties are mutual exclusive";
        report.forbidden(&at(path, "additionalProperties"), detail);
    }
    if get(schema, "additionalProperties") == &Value::Bool(false) {
        let detail = "additionalProperties cannot be set to false";
        report.forbidden(&at(path, "additionalProperties"), detail);
    }
    let pattern = text(schema, "pattern");
    if let Err(error) = Regexp::compile(pattern) {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        report.invalid(&at(path, "pattern"), pattern, &detail);
    }
    listing(schema, path, report);
}

fn listing(schema: &Value, path: &str, report: &mut Report) {
    let kind = text(schema, "x-kubernetes-list-type");
    let keys_path = at(path, "x-kubernetes-list-map-keys");
    let keys = list(schema, "x-kubernetes-list-map-keys");
    match kind {
        "" | "atomic" | "set" if !keys.is_empty() => {
            report.forbidden(&keys_path, "must be empty if x-kubernetes-list-type is not map");
        }
        "" | "atomic" | "set" => {}
        "map" if keys.is_empty() => {
            report.required(&keys_path, "must not be empty if x-kubernetes-list-type is map");
        }
        "map" => {
            let required: Vec<&str> = texts(schema, "items.required").collect();
            for name in texts(schema, "x-kubernetes-list-map-keys") {
                let property = map(schema, "items.properties").get(name).unwrap_or(&Value::Null);
                if property.is_null() {
                    let detail = "entries must all be names of item properties";
                    report.invalid(&keys_path, name, detail);
                } else if !has(property, "default") && !required.contains(&name) {
                    let place = format!("{path}.items.properties[{name}].default");
                    let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                    report.required(&place, detail);
                }
            }
        }
        other => {
            let place = at(path, "x-kubernetes-list-type");
            report.unsupported(&place, other, &["atomic", "map", "set"]);
        }
    }
    let map_type = text(schema, "x-kubernetes-map-type");
    if !matches!(map_type, "" | "atomic" | "granular") {
        let place = at(path, "x-kubernetes-map-type");
        report.unsupported(&place, map_type, &["atomic", "granular"]);
    }
}

fn defaults(schema: &Value, path: &str, report: &mut Report) {
    if has(schema, "default") {
        let place = at(path, "default");
        for error in schema::validate(&Structural::of(schema), get(schema, "default"), "") {
            report.errors.push(FieldError { field: place.clone(), ..error });
        }
    }
    for (name, part) in map(schema, "properties") {
        defaults(part, &key(&at(path, "properties"), name), report);
    }
    for field in ["items", "additionalProperties"] {
        if get(schema, field).is_object() {
            defaults(get(schema, field), &at(path, field), report);
        }
    }
}

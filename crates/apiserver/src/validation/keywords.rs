//! Keywords of schemas of custom resources that mean the same at each level, be it one of alternatives or not.

use golang::regexp::Regexp;
use serde_json::Value;

use super::errors::{Report, at, item, key};
use super::lists;
use crate::fields::{flag, get, has, list, map, text};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Reports a level that has another type, or none.
pub(super) fn typed_as(expected: &str, detail: &str, (schema, path): (&Value, &str), report: &mut Report) {
    match text(schema, "type") {
        "" => report.required(&at(path, "type"), detail),
        found if found == expected => {}
        found => report.invalid(&at(path, "type"), found, detail),
    }
}

/// Checks the keywords of a whole schema, those of its alternatives, too.
pub(super) fn below(schema: &Value, path: &str, report: &mut Report) {
    level((schema, path), true, Location::default(), report);
}

/// A part of a level of a schema.
#[derive(Clone, Debug)]
pub(super) struct Part<'a> {
    pub(super) schema: &'a Value,
    /// Where it is below the level.
    pub(super) place: String,
    role: Role<'a>,
}

/// What a part says something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role<'a> {
    Property(&'a str),
    /// The values of a map.
    Values,
    /// Items of a list, or the level itself.
    Other,
}

/// Returns the parts of a level.
pub(super) fn parts(schema: &Value) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for (field, role) in
        [("items", Role::Other), ("additionalProperties", Role::Values), ("not", Role::Other)]
    {
        if get(schema, field).is_object() {
            parts.push(Part { schema: get(schema, field), place: field.to_owned(), role });
        }
    }
    for field in ["allOf", "oneOf", "anyOf"] {
        let all = list(schema, field).iter().enumerate();
        parts.extend(all.map(|(index, schema)| Part {
            schema,
            place: item(field, index),
            role: Role::Other,
        }));
    }
    parts.extend(map(schema, "properties").iter().map(|(name, schema)| Part {
        schema,
        place: key("properties", name),
        role: Role::Property(name),
    }));
    parts
}

/// What the levels above say of a level.
#[derive(Clone, Copy, Debug, Default)]
struct Location<'a> {
    /// Why it may have no default.
    no_default: Option<&'a str>,
    /// Whether it is in what every object has.
    is_metadata: bool,
}

fn level((schema, path): (&Value, &str), is_root: bool, place: Location<'_>, report: &mut Report) {
    keywords(schema, path, report);
    if let Some(why) = place.no_default.filter(|_| has(schema, "default")) {
        report.forbidden(&at(path, "default"), &format!("must not be set {why}"));
    }
    if place.is_metadata && flag(schema, "x-kubernetes-embedded-resource") {
        let detail = "must not be used inside of resource meta";
        report.forbidden(&at(path, "x-kubernetes-embedded-resource"), detail);
    }
    let has_header = is_root || flag(schema, "x-kubernetes-embedded-resource");
    for part in parts(schema) {
        let mut inner = place;
        let why;
        match part.role {
            Role::Property(name @ ("metadata" | "kind" | "apiVersion")) if has_header => {
                inner.is_metadata = true;
                if is_root {
                    why = format!("in top-level {name}");
                    inner.no_default = Some(&why);
                }
            }
            Role::Values if place.is_metadata => {
                inner.no_default = Some("inside additionalProperties applying to object metadata");
            }
            Role::Property(_) | Role::Values | Role::Other => {}
        }
        level((part.schema, &at(path, &part.place)), false, inner, report);
    }
}

/// Checks the regular expression of a level.
pub(super) fn pattern(schema: &Value, path: &str, report: &mut Report) {
    let pattern = text(schema, "pattern");
    if let Err(error) = Regexp::compile(pattern) {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        report.invalid(&at(path, "pattern"), pattern, &detail);
    }
}

/// Checks the keywords of a level.
fn keywords(schema: &Value, path: &str, report: &mut Report) {
    let kind = text(schema, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        report.unsupported(&at(path, "type"), kind, &TYPES);
    }
    if get(schema, "x-kubernetes-preserve-unknown-fields") == false {
        let detail = "must be true or undefined";
        report.invalid(&at(path, "x-kubernetes-preserve-unknown-fields"), false, detail);
    }
    for field in ["$ref", "id", "additionalItems", "patternProperties", "definitions", "dependencies"] {
        if has(schema, field) {
            report.forbidden(&at(path, field), &format!("{field} is not supported"));
        }
    }
    if get(schema, "items").is_array() {
        report.forbidden(&at(path, "items"), "items must be a schema object and not an array");
    }
    if flag(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        report.forbidden(&at(path, "uniqueItems"), detail);
    }
    let others = get(schema, "additionalProperties");
    if !others.is_null() && others != true && !map(schema, "properties").is_empty() {
        let detail = "additionalProperties and properties are mutual exclusive";
        report.forbidden(&at(path, "additionalProperties"), detail);
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        report.forbidden(&at(path, "type"), detail);
    }
    let map_type = text(schema, "x-kubernetes-map-type");
    if !map_type.is_empty() {
        let detail = "must be object if x-kubernetes-map-type is specified";
        typed_as("object", detail, (schema, path), report);
        report.one_of(&at(path, "x-kubernetes-map-type"), map_type, &["atomic", "granular"]);
    }
    lists::validate(schema, path, report);
}

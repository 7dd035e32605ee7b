//! What schemas of custom resources have in `anyOf`, `allOf`, `oneOf` and `not`: nothing that says what there is, only what values may be.

use serde_json::Value;

use super::errors::{Report, at, item, key};
use super::keywords::pattern;
use crate::fields::{flag, get, has, list, map, text};

/// Checks what stands in the alternatives of one level of a schema.
pub(super) fn validate(schema: &Value, path: &str, report: &mut Report) {
    let first = list(schema, "allOf").first();
    let is_int_or_string = (is_int_or_string(schema), first.is_some_and(is_int_or_string));
    alternatives(schema, path, is_int_or_string, report);
}

/// Returns whether the alternatives of a level are those of a number or a text, which may name these types.
fn is_int_or_string(schema: &Value) -> bool {
    // Examples and links say nothing of values.
    let is_only = |part: &Value, kind: &str| {
        let said = part.as_object().into_iter().flatten();
        let mut said = said.filter(|(keyword, _)| !matches!(keyword.as_str(), "example" | "externalDocs"));
        said.next().is_some_and(|(keyword, value)| keyword == "type" && value == kind)
            && said.next().is_none()
    };
    matches!(list(schema, "anyOf"), [first, second] if is_only(first, "integer") && is_only(second, "string"))
}

/// Checks the alternatives of a level, but for those of a number or a text: its own, or those of its first part.
fn alternatives(schema: &Value, path: &str, (own, first): (bool, bool), report: &mut Report) {
    for field in ["anyOf", "allOf", "oneOf"] {
        if field == "anyOf" && own {
            continue;
        }
        for (index, part) in list(schema, field).iter().enumerate() {
            let is_exempt = field == "allOf" && index == 0 && first;
            level(part, &item(&at(path, field), index), is_exempt, report);
        }
    }
    level(get(schema, "not"), &at(path, "not"), false, report);
}

/// Checks one level of an alternative, and what is below it.
fn level(schema: &Value, path: &str, is_exempt: bool, report: &mut Report) {
    if !schema.is_object() {
        return;
    }
    pattern(schema, path, report);
    alternatives(schema, path, (is_exempt, false), report);
    level(get(schema, "items"), &at(path, "items"), false, report);
    for (name, part) in map(schema, "properties") {
        level(part, &key(&at(path, "properties"), name), false, report);
    }
    let mut forbid = |field: &str, is_there: bool, expected: &str| {
        if is_there {
            report.forbidden(&at(path, field), &format!("must be {expected} to be structural"));
        }
    };
    for field in ["type", "title", "description", "x-kubernetes-list-map-keys", "x-kubernetes-validations"] {
        let is_there = !text(schema, field).is_empty() || !list(schema, field).is_empty();
        forbid(field, is_there, "empty");
    }
    let has_others = has(schema, "additionalProperties") && get(schema, "additionalProperties") != false;
    forbid("additionalProperties", has_others, "undefined");
    for field in ["default", "x-kubernetes-list-type", "x-kubernetes-map-type"] {
        forbid(field, has(schema, field), "undefined");
    }
    for field in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        forbid(field, flag(schema, field), "false");
    }
    if map(schema, "properties").contains_key("metadata") {
        let place = key(&at(path, "properties"), "metadata");
        report.forbidden(&place, "must not be specified in a nested context");
    }
}

/// Checks that what the alternatives of a whole schema name is in the schema beside them.
pub(super) fn complete(schema: &Value, path: &str, report: &mut Report) {
    named((schema, path), (schema, path), report);
}

/// Checks the alternatives of a level of alternatives: `kept` is the level beside them.
fn named(kept: (&Value, &str), (schema, path): (&Value, &str), report: &mut Report) {
    for field in ["allOf", "anyOf", "oneOf"] {
        for (index, part) in list(schema, field).iter().enumerate() {
            parts_named(kept, (part, &item(&at(path, field), index)), report);
        }
    }
    parts_named(kept, (get(schema, "not"), &at(path, "not")), report);
}

fn parts_named((kept, place): (&Value, &str), (schema, path): (&Value, &str), report: &mut Report) {
    if !schema.is_object() {
        return;
    }
    if !kept.is_object() {
        return report.required(place, &format!("because it is defined in {path}"));
    }
    named((kept, place), (schema, path), report);
    let items = (get(schema, "items"), &*at(path, "items"));
    parts_named((get(kept, "items"), &at(place, "items")), items, report);
    for (name, part) in map(schema, "properties") {
        let of = |path: &str| key(&at(path, "properties"), name);
        let beside = map(kept, "properties").get(name).unwrap_or(&Value::Null);
        parts_named((beside, &of(place)), (part, &of(path)), report);
    }
}

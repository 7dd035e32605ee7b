//! Validation of the fields by which custom objects can be selected.
//!
//! The real server looks at definitions in a form where what all versions have in common stands beside them. So it depends on
//! the other versions where fields are found, and whether there is a schema with them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::errors::{Report, at, item};
use crate::fields::{get, list, map, text};

/// How many fields a version may have.
const MOST: usize = 8;

/// Validates the fields of all versions of a definition.
pub(super) fn validate(versions: &[Value], report: &mut Report) {
    let fields = |version| list(version, "selectableFields");
    let schema = |version| get(version, "schema.openAPIV3Schema");
    let is_one_schema = versions.iter().map(schema).is_sorted_by(|one, next| one == next);
    let are_same_fields = versions.iter().map(fields).is_sorted_by(|one, next| one == next);
    for (index, version) in versions.iter().enumerate().filter(|(_, version)| !fields(version).is_empty()) {
        let outer = if are_same_fields { "spec".to_owned() } else { item("spec.versions", index) };
        let path = at(&outer, "selectableFields");
        match (are_same_fields, is_one_schema) {
            (true, true) | (false, false) => of_version(fields(version), schema(version), &path, report),
            (true, false) => {
                report.invalid(&path, "", "may only be set when validations.schema is included");
            }
            (false, true) => {
                let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
                report.invalid(&path, "", detail);
            }
        }
        if are_same_fields {
            return;
        }
    }
}

fn of_version(fields: &[Value], schema: &Value, path: &str, report: &mut Report) {
    if fields.len() > MOST {
        report.too_many(path, fields.len(), MOST);
    }
    let mut known = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let place = at(&item(path, index), "jsonPath");
        let json_path = text(field, "jsonPath");
        if json_path.is_empty() {
            report.required(&place, "");
            continue;
        }
        match found(json_path, schema) {
            Ok(level) => {
                if json_path.split('.').nth(1) == Some("metadata") {
                    report.invalid(&place, json_path, "must not point to fields in metadata");
                }
                if !matches!(text(level, "type"), "string" | "boolean" | "integer") {
                    let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
                    report.invalid(&place, json_path, detail);
                }
            }
            Err(why) => report.invalid(&place, json_path, &format!("is an invalid path: {why}")),
        }
        if !known.insert(json_path) {
            report.duplicate(&place, json_path);
        }
    }
}

/// Returns the level of the schema to which a path like `.spec.size` leads, or why there is none.
fn found<'s>(path: &str, schema: &'s Value) -> Result<&'s Value, String> {
    let Some(steps) = path.strip_prefix('.') else {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = path.find(|c| !is_of_name(c)).unwrap_or(path.len());
        let token: String = path.chars().take(end.max(1)).collect();
        return Err(format!("expected [ or . but got: {token}"));
    };
    if path.contains('[') {
        return Err("array notation is not allowed".to_owned());
    }
    if path.ends_with('.') && !path.ends_with("..") {
        return Err("unexpected end of JSON path".to_owned());
    }
    let inner = |level: &'s Value, name: &str| {
        let others = Some(get(level, "additionalProperties")).filter(|others| others.is_object());
        map(level, "properties").get(name).or(others)
    };
    let level = steps.split('.').try_fold(schema, inner);
    level.ok_or_else(|| "does not refer to a valid field".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_to_fields_that_are_no_lists_and_no_maps() {
        let schema = json!({"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": {"type": "object", "properties": {
                "size": {"type": "integer"},
                "more": {"type": "object", "additionalProperties": {"type": "string"}},
            }},
        }});
        let told = |path: &str| {
            let mut report = Report::default();
            of_version(&[json!({"jsonPath": path})], &schema, "p", &mut report);
            report.errors.into_iter().map(|error| error.message).collect::<Vec<_>>().join("; ")
        };
        for path in [".spec.size", ".spec.more.any"] {
            assert_eq!(told(path), "");
        }
        for (path, why) in [
            ("", "Required value"),
            (".spec", "must point to a field of type string"),
            (".spec.none", "does not refer to a valid field"),
            (".spec.size.x", "does not refer to a valid field"),
            (".spec[0]", "array notation"),
            (".spec.", "unexpected end of JSON path"),
            ("spec.size", "expected [ or . but got: spec"),
            ("{.spec}", "expected [ or . but got: {"),
            (".metadata.name", "must not point to fields in metadata"),
        ] {
            assert!(told(path).contains(why), "{path}: {}", told(path));
        }
    }
}

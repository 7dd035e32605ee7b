//! Lists in schemas of custom resources: what tells their items apart.

use serde_json::Value;

use super::errors::{Report, at, key};
use crate::fields::{flag, get, has, list, map, text, texts};

/// Checks the keywords of a level that say how items of a list are told apart.
pub(super) fn validate(schema: &Value, path: &str, report: &mut Report) {
    let (type_path, keys_path) = (at(path, "x-kubernetes-list-type"), at(path, "x-kubernetes-list-map-keys"));
    let (kind, keys) = (text(schema, "x-kubernetes-list-type"), list(schema, "x-kubernetes-list-map-keys"));
    let (items, items_path) = (get(schema, "items"), at(path, "items"));
    if !keys.is_empty() && kind != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        if kind.is_empty() {
            report.required(&type_path, detail);
        } else {
            report.invalid(&type_path, kind, detail);
        }
    }
    if kind.is_empty() {
        return;
    }
    report.one_of(&type_path, kind, &["atomic", "set", "map"]);
    match text(schema, "type") {
        "array" if kind == "set" => items_of_set(items, &items_path, report),
        "array" => {}
        "" => report.required(&at(path, "type"), "must be array if x-kubernetes-list-type is specified"),
        other => {
            let detail = "must be array if x-kubernetes-list-type is specified";
            report.invalid(&at(path, "type"), other, detail);
        }
    }
    if matches!(kind, "set" | "map") && flag(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
        report.forbidden(&at(&items_path, "nullable"), &detail);
    }
    if kind != "map" {
        return;
    }
    if keys.is_empty() {
        report.required(&keys_path, "must not be empty if x-kubernetes-list-type is map");
    }
    if !has(schema, "items") {
        report.required(&items_path, "must have a schema if x-kubernetes-list-type is map");
    } else if items.is_array() {
        let detail = "must only have a single schema if x-kubernetes-list-type is map";
        report.invalid(&items_path, items.clone(), detail);
    } else if text(items, "type") != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        report.invalid(&at(&items_path, "type"), text(items, "type"), detail);
    } else {
        map_keys(schema, (items, &items_path), &keys_path, report);
    }
}

/// Checks that items of a set are changed as a whole.
fn items_of_set(items: &Value, path: &str, report: &mut Report) {
    let kind = text(items, "x-kubernetes-list-type");
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    match text(items, "type") {
        "array" if !matches!(kind, "" | "atomic") => {
            report.invalid(&at(path, "x-kubernetes-list-type"), kind, detail);
        }
        "object" if text(items, "x-kubernetes-map-type") != "atomic" => {
            // A real server shows the other keyword.
            let shown = get(items, "x-kubernetes-list-type").clone();
            report.invalid(&at(path, "x-kubernetes-map-type"), shown, detail);
        }
        _ => {}
    }
}

/// Checks the names of the keys of a list.
fn map_keys(schema: &Value, (items, items_path): (&Value, &str), keys_path: &str, report: &mut Report) {
    let all = get(schema, "x-kubernetes-list-map-keys");
    let required: Vec<&str> = texts(items, "required").collect();
    let mut known = Vec::new();
    for name in texts(schema, "x-kubernetes-list-map-keys") {
        let property = map(items, "properties").get(name).unwrap_or(&Value::Null);
        let place = key(&at(items_path, "properties"), name);
        if property.is_null() {
            report.invalid(keys_path, all.clone(), "entries must all be names of item properties");
        } else {
            if matches!(text(property, "type"), "array" | "object") {
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                report.invalid(&at(&place, "type"), text(items, "type"), detail);
            }
            if !has(property, "default") && !required.contains(&name) {
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                report.required(&at(&place, "default"), detail);
            }
            if flag(property, "nullable") {
                let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                report.forbidden(&at(&place, "nullable"), detail);
            }
        }
        if known.contains(&name) {
            report.invalid(keys_path, all.clone(), "must not contain duplicate entries");
        }
        known.push(name);
    }
}

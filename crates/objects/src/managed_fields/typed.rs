//! The paths of an object, and what does not fit its type.

use std::collections::BTreeSet;

use serde_json::Value;

use super::field_set::{FieldSet, path_text};
use super::path_element::PathElement;
use super::type_ref::{Atom, TypeRef, entries, items};

/// Returns the paths that an applied object owns.
pub(super) fn paths(value: &Value, type_ref: TypeRef<'_>) -> FieldSet {
    let mut set = FieldSet::default();
    collect(value, type_ref, &mut Vec::new(), &mut set);
    set
}

fn collect(value: &Value, type_ref: TypeRef<'_>, path: &mut Vec<PathElement>, set: &mut FieldSet) {
    match type_ref.atom(value) {
        Atom::Leaf => set.insert(path),
        Atom::Map => {
            for (key, item) in entries(Some(value)) {
                path.push(PathElement::FieldName(key.clone()));
                collect(item, type_ref.child(key), path, set);
                let empty = item.is_null() || item.as_object().is_some_and(serde_json::Map::is_empty);
                if empty || !type_ref.declares(key) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        Atom::List(list_type) => {
            let elements = items(Some(value)).iter().map(|item| type_ref.path_element(list_type, item));
            let elements: Vec<Option<PathElement>> = elements.map(Result::ok).collect();
            for (item, element) in items(Some(value)).iter().zip(&elements) {
                let Some(element) = element else {
                    continue;
                };
                let repeated = elements.iter().filter(|e| e.as_ref() == Some(element)).count() > 1;
                path.push(element.clone());
                if !repeated {
                    collect(item, type_ref.item(), path, set);
                }
                set.insert(path);
                path.pop();
            }
        }
    }
}

/// Returns what does not fit the type, one line each.
pub(super) fn validate(value: &Value, type_ref: TypeRef<'_>) -> Vec<String> {
    let mut found = Vec::new();
    check(value, type_ref, &mut Vec::new(), &mut found);
    found
}

fn check(value: &Value, type_ref: TypeRef<'_>, path: &mut Vec<PathElement>, found: &mut Vec<String>) {
    if let Some(why) = type_ref.type_error(value) {
        found.push(format!("{}: {why}", path_text(path)));
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, item) in map {
                path.push(PathElement::FieldName(key.clone()));
                let allowed = type_ref.allows(key);
                if allowed {
                    check(item, type_ref.child(key), path, found);
                } else {
                    found.push(format!("{}: field not declared in schema", path_text(path)));
                }
                path.pop();
                // Of each object one unknown field is reported.
                if !allowed {
                    break;
                }
            }
        }
        Value::Array(items) => {
            let Atom::List(list_type) = type_ref.atom(value) else {
                for (index, item) in items.iter().enumerate() {
                    path.push(PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX)));
                    check(item, type_ref.item(), path, found);
                    path.pop();
                }
                return;
            };
            let mut seen = BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                match type_ref.path_element(list_type, item) {
                    Err(why) => {
                        found.push(format!("{}: element {index}: {why}", path_text(path)));
                        return;
                    }
                    Ok(element) => {
                        if !seen.insert(element.clone()) {
                            found.push(format!("{}: duplicate entries for key {element}", path_text(path)));
                        }
                        path.push(element);
                        check(item, type_ref.item(), path, found);
                        path.pop();
                    }
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

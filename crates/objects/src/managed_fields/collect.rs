//! The paths of an object, and what does not fit its type.

use std::collections::BTreeSet;

use serde_json::Value;

use super::element::Element;
use super::place::{Owned, Place, entries, items};
use super::set::{FieldSet, path_text};

/// Returns the paths that an applied object owns.
pub(super) fn paths(value: &Value, place: Place<'_>) -> FieldSet {
    let mut set = FieldSet::default();
    collect(value, place, &mut Vec::new(), &mut set);
    set
}

fn collect(value: &Value, place: Place<'_>, path: &mut Vec<Element>, set: &mut FieldSet) {
    match place.owned(value) {
        Owned::Leaf => set.insert(path),
        Owned::Map => {
            for (key, item) in entries(Some(value)) {
                path.push(Element::Field(key.clone()));
                collect(item, place.child(key), path, set);
                let empty = item.is_null() || item.as_object().is_some_and(serde_json::Map::is_empty);
                if empty || !place.declares(key) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        Owned::List(listing) => {
            let elements = items(Some(value)).iter().map(|item| place.element(listing, item));
            let elements: Vec<Option<Element>> = elements.map(Result::ok).collect();
            for (item, element) in items(Some(value)).iter().zip(&elements) {
                let Some(element) = element else {
                    continue;
                };
                let repeated = elements.iter().filter(|e| e.as_ref() == Some(element)).count() > 1;
                path.push(element.clone());
                if !repeated {
                    collect(item, place.item(), path, set);
                }
                set.insert(path);
                path.pop();
            }
        }
    }
}

/// Returns what does not fit the type, one line each.
pub(super) fn misfits(value: &Value, place: Place<'_>) -> Vec<String> {
    let mut found = Vec::new();
    check(value, place, &mut Vec::new(), &mut found);
    found
}

fn check(value: &Value, place: Place<'_>, path: &mut Vec<Element>, found: &mut Vec<String>) {
    if let Some(why) = place.misfit(value) {
        found.push(format!("{}: {why}", path_text(path)));
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, item) in map {
                path.push(Element::Field(key.clone()));
                let allowed = place.allows(key);
                if allowed {
                    check(item, place.child(key), path, found);
                } else {
                    found.push(format!("{}: field not declared in schema", path_text(path)));
                }
                path.pop();
                // One unknown field is told of each object.
                if !allowed {
                    break;
                }
            }
        }
        Value::Array(items) => {
            let Owned::List(listing) = place.owned(value) else {
                return;
            };
            let mut seen = BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                match place.element(listing, item) {
                    Err(why) => {
                        found.push(format!("{}: element {index}: {why}", path_text(path)));
                        return;
                    }
                    Ok(element) => {
                        if !seen.insert(element.clone()) {
                            let place = path_text(path);
                            found.push(format!("{place}: duplicate entries for key {element}"));
                        }
                        path.push(element);
                        check(item, place.item(), path, found);
                        path.pop();
                    }
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

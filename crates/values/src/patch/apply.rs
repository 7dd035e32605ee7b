//! Carrying out operations on a section.

use json_patch::{AddOperation, PatchOperation, RemoveOperation};
use objects::patch::location::{Location, LocationError};
use serde_json::Value;
use thiserror::Error;

use super::{Operation, Root};
use crate::document::kind;

/// Why an operation cannot be carried out.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApplyPatchError {
    /// What should hold the value is not there.
    #[error("{op} operation does not apply: doc is missing path: \"{path}\"")]
    MissingPath {
        /// The operation's name.
        op: &'static str,
        /// The operation's path.
        path: String,
    },
    /// What should be removed is not there.
    #[error("remove operation does not apply: unable to remove nonexistent key: \"{path}\"")]
    MissingKey {
        /// The operation's path.
        path: String,
    },
    /// A list is shorter, or its index is not a number.
    #[error("{op} operation does not apply: no such index in a list of {length}: \"{path}\"")]
    Index {
        /// The operation's name.
        op: &'static str,
        /// The operation's path.
        path: String,
        /// How many items the list has.
        length: usize,
    },
    /// A tested value is another one, or not there.
    #[error("testing path \"{path}\" failed: the value differs")]
    Test {
        /// The operation's path.
        path: String,
    },
    /// The section is no longer a map.
    #[error("unknown {section} values type: {found}, the section \"{key}\" must stay a map")]
    NotAMap {
        /// `global` or `module`.
        section: &'static str,
        /// The section's key.
        key: String,
        /// What the section would be.
        found: &'static str,
    },
}

/// An operation that was accepted once and does not apply any more.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropped {
    /// The operation.
    pub operation: Operation,
    /// Why it does not apply.
    pub reason: ApplyPatchError,
}

/// Returns `section` after `operations`, or why one of them does not apply.
///
/// Every operation must apply: nothing can be removed that is not there.
/// `section` is not changed.
pub fn apply(section: &Value, operations: &[Operation], root: &Root) -> Result<Value, ApplyPatchError> {
    let mut result = section.clone();
    for operation in operations {
        carry_out(&mut result, operation)?;
    }
    if result.is_object() {
        return Ok(result);
    }
    Err(ApplyPatchError::NotAMap {
        section: match root {
            Root::Global => "global",
            Root::Module(_) => "module",
        },
        key: root.key().to_owned(),
        found: kind(&result),
    })
}

/// Carries out stored `operations` on `section` once more.
///
/// What is to be removed may be gone already. Returns the operations that no
/// longer apply because what held their value is gone.
pub fn replay(section: &mut Value, operations: &[Operation]) -> Vec<Dropped> {
    let mut dropped = Vec::new();
    for operation in operations {
        let Err(reason) = carry_out(section, operation) else {
            continue;
        };
        if !matches!(operation, Operation::Remove { .. }) {
            let operation = operation.clone();
            dropped.push(Dropped { operation, reason });
        }
    }
    dropped
}

fn carry_out(section: &mut Value, operation: &Operation) -> Result<(), ApplyPatchError> {
    let location = locate(section, operation)?;
    let patch = match operation {
        Operation::Test { value, .. } => {
            return if location.value(section).unwrap_or(&Value::Null) == value {
                Ok(())
            } else {
                Err(ApplyPatchError::Test { path: operation.path().to_string() })
            };
        }
        Operation::Remove { path } => {
            if location.pointer.is_root() {
                *section = Value::Null;
                return Ok(());
            }
            if !location.exists {
                return Err(ApplyPatchError::MissingKey { path: path.to_string() });
            }
            PatchOperation::Remove(RemoveOperation { path: location.pointer })
        }
        Operation::Add { value, .. } => {
            PatchOperation::Add(AddOperation { path: location.pointer, value: value.clone() })
        }
    };
    // The location was found above, with all that may be wrong about it.
    json_patch::patch_unsafe(section, &[patch]).map_err(|_| missing(operation))
}

/// Returns where in a section an operation works.
fn locate(section: &Value, operation: &Operation) -> Result<Location, ApplyPatchError> {
    // The first element is the section's key.
    let elements = operation.path().elements().skip(1);
    let inserts = matches!(operation, Operation::Add { .. });
    Location::find(section, elements, inserts).map_err(|error| match (error, operation) {
        (LocationError::MissingPath, _) => missing(operation),
        (LocationError::Index { .. }, Operation::Test { path, .. }) => {
            ApplyPatchError::Test { path: path.to_string() }
        }
        (LocationError::Index { length, .. }, Operation::Add { path, .. } | Operation::Remove { path }) => {
            ApplyPatchError::Index { op: operation.name(), path: path.to_string(), length }
        }
    })
}

fn missing(operation: &Operation) -> ApplyPatchError {
    ApplyPatchError::MissingPath { op: operation.name(), path: operation.path().to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Patch, Target};
    use super::*;

    fn add(path: &str, value: impl Into<Value>) -> Value {
        json!({"op": "add", "path": path, "value": value.into()})
    }

    fn test(path: &str, value: impl Into<Value>) -> Value {
        json!({"op": "test", "path": path, "value": value.into()})
    }

    fn remove(path: &str) -> Value {
        json!({"op": "remove", "path": path})
    }

    fn run(section: &Value, operations: &Value) -> Result<Value, String> {
        let root = Root::Module("m".to_owned());
        let patch = Patch::read(operations.to_string().as_bytes(), Target::Values, &root).unwrap();
        apply(section, patch.operations(), &root).map_err(|error| error.to_string())
    }

    #[test]
    fn values_that_many_operations_nest_are_as_deep_as_a_path_and_a_value_may_be() {
        let deep = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"a": inner}));
        let (mut path, mut section) = ("/m".to_owned(), json!({}));
        let root = Root::Module("m".to_owned());
        let added = |path: &str, section: &Value| {
            // As deep as the reader of the file allows.
            let text = json!([add(path, deep(124))]).to_string();
            let read =
                Patch::read(text.as_bytes(), Target::Values, &root).map_err(|error| error.to_string())?;
            apply(section, read.operations(), &root).map_err(|error| error.to_string())
        };
        let mut levels = 0;
        let refused = loop {
            path.push_str("/a");
            match added(&path, &section) {
                Ok(deeper) => section = deeper,
                Err(refused) => break refused,
            }
            levels += 1;
            assert!(levels < 1_000, "there is no end");
        };
        assert!(refused.ends_with("has too many elements"), "{refused}");
        let text = crate::yaml::emit(&section);
        assert_eq!(crate::yaml::parse(&text).unwrap(), section, "whoever reads it can follow");
    }

    #[test]
    fn operations_change_maps_and_lists() {
        for (section, operation, expected) in [
            (json!({}), add("/m/a", 1), json!({"a": 1})),
            (json!({"a": 1}), add("/m/a", 2), json!({"a": 2})),
            (json!({"a": 1}), add("/m", json!({"b": 2})), json!({"b": 2})),
            (json!({"a": 1}), remove("/m/a"), json!({})),
            (json!({"a": {"b/c": 1}}), remove("/m/a/b~1c"), json!({"a": {}})),
            (json!({"~1": 1}), remove("/m/~01"), json!({})),
            (json!({}), add("/m/", 1), json!({"": 1})),
            (json!({"l": [1, 2]}), add("/m/l/-", 3), json!({"l": [1, 2, 3]})),
            (json!({"l": [1, 2]}), add("/m/l/0", 3), json!({"l": [3, 1, 2]})),
            (json!({"l": [1, 2]}), add("/m/l/2", 3), json!({"l": [1, 2, 3]})),
            (json!({"l": [1, 2]}), add("/m/l/-1", 3), json!({"l": [1, 2, 3]})),
            (json!({"l": [1, 2]}), add("/m/l/-2", 3), json!({"l": [1, 3, 2]})),
            (json!({"l": [1, 2]}), remove("/m/l/-1"), json!({"l": [1]})),
            (json!({"l": [{"a": 1}]}), add("/m/l/-1/b", 2), json!({"l": [{"a": 1, "b": 2}]})),
            (json!({"a": 1}), test("/m/a", 1.0), json!({"a": 1})),
            (json!({}), test("/m/a", json!(null)), json!({})),
        ] {
            assert_eq!(run(&section, &operation), Ok(expected), "{section} {operation}");
        }
    }

    #[test]
    fn what_does_not_apply_is_an_error_with_the_path() {
        let section = json!({"a": 1, "n": null, "l": [1], "o": {}});
        for (operation, expected) in [
            (add("/m/x/y", 1), "doc is missing path"),
            (add("/m/a/y", 1), "doc is missing path"),
            (add("/m/n/y", 1), "doc is missing path"),
            (remove("/m/x/y"), "doc is missing path"),
            (remove("/m/x"), "unable to remove nonexistent key"),
            (remove("/m/l/1"), "no such index in a list of 1"),
            (remove("/m/l/-"), "no such index in a list of 1"),
            (remove("/m/l/-2"), "no such index in a list of 1"),
            (add("/m/l/x", 1), "no such index in a list of 1"),
            (add("/m/l/3", 1), "no such index in a list of 1"),
        ] {
            let (name, path) = (operation["op"].as_str().unwrap(), operation["path"].as_str().unwrap());
            let expected = format!("{name} operation does not apply: {expected}: \"{path}\"");
            assert_eq!(run(&section, &operation).unwrap_err(), expected, "{operation}");
        }
        for (operation, expected) in [
            (test("/m/a", "secret"), "testing path \"/m/a\" failed: the value differs"),
            (test("/m/zz", 1), "testing path \"/m/zz\" failed: the value differs"),
            (remove("/m"), "unknown module values type: null, the section \"m\" must stay a map"),
            (add("/m", json!([])), "unknown module values type: a list, the section \"m\" must stay a map"),
        ] {
            assert_eq!(run(&section, &operation).unwrap_err(), expected, "{operation}");
        }
    }

    #[test]
    fn operations_see_what_earlier_ones_did() {
        let operations = json!([
            {"op": "add", "path": "/m/a", "value": {}},
            {"op": "add", "path": "/m/a/b", "value": 1},
            {"op": "test", "path": "/m/a", "value": {"b": 1}},
        ]);
        assert_eq!(run(&json!({}), &operations), Ok(json!({"a": {"b": 1}})));
    }

    #[test]
    fn replay_forgives_missing_removals_and_drops_orphans() {
        let root = Root::Module("m".to_owned());
        let text = br#"[{"op":"remove","path":"/m/gone/deeper"},{"op":"add","path":"/m/gone/a","value":1},{"op":"add","path":"/m/b","value":2}]"#;
        let patch = Patch::read(text, Target::Values, &root).unwrap();
        let mut section = json!({});
        let dropped = replay(&mut section, patch.operations());
        assert_eq!(section, json!({"b": 2}));
        assert_eq!(dropped.len(), 1);
        assert_eq!(dropped[0].operation.path().as_str(), "/m/gone/a");
        assert!(matches!(dropped[0].reason, ApplyPatchError::MissingPath { .. }));
    }
}

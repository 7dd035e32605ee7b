//! JSON patches as API servers apply them: a little more lenient than the standard.

use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::{Map, Value};
use thiserror::Error;

use super::location::{Location, LocationError, decode_element};
use crate::go_value::json_type;

/// How many operations a patch may have.
pub const MAX_OPERATIONS: usize = 10_000;

/// Why a JSON patch could not be read or applied.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PatchError {
    /// The patch is no list of operations.
    #[error("error decoding patch: {0}")]
    Decode(String),
    /// The patch has more operations than [`MAX_OPERATIONS`].
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooMany(usize),
    /// An operation names a place that is not there, is unknown, or its test failed.
    #[error("operation {index} ({op}) can't be applied at {path:?}: {why}")]
    Apply {
        /// The position of the operation in the patch, from 0.
        index: usize,
        /// What it should do.
        op: String,
        /// Where.
        path: String,
        /// What is wrong.
        why: &'static str,
    },
}

/// Reads a patch.
pub fn parse(bytes: &[u8]) -> Result<Vec<Map<String, Value>>, PatchError> {
    let patch: Value = serde_json::from_slice(bytes)
        .map_err(|_| PatchError::Decode("unexpected end of JSON input".into()))?;
    let operations = match patch {
        Value::Null => Vec::new(),
        Value::Array(operations) => operations,
        other => return Err(not_a(json_type(&other), "[]handlers.jsonPatchOp")),
    };
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooMany(operations.len()));
    }
    operations
        .into_iter()
        .map(|operation| match operation {
            Value::Object(operation) => Ok(operation),
            other => Err(not_a(json_type(&other), "handlers.jsonPatchOp")),
        })
        .collect()
}

fn not_a(kind: &str, expected: &str) -> PatchError {
    PatchError::Decode(format!("json: cannot unmarshal {kind} into Go value of type {expected}"))
}

/// Returns `document` after all operations; on an error nothing has changed for the caller.
pub fn apply(mut document: Value, operations: &[Map<String, Value>]) -> Result<Value, PatchError> {
    for (index, operation) in operations.iter().enumerate() {
        let text = |key: &str| operation.get(key).and_then(Value::as_str).unwrap_or_default();
        let (op, path) = (text("op"), text("path"));
        let value = operation.get("value").unwrap_or(&Value::Null);
        step(&mut document, op, path, text("from"), value).map_err(|why| PatchError::Apply {
            index,
            op: op.to_owned(),
            path: path.to_owned(),
            why,
        })?;
    }
    Ok(document)
}

const MISSING: &str = "there is no such path";

fn step(document: &mut Value, op: &str, path: &str, from: &str, value: &Value) -> Result<(), &'static str> {
    match op {
        "add" => add(document, path, value.clone()),
        "remove" => remove(document, path),
        "replace" if path.is_empty() => {
            value.clone_into(document);
            Ok(())
        }
        "replace" => {
            let location = find(document, path, false)?;
            // A key that is missing in an object is added: servers in the field do so.
            if location.in_list {
                let operation = ReplaceOperation { path: location.pointer, value: value.clone() };
                return carry_out(document, PatchOperation::Replace(operation));
            }
            add(document, path, value.clone())
        }
        "move" => {
            let moved = find(document, from, false)?.value(document).cloned().ok_or(MISSING)?;
            remove(document, from)?;
            add(document, path, moved)
        }
        "copy" => {
            // What an object does not have is copied as null.
            let copied = find(document, from, false)?.value(document).cloned().unwrap_or_default();
            add(document, path, copied)
        }
        "test" => test(document, path, value),
        _ => Err("there is no such operation"),
    }
}

fn test(document: &Value, path: &str, expected: &Value) -> Result<(), &'static str> {
    let found = if path.is_empty() {
        Some(document)
    } else {
        match locate(document, path, false) {
            Some(Ok(location)) => location.value(document),
            Some(Err(LocationError::Index { is_last: true, .. })) => None,
            _ => return Err(MISSING),
        }
    };
    match found {
        None if expected.is_null() => Ok(()),
        None => Err(MISSING),
        Some(found) if found == expected => Ok(()),
        Some(_) => Err("the value is another one"),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), &'static str> {
    let path = find(document, path, true)?.pointer;
    carry_out(document, PatchOperation::Add(AddOperation { path, value }))
}

fn remove(document: &mut Value, path: &str) -> Result<(), &'static str> {
    let path = find(document, path, false)?.pointer;
    carry_out(document, PatchOperation::Remove(RemoveOperation { path }))
}

fn carry_out(document: &mut Value, operation: PatchOperation) -> Result<(), &'static str> {
    json_patch::patch_unsafe(document, &[operation]).map_err(|_| MISSING)
}

fn find(document: &Value, path: &str, inserts: bool) -> Result<Location, &'static str> {
    locate(document, path, inserts).and_then(Result::ok).ok_or(MISSING)
}

/// Returns what a path that is not empty means; nothing if it has no slash.
fn locate(document: &Value, path: &str, inserts: bool) -> Option<Result<Location, LocationError>> {
    // What stands before the first slash is not looked at.
    let (_, path) = path.split_once('/')?;
    Some(Location::find(document, path.split('/').map(decode_element), inserts))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::needless_pass_by_value, reason = "tests read better so")]
    use super::*;
    use serde_json::json;

    fn patched(patch: Value) -> Result<Value, PatchError> {
        let document = json!({"a": {"b": 1}, "l": [1, 2, 3], "x/y": 1});
        apply(document, &parse(patch.to_string().as_bytes())?)
    }

    #[test]
    fn operations_change_the_document() {
        let op = |op: &str, path: &str, value: Value| json!([{"op": op, "path": path, "value": value}]);
        assert_eq!(patched(op("add", "/l/1", json!(9))).unwrap()["l"], json!([1, 9, 2, 3]));
        assert_eq!(patched(op("add", "/l/-", json!(9))).unwrap()["l"], json!([1, 2, 3, 9]));
        assert_eq!(patched(op("add", "/l/-1", json!(9))).unwrap()["l"], json!([1, 2, 3, 9]));
        assert_eq!(patched(op("replace", "/l/-1", json!(9))).unwrap()["l"], json!([1, 2, 9]));
        assert_eq!(patched(op("replace", "/a/new", json!(9))).unwrap()["a"], json!({"b": 1, "new": 9}));
        assert_eq!(patched(op("remove", "/x~1y", json!(null))).unwrap().get("x/y"), None);
        assert_eq!(patched(op("test", "/a/b", json!(1))).unwrap()["a"], json!({"b": 1}));
        assert_eq!(patched(op("test", "/a/none", json!(null))).unwrap()["a"], json!({"b": 1}));
        assert_eq!(
            patched(op("add", "a", json!(1))).unwrap_err().to_string(),
            "operation 0 (add) can't be applied at \"a\": there is no such path"
        );
        let moved = patched(json!([{"op": "move", "from": "/l/0", "path": "/a/c"}])).unwrap();
        assert_eq!(moved, json!({"a": {"b": 1, "c": 1}, "l": [2, 3], "x/y": 1}));
        let copied = patched(json!([{"op": "copy", "from": "/a/none", "path": "/a/c"}])).unwrap();
        assert_eq!(copied["a"], json!({"b": 1, "c": null}));
    }

    #[test]
    fn operations_that_do_not_fit_are_refused() {
        for patch in [
            json!([{"op": "remove", "path": "/none"}]),
            json!([{"op": "add", "path": "/none/x", "value": 1}]),
            json!([{"op": "add", "path": "/l/5", "value": 1}]),
            json!([{"op": "test", "path": "/a/b", "value": 2}]),
            json!([{"op": "move", "from": "/none", "path": "/a"}]),
            json!([{"op": "jump", "path": "/a"}]),
            json!([{"op": "add", "value": 1}]),
        ] {
            assert!(matches!(patched(patch.clone()), Err(PatchError::Apply { .. })), "{patch}");
        }
    }

    #[test]
    fn a_patch_that_is_no_list_of_operations_is_told_as_the_real_server_does() {
        let text = |bytes: &str| parse(bytes.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            text("{}"),
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        );
        assert_eq!(
            text("[1]"),
            "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"
        );
        assert_eq!(text("["), "error decoding patch: unexpected end of JSON input");
    }
}

//! JSON patches as API servers apply them: a little more lenient than the standard.

use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::{Map, Value};
use thiserror::Error;

use super::location::{Location, LocationError, decode_element};
use crate::decode::{self, MAX_DEPTH, Node};
use crate::extent::Extent;
use crate::go_value::json_type;

/// How many operations a patch may have.
pub const MAX_OPERATIONS: usize = 10_000;

/// How many bytes of JSON all copies of a patch may make together: a copy of a copy doubles a document.
pub const MAX_COPIED: usize = 3 * 1024 * 1024;

/// How many values all moves of a patch may move together, counting those inside of others.
pub const MAX_MOVED: usize = 10_000_000;

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
    let patch = decode::parse(bytes).map_err(|error| PatchError::Decode(error.to_string()))?;
    operations(Node::into(patch))
}

/// Returns the operations of a patch.
pub fn operations(patch: Value) -> Result<Vec<Map<String, Value>>, PatchError> {
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
///
/// The document never becomes larger or deeper than its limits, not even between two operations.
pub fn apply(mut document: Value, operations: &[Map<String, Value>]) -> Result<Value, PatchError> {
    let mut spent = Spent::default();
    for (index, operation) in operations.iter().enumerate() {
        let text = |key: &str| operation.get(key).and_then(Value::as_str).unwrap_or_default();
        let (op, path) = (text("op"), text("path"));
        let value = operation.get("value").unwrap_or(&Value::Null);
        step(&mut document, op, path, text("from"), value, &mut spent).map_err(|why| PatchError::Apply {
            index,
            op: op.to_owned(),
            path: path.to_owned(),
            why,
        })?;
    }
    Ok(document)
}

const MISSING: &str = "there is no such path";

/// What the operations of one patch have used of their limits.
#[derive(Debug, Default)]
struct Spent {
    /// Bytes that were copied.
    copied: usize,
    /// Values that were moved.
    moved: usize,
}

fn step(
    document: &mut Value,
    op: &str,
    path: &str,
    from: &str,
    value: &Value,
    spent: &mut Spent,
) -> Result<(), &'static str> {
    match op {
        "add" => {
            check_depth(path, Extent::of(value))?;
            add(document, path, value.clone())
        }
        "remove" => remove(document, path),
        "replace" if path.is_empty() => {
            value.clone_into(document);
            Ok(())
        }
        "replace" => {
            check_depth(path, Extent::of(value))?;
            let location = find(document, path, false)?;
            // A key that is missing in an object is added: servers in the field do so.
            if location.in_list {
                let operation = ReplaceOperation { path: location.pointer, value: value.clone() };
                return carry_out(document, PatchOperation::Replace(operation));
            }
            add(document, path, value.clone())
        }
        "move" => {
            let source = find(document, from, false)?;
            let found = source.exists.then(|| document.pointer_mut(source.pointer.as_str())).flatten();
            let moved = found.ok_or(MISSING)?;
            let extent = Extent::of(moved);
            spent.moved = spent.moved.saturating_add(extent.values);
            if spent.moved > MAX_MOVED {
                return Err("the moves of the patch are too large");
            }
            check_depth(path, extent)?;
            let moved = moved.take();
            remove(document, from)?;
            add(document, path, moved)
        }
        "copy" => {
            let source = find(document, from, false)?;
            // What an object does not have is copied as null.
            let copied = source.value(document).unwrap_or(&Value::Null);
            spent.copied = spent.copied.saturating_add(written_length(copied));
            if spent.copied > MAX_COPIED {
                return Err("the copies of the patch are too large");
            }
            check_depth(path, Extent::of(copied))?;
            let copied = copied.clone();
            add(document, path, copied)
        }
        "test" => test(document, path, value),
        _ => Err("there is no such operation"),
    }
}

/// Refuses to put a value where its end would be deeper than what is read.
fn check_depth(path: &str, extent: Extent) -> Result<(), &'static str> {
    let above = path.bytes().filter(|byte| *byte == b'/').count();
    if above + extent.depth > MAX_DEPTH { Err("the result would be nested too deeply") } else { Ok(()) }
}

/// Returns how many bytes a value has as JSON.
fn written_length(value: &Value) -> usize {
    struct Length(usize);
    impl std::io::Write for Length {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut length = Length(0);
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut length, value);
    length.0
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
    fn slip_29_copies_of_copies_end_at_a_limit() {
        let refused = |document: Value, patch: Value| {
            let operations = parse(patch.to_string().as_bytes()).unwrap();
            apply(document, &operations).unwrap_err().to_string()
        };
        let doubling = Value::Array(vec![json!({"op": "copy", "from": "/a", "path": "/a/-"}); 40]);
        let error = refused(json!({"a": ["0123456789"]}), doubling);
        assert!(error.contains("the copies of the patch are too large"), "{error}");
        // A copy into itself doubles the depth as well.
        let document = json!({"a": {"x": 1}});
        let deep: Vec<Value> = (0..40)
            .map(|step| {
                let bottom = "/a".repeat(1 << step.min(10));
                json!({"op": "copy", "from": "/a", "path": format!("{bottom}/a")})
            })
            .collect();
        let error = refused(document, Value::Array(deep));
        assert!(error.contains("nested too deeply"), "{error}");
    }

    #[test]
    fn slip_29_additions_and_moves_end_at_a_limit() {
        let nested = (0..300).fold(json!(1), |inner, _| json!({"a": inner}));
        let bottom = "/a".repeat(299);
        let added = json!([
            {"op": "add", "path": "", "value": 1},
        ]);
        assert!(patched(added).is_err());
        let twice = json!([{"op": "add", "path": format!("{bottom}/a"), "value": nested.clone()}]);
        let error = apply(nested.clone(), &parse(twice.to_string().as_bytes()).unwrap()).unwrap_err();
        assert!(error.to_string().contains("nested too deeply"), "{error}");
        let document = json!({"l": nested.clone(), "r": nested.clone()});
        let moved = json!([{"op": "move", "from": "/l", "path": format!("/r{bottom}/a")}]);
        let error = apply(document, &parse(moved.to_string().as_bytes()).unwrap()).unwrap_err();
        assert!(error.to_string().contains("nested too deeply"), "{error}");
        let many = vec![json!(0); 10_000];
        let back_and_forth: Vec<Value> = (0..2_000)
            .map(|step| if step % 2 == 0 { ("/l", "/r") } else { ("/r", "/l") })
            .map(|(from, path)| json!({"op": "move", "from": from, "path": path}))
            .collect();
        let operations = parse(Value::Array(back_and_forth).to_string().as_bytes()).unwrap();
        let error = apply(json!({"l": many}), &operations).unwrap_err();
        assert!(error.to_string().contains("the moves of the patch are too large"), "{error}");
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

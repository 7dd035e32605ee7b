//! Renders the outputs of hooks in the form of test files.

use engine::metric::{MetricAction, MetricOperation};
use engine::object_patch::{Existing, ObjectPatch, Operation, Propagation};
use serde_json::{Map, Value, json};
use values::patch::{self, Patch};

/// Returns the operations of a patch of values.
pub(super) fn values_patch(patch: &Patch) -> Vec<Value> {
    let operation = |operation: &patch::Operation| match operation {
        patch::Operation::Add { path, value } | patch::Operation::Test { path, value } => {
            json!({"op": operation.name(), "path": path.as_str(), "value": value})
        }
        patch::Operation::Remove { path } => json!({"op": "remove", "path": path.as_str()}),
    };
    let flag = |(key, value): (&String, &Option<bool>)| match value {
        Some(value) => json!({"op": "add", "path": format!("/{key}Enabled"), "value": value}),
        None => json!({"op": "remove", "path": format!("/{key}Enabled")}),
    };
    patch.operations().iter().map(operation).chain(patch.enabled().iter().map(flag)).collect()
}

/// Returns a change of an object with the names of the hook's own file.
pub(super) fn object_patch(patch: &ObjectPatch) -> Value {
    let mut fields = Map::new();
    let mut put = |key: &str, value: Value| drop(fields.insert(key.to_owned(), value));
    let (name, content) = match &patch.operation {
        Operation::Apply { object, force } => {
            if !force {
                put("force", false.into());
            }
            ("Apply", Some(("object", object.clone())))
        }
        Operation::ApplyChild { object } => ("Apply", Some(("object", object.clone()))),
        Operation::TryCreate { object } => ("Create", Some(("object", object.clone()))),
        Operation::Create { object, existing } => {
            let name = match existing {
                Existing::Fail => "Create",
                Existing::Keep => "CreateIfNotExists",
                Existing::Update => "CreateOrUpdate",
            };
            (name, Some(("object", object.clone())))
        }
        Operation::Delete(Propagation::Background) => ("DeleteInBackground", None),
        Operation::Delete(Propagation::Foreground) => ("Delete", None),
        Operation::Delete(Propagation::Orphan) => ("DeleteNonCascading", None),
        Operation::Jq { filter } => ("JQPatch", Some(("jqFilter", filter.clone().into()))),
        Operation::JsonPatch { patch } => ("JSONPatch", Some(("jsonPatch", patch.clone()))),
        Operation::MergePatch { patch } => ("MergePatch", Some(("mergePatch", patch.clone()))),
    };
    put("operation", name.into());
    let is_address = content.as_ref().is_none_or(|(key, _)| *key != "object");
    if is_address {
        let target = &patch.target;
        let address = [
            ("apiVersion", &target.api_version),
            ("kind", &target.kind),
            ("namespace", &target.namespace),
            ("name", &target.name),
        ];
        for (key, text) in address.into_iter().filter(|(_, text)| !text.is_empty()) {
            put(key, text.clone().into());
        }
    }
    if let Some(subresource) = &patch.target.subresource {
        put("subresource", subresource.clone().into());
    }
    for (key, flag) in
        [("ignoreMissingObject", patch.ignore_missing_object), ("ignoreHookError", patch.ignore_hook_error)]
    {
        if flag {
            put(key, true.into());
        }
    }
    if let Some((key, content)) = content {
        put(key, content);
    }
    Value::Object(fields)
}

/// Returns a change of a metric with the names of the hook's own file.
pub(super) fn metric(operation: &MetricOperation) -> Value {
    let mut fields = Map::new();
    let mut put = |key: &str, value: Value| drop(fields.insert(key.to_owned(), value));
    if !operation.name.is_empty() {
        put("name", operation.name.clone().into());
    }
    if let Some(group) = &operation.group {
        put("group", group.clone().into());
    }
    match &operation.action {
        MetricAction::Add(value) => {
            put("action", "add".into());
            put("value", number(*value));
        }
        MetricAction::Expire => put("action", "expire".into()),
        MetricAction::Observe { value, buckets } => {
            put("action", "observe".into());
            put("value", number(*value));
            put("buckets", buckets.iter().copied().map(number).collect());
        }
        MetricAction::Set(value) => {
            put("action", "set".into());
            put("value", number(*value));
        }
        MetricAction::Unknown(action) => put("action", action.clone().into()),
    }
    if !operation.labels.is_empty() {
        put("labels", json!(operation.labels));
    }
    Value::Object(fields)
}

/// Returns a number; whole ones without a point.
fn number(number: f64) -> Value {
    golang::json::number(number).map_or(Value::Null, Value::Number)
}

/// Returns documents one after the other, as hooks write them.
fn documents(list: &Value) -> Vec<u8> {
    let items = list.as_array().into_iter().flatten();
    items.map(Value::to_string).collect::<Vec<_>>().join("\n").into_bytes()
}

/// Returns expected changes of objects in the form of [`object_patch`], or why they can't be read.
pub(super) fn expected_object_patches(list: &Value) -> Result<Value, String> {
    let patches = engine::object_patch::parse(&documents(list)).map_err(|error| error.to_string())?;
    Ok(patches.iter().map(object_patch).collect())
}

/// Returns expected metrics in the form of [`metric`], or why they can't be read.
pub(super) fn expected_metrics(list: &Value) -> Result<Value, String> {
    let operations = engine::metric::parse(&documents(list)).map_err(|error| error.to_string())?;
    Ok(operations.iter().map(metric).collect())
}

/// Returns the part of `actual` that `expected` has keys for.
pub(super) fn projected(expected: &Value, actual: &Value) -> Value {
    match (expected, actual) {
        (Value::Object(wanted), Value::Object(found)) => {
            let keep = |(key, wanted): (&String, &Value)| match found.get(key) {
                Some(found) => Some((key.clone(), projected(wanted, found))),
                // In an expectation null means absent.
                None => wanted.is_null().then(|| (key.clone(), Value::Null)),
            };
            wanted.iter().filter_map(keep).collect::<Map<_, _>>().into()
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            wanted.iter().zip(found).map(|(wanted, found)| projected(wanted, found)).collect()
        }
        _ => actual.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_as_itself() {
        let patches = json!([
            {"operation": "CreateOrUpdate", "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}},
            {"operation": "Apply", "force": false, "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}},
            {"operation": "MergePatch", "kind": "Pod", "name": "a", "subresource": "status", "ignoreHookError": true,
             "mergePatch": {"status": {}}},
            {"operation": "JSONPatch", "apiVersion": "v1", "kind": "Pod", "namespace": "b", "name": "a",
             "ignoreMissingObject": true, "jsonPatch": [{"op": "remove", "path": "/spec"}]},
            {"operation": "JQPatch", "kind": "Pod", "name": "a", "jqFilter": ".a = 1"},
            {"operation": "Delete", "kind": "Pod", "name": "a"},
            {"operation": "DeleteNonCascading", "kind": "Pod", "name": "a"},
        ]);
        assert_eq!(expected_object_patches(&patches), Ok(patches));
        let metrics = json!([
            {"name": "a", "action": "add", "value": 1, "labels": {"b": "c"}},
            {"name": "a", "group": "g", "action": "set", "value": 1.5},
            {"name": "a", "action": "observe", "value": 2, "buckets": [1, 2.5]},
            {"group": "g", "action": "expire"},
        ]);
        assert_eq!(expected_metrics(&metrics), Ok(metrics));
        assert!(expected_object_patches(&json!([{"operation": "Create"}])).unwrap_err().contains("object"));
    }

    #[test]
    fn only_what_is_expected_is_compared() {
        let actual = json!({"a": {"b": 1, "c": 2}, "d": [{"e": 1, "f": 2}], "g": 3});
        for (expected, projection) in [
            (json!({"a": {"b": 9}}), json!({"a": {"b": 1}})),
            (json!({"d": [{"e": 1}]}), json!({"d": [{"e": 1}]})),
            (json!({"d": []}), json!({"d": [{"e": 1, "f": 2}]})),
            (json!({"x": 1, "y": null}), json!({"y": null})),
        ] {
            assert_eq!(projected(&expected, &actual), projection);
        }
    }
}

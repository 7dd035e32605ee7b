//! The only owner of a new object, written straight into the bytes that are kept: sets of paths would cost most of a creation.

use serde_json::Value;

use super::Change;
use super::compare::equal;
use super::field_set::{FieldSet, Node};
use super::path_element::{PathElement, write_text};
use super::type_ref::{Atom, TypeRef, entries, items};
use super::update::NEVER_OWNED;
use crate::decode;
use crate::types::ListType;

/// Returns `managedFields` of an object that is new and carries none, as JSON; nothing if there is nothing to own.
///
/// The bytes are those that [`super::update`] leads to.
pub fn create(new: &Value, change: &Change<'_>) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(1_024);
    out.extend_from_slice(b"[{\"apiVersion\":");
    write_text(&mut out, change.api_version);
    out.extend_from_slice(b",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":");
    let empty = decode::empty(change.shape);
    let limits = Limits { never: Some(&NEVER_OWNED), ignored: Some(change.ignored) };
    if !write(&mut out, Some(&empty), new, TypeRef::new(change.shape), limits, true) {
        return None;
    }
    out.extend_from_slice(b",\"manager\":");
    write_text(&mut out, if change.manager.is_empty() { "unknown" } else { change.manager });
    out.extend_from_slice(b",\"operation\":\"Update\"");
    if !change.subresource.is_empty() {
        out.extend_from_slice(b",\"subresource\":");
        write_text(&mut out, change.subresource);
    }
    out.extend_from_slice(b",\"time\":");
    write_text(&mut out, change.now);
    out.extend_from_slice(b"}]");
    Some(out)
}

/// The fields that get no owner, at a field and below it.
#[derive(Clone, Copy)]
struct Limits<'a> {
    /// These paths alone.
    never: Option<&'a FieldSet>,
    /// These paths and all below them.
    ignored: Option<&'a FieldSet>,
}

impl<'a> Limits<'a> {
    const NONE: Limits<'static> = Limits { never: None, ignored: None };

    /// Returns the limits below a field, and whether the field itself may be owned; nothing if it is ignored.
    fn below(self, key: &str) -> Option<(Limits<'a>, bool)> {
        if self.never.is_none() && self.ignored.is_none() {
            return Some((Limits::NONE, true));
        }
        let step = PathElement::FieldName(key.to_owned());
        let (never, ignored) =
            (self.never.and_then(|set| set.node(&step)), self.ignored.and_then(|set| set.node(&step)));
        if ignored.is_some_and(|node| node.member) {
            return None;
        }
        let below = |node: Option<&'a Node>| node.map(|node| &node.below).filter(|set| !set.is_empty());
        let limits = Limits { never: below(never), ignored: below(ignored) };
        Some((limits, never.is_none_or(|node| !node.member)))
    }
}

/// Writes what is owned of a value as `fieldsV1`; writes nothing and returns `false` if that is nothing.
///
/// `old` is what the value is before anybody writes it: it has no items in lists.
fn write(
    out: &mut Vec<u8>,
    old: Option<&Value>,
    new: &Value,
    type_ref: TypeRef<'_>,
    limits: Limits<'_>,
    may_own: bool,
) -> bool {
    let (before, after) = (old.map(|old| type_ref.atom(old)), type_ref.atom(new));
    let is_leaf = match (&before, &after) {
        (Some(Atom::Map) | None, Atom::Map) => entries(old).is_empty() && entries(Some(new)).is_empty(),
        (Some(Atom::List(_)) | None, Atom::List(_)) => items(Some(new)).is_empty(),
        _ => true,
    };
    if is_leaf {
        let owned = may_own && old.is_none_or(|old| !equal(old, new));
        if owned {
            out.extend_from_slice(b"{}");
        }
        return owned;
    }
    let start = out.len();
    let member = may_own && old.is_none();
    out.extend_from_slice(if member { b"{\".\":{}" } else { b"{" });
    let empty = out.len();
    match after {
        Atom::Leaf => {}
        Atom::Map => fields(out, old, new, type_ref, limits),
        Atom::List(list_type) => elements(out, items(Some(new)), type_ref, list_type),
    }
    if out.len() == empty {
        out.truncate(start);
        if member {
            out.extend_from_slice(b"{}");
        }
        return member;
    }
    out.push(b'}');
    true
}

fn fields(out: &mut Vec<u8>, old: Option<&Value>, new: &Value, type_ref: TypeRef<'_>, limits: Limits<'_>) {
    let old = entries(old);
    for (key, value) in entries(Some(new)) {
        let Some((limits, may_own)) = limits.below(key) else {
            continue;
        };
        let start = out.len();
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
        write_key(out, key);
        if !write(out, old.get(key), value, type_ref.child(key), limits, may_own) {
            out.truncate(start);
        }
    }
}

fn write_key(out: &mut Vec<u8>, key: &str) {
    if key.bytes().any(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
        write_text(out, &format!("f:{key}"));
    } else {
        out.extend_from_slice(b"\"f:");
        out.extend_from_slice(key.as_bytes());
        out.push(b'"');
    }
    out.push(b':');
}

fn elements(out: &mut Vec<u8>, items: &[Value], type_ref: TypeRef<'_>, list_type: &ListType) {
    let keyed = items.iter().filter_map(|item| Some((type_ref.fields_v1_key(list_type, item)?, item)));
    let mut keyed: Vec<(String, &Value)> = keyed.collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    for same in keyed.chunk_by(|a, b| a.0 == b.0) {
        let Some((key, item)) = same.first() else {
            continue;
        };
        let start = out.len();
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
        write_text(out, key);
        out.push(b':');
        // Items with the same key are owned together.
        if same.len() > 1 {
            out.extend_from_slice(b"{}");
        } else if !write(out, None, item, type_ref.item(), Limits::NONE, true) {
            out.truncate(start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::update;
    use super::*;
    use crate::types::{self, Shape};
    use serde_json::json;

    /// Returns the owners by both ways.
    fn both(group: &str, kind: &str, object: &Value, ignored: &FieldSet) -> (Value, Value) {
        let shape = Shape::Named(types::name_of_kind(group, "v1", kind).unwrap());
        let change = Change {
            shape: &shape,
            api_version: "x/v1",
            subresource: "",
            manager: "me",
            now: "2026-01-02T03:04:05Z",
            ignored,
        };
        let mut updated = object.clone();
        update(None, &mut updated, &change);
        let slow = updated.pointer("/metadata/managedFields").cloned().unwrap_or_default();
        let fast = create(object, &change);
        let text = fast.clone().map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(text.as_deref().unwrap_or("null"), slow.to_string());
        (slow, fast.map(|bytes| serde_json::from_slice(&bytes).unwrap()).unwrap_or_default())
    }

    #[test]
    fn owners_written_at_once_are_those_of_an_update() {
        let status = FieldSet::of_fields(&["status"]);
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "namespace": "b", "labels": {"x\"y": "1", "z": ""}, "annotations": {}, "finalizers": ["b", "a", "a"],
                "ownerReferences": [{"uid": "1", "name": "n"}]},
            "spec": {"containers": [
                {"name": "z", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}, {"containerPort": 443}, {"containerPort": 443}],
                    "env": [{"name": "B", "value": "1"}, {"name": "A"}], "command": ["a", "b"], "resources": {}},
                {"name": "a", "securityContext": {}}], "nodeSelector": {"a": "b"}, "tolerations": [{"key": "x"}],
                "volumes": [{"name": "v", "emptyDir": {}}], "hostNetwork": false, "replicas": null},
            "status": {"phase": "Running"},
        });
        let (slow, fast) = both("", "Pod", &pod, &status);
        assert_eq!(slow, fast);
        assert!(slow.pointer("/0/fieldsV1/f:spec/f:containers").is_some(), "{slow}");
        for (group, kind, object) in [
            ("", "ConfigMap", json!({"metadata": {"name": "a"}})),
            (
                "",
                "ConfigMap",
                json!({"metadata": {"name": "a"}, "data": {"a": "b", "c": ""}, "binaryData": {}}),
            ),
            (
                "",
                "Service",
                json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 1}], "selector": {"a": "b"}}}),
            ),
            (
                "rbac.authorization.k8s.io",
                "ClusterRole",
                json!({"metadata": {"name": "a"}, "rules": [{"verbs": ["get"]}], "aggregationRule": {}}),
            ),
            (
                "apps",
                "Deployment",
                json!({"metadata": {"name": "a"}, "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "c"}]}}}, "status": {"replicas": 1}}),
            ),
        ] {
            let (slow, fast) = both(group, kind, &object, &status);
            assert_eq!(slow, fast, "{kind}");
        }
    }

    #[test]
    fn nothing_has_items_before_it_is_written() {
        fn holds_items(value: &Value) -> bool {
            match value {
                Value::Array(items) => !items.is_empty(),
                Value::Object(fields) => fields.values().any(holds_items),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            }
        }
        for (group, version, kind) in types::kinds() {
            let shape = Shape::Named(types::name_of_kind(group, version, kind).unwrap());
            assert!(!holds_items(&decode::empty(&shape)), "{kind}");
        }
    }
}

//! Who has written an object, as its metadata says, and which writers are a reason to look at it. No I/O.

use std::hash::{DefaultHasher, Hash, Hasher};

use objects::managed_fields::{FieldSet, PathElement};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::object_diff::Step;
use crate::cluster::request::MANAGER;

/// Managers whose changes belong to the life of an object.
const SYSTEM: [&str; 5] =
    ["kube-", "kubelet", "addon-operator", "before-first-apply", "clusterrole-aggregation-controller"];

/// Which fields one manager has written, and when.
#[derive(Deserialize)]
pub(super) struct ManagedFields {
    #[serde(default)]
    manager: String,
    #[serde(default)]
    operation: String,
    #[serde(default, rename = "apiVersion")]
    version: String,
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    time: String,
    #[serde(rename = "fieldsV1")]
    fields: Option<Box<RawValue>>,
}

/// The writers of an object, small enough to be kept for every object of every release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Writers {
    own: Written,
    others: Vec<Writer>,
}

/// Which fields were written, and when, as hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Written {
    fields: u64,
    time: u64,
}

/// Somebody else who has written an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Writer {
    who: u64,
    written: Written,
    /// Whether none of these fields was rendered.
    is_harmless: bool,
}

impl Writers {
    /// Returns who has written an object with these managed fields.
    pub(super) fn of(entries: &[ManagedFields]) -> Self {
        let mut own = Vec::new();
        let mut others = Vec::new();
        for entry in entries.iter().filter(|entry| entry.subresource != "status") {
            let written = Written {
                fields: hash(&entry.fields.as_ref().map(|fields| fields.get())),
                time: hash(&entry.time),
            };
            if entry.manager == MANAGER {
                own.push((written.fields, written.time));
            } else if !entry.is_of_system() {
                others.push(Writer { who: entry.who(), written, is_harmless: false });
            }
        }
        let fields: Vec<u64> = own.iter().map(|(fields, _)| *fields).collect();
        let times: Vec<u64> = own.iter().map(|(_, time)| *time).collect();
        Self { own: Written { fields: hash(&fields), time: hash(&times) }, others }
    }

    /// Takes over what is known of the writers `before`, and returns whether a rendered field may have another value
    /// since then.
    ///
    /// A writer whose fields were not rendered may write them as often as it likes. One that takes a rendered field from
    /// us shows by fewer fields of ours that we did not write ourselves.
    pub(super) fn renew(&mut self, before: &Self) -> bool {
        let is_written_by_us = self.own.time != before.own.time;
        let mut is_doubtful = !is_written_by_us && self.own.fields != before.own.fields;
        for writer in &mut self.others {
            let same = |old: &&Writer| old.who == writer.who && old.written.fields == writer.written.fields;
            match before.others.iter().find(same) {
                Some(old) => {
                    writer.is_harmless = old.is_harmless;
                    is_doubtful |= !old.is_harmless && old.written.time != writer.written.time;
                }
                None => is_doubtful = true,
            }
        }
        let left = |old: &Writer| !old.is_harmless && !self.others.iter().any(|new| new.who == old.who);
        is_doubtful || (!is_written_by_us && before.others.iter().any(left))
    }

    /// Returns whether somebody else has written fields that may have been rendered.
    pub(super) fn are_doubtful(&self) -> bool {
        self.others.iter().any(|writer| !writer.is_harmless)
    }

    /// Records who of `looked`, the writers before a look, had written no rendered field, given as what
    /// [`ManagedFields::who`] returns.
    pub(super) fn judge(&mut self, looked: &Self, harmless: &[u64]) {
        for writer in &mut self.others {
            let same = |old: &Writer| old.who == writer.who && old.written.fields == writer.written.fields;
            writer.is_harmless |= harmless.contains(&writer.who) && looked.others.iter().any(same);
        }
    }
}

impl ManagedFields {
    /// Reads the managed fields of a whole object.
    pub(super) fn read(object: &Value) -> Vec<Self> {
        let entries = object.pointer("/metadata/managedFields").cloned().unwrap_or_default();
        serde_json::from_value(entries).unwrap_or_default()
    }

    /// Returns a number for the manager and the way it writes.
    pub(super) fn who(&self) -> u64 {
        hash(&(&self.manager, &self.operation, &self.version, &self.subresource))
    }

    /// Returns the name of the manager, if it is not the operator.
    pub(super) fn other(&self) -> Option<&str> {
        Some(self.manager.as_str()).filter(|manager| *manager != MANAGER && !manager.is_empty())
    }

    /// Reports whether its changes belong to the life of an object.
    pub(super) fn is_of_system(&self) -> bool {
        SYSTEM.iter().any(|system| self.manager.starts_with(system))
    }

    /// Returns the fields.
    pub(super) fn field_set(&self) -> FieldSet {
        let fields: Option<Value> =
            self.fields.as_ref().and_then(|fields| serde_json::from_str(fields.get()).ok());
        fields.and_then(|fields| FieldSet::from_fields_v1(&fields)).unwrap_or_default()
    }

    /// Reports whether one of its fields is in `rendered`.
    pub(super) fn touches(&self, rendered: &Value) -> bool {
        self.any_field(|path| is_in(rendered, path))
    }

    /// Reports whether it has written the field at `place` of `object`, or one below it.
    pub(super) fn has(&self, object: &Value, place: &[Step]) -> bool {
        self.any_field(|path| leads_to(object, path, place))
    }

    /// Reports whether `is` holds for one of the fields. That a map or an item exists is no field if it has fields.
    fn any_field(&self, is: impl Fn(&[PathElement]) -> bool) -> bool {
        let set = self.field_set();
        let mut any = false;
        set.each(&mut |path| any = any || (!has_below(&set, path) && is(path)));
        any
    }
}

fn has_below(set: &FieldSet, path: &[PathElement]) -> bool {
    match path {
        [] => !set.is_empty(),
        [first, rest @ ..] => set.below(first).is_some_and(|below| has_below(below, rest)),
    }
}

/// Reports whether a path of managed fields leads to something in `value`.
fn is_in(value: &Value, path: &[PathElement]) -> bool {
    let Some((first, rest)) = path.split_first() else { return true };
    match (first, value) {
        (PathElement::FieldName(name), Value::Object(map)) => {
            map.get(name).is_some_and(|inner| is_in(inner, rest))
        }
        (PathElement::Key(keys), Value::Array(items)) => {
            items.iter().any(|item| is_named(item, keys) && is_in(item, rest))
        }
        (PathElement::Value(wanted), Value::Array(items)) => items.contains(wanted),
        (PathElement::Index(index), Value::Array(items)) => usize::try_from(*index)
            .ok()
            .and_then(|index| items.get(index))
            .is_some_and(|item| is_in(item, rest)),
        (_, Value::Null) => false,
        // Another type stands there, so that the field takes its place.
        (_, _) => true,
    }
}

/// Reports whether an item has the fields of a key. What it leaves out has a default.
fn is_named(item: &Value, keys: &[(String, Value)]) -> bool {
    keys.iter().all(|(name, value)| item.get(name).is_none_or(|own| own == value))
}

/// Reports whether a path of managed fields is that of `place` in `object`, leads to it, or begins with it.
fn leads_to(object: &Value, path: &[PathElement], place: &[Step]) -> bool {
    let (Some((first, path)), Some((step, place))) = (path.split_first(), place.split_first()) else {
        return true;
    };
    let inner = match step {
        Step::Field(name) => object.get(name),
        Step::Item(index) => object.get(index),
    };
    let inner = inner.unwrap_or(&Value::Null);
    let is_same = match (first, step) {
        (PathElement::FieldName(name), Step::Field(field)) => name == field,
        (PathElement::Key(keys), Step::Item(_)) => is_named(inner, keys),
        (PathElement::Value(value), Step::Item(_)) => value == inner,
        (PathElement::Index(index), Step::Item(item)) => usize::try_from(*index).ok() == Some(*item),
        (_, _) => false,
    };
    is_same && leads_to(inner, path, place)
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entries(entries: &Value) -> Vec<ManagedFields> {
        ManagedFields::read(&json!({"metadata": {"managedFields": entries}}))
    }

    fn entry(manager: &str, time: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time, "fieldsV1": fields})
    }

    fn writers(list: &[Value]) -> Writers {
        Writers::of(&entries(&json!(list)))
    }

    #[test]
    fn slip_07_a_writer_of_what_is_not_rendered_is_looked_at_once() {
        let ours = entry("helm", "1", &json!({"f:data": {"f:k": {}}}));
        let note =
            |time: &str| entry("kubectl", time, &json!({"f:metadata": {"f:annotations": {"f:note": {}}}}));
        let mut first = writers(&[ours.clone(), note("2")]);
        assert!(first.renew(&writers(std::slice::from_ref(&ours))));
        let looked = first.clone();
        let rendered = json!({"metadata": {"annotations": {"own": "x"}}, "data": {"k": "v"}});
        let harmless: Vec<u64> = entries(&json!([note("2")]))
            .iter()
            .filter(|entry| !entry.touches(&rendered))
            .map(ManagedFields::who)
            .collect();
        first.judge(&looked, &harmless);
        assert!(!first.are_doubtful());
        let mut next = writers(&[ours, note("4")]);
        assert!(!next.renew(&first) && !next.are_doubtful());
    }

    #[test]
    fn slip_07_a_rendered_field_that_is_taken_changed_again_or_removed_is_a_reason_to_look() {
        let ours = |time: &str, fields: &Value| entry("helm", time, fields);
        let whole = json!({"f:data": {"f:k": {}, "f:l": {}}});
        let less = json!({"f:data": {"f:l": {}}});
        let theirs = |time: &str| entry("kubectl", time, &json!({"f:data": {"f:k": {}}}));
        let before = writers(&[ours("1", &whole)]);
        let mut taken = writers(&[ours("1", &less), theirs("2")]);
        assert!(taken.renew(&before));
        let mut again = writers(&[ours("1", &less), theirs("3")]);
        assert!(again.renew(&taken));
        let mut status = writers(&[ours("1", &less), theirs("3")]);
        assert!(!status.renew(&again), "nobody wrote it");
        let mut removed = writers(&[ours("1", &less)]);
        assert!(removed.renew(&before), "a field that is removed has no writer");
        let mut back = writers(&[ours("5", &whole)]);
        assert!(!back.renew(&again), "that is our own upgrade");
        let system = entry("kube-controller-manager", "2", &json!({"f:spec": {"f:x": {}}}));
        let mut other = writers(&[ours("1", &whole), system]);
        assert!(!other.renew(&before));
    }

    #[test]
    fn fields_are_found_in_what_was_rendered() {
        let rendered = json!({
            "spec": {"replicas": 2, "ports": [{"port": 80, "name": "http"}], "set": ["a"], "selector": {"x": "y"}},
        });
        for (fields, expected) in [
            (json!({"f:spec": {"f:replicas": {}}}), true),
            (json!({"f:spec": {".": {}, "f:paused": {}}}), false),
            (json!({"f:spec": {"f:selector": {}}}), true),
            (json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:name": {}}}}}), true),
            (
                json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:nodePort": {}}}}}),
                false,
            ),
            (
                json!({"f:spec": {"f:ports": {"k:{\"port\":81,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}}}}),
                false,
            ),
            (json!({"f:spec": {"f:set": {"v:\"a\"": {}}}}), true),
            (json!({"f:spec": {"f:set": {"v:\"b\"": {}}}}), false),
        ] {
            let found = entries(&json!([entry("x", "1", &fields)])).remove(0).touches(&rendered);
            assert_eq!(found, expected, "{fields}");
        }
    }

    #[test]
    fn the_writer_of_a_place_is_found() {
        let object =
            json!({"spec": {"containers": [{"name": "a"}, {"name": "b", "image": "i", "args": ["x"]}]}});
        let field = |name: &str| Step::Field(name.to_owned());
        let place = [field("spec"), field("containers"), Step::Item(1), field("image")];
        for (fields, expected) in [
            (json!({"f:spec": {"f:containers": {"k:{\"name\":\"b\"}": {"f:image": {}}}}}), true),
            (json!({"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {"f:image": {}}}}}), false),
            (json!({"f:spec": {"f:containers": {"k:{\"name\":\"b\"}": {".": {}, "f:args": {}}}}}), false),
            (json!({"f:spec": {"f:containers": {}}}), true),
        ] {
            let found = entries(&json!([entry("x", "1", &fields)])).remove(0).has(&object, &place);
            assert_eq!(found, expected, "{fields}");
        }
    }
}

//! Server-side apply.

use serde_json::Value;
use thiserror::Error;

use super::Change;
use super::compare::{compare, equal};
use super::entry::{FieldOwner, ManagedFields, VersionedSet};
use super::field_set::{FieldSet, path_text};
use super::merge::{merged, removed};
use super::path_element::PathElement;
use super::type_ref::TypeRef;
use super::typed::{paths, validate};
use super::update::{NEVER_OWNED, clear, recorded};
use crate::decode;
use crate::types::Shape;

/// Why an object could not be applied.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ApplyError {
    /// The request can't be understood.
    #[error("{0}")]
    BadRequest(String),
    /// The object does not fit its type.
    #[error("failed to create typed patch object ({object}): {why}")]
    Typed {
        /// Namespace, name and kind.
        object: String,
        /// What does not fit.
        why: String,
    },
    /// Others own fields that the object wants to have otherwise.
    #[error("{}", conflict_text(.0))]
    Conflicts(Vec<Conflict>),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// One field that another owner has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Who, as texts show it: `"kubectl" using apps/v1`.
    pub owner: String,
    /// The field, for example `.spec.replicas`.
    pub field: String,
}

fn conflict_text(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", one.owner, one.field);
    }
    let mut lines: Vec<String> = Vec::new();
    let mut last = "";
    for conflict in conflicts {
        if conflict.owner != last {
            lines.push(format!("conflicts with {}:", conflict.owner));
            last = &conflict.owner;
        }
        lines.push(format!("- {}", conflict.field));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

/// What an apply leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object, owners included; not yet completed with defaults.
    pub object: Value,
    /// Whether anything but owners has changed.
    pub changed: bool,
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Returns the live object after `applied` was applied by `change.manager`.
///
/// With `force`, fields that others own are taken over. Without a live object the result is a new one.
pub fn apply(
    live: Option<&Value>,
    applied: &Value,
    change: &Change<'_>,
    force: bool,
) -> Result<Applied, ApplyError> {
    check(applied, change.shape, change.api_version)?;
    let mut current = match live {
        Some(live) => live.clone(),
        None => decode::empty(change.shape),
    };
    let bad = || ApplyError::Other("failed to decode managed fields".to_owned());
    let mut owners = ManagedFields::of(&current).ok_or_else(bad)?;
    clear(&mut current);
    if owners.0.is_empty() {
        owners = recorded(None, &current, owners, change, "before-first-apply");
    }
    let mut result = merge_applied(&current, applied, &owners, change, force);
    if let Err(ApplyError::Conflicts(_)) = &result
        && change.manager == "kubectl"
    {
        result = without_last_applied_conflicts(&current, applied, &owners, change, result);
    }
    let mut done = result?;
    if change.manager == "kubectl" {
        update_last_applied(&mut done.object, applied);
    }
    Ok(done)
}

/// Refuses objects of another version, and those that do not fit their type.
pub fn check(applied: &Value, shape: &Shape, api_version: &str) -> Result<(), ApplyError> {
    let text = |pointer: &str| applied.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let version = text("/apiVersion");
    if version != api_version {
        return Err(ApplyError::BadRequest(format!(
            "Incorrect version specified in apply patch. Specified patch version: {version}, expected: {api_version}"
        )));
    }
    if applied.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    let found = validate(applied, TypeRef::new(shape));
    if found.is_empty() {
        return Ok(());
    }
    let why = match found.as_slice() {
        [one] => one.clone(),
        many => {
            let lines: Vec<String> = many.iter().map(|line| format!("  {line}")).collect();
            format!("errors:\n{}", lines.join("\n"))
        }
    };
    let kind = text("/kind");
    let slash = if version.contains('/') { "" } else { "/" };
    let object =
        format!("{}/{}; {slash}{version}, Kind={kind}", text("/metadata/namespace"), text("/metadata/name"));
    Err(ApplyError::Typed { object, why })
}

fn merge_applied(
    live: &Value,
    applied: &Value,
    owners: &ManagedFields,
    change: &Change<'_>,
    force: bool,
) -> Result<Applied, ApplyError> {
    let type_ref = TypeRef::new(change.shape);
    let failed = |why| ApplyError::Other(format!("failed to merge config: {why}"));
    let laid = merged(Some(live), Some(applied), type_ref).map_err(failed)?.unwrap_or_default();
    let owner = FieldOwner {
        name: change.manager.to_owned(),
        applies: true,
        api_version: String::new(),
        subresource: change.subresource.to_owned(),
    };
    let mut owners = owners.clone();
    let before = owners.0.get(&owner).cloned();
    let versioned = VersionedSet {
        fields: paths(applied, type_ref).without(change.ignored),
        api_version: change.api_version.to_owned(),
        time: before.as_ref().and_then(|versioned| versioned.time.clone()),
    };
    owners.0.insert(owner.clone(), versioned);
    let object = match &before {
        Some(before) if !before.fields.is_empty() => pruned(&laid, &before.fields, &owners, type_ref),
        _ => laid,
    };
    resolve_conflicts(live, &object, &mut owners, &owner, change, force)?;
    let changed = !equal(live, &object);
    if let Some(versioned) = owners.0.get_mut(&owner) {
        versioned.fields = std::mem::take(&mut versioned.fields).difference(&NEVER_OWNED);
        if changed {
            versioned.time = Some(change.now.to_owned());
        }
        if versioned.fields.is_empty() {
            owners.0.remove(&owner);
        }
    }
    let mut object = if changed { object } else { live.clone() };
    owners.put_into(&mut object);
    Ok(Applied { object, changed })
}

/// Takes from the other owners what the write changes or removes; without `force`, reports them as conflicts.
fn resolve_conflicts(
    live: &Value,
    object: &Value,
    owners: &mut ManagedFields,
    owner: &FieldOwner,
    change: &Change<'_>,
    force: bool,
) -> Result<(), ApplyError> {
    let found = compare(live, object, TypeRef::new(change.shape)).ignore(change.ignored);
    let changed = found.modified.union(found.added);
    let mut conflicts = Vec::new();
    for (other, versioned) in owners.0.iter_mut().filter(|(other, _)| *other != owner) {
        let contested = versioned.fields.intersection(&changed);
        let named = other.to_string();
        contested.each(&mut |path| {
            conflicts.push(Conflict { owner: named.clone(), field: path_text(path) });
        });
        versioned.fields =
            std::mem::take(&mut versioned.fields).difference(&contested).difference(&found.removed);
    }
    if !force && !conflicts.is_empty() {
        return Err(ApplyError::Conflicts(conflicts));
    }
    owners.0.retain(|other, versioned| other == owner || !versioned.fields.is_empty());
    Ok(())
}

/// Returns the object without what the applier owned before, unless an owner (it included) has it now.
fn pruned(laid: &Value, before: &FieldSet, owners: &ManagedFields, type_ref: TypeRef<'_>) -> Value {
    let full = |set: &FieldSet| with_parents(set, type_ref);
    let before = full(before);
    let without = removed(laid, &before, type_ref).unwrap_or_default();
    let all = full(&paths(laid, type_ref));
    let mut all_owned = FieldSet::default();
    for versioned in owners.0.values() {
        all_owned = all_owned.union(versioned.fields.clone());
    }
    let kept = full(&paths(&without, type_ref)).union(full(&all_owned));
    let pruned = removed(laid, &all.clone().difference(&kept), type_ref).unwrap_or_default();
    // What the applier never owned stays, even when it hangs below something that went.
    let left = full(&paths(&pruned, type_ref));
    removed(laid, &all.difference(&left).intersection(&before), type_ref).unwrap_or_default()
}

fn with_parents(set: &FieldSet, type_ref: TypeRef<'_>) -> FieldSet {
    set.with_parents(type_ref, &|type_ref: TypeRef<'_>, step: &PathElement| type_ref.descend(step))
}

/// Conflicts about fields that are still as `kubectl apply` left them are none: the same person moves to server-side apply.
fn without_last_applied_conflicts(
    live: &Value,
    applied: &Value,
    owners: &ManagedFields,
    change: &Change<'_>,
    result: Result<Applied, ApplyError>,
) -> Result<Applied, ApplyError> {
    let Err(ApplyError::Conflicts(conflicts)) = &result else {
        return result;
    };
    let Some(unchanged) = unchanged_since_last_applied(live, change) else {
        return result;
    };
    let mut allowed = Vec::new();
    unchanged.each(&mut |path| allowed.push(path_text(path)));
    let left: Vec<Conflict> =
        conflicts.iter().filter(|conflict| !allowed.contains(&conflict.field)).cloned().collect();
    if left.is_empty() {
        merge_applied(live, applied, owners, change, true)
    } else {
        Err(ApplyError::Conflicts(left))
    }
}

fn unchanged_since_last_applied(live: &Value, change: &Change<'_>) -> Option<FieldSet> {
    let annotation = live.pointer("/metadata/annotations")?.get(LAST_APPLIED)?.as_str()?;
    let last: Value = serde_json::from_str(annotation).ok()?;
    if last.get("apiVersion")?.as_str()? != change.api_version {
        return None;
    }
    let type_ref = TypeRef::new(change.shape);
    let found = compare(&last, live, type_ref);
    let set = paths(&last, type_ref).difference(&found.modified).difference(&found.added);
    Some(set.difference(&found.removed))
}

fn update_last_applied(object: &mut Value, applied: &Value) {
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    let Some(annotations) = annotations else {
        return;
    };
    if annotations.get(LAST_APPLIED).and_then(Value::as_str).is_none_or(str::is_empty) {
        return;
    }
    let mut applied = applied.clone();
    let metadata = applied.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        let emptied = metadata.get_mut("annotations").and_then(Value::as_object_mut).is_some_and(|own| {
            own.remove(LAST_APPLIED);
            own.is_empty()
        });
        if emptied {
            metadata.remove("annotations");
        }
    }
    annotations.insert(LAST_APPLIED.to_owned(), Value::from(format!("{applied}\n")));
}

#[cfg(test)]
mod tests {
    #![expect(clippy::needless_pass_by_value, reason = "tests read better so")]
    use super::super::update;
    use super::*;
    use crate::types::{self, Shape};
    use serde_json::json;

    fn change<'a>(shape: &'a Shape, manager: &'a str, ignored: &'a FieldSet) -> Change<'a> {
        Change {
            shape,
            api_version: "apps/v1",
            subresource: "",
            manager,
            now: "2026-01-01T00:00:00Z",
            ignored,
        }
    }

    fn shape() -> Shape {
        Shape::Named(types::name_of_kind("apps", "v1", "Deployment").unwrap())
    }

    fn deployment(spec: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec})
    }

    fn containers(list: Value) -> Value {
        json!({"template": {"spec": {"containers": list}}})
    }

    fn owned(object: &Value, manager: &str) -> Value {
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let found = entries.iter().find(|entry| entry["manager"] == manager);
        found.map(|entry| entry["fieldsV1"].clone()).unwrap_or_default()
    }

    #[test]
    fn a_create_is_owned_by_who_made_it() {
        let (shape, ignored) = (shape(), FieldSet::of_fields(&["status"]));
        let node = crate::decode::Node::from(deployment(json!({
            "replicas": 1,
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a", "image": "i"}]}},
        })));
        let mut new = crate::decode::typed(node, &shape).unwrap().value;
        update(None, &mut new, &change(&shape, "me", &ignored));
        let expected = json!({"f:spec": {
            "f:replicas": {},
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}}},
            },
        }});
        assert_eq!(owned(&new, "me"), expected);
    }

    #[test]
    fn what_another_owns_is_a_conflict_unless_forced() {
        let (shape, ignored) = (shape(), FieldSet::default());
        let one = apply(None, &deployment(json!({"replicas": 1})), &change(&shape, "one", &ignored), false)
            .unwrap();
        let two = deployment(json!({"replicas": 2}));
        let error = apply(Some(&one.object), &two, &change(&shape, "two", &ignored), false).unwrap_err();
        assert_eq!(error.to_string(), "Apply failed with 1 conflict: conflict with \"one\": .spec.replicas");
        let forced = apply(Some(&one.object), &two, &change(&shape, "two", &ignored), true).unwrap();
        assert_eq!(forced.object["spec"]["replicas"], json!(2));
        assert_eq!(owned(&forced.object, "one"), Value::Null);
        assert_eq!(owned(&forced.object, "two"), json!({"f:spec": {"f:replicas": {}}}));
    }

    #[test]
    fn what_is_no_longer_applied_goes_unless_somebody_else_owns_it() {
        let (shape, ignored) = (shape(), FieldSet::default());
        let both = deployment(containers(
            json!([{"name": "a", "image": "1", "env": [{"name": "X"}]}, {"name": "b", "image": "1"}]),
        ));
        let live = apply(None, &both, &change(&shape, "one", &ignored), false).unwrap().object;
        let other = deployment(containers(json!([{"name": "b", "image": "1"}])));
        let live = apply(Some(&live), &other, &change(&shape, "two", &ignored), false).unwrap().object;
        let less = deployment(containers(json!([{"name": "a", "image": "1"}])));
        let live = apply(Some(&live), &less, &change(&shape, "one", &ignored), false).unwrap().object;
        let expected = json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]);
        let mut found = live["spec"]["template"]["spec"]["containers"].clone();
        // The emptied list is completed to nothing when the object is read as its type.
        found[0].as_object_mut().unwrap().retain(|_, value| !value.is_null());
        assert_eq!(found, expected);
        assert_eq!(
            owned(&live, "one")["f:spec"]["f:template"]["f:spec"]["f:containers"].as_object().unwrap().len(),
            1
        );
    }

    #[test]
    fn objects_that_do_not_fit_are_refused() {
        let (shape, ignored) = (shape(), FieldSet::default());
        let error =
            apply(None, &deployment(json!({"foo": 1})), &change(&shape, "one", &ignored), false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "failed to create typed patch object (/a; apps/v1, Kind=Deployment): .spec.foo: field not declared in schema"
        );
    }
}

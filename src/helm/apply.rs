//! Writing the objects of a release.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::stream;
use futures::{FutureExt as _, StreamExt as _};
use objects::patch;
use objects::types::{self, Shape};
use serde_json::{Map, Value};

use super::error::ReleaseError;
use super::object::{self, Key, Object, is_kept, mark};
use super::object_diff;
use crate::cluster::request::{PatchKind, RequestError, Requests};
use crate::cluster::{Discovery, ResolveError, Resource};

/// How many objects of one kind are written at the same time.
const AT_ONCE: usize = 8;

/// How often a patch is tried when others change the object at the same time.
const ATTEMPTS: usize = 4;

/// How long a CRD may take to be established.
const ESTABLISH: Duration = Duration::from_secs(30);

/// How long is waited between two looks at a CRD.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

const CRD: &str = "CustomResourceDefinition";

/// What an object lacked when it was written.
enum Written {
    Nothing,
    /// It was not there.
    Missing(String),
    /// It was different.
    Different(String),
}

/// Writes the objects of one release.
pub(super) struct Applier<'a> {
    pub(super) requests: &'a Requests,
    pub(super) discovery: &'a Discovery,
    pub(super) release: &'a str,
    pub(super) namespace: &'a str,
}

impl Applier<'_> {
    /// Checks that the kinds of all objects are known, or brought by one of them.
    pub(super) async fn check_kinds(&self, objects: &[Object]) -> Result<(), ReleaseError> {
        let mut checked: Vec<(&str, &str)> = Vec::new();
        for object in objects {
            let kind = (object.api_version.as_str(), object.kind.as_str());
            if checked.contains(&kind) || objects.iter().any(|crd| brings(crd, object)) {
                continue;
            }
            self.resource(object).await?;
            checked.push(kind);
        }
        Ok(())
    }

    async fn resource(&self, object: &Object) -> Result<Resource, ReleaseError> {
        self.discovery
            .resolve(&object.api_version, &object.kind)
            .await
            .map_err(|source| ReleaseError::of_kind(&object.path, &object.kind, &object.name, source))
    }

    /// Returns the collection and the path of an object.
    fn paths(&self, object: &Object, resource: &Resource) -> (String, String) {
        let namespace = object.namespace.as_deref().unwrap_or(self.namespace);
        let collection = resource.path(Some(namespace));
        let path = resource.object_path(Some(namespace), &object.name);
        (collection, path)
    }

    /// Writes `objects`, which are sorted by kind, and returns what the first that was
    /// written lacked, those first that were not there at all. What one object is refused
    /// for does not stop the others; all refusals are reported in the end.
    pub(super) async fn apply(
        &self,
        objects: &[Object],
        before: &[Object],
    ) -> Result<Option<String>, ReleaseError> {
        let before: BTreeMap<Key, &Object> =
            before.iter().map(|object| (object.key(self.namespace), object)).collect();
        let mut problems = Vec::new();
        let (mut missing, mut differing) = (None, None);
        for group in objects.chunk_by(|a, b| a.kind == b.kind) {
            let earlier = |object: &Object| before.get(&object.key(self.namespace)).copied();
            // Boxed and collected, so that the whole can be sent to another thread.
            let writes: Vec<_> =
                group.iter().map(|object| self.write(object, earlier(object)).boxed()).collect();
            let outcomes: Vec<_> = stream::iter(writes).buffered(AT_ONCE).collect().await;
            for outcome in outcomes {
                match outcome {
                    Ok(Written::Nothing) => {}
                    Ok(Written::Missing(what)) => missing = missing.or(Some(what)),
                    Ok(Written::Different(what)) => differing = differing.or(Some(what)),
                    Err(error) => problems.push(error.to_string()),
                }
            }
            if group.first().is_some_and(|object| object.kind == CRD) {
                self.await_crds(group, &mut problems).await;
            }
        }
        if problems.is_empty() { Ok(missing.or(differing)) } else { Err(ReleaseError::Objects(problems)) }
    }

    async fn await_crds(&self, crds: &[Object], problems: &mut Vec<String>) {
        for crd in crds {
            if let Err(error) = established(self.requests, &crd.name).await {
                problems.push(error.to_string());
            }
        }
        self.discovery.refresh();
    }

    /// Creates or changes one object and returns what it lacked. One that exists already
    /// is adopted.
    async fn write(&self, object: &Object, before: Option<&Object>) -> Result<Written, ReleaseError> {
        let resource = self.resource(object).await?;
        let (collection, path) = self.paths(object, &resource);
        let wanted = self.wanted(object, &resource);
        let refused = |error: RequestError| {
            ReleaseError::Objects(vec![format!("{}: {} {}: {error}", object.path, object.kind, object.name)])
        };
        let shown = object_diff::shown(&object.key(self.namespace));
        let mut is_new = before.is_none();
        for attempt in 1.. {
            if is_new {
                match self.requests.create(&collection, &wanted).await {
                    Ok(_) => return Ok(Written::Missing(format!("{shown} was missing"))),
                    Err(error) if error.code() == 409 && attempt < ATTEMPTS => {}
                    Err(error) => return Err(refused(error)),
                }
            }
            let Some(mut current) = self.requests.get(&path).await.map_err(refused)? else {
                is_new = true;
                if attempt >= ATTEMPTS {
                    break;
                }
                continue;
            };
            let original = before.map_or(&wanted, |before| &before.value);
            if resource.kind == "Secret" && resource.group.is_empty() {
                read_back(&wanted, &mut current);
            }
            let (kind, change) = difference(&resource, original, &wanted, &current).map_err(|problem| {
                ReleaseError::Objects(vec![format!(
                    "{}: {} {}: {problem}",
                    object.path, object.kind, object.name
                )])
            })?;
            if change.as_object().is_none_or(Map::is_empty) {
                return Ok(Written::Nothing);
            }
            match self.requests.patch(&path, kind, &change).await {
                Ok(_) => {
                    return Ok(Written::Different(format!(
                        "{shown} differed at {}",
                        object_diff::place(&change)
                    )));
                }
                Err(error) if matches!(error.code(), 404 | 409) && attempt < ATTEMPTS => {
                    is_new = error.code() == 404;
                }
                Err(error) => return Err(refused(error)),
            }
        }
        Err(ReleaseError::Objects(vec![format!(
            "{}: {} {}: others delete it as fast as it is made",
            object.path, object.kind, object.name
        )]))
    }

    /// Returns what is sent: the object with Helm's marks and its namespace.
    fn wanted(&self, object: &Object, resource: &Resource) -> Value {
        let mut wanted = object.value.clone();
        mark(&mut wanted, self.release, self.namespace);
        if let Some(metadata) = wanted.get_mut("metadata").and_then(Value::as_object_mut) {
            if resource.namespaced {
                let namespace = object.namespace.as_deref().unwrap_or(self.namespace);
                metadata.insert("namespace".to_owned(), namespace.into());
            } else {
                metadata.remove("namespace");
            }
        }
        wanted
    }

    /// Deletes objects that are no longer part of the release, the last ones first.
    ///
    /// Kinds that the cluster no longer has are passed over: so are their objects gone.
    pub(super) async fn delete_gone(
        &self,
        before: &[Object],
        objects: &[Object],
    ) -> Result<(), ReleaseError> {
        let keys: Vec<Key> = objects.iter().map(|object| object.key(self.namespace)).collect();
        let gone = before.iter().rev().filter(|object| !keys.contains(&object.key(self.namespace)));
        self.delete(gone).await
    }

    /// Deletes objects in the order given, but for those that an annotation keeps.
    pub(super) async fn delete<'o>(
        &self,
        objects: impl Iterator<Item = &'o Object>,
    ) -> Result<(), ReleaseError> {
        let mut problems = Vec::new();
        for object in objects.filter(|object| !object.is_kept()) {
            if let Err(error) = self.delete_one(object).await {
                problems.push(format!("{} {}: {error}", object.kind, object.name));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(ReleaseError::Objects(problems)) }
    }

    async fn delete_one(&self, object: &Object) -> Result<(), ReleaseError> {
        let resource = match self.discovery.resolve(&object.api_version, &object.kind).await {
            Ok(resource) => resource,
            Err(ResolveError::Unknown(_)) => return Ok(()),
            Err(source @ ResolveError::Cluster(_)) => {
                return Err(ReleaseError::of_kind(&object.path, &object.kind, &object.name, source));
            }
        };
        let (_, path) = self.paths(object, &resource);
        match self.requests.get(&path).await? {
            Some(live) if object::is_of_another(&live, self.release, self.namespace) => {
                tracing::info!(
                    release = self.release,
                    "{} {} stays: another release has taken it over",
                    object.kind,
                    object.name
                );
            }
            // The annotation may have been set in the cluster.
            Some(live) if !is_kept(&live) => self.requests.delete(&path).await.map(|_| ())?,
            Some(_) | None => {}
        }
        Ok(())
    }
}

/// Reports whether `crd` is the definition of the kind of `object`.
fn brings(crd: &Object, object: &Object) -> bool {
    let text = |pointer: &str| crd.value.pointer(pointer).and_then(Value::as_str);
    let group = object.api_version.rsplit_once('/').map(|(group, _)| group);
    crd.kind == CRD && text("/spec/names/kind") == Some(&object.kind) && text("/spec/group") == group
}

/// Waits until a CRD is established.
pub(super) async fn established(requests: &Requests, name: &str) -> Result<(), ReleaseError> {
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    let look = async {
        loop {
            match requests.get(&path).await? {
                Some(crd) if is_established(&crd) => return Ok::<(), ReleaseError>(()),
                Some(_) | None => tokio::time::sleep(LOOK_AGAIN).await,
            }
        }
    };
    let late = || ReleaseError::NotEstablished { name: name.to_owned(), seconds: ESTABLISH.as_secs() };
    tokio::time::timeout(ESTABLISH, look).await.map_err(|_| late())?
}

pub(super) fn is_established(crd: &Value) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    conditions.is_some_and(|conditions| {
        conditions.iter().any(|condition| {
            condition.get("type").and_then(Value::as_str) == Some("Established")
                && condition.get("status").and_then(Value::as_str) == Some("True")
        })
    })
}

/// Adds `stringData` to a Secret that was read, as far as its `data` has what is wanted:
/// the API server never returns it, so that it would differ for ever.
fn read_back(wanted: &Value, current: &mut Value) {
    let Some(texts) = wanted.get("stringData").and_then(Value::as_object) else { return };
    let is_there = |(key, text): &(&String, &Value)| {
        let own = |object: &Value| object.get("data").and_then(|data| data.get(key.as_str())).cloned();
        let text = text.as_str().map(|text| Value::from(STANDARD.encode(text)));
        // Where the chart has both, both are sent, so that the text wins again.
        own(wanted).is_none() && text.is_some() && own(current) == text
    };
    let found: Map<String, Value> =
        texts.iter().filter(is_there).map(|(key, text)| (key.clone(), text.clone())).collect();
    if let Some(current) = current.as_object_mut() {
        current.insert("stringData".to_owned(), found.into());
    }
}

/// Returns the three-way merge patch that brings `current` to `wanted` and removes what
/// only `original` had; what others have added stays.
fn difference(
    resource: &Resource,
    original: &Value,
    wanted: &Value,
    current: &Value,
) -> Result<(PatchKind, Value), String> {
    let shape = types::name_of_kind(&resource.group, &resource.version, &resource.kind);
    match shape {
        Some(name) if resource.kind != CRD => {
            let patch = patch::strategic::three_way(original, wanted, current, &Shape::Named(name))
                .map_err(|error| error.to_string())?;
            Ok((PatchKind::Strategic, patch))
        }
        Some(_) | None => Ok((PatchKind::Merge, merge_patch(original, wanted, current))),
    }
}

/// Returns the merge patch of three states.
fn merge_patch(original: &Value, wanted: &Value, current: &Value) -> Value {
    let (Value::Object(wanted), Value::Object(current)) = (wanted, current) else { return wanted.clone() };
    let mut patch = Map::new();
    for (key, new) in wanted {
        match current.get(key) {
            Some(old) if old == new => {}
            Some(old) if old.is_object() && new.is_object() => {
                let inner = merge_patch(original.get(key).unwrap_or(&Value::Null), new, old);
                if inner.as_object().is_none_or(|inner| !inner.is_empty()) {
                    patch.insert(key.clone(), inner);
                }
            }
            // A null of the chart asks for a field that is not there.
            None if new.is_null() => {}
            Some(_) | None => {
                patch.insert(key.clone(), new.clone());
            }
        }
    }
    if let Value::Object(original) = original {
        for key in original.keys().filter(|key| !wanted.contains_key(*key) && current.contains_key(*key)) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_keeps_what_others_added() {
        for (original, wanted, current, expected) in [
            (json!({"a": 1}), json!({"a": 1}), json!({"a": 1, "b": 2}), json!({})),
            (
                json!({"a": 1, "b": 1}),
                json!({"a": 2}),
                json!({"a": 1, "b": 1, "c": 1}),
                json!({"a": 2, "b": null}),
            ),
            (
                json!({"s": {"x": 1, "y": 1}}),
                json!({"s": {"x": 1}}),
                json!({"s": {"x": 1, "y": 1, "z": 1}}),
                json!({"s": {"y": null}}),
            ),
            (json!({}), json!({"l": [1]}), json!({"l": [1, 2]}), json!({"l": [1]})),
            (json!({}), json!({"n": null}), json!({}), json!({})),
            (json!({}), json!({"s": {"x": 1}}), json!({"s": "text"}), json!({"s": {"x": 1}})),
        ] {
            assert_eq!(merge_patch(&original, &wanted, &current), expected);
        }
    }

    #[test]
    fn texts_of_a_secret_differ_only_where_its_data_does() {
        let wanted = json!({"stringData": {"a": "x", "b": "y", "c": "z"}, "data": {"c": "AA=="}});
        let mut current =
            json!({"data": {"a": STANDARD.encode("x"), "b": "AA==", "c": STANDARD.encode("z")}});
        read_back(&wanted, &mut current);
        let patch = merge_patch(&wanted, &wanted, &current);
        assert_eq!(patch, json!({"stringData": {"b": "y", "c": "z"}, "data": {"c": "AA=="}}));
    }

    #[test]
    fn a_definition_brings_its_kind() {
        let object = |value: Value| Object {
            path: String::new(),
            api_version: value["apiVersion"].as_str().unwrap_or_default().to_owned(),
            kind: value["kind"].as_str().unwrap_or_default().to_owned(),
            name: String::new(),
            namespace: None,
            value,
        };
        let crd = object(json!({"kind": CRD, "spec": {"group": "x.io", "names": {"kind": "W"}}}));
        assert!(brings(&crd, &object(json!({"apiVersion": "x.io/v1", "kind": "W"}))));
        assert!(!brings(&crd, &object(json!({"apiVersion": "y.io/v1", "kind": "W"}))));
    }
}

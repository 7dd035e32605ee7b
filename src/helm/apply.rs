//! Writing the objects of a release.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{ApplyMode, TakenFrom, TakenObject};
use futures::stream;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use serde_json::{Map, Value};

use super::error::ReleaseError;
use super::merge::Merge;
use super::object::{self, Key, Object, is_kept};
use super::object_diff;
use super::taken_objects::TakenObjects;
use crate::cluster::request::{PatchKind, RequestError, Requests};
use crate::cluster::watch::Backoff;
use crate::cluster::{Discovery, ResolveError, Resource};

/// How many objects of one kind are written, or looked at, at the same time.
pub(super) const AT_ONCE: usize = 8;

/// How often a patch is tried when others change the object at the same time.
pub(super) const ATTEMPTS: usize = 4;

/// How long a CRD may take to be established.
const ESTABLISH: Duration = Duration::from_secs(30);

/// How long is waited between two looks at a CRD. Most are established at once; an API server that can't be asked is not
/// asked all the time.
const LOOK_AGAIN: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_millis(1_500));

const CRD: &str = "CustomResourceDefinition";

/// What an object lacked when it was written.
pub(super) enum Written {
    Nothing,
    /// It was not there.
    Missing(String),
    /// It was different.
    Different(String),
}

/// Why an object is not as it is wanted.
enum Unchanged {
    /// What has to be changed can't be found.
    Merge(String),
    /// The API server did not take the change.
    Refused(RequestError),
}

/// Writes the objects of one release.
pub(super) struct Applier<'a> {
    pub(super) requests: &'a Requests,
    pub(super) discovery: &'a Discovery,
    pub(super) release: &'a str,
    pub(super) namespace: &'a str,
    /// Objects of other releases that are written.
    pub(super) taken_over: &'a TakenObjects,
    /// How objects are written.
    pub(super) mode: ApplyMode,
}

/// What writing the objects of a release did.
#[derive(Debug, Default)]
pub(super) struct WriteOutcome {
    /// What the first object that was written lacked.
    pub(super) lacked: Option<String>,
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
    pub(super) fn paths(&self, object: &Object, resource: &Resource) -> (String, String) {
        let namespace = object.namespace.as_deref().unwrap_or(self.namespace);
        let collection = resource.path(Some(namespace));
        let path = resource.object_path(Some(namespace), &object.name);
        (collection, path)
    }

    /// Writes `objects`, which are sorted by kind, and returns what the first that was
    /// written lacked, those first that were not there at all. What one object is refused
    /// for does not stop the others; all refusals are reported in the end.
    ///
    /// `before` are the objects of all earlier revisions that may be in the cluster: which of
    /// them was written last is not known after a failure.
    pub(super) async fn apply(
        &self,
        objects: &[Object],
        before: &[Object],
    ) -> Result<WriteOutcome, ReleaseError> {
        let mut earlier: BTreeMap<Key, Vec<&Value>> = BTreeMap::new();
        for object in before {
            let states = earlier.entry(object.key(self.namespace)).or_default();
            if !states.contains(&&object.value) {
                states.push(&object.value);
            }
        }
        let mut problems = Vec::new();
        let (mut missing, mut differing) = (None, None);
        for group in objects.chunk_by(|a, b| a.kind == b.kind) {
            let earlier =
                |object: &Object| earlier.get(&object.key(self.namespace)).cloned().unwrap_or_default();
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
        if problems.is_empty() {
            Ok(WriteOutcome { lacked: missing.or(differing) })
        } else {
            Err(ReleaseError::Objects(problems))
        }
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
    /// is adopted. `earlier` are its states in revisions that may be in the cluster.
    async fn write(&self, object: &Object, earlier: Vec<&Value>) -> Result<Written, ReleaseError> {
        let resource = self.resource(object).await?;
        if self.mode == ApplyMode::Server {
            return self.write_by_server(object, &resource, &earlier).await;
        }
        let (collection, path) = self.paths(object, &resource);
        let wanted = object::wanted(object, &resource, self.release, self.namespace);
        let problem = |problem: String| {
            ReleaseError::Objects(vec![format!(
                "{}: {} {}: {problem}",
                object.path, object.kind, object.name
            )])
        };
        let refused = |error: RequestError| problem(error.to_string());
        let shown = object_diff::shown(&object.key(self.namespace));
        let mut is_new = earlier.is_empty();
        for attempt in 1.. {
            if is_new {
                match self.requests.make(&collection, &wanted).await {
                    Ok(_) => return Ok(Written::Missing(format!("{shown} was missing"))),
                    Err(error) if error.code() == 409 && attempt < ATTEMPTS => {}
                    Err(error) => return Err(refused(error)),
                }
            }
            let Some(current) = self.requests.get(&path).await.map_err(refused)? else {
                is_new = true;
                if attempt >= ATTEMPTS {
                    break;
                }
                continue;
            };
            let owner = object::other_owner(&current, self.release, self.namespace);
            // An object that others change all the time is changed all the same, in whatever version it is.
            let precise = attempt < ATTEMPTS;
            match self.change(&resource, &path, (&earlier, &wanted), (current, precise)).await {
                Ok(place) => {
                    if let Some(owner) = owner {
                        self.tell_taken(&shown, owner);
                    }
                    return Ok(match place {
                        Some(place) => Written::Different(format!("{shown} differed at {place}")),
                        None => Written::Nothing,
                    });
                }
                Err(Unchanged::Merge(what)) => return Err(problem(what)),
                Err(Unchanged::Refused(error)) if matches!(error.code(), 404 | 409) && attempt < ATTEMPTS => {
                    is_new = error.code() == 404;
                }
                Err(Unchanged::Refused(error)) => return Err(refused(error)),
            }
        }
        Err(problem("others delete it as fast as it is made".to_owned()))
    }

    /// Brings an object that exists to what is wanted, and returns the place of the first difference.
    ///
    /// Usually there is one earlier state. Where there are more, what only one of them had has to go, too.
    ///
    /// A `precise` change is for the version that was read: a request that is held up on its way may be carried out long
    /// after it was given up, and must not undo what a later upgrade wrote.
    async fn change(
        &self,
        resource: &Resource,
        path: &str,
        (earlier, wanted): (&[&Value], &Value),
        (mut current, precise): (Value, bool),
    ) -> Result<Option<String>, Unchanged> {
        let mut place = None;
        let merge = Merge::of(resource);
        if let Some((kind, change)) = merge.keys(earlier, wanted, &current) {
            place = Some(object_diff::place(&change));
            current = change_keys(self.requests, path, (kind, change), &current, precise)
                .await
                .map_err(Unchanged::Refused)?;
        }
        let steps = merge.steps(earlier);
        for (number, states) in steps.iter().enumerate() {
            if resource.kind == "Secret" && resource.group.is_empty() {
                read_back(wanted, &mut current);
            }
            let (kind, mut change) = merge.change(states, wanted, &current).map_err(Unchanged::Merge)?;
            if change.as_object().is_none_or(Map::is_empty) {
                continue;
            }
            let found = object_diff::place(&change);
            if precise {
                of_version(&mut change, &current);
            }
            if number + 1 < steps.len() {
                current = self.requests.patch(path, kind, &change).await.map_err(Unchanged::Refused)?;
            } else {
                self.requests.edit(path, kind, &change).await.map_err(Unchanged::Refused)?;
            }
            place.get_or_insert(found);
        }
        Ok(place)
    }

    /// Returns which of `objects` are of another release in the cluster, as they are shown, and of which.
    ///
    /// What is of a kind that the release is to bring is not there yet.
    pub(super) async fn of_others(&self, objects: &[Object]) -> Result<Vec<(String, String)>, ReleaseError> {
        // Boxed and collected, so that the whole can be sent to another thread.
        let looks: Vec<_> = objects.iter().map(|object| self.owner(object).boxed()).collect();
        let found: Vec<_> = stream::iter(looks).buffered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn owner(&self, object: &Object) -> Result<Option<(String, String)>, ReleaseError> {
        let resource = match self.discovery.resolve(&object.api_version, &object.kind).await {
            Ok(resource) => resource,
            Err(ResolveError::Unknown(_)) => return Ok(None),
            Err(source @ ResolveError::Cluster(_)) => {
                return Err(ReleaseError::of_kind(&object.path, &object.kind, &object.name, source));
            }
        };
        let (_, path) = self.paths(object, &resource);
        let owner = self.requests.get(&path).await?;
        let owner = owner.and_then(|found| object::other_owner(&found, self.release, self.namespace));
        Ok(owner.map(|owner| (object_diff::shown(&object.key(self.namespace)), owner)))
    }

    /// Reports that an object was of another release, which is the one to lose it.
    pub(super) fn tell_taken(&self, shown: &str, owner: String) {
        tracing::warn!(
            release = self.release,
            owner,
            "{shown} was taken over from release {owner}: render it in one of the two charts only"
        );
        self.taken_over
            .add(self.release, TakenObject { object: shown.to_owned(), from: TakenFrom::Release(owner) });
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
            // The request may be held up on its way, and somebody else make the object again meanwhile.
            Some(live) if !is_kept(&live) => match live.pointer("/metadata/uid").and_then(Value::as_str) {
                Some(uid) => self.requests.delete_this(&path, uid).await.map(drop)?,
                None => self.requests.delete(&path).await.map(drop)?,
            },
            Some(_) | None => {}
        }
        Ok(())
    }
}

/// Gives items of lists the keys back that others have edited, and returns the object as it is then. A `precise` change is for the
/// version that was read.
pub(super) async fn change_keys(
    requests: &Requests,
    path: &str,
    (kind, mut change): (PatchKind, Value),
    read: &Value,
    precise: bool,
) -> Result<Value, RequestError> {
    if precise {
        of_version(&mut change, read);
    }
    requests.patch(path, kind, &change).await
}

/// Makes a change one of the version of an object that was read.
pub(super) fn of_version(change: &mut Value, current: &Value) {
    let Some(version) = current.pointer("/metadata/resourceVersion") else { return };
    if let Some(fields) = change.as_object_mut()
        && let Some(metadata) = fields.entry("metadata").or_insert_with(|| Map::new().into()).as_object_mut()
    {
        metadata.insert("resourceVersion".to_owned(), version.clone());
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
    let mut unseen = None;
    let look = async {
        for looks in 1_u32.. {
            unseen = match requests.get(&path).await {
                Ok(Some(crd)) if is_established(&crd) => return Ok(()),
                Ok(_) => None,
                // An API server that can't be asked now may be in a moment.
                Err(error) if matches!(error.code(), 0 | 429 | 500..) => Some(error),
                Err(error) => return Err(ReleaseError::from(error)),
            };
            tokio::time::sleep(LOOK_AGAIN.after(looks)).await;
        }
        Ok(())
    };
    let looked = tokio::time::timeout(ESTABLISH, look).await;
    looked.unwrap_or_else(|_| {
        let late = ReleaseError::NotEstablished { name: name.to_owned(), seconds: ESTABLISH.as_secs() };
        Err(unseen.map_or(late, ReleaseError::from))
    })
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
pub(super) fn read_back(wanted: &Value, current: &mut Value) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::helm::merge::merge_patch;

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

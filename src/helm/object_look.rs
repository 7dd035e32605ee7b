//! Looks at objects that others may have changed, compares them with what was rendered, and puts them right.

use engine::ApplyMode;
use futures::{FutureExt as _, StreamExt as _, stream};
use objects::readiness::readiness;
use serde_json::{Map, Value};

use super::apply::{change_keys, of_version, read_back};
use super::awaited_releases::ReadinessLook;
use super::drift::{ChangedField, Doubt, Finding};
use super::error::ReleaseError;
use super::last_release::LastReleases;
use super::left_alone;
use super::merge::Merge;
use super::object::{self, Key, uid};
use super::object_diff::{self, Step};
use super::server_side;
use super::storage::Storage;
use super::writers::ManagedFields;
use crate::cluster::Resource;
use crate::cluster::request::{MANAGER, PatchKind, RequestError, Requests};

/// How many objects are asked for at the same time.
const AT_ONCE: usize = 8;

/// Compares objects of releases with what was rendered.
#[derive(Clone)]
pub(super) struct ObjectLook {
    requests: Requests,
    storage: Storage,
    last_releases: LastReleases,
    /// The namespace of the releases.
    namespace: String,
}

impl ObjectLook {
    pub(super) fn new(
        requests: Requests,
        storage: Storage,
        last_releases: LastReleases,
        namespace: &str,
    ) -> Self {
        Self { requests, storage, last_releases, namespace: namespace.to_owned() }
    }

    /// Reports whether objects are there. What can't be read counts as there: a look that fails is no absence.
    pub(super) async fn are_there(&self, objects: &[(Key, Resource)]) -> bool {
        let mut paths: Vec<String> = Vec::new();
        for object in objects {
            let verbs = &object.1.verbs;
            if verbs.is_empty() || verbs.iter().any(|verb| verb == "get") {
                paths.push(path(object));
            }
        }
        let look = |path: String| async move { !matches!(self.requests.get(&path).await, Ok(None)) };
        // Boxed and collected, so that the whole can be sent to another thread.
        let looks: Vec<_> = paths.into_iter().map(|path| look(path).boxed()).collect();
        let mut found = stream::iter(looks).buffer_unordered(AT_ONCE);
        while let Some(is_there) = found.next().await {
            if !is_there {
                return false;
            }
        }
        true
    }

    /// Returns which objects are not ready. One that may not be read counts as ready.
    pub(super) async fn readiness(&self, objects: &[(Key, Resource)]) -> ReadinessLook {
        let look = |object: (Key, Resource)| async move {
            let found = self.requests.get(&path(&object)).await;
            (object.0, found)
        };
        let looks: Vec<_> = objects.iter().map(|object| look(object.clone()).boxed()).collect();
        let mut found = stream::iter(looks).buffered(AT_ONCE);
        let mut all = ReadinessLook::default();
        while let Some((key, found)) = found.next().await {
            match found {
                Ok(Some(object)) => {
                    if let Err(unready) = readiness(&object) {
                        all.unready.push((key, unready.why));
                    }
                }
                Ok(None) => all.unready.push((key, "it does not exist".to_owned())),
                Err(error) if error.code() == 403 => {}
                Err(_) => all.has_failed = true,
            }
        }
        all
    }

    /// Returns whether an object is there that the watch of its kind does not show.
    ///
    /// The watch shows what has a label, so it is no evidence: where the object may not be read it is listed by its name, as whoever
    /// may watch it may.
    pub(super) async fn presence(&self, doubt: &Doubt) -> Result<Finding, ReleaseError> {
        let path = path(&(doubt.key.clone(), doubt.resource.clone()));
        let uid = match self.requests.get(&path).await {
            Ok(Some(object)) => Some(uid(&object).to_owned()),
            Ok(None) => None,
            Err(error) if matches!(error.code(), 403 | 405) => {
                let collection = doubt.resource.path(Some(&doubt.key.namespace));
                self.requests.uid_of(&collection, &doubt.key.name).await?
            }
            Err(error) => return Err(error.into()),
        };
        let is_there = uid.is_some_and(|uid| doubt.is_of(&uid));
        Ok(if is_there { Finding::There } else { Finding::Absent })
    }

    /// Reports whether somebody else seems to be changing a release, as its records say.
    pub(super) async fn is_changed_by_others(&self, release: &str) -> Result<bool, ReleaseError> {
        let Some(last) = self.last_releases.get(release) else { return Ok(false) };
        let history = self.storage.history(release).await?;
        Ok(last.deviation(&history, |stored| self.storage.is_ours(stored)).is_some_and(|found| found.passes))
    }

    /// Returns whether an object is there, and how it differs from what was rendered, if that is known.
    ///
    /// The API server is asked what would become of the object if it was written again: what it would only write
    /// in another way, and what its controllers have written, is no difference.
    pub(super) async fn at(&self, doubt: &Doubt) -> Result<Option<Finding>, ReleaseError> {
        let mut there = match self.read(doubt).await? {
            Reading::Absent => return Ok(Some(Finding::Absent)),
            Reading::Unknown => return Ok(None),
            Reading::There(there) => there,
        };
        let fields = object::stored_form(&there.wanted);
        let writers = ManagedFields::read(&there.before);
        let harmless =
            writers.iter().filter(|writer| !writer.touches(&fields)).map(ManagedFields::who).collect();
        for pointer in left(doubt) {
            // What can't be left is passed over below, if it is what is found.
            let _ = left_alone::leave(&mut there.wanted, &there.current, &pointer);
        }
        let change = there.difference(&doubt.resource)?;
        if is_empty(&change.patch) {
            return Ok(Some(Finding::Compared { changed: None, harmless }));
        }
        let changed = match self.try_out(&there, &change).await {
            Ok(after) => {
                let places = changes(&there.before, &after, &writers);
                let mut places = places.iter().map(|place| (object_diff::pointer(place), place));
                places.find(|(pointer, _)| !is_left(doubt, pointer)).map(|(pointer, place)| {
                    let wrote = |writer: &&ManagedFields| writer.has(&there.before, place);
                    let writer = writers.iter().filter(wrote).find_map(ManagedFields::other);
                    ChangedField { place: pointer, writer: writer.map(str::to_owned) }
                })
            }
            // A webhook may refuse to be tried.
            Err(error) if (400..500).contains(&error.code()) => Some(object_diff::place(&change.patch))
                .filter(|pointer| !is_left(doubt, pointer))
                .map(|place| ChangedField { place, writer: None }),
            Err(error) => return Err(error.into()),
        };
        Ok(Some(Finding::Compared { changed, harmless }))
    }

    /// Writes the rendered fields of an object back, but for those that controllers of the cluster have written or that are left
    /// to others. Nothing is written if it was changed since it was read.
    pub(super) async fn mend(&self, doubt: &Doubt) -> Result<(), ReleaseError> {
        let Reading::There(mut there) = self.read(doubt).await? else { return Ok(()) };
        let mut change = there.difference(&doubt.resource)?;
        if is_empty(&change.patch) {
            return Ok(());
        }
        for pointer in left(doubt) {
            there.leave(doubt, &pointer)?;
        }
        change = there.difference(&doubt.resource)?;
        if change.is_of_keys {
            let keys = (change.kind, change.patch);
            let restored = change_keys(&self.requests, &there.path, keys, &there.before, true).await?;
            there.reread(restored, &doubt.resource);
            change = there.difference(&doubt.resource)?;
        }
        if is_empty(&change.patch) {
            return Ok(());
        }
        let writers = ManagedFields::read(&there.before);
        match self.try_out(&there, &change).await {
            Ok(after) => {
                for place in of_system(&there.before, &after, &writers) {
                    there.leave(doubt, &object_diff::pointer(&place))?;
                }
            }
            // A webhook may refuse to be tried.
            Err(error) if (400..500).contains(&error.code()) => {}
            Err(error) => return Err(error.into()),
        }
        let Change { kind, mut patch, .. } = there.difference(&doubt.resource)?;
        if is_empty(&patch) {
            return Ok(());
        }
        let There { path, before, wanted, mode, .. } = &*there;
        match mode {
            ApplyMode::Client => {
                of_version(&mut patch, before);
                self.requests.edit(path, kind, &patch).await?;
            }
            ApplyMode::Server => {
                let target = (&**path, &doubt.resource);
                server_side::apply_over(&self.requests, target, (&[], wanted), before, true).await?;
            }
        }
        Ok(())
    }

    /// Returns what would become of an object if `change` was made, in the way in which its release is written.
    async fn try_out(&self, there: &There, change: &Change) -> Result<Value, RequestError> {
        match there.mode {
            ApplyMode::Server if !change.is_of_keys => {
                self.requests.dry_run_apply(&there.path, MANAGER, &there.wanted).await
            }
            ApplyMode::Client | ApplyMode::Server => {
                self.requests.dry_run_patch(&there.path, change.kind, &change.patch).await
            }
        }
    }

    /// Reads an object, and what was rendered of it.
    async fn read(&self, doubt: &Doubt) -> Result<Reading, ReleaseError> {
        let path = path(&(doubt.key.clone(), doubt.resource.clone()));
        let Some(before) = self.requests.get(&path).await? else { return Ok(Reading::Absent) };
        let Some(last) = self.last_releases.get(&doubt.release) else { return Ok(Reading::Unknown) };
        let Some(record) = self.storage.read(&doubt.release, last.revision).await? else {
            return Ok(Reading::Unknown);
        };
        let mut rendered = object::of_record(&record.manifest).into_iter();
        let is_meant = |object: &object::Object| {
            let mut key = object.key(&self.namespace);
            if !doubt.resource.namespaced {
                key.namespace.clear();
            }
            key == doubt.key
        };
        let Some(rendered) = rendered.find(is_meant) else { return Ok(Reading::Unknown) };
        let mode = server_side::mode_of(&record);
        let mut wanted = object::wanted(&rendered, &doubt.resource, &doubt.release, &self.namespace);
        if mode == ApplyMode::Server {
            wanted = server_side::applied(wanted, &doubt.resource);
        }
        let current = comparable(&before, &wanted, &doubt.resource);
        Ok(Reading::There(Box::new(There { path, before, current, wanted, mode })))
    }
}

/// What reading an object has shown.
enum Reading {
    /// It is gone.
    Absent,
    /// It is there, and nobody knows what was rendered of it.
    Unknown,
    /// It is there.
    There(Box<There>),
}

/// An object beside what was rendered of it.
struct There {
    path: String,
    /// As it was read.
    before: Value,
    /// The same, so that it can be compared.
    current: Value,
    /// As it was rendered.
    wanted: Value,
    /// How its release is written.
    mode: ApplyMode,
}

/// What makes an object what was rendered.
struct Change {
    kind: PatchKind,
    patch: Value,
    /// Whether it only gives items of lists the keys back that others have edited; more may follow.
    is_of_keys: bool,
}

impl There {
    /// Returns what makes it what was rendered, or the first part of that.
    fn difference(&self, resource: &Resource) -> Result<Change, ReleaseError> {
        let merge = Merge::of(resource);
        if let Some((kind, patch)) = merge.keys(&[], &self.wanted, &self.current) {
            return Ok(Change { kind, patch, is_of_keys: true });
        }
        let difference = merge.difference(&self.wanted, &self.current);
        let (kind, patch) = difference.map_err(|problem| ReleaseError::Objects(vec![problem]))?;
        Ok(Change { kind, patch, is_of_keys: false })
    }

    /// Leaves a field as others wrote it.
    fn leave(&mut self, doubt: &Doubt, pointer: &str) -> Result<(), ReleaseError> {
        left_alone::leave(&mut self.wanted, &self.current, pointer).map_err(|problem| {
            let Key { kind, name, .. } = &doubt.key;
            ReleaseError::Objects(vec![format!("{kind} {name}: {problem}")])
        })
    }

    /// Takes over what the object has become.
    fn reread(&mut self, object: Value, resource: &Resource) {
        self.current = comparable(&object, &self.wanted, resource);
        self.before = object;
    }
}

/// Returns an object as it is compared with what was rendered.
fn comparable(object: &Value, wanted: &Value, resource: &Resource) -> Value {
    let mut object = object.clone();
    if resource.kind == "Secret" && resource.group.is_empty() {
        read_back(wanted, &mut object);
    }
    object
}

/// Returns the JSON pointers of an object that are left to others.
fn left(doubt: &Doubt) -> impl Iterator<Item = String> {
    doubt.left.iter().flat_map(|rule| &rule.paths).map(ToString::to_string)
}

fn is_empty(change: &Value) -> bool {
    change.as_object().is_none_or(Map::is_empty)
}

fn is_left(doubt: &Doubt, pointer: &str) -> bool {
    doubt.left.iter().any(|rule| rule.covers(pointer))
}

fn path((key, resource): &(Key, Resource)) -> String {
    resource.object_path(Some(&key.namespace), &key.name)
}

/// Returns the places at which writing an object again would change it, but for those that controllers of the
/// cluster have written.
fn changes(before: &Value, after: &Value, writers: &[ManagedFields]) -> Vec<Vec<Step>> {
    split(before, after, writers).0
}

/// Returns the places at which writing an object again would change what controllers of the cluster have written.
fn of_system(before: &Value, after: &Value, writers: &[ManagedFields]) -> Vec<Vec<Step>> {
    split(before, after, writers).1
}

fn split(before: &Value, after: &Value, writers: &[ManagedFields]) -> (Vec<Vec<Step>>, Vec<Vec<Step>>) {
    let (before, after) = (object_diff::without_bookkeeping(before), object_diff::without_bookkeeping(after));
    let is_of_others =
        |place: &Vec<Step>| !writers.iter().any(|writer| writer.is_of_system() && writer.has(&before, place));
    object_diff::places(&before, &after).into_iter().partition(is_of_others)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn slip_07_what_a_controller_has_written_is_no_change_by_others() {
        let fields = |manager: &str, name: &str| json!({"manager": manager, "operation": "Update", "subresource": "scale", "fieldsV1": {"f:spec": {name: {}}}});
        let object = |replicas: u32, image: &str, version: &str| {
            json!({
                "metadata": {
                    "resourceVersion": version,
                    "managedFields": [fields("kube-controller-manager", "f:replicas"), fields("kubectl", "f:image")],
                },
                "spec": {"replicas": replicas, "image": image},
            })
        };
        for (before, after, expected) in [
            (object(5, "a", "1"), object(5, "a", "2"), None),
            (object(5, "a", "1"), object(2, "a", "2"), None),
            (object(5, "b", "1"), object(2, "a", "2"), Some("/spec/image")),
        ] {
            let writers = ManagedFields::read(&before);
            let places = changes(&before, &after, &writers);
            assert_eq!(places.first().map(|place| object_diff::pointer(place)).as_deref(), expected);
            let is_scaled = before["spec"]["replicas"] != after["spec"]["replicas"];
            assert_eq!(of_system(&before, &after, &writers).len(), usize::from(is_scaled));
        }
    }
}

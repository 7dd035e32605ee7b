//! Looks at objects that others may have changed, and compares them with what was rendered.

use futures::{FutureExt as _, StreamExt as _, stream};
use serde_json::{Map, Value};

use super::apply::read_back;
use super::drift::{Doubt, Finding};
use super::error::ReleaseError;
use super::last_release::LastReleases;
use super::merge::Merge;
use super::object::{self, Key};
use super::object_diff::{self, Step};
use super::storage::Storage;
use super::writers::ManagedFields;
use crate::cluster::Resource;
use crate::cluster::request::Requests;

/// How many objects are asked for at the same time.
const AT_ONCE: usize = 8;

/// What changes by itself with every write of an object.
const BOOKKEEPING: [&str; 5] = ["creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"];

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

    /// Returns whether an object is there, and how it differs from what was rendered, if that is known.
    ///
    /// The API server is asked what would become of the object if it was written again: what it would only write
    /// in another way, and what its controllers have written, is no difference.
    pub(super) async fn at(&self, doubt: &Doubt) -> Result<Option<Finding>, ReleaseError> {
        let path = path(&(doubt.key.clone(), doubt.resource.clone()));
        let Some(mut current) = self.requests.get(&path).await? else { return Ok(Some(Finding::Absent)) };
        let Some(last) = self.last_releases.get(&doubt.release) else { return Ok(None) };
        let Some(record) = self.storage.read(&doubt.release, last.revision).await? else { return Ok(None) };
        let mut rendered = object::of_record(&record.manifest).into_iter();
        let is_meant = |object: &object::Object| {
            let mut key = object.key(&self.namespace);
            if !doubt.resource.namespaced {
                key.namespace.clear();
            }
            key == doubt.key
        };
        let Some(rendered) = rendered.find(is_meant) else { return Ok(None) };
        let wanted = object::wanted(&rendered, &doubt.resource, &doubt.release, &self.namespace);
        let writers = ManagedFields::read(&current);
        let fields = object::stored_form(&wanted);
        let harmless =
            writers.iter().filter(|writer| !writer.touches(&fields)).map(ManagedFields::who).collect();
        let before = current.clone();
        if doubt.resource.kind == "Secret" && doubt.resource.group.is_empty() {
            read_back(&wanted, &mut current);
        }
        let difference = Merge::of(&doubt.resource).difference(&wanted, &current);
        let (kind, change) = difference.map_err(|problem| ReleaseError::Objects(vec![problem]))?;
        if change.as_object().is_none_or(Map::is_empty) {
            return Ok(Some(Finding::Compared { changed: None, harmless }));
        }
        let changed = match self.requests.dry_run_patch(&path, kind, &change).await {
            Ok(after) => first_change(&before, &after, &writers),
            // A webhook may refuse to be tried.
            Err(error) if (400..500).contains(&error.code()) => Some(object_diff::place(&change)),
            Err(error) => return Err(error.into()),
        };
        Ok(Some(Finding::Compared { changed, harmless }))
    }
}

fn path((key, resource): &(Key, Resource)) -> String {
    resource.object_path(Some(&key.namespace), &key.name)
}

/// Returns the first place at which writing an object again would change it, but for those that controllers of the
/// cluster have written.
fn first_change(before: &Value, after: &Value, writers: &[ManagedFields]) -> Option<String> {
    let (mut before, mut after) = (before.clone(), after.clone());
    for object in [&mut before, &mut after] {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|field, _| !BOOKKEEPING.contains(&field.as_str()));
        }
    }
    let is_of_system =
        |place: &[Step]| writers.iter().any(|writer| writer.is_of_system() && writer.has(&before, place));
    let places = object_diff::places(&before, &after);
    let place = places.into_iter().find(|place| !is_of_system(place))?;
    Some(object_diff::pointer(&place))
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
            assert_eq!(first_change(&before, &after, &writers).as_deref(), expected);
        }
    }
}

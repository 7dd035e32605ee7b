//! Drift of the objects of releases: which of them are gone, or written by others. No I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::hook::WatchEvent;
use engine::{Drift, Event, ModuleName};
use futures::future::BoxFuture;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::object::Key;
use crate::cluster::Resource;
use crate::cluster::request::MANAGER;
use crate::cluster::watch::Update;

/// Managers whose changes belong to the life of an object.
const SYSTEM: [&str; 4] = ["kube-", "kubelet", "addon-operator", "before-first-apply"];

/// What is known of the objects of all releases, and who wants to know of their drift.
#[derive(Default)]
pub(super) struct DriftState {
    pub(super) releases: BTreeMap<String, TrackedRelease>,
    /// By the path of the collection.
    pub(super) watches: BTreeMap<String, WatchedCollection>,
    /// Keeps the CRDs watched, so that the kinds of the cluster are looked up again when one changes.
    pub(super) crds: Option<watch::Receiver<u64>>,
}

/// The watch of one collection.
pub(super) struct WatchedCollection {
    pub(super) task: AbortHandle,
    /// Whether its first list has come, or could not.
    pub(super) tried: bool,
    /// Whether a list has come.
    pub(super) listed: bool,
    /// Who else has written each object that is there, and when.
    pub(super) objects: BTreeMap<ObjectName, BTreeSet<String>>,
}

/// What is watched for one release.
#[derive(Default)]
pub(super) struct TrackedRelease {
    /// The objects and the collection that each is watched in.
    pub(super) objects: BTreeMap<Key, Resource>,
    /// The module, and where its drift is reported.
    pub(super) listener: Option<(ModuleName, EventSink)>,
    /// Whether the release is being changed by ourselves.
    pub(super) paused: bool,
    /// Whether an object is gone since the last upgrade.
    pub(super) lost: bool,
}

/// Where events go; ready when there is room for more.
pub type EventSink = Arc<dyn Fn(Event) -> BoxFuture<'static, ()> + Send + Sync>;

/// An event and where it goes.
pub(super) type Report = (EventSink, Event);

/// As much of an object as is read.
#[derive(Deserialize)]
pub(super) struct Written {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    namespace: Option<String>,
    #[serde(rename = "managedFields")]
    managed_fields: Option<Vec<ManagedFields>>,
}

/// Who has written which fields of an object. Which fields is not read.
#[derive(Deserialize)]
struct ManagedFields {
    manager: Option<String>,
    subresource: Option<String>,
    time: Option<String>,
}

/// Namespace and name.
type ObjectName = (String, String);

impl Written {
    fn name(&self) -> ObjectName {
        (self.metadata.namespace.clone().unwrap_or_default(), self.metadata.name.clone())
    }

    /// Returns who beside ourselves has written the object, with the times.
    fn foreign_writers(&self) -> BTreeSet<String> {
        let entries = self.metadata.managed_fields.iter().flatten();
        let others = entries.filter(|entry| entry.subresource.as_deref().unwrap_or_default().is_empty());
        others
            .filter_map(|entry| {
                let manager = entry.manager.as_deref()?;
                let own = manager == MANAGER || SYSTEM.iter().any(|system| manager.starts_with(system));
                (!own).then(|| format!("{manager} {}", entry.time.as_deref().unwrap_or_default()))
            })
            .collect()
    }
}

impl DriftState {
    /// Records what a reflector of the collection at `path` has seen, and returns what is to be reported of it.
    pub(super) fn apply(&mut self, path: &str, resource: &Resource, update: Update<Written>) -> Vec<Report> {
        let Some(watched) = self.watches.get_mut(path) else { return Vec::new() };
        match update {
            Update::Listed(objects) => {
                let objects = objects.iter().map(|object| (object.name(), object.foreign_writers()));
                watched.objects = objects.collect();
                watched.tried = true;
                watched.listed = true;
                return self.missing(path, resource);
            }
            Update::Changed(WatchEvent::Added | WatchEvent::Modified, object) => {
                let now = object.foreign_writers();
                let before = watched.objects.insert(object.name(), now.clone());
                if before.is_some_and(|before| !now.is_subset(&before)) {
                    return self.changed(resource, &object.name());
                }
            }
            Update::Changed(WatchEvent::Deleted, object) => {
                watched.objects.remove(&object.name());
                return self.gone(resource, &object.name());
            }
            Update::Failed(_) => watched.tried = true,
        }
        Vec::new()
    }

    /// Reports whether all objects of a release are there, and remembers it.
    pub(super) fn has_all(&mut self, release: &str) -> bool {
        let Some(tracked) = self.releases.get_mut(release) else { return true };
        let is_there = |(key, resource): (&Key, &Resource)| {
            let watched = self.watches.get(&resource.path(None)).filter(|watched| watched.listed);
            watched.is_none_or(|watched| watched.has(key))
        };
        tracked.lost = !tracked.objects.iter().all(is_there);
        !tracked.lost
    }

    /// Returns reports of all tracked objects that a list lacks.
    fn missing(&mut self, collection: &str, resource: &Resource) -> Vec<Report> {
        let Some(watched) = self.watches.remove(collection) else { return Vec::new() };
        let reports = self.report(|key, own| same(own, resource) && !watched.has(key), Drift::Absent, true);
        self.watches.insert(collection.to_owned(), watched);
        reports
    }

    fn gone(&mut self, resource: &Resource, name: &ObjectName) -> Vec<Report> {
        self.report(|key, own| same(own, resource) && is_named(key, name), Drift::Absent, true)
    }

    fn changed(&mut self, resource: &Resource, name: &ObjectName) -> Vec<Report> {
        self.report(|key, own| same(own, resource) && is_named(key, name), Drift::Changed, false)
    }

    fn report(
        &mut self,
        concerns: impl Fn(&Key, &Resource) -> bool,
        difference: fn(String) -> Drift,
        loses: bool,
    ) -> Vec<Report> {
        let mut reports = Vec::new();
        for tracked in self.releases.values_mut().filter(|tracked| !tracked.paused) {
            for (key, resource) in &tracked.objects {
                if !concerns(key, resource) {
                    continue;
                }
                tracked.lost |= loses;
                if let Some((module, sink)) = &tracked.listener {
                    let drift = difference(format!("{}/{}/{}", key.namespace, key.kind, key.name));
                    reports.push((Arc::clone(sink), Event::ReleaseDrifted { module: module.clone(), drift }));
                }
            }
        }
        reports
    }
}

impl WatchedCollection {
    fn has(&self, key: &Key) -> bool {
        self.objects.contains_key(&(key.namespace.clone(), key.name.clone()))
    }
}

fn same(a: &Resource, b: &Resource) -> bool {
    (&a.group, &a.kind) == (&b.group, &b.kind)
}

fn is_named(key: &Key, name: &ObjectName) -> bool {
    (&key.namespace, &key.name) == (&name.0, &name.1)
}

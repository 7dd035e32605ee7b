//! Watches the objects of releases by their metadata.
//!
//! There is one watch for each kind that any release owns, for the labels that all
//! objects of modules carry; it is shared by all releases.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::hook::WatchEvent;
use engine::{Drift as Difference, Event, ModuleName};
use futures::future::BoxFuture;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::object::Key;
use crate::cluster::list::Collection;
use crate::cluster::request::{MANAGER, Requests};
use crate::cluster::watch::{Reflector, Update};
use crate::cluster::{Discovery, Resource};

/// The label that objects have where nobody configured another.
const FALLBACK: &str = "app.kubernetes.io/managed-by=Helm";

/// How long a release waits for the first list of a kind. After that the watch tells what it lacks.
const FIRST_LIST: Duration = Duration::from_secs(10);

/// Managers whose changes belong to the life of an object.
const SYSTEM: [&str; 4] = ["kube-", "kubelet", "addon-operator", "before-first-apply"];

/// Watches the objects of all releases.
#[derive(Clone)]
pub(super) struct Drift {
    requests: Requests,
    discovery: Discovery,
    selector: String,
    state: Arc<Mutex<State>>,
    /// Changes when a list has come, or could not.
    lists: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    releases: BTreeMap<String, Tracked>,
    /// By the path of the collection.
    watches: BTreeMap<String, Watched>,
    /// Keeps the CRDs watched, so that the kinds of the cluster are looked up again when one changes.
    crds: Option<watch::Receiver<u64>>,
}

/// The watch of one collection.
struct Watched {
    task: AbortHandle,
    /// Whether its first list has come, or could not.
    tried: bool,
    /// Whether a list has come.
    listed: bool,
    /// Who else has written each object that is there, and when.
    objects: BTreeMap<ObjectName, BTreeSet<String>>,
}

/// What is watched for one release.
#[derive(Default)]
struct Tracked {
    /// The objects and the collection that each is watched in.
    objects: BTreeMap<Key, Resource>,
    /// Who is told about which module.
    listener: Option<(ModuleName, Tell)>,
    /// Whether the release is being changed by ourselves.
    paused: bool,
    /// Whether an object is gone since the last upgrade.
    lost: bool,
}

/// Where events go; ready when there is room for more.
pub type Tell = Arc<dyn Fn(Event) -> BoxFuture<'static, ()> + Send + Sync>;

/// An event and where it goes.
type Report = (Tell, Event);

impl Drift {
    pub(super) fn new(requests: Requests, discovery: Discovery, labels: BTreeMap<String, String>) -> Self {
        let mut selector = String::new();
        for (key, value) in labels {
            let comma = if selector.is_empty() { "" } else { "," };
            let _ = write!(selector, "{comma}{key}={value}");
        }
        if selector.is_empty() {
            FALLBACK.clone_into(&mut selector);
        }
        Self { requests, discovery, selector, state: Arc::default(), lists: watch::channel(()).0 }
    }

    /// Reports whether no object of a release is known to be gone.
    pub(super) fn is_intact(&self, release: &str) -> bool {
        self.with(|state| state.releases.get(release).is_none_or(|tracked| !tracked.lost))
    }

    /// Tells nothing of a release until its objects are tracked again.
    pub(super) fn pause(&self, release: &str) {
        self.with(|state| {
            if let Some(tracked) = state.releases.get_mut(release) {
                tracked.paused = true;
            }
        });
    }

    /// Says which objects a release has now.
    pub(super) fn track(&self, release: &str, objects: Vec<(Key, Resource)>) {
        let objects = objects.into_iter().map(|(mut key, resource)| {
            if !resource.namespaced {
                key.namespace.clear();
            }
            (key, resource)
        });
        let objects = objects.collect();
        self.with(|state| {
            let tracked = state.releases.entry(release.to_owned()).or_default();
            tracked.objects = objects;
            tracked.paused = false;
            tracked.lost = false;
        });
        self.watch_kinds(release);
    }

    /// Says which objects a release should have, and reports whether all are there.
    ///
    /// What can't be listed counts as there.
    pub(super) async fn is_complete(&self, release: &str, objects: Vec<(Key, Resource)>) -> bool {
        let collections = self.with(|state| self.watch_all(state, objects.iter().map(|(_, own)| own)));
        let all_tried = |state: &mut State| {
            collections.iter().all(|path| state.watches.get(path).is_none_or(|watched| watched.tried))
        };
        let mut lists = self.lists.subscribe();
        let first_lists = lists.wait_for(|()| self.with(all_tried));
        // An API server that does not answer here is told of by the tasks that it stops.
        let _ = tokio::time::timeout(FIRST_LIST, first_lists).await;
        self.track(release, objects);
        self.with(|state| state.has_all(release))
    }

    /// Tells what drifts from now on.
    pub(super) fn watch(&self, module: ModuleName, tell: Tell) {
        let release = module.as_str().to_owned();
        self.with(|state| {
            let tracked = state.releases.entry(release.clone()).or_default();
            tracked.listener = Some((module, tell));
            state.crds.get_or_insert_with(|| self.discovery.crd_changes());
        });
        self.watch_kinds(&release);
    }

    /// Returns who is told about a release, unless it is being changed by ourselves.
    pub(super) fn listener(&self, release: &str) -> Option<(ModuleName, Tell)> {
        self.with(|state| {
            let tracked = state.releases.get(release).filter(|tracked| !tracked.paused);
            tracked.and_then(|tracked| tracked.listener.clone())
        })
    }

    /// Returns the objects that somebody is told about, by release.
    pub(super) fn watched(&self) -> BTreeMap<String, Vec<String>> {
        self.with(|state| {
            let listened = state.releases.iter().filter(|(_, tracked)| tracked.listener.is_some());
            let names = |tracked: &Tracked| {
                let name = |key: &Key| format!("{}/{}/{}", key.namespace, key.kind, key.name);
                let mut names: Vec<String> = tracked.objects.keys().map(name).collect();
                names.sort();
                names
            };
            listened.map(|(release, tracked)| (release.clone(), names(tracked))).collect()
        })
    }

    /// Forgets a release; watches that nobody needs any more end.
    pub(super) fn forget(&self, module: &ModuleName) {
        self.with(|state| {
            state.releases.remove(module.as_str());
            let used: BTreeSet<String> = state
                .releases
                .values()
                .flat_map(|tracked| tracked.objects.values().map(|resource| resource.path(None)))
                .collect();
            state.watches.retain(|collection, watched| {
                let keep = used.contains(collection);
                if !keep {
                    watched.task.abort();
                }
                keep
            });
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts the watches that are missing for a release that somebody is told about.
    fn watch_kinds(&self, release: &str) {
        self.with(|state| {
            let tracked = state.releases.get(release).filter(|tracked| tracked.listener.is_some());
            let resources: Vec<Resource> =
                tracked.into_iter().flat_map(|tracked| tracked.objects.values().cloned()).collect();
            self.watch_all(state, resources.iter());
        });
    }

    /// Starts the watches that are missing; returns the paths of all collections that are watched for `resources`.
    fn watch_all<'r>(
        &self,
        state: &mut State,
        resources: impl Iterator<Item = &'r Resource>,
    ) -> BTreeSet<String> {
        let mut collections = BTreeSet::new();
        for resource in resources {
            if !resource.verbs.is_empty() && resource.verbs.iter().all(|verb| verb != "watch") {
                continue;
            }
            let collection = resource.path(None);
            state.watches.entry(collection.clone()).or_insert_with(|| Watched {
                task: tokio::spawn(self.clone().follow(collection.clone(), resource.clone())).abort_handle(),
                tried: false,
                listed: false,
                objects: BTreeMap::new(),
            });
            collections.insert(collection);
        }
        collections
    }

    /// Follows one collection for ever.
    async fn follow(self, path: String, resource: Resource) {
        let collection = Collection::new(&path).with_labels(&self.selector).metadata_only();
        let mut reflector = Reflector::new(self.requests.clone(), collection);
        loop {
            let update = reflector.next().await;
            if let Update::Failed(error) = &update {
                tracing::debug!(kind = %resource.kind, "the watch for drift begins anew: {error}");
            }
            let is_tried = matches!(update, Update::Listed(_) | Update::Failed(_));
            let reports = self.with(|state| state.apply(&path, &resource, update));
            if is_tried {
                self.lists.send_replace(());
            }
            for (tell, event) in reports {
                tell(event).await;
            }
        }
    }
}

/// As much of an object as is read.
#[derive(Deserialize)]
struct Written {
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

impl State {
    /// Records what a reflector of the collection at `path` has seen, and returns what is to be reported of it.
    fn apply(&mut self, path: &str, resource: &Resource, update: Update<Written>) -> Vec<Report> {
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
    fn has_all(&mut self, release: &str) -> bool {
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
        let reports =
            self.report(|key, own| same(own, resource) && !watched.has(key), Difference::Absent, true);
        self.watches.insert(collection.to_owned(), watched);
        reports
    }

    fn gone(&mut self, resource: &Resource, name: &ObjectName) -> Vec<Report> {
        self.report(|key, own| same(own, resource) && is_named(key, name), Difference::Absent, true)
    }

    fn changed(&mut self, resource: &Resource, name: &ObjectName) -> Vec<Report> {
        self.report(|key, own| same(own, resource) && is_named(key, name), Difference::Changed, false)
    }

    fn report(
        &mut self,
        concerns: impl Fn(&Key, &Resource) -> bool,
        difference: fn(String) -> Difference,
        loses: bool,
    ) -> Vec<Report> {
        let mut reports = Vec::new();
        for tracked in self.releases.values_mut().filter(|tracked| !tracked.paused) {
            for (key, resource) in &tracked.objects {
                if !concerns(key, resource) {
                    continue;
                }
                tracked.lost |= loses;
                if let Some((module, tell)) = &tracked.listener {
                    let drift = difference(format!("{}/{}/{}", key.namespace, key.kind, key.name));
                    reports.push((Arc::clone(tell), Event::ReleaseDrifted { module: module.clone(), drift }));
                }
            }
        }
        reports
    }
}

impl Watched {
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

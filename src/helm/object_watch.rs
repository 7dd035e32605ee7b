//! Watches the objects of releases by their metadata.
//!
//! There is one watch for each kind that any release owns, for the labels that all
//! objects of modules carry; it is shared by all releases.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::ModuleName;
use tokio::sync::watch;

use super::drift::{DriftState, EventSink, TrackedRelease, WatchedCollection};
use super::object::Key;
use crate::cluster::list::Collection;
use crate::cluster::request::Requests;
use crate::cluster::watch::{Reflector, Update};
use crate::cluster::{Discovery, Resource};

/// The label that objects have where nobody configured another.
const FALLBACK: &str = "app.kubernetes.io/managed-by=Helm";

/// How long a release waits for the first list of a kind. After that the watch reports what it lacks.
const FIRST_LIST: Duration = Duration::from_secs(10);

/// Watches the objects of all releases.
#[derive(Clone)]
pub(super) struct ObjectWatch {
    requests: Requests,
    discovery: Discovery,
    selector: String,
    state: Arc<Mutex<DriftState>>,
    /// Changes when a list has come, or could not.
    lists: watch::Sender<()>,
}

impl ObjectWatch {
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
        self.lock(|state| state.releases.get(release).is_none_or(|tracked| !tracked.lost))
    }

    /// Reports nothing of a release until its objects are tracked again.
    pub(super) fn pause(&self, release: &str) {
        self.lock(|state| {
            if let Some(tracked) = state.releases.get_mut(release) {
                tracked.paused = true;
            }
        });
    }

    /// Records which objects a release has now.
    pub(super) fn track(&self, release: &str, objects: Vec<(Key, Resource)>) {
        let objects = objects.into_iter().map(|(mut key, resource)| {
            if !resource.namespaced {
                key.namespace.clear();
            }
            (key, resource)
        });
        let objects = objects.collect();
        self.lock(|state| {
            let tracked = state.releases.entry(release.to_owned()).or_default();
            tracked.objects = objects;
            tracked.paused = false;
            tracked.lost = false;
        });
        self.watch_kinds(release);
    }

    /// Records which objects a release should have, and returns whether all are there.
    ///
    /// What can't be listed counts as there.
    pub(super) async fn is_complete(&self, release: &str, objects: Vec<(Key, Resource)>) -> bool {
        let collections = self.lock(|state| self.watch_all(state, objects.iter().map(|(_, own)| own)));
        let all_tried = |state: &mut DriftState| {
            collections.iter().all(|path| state.watches.get(path).is_none_or(|watched| watched.tried))
        };
        let mut lists = self.lists.subscribe();
        let first_lists = lists.wait_for(|()| self.lock(all_tried));
        // An API server that does not answer here is reported by the tasks that it stops.
        let _ = tokio::time::timeout(FIRST_LIST, first_lists).await;
        self.track(release, objects);
        self.lock(|state| state.has_all(release))
    }

    /// Reports what drifts from now on.
    pub(super) fn watch(&self, module: ModuleName, sink: EventSink) {
        let release = module.as_str().to_owned();
        self.lock(|state| {
            let tracked = state.releases.entry(release.clone()).or_default();
            tracked.listener = Some((module, sink));
            state.crds.get_or_insert_with(|| self.discovery.crd_changes());
        });
        self.watch_kinds(&release);
    }

    /// Returns where the drift of a release is reported, unless it is being changed by ourselves.
    pub(super) fn listener(&self, release: &str) -> Option<(ModuleName, EventSink)> {
        self.lock(|state| {
            let tracked = state.releases.get(release).filter(|tracked| !tracked.paused);
            tracked.and_then(|tracked| tracked.listener.clone())
        })
    }

    /// Returns the objects whose drift is reported, by release.
    pub(super) fn watched(&self) -> BTreeMap<String, Vec<String>> {
        self.lock(|state| {
            let listened = state.releases.iter().filter(|(_, tracked)| tracked.listener.is_some());
            let names = |tracked: &TrackedRelease| {
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
        self.lock(|state| {
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

    fn lock<T>(&self, work: impl FnOnce(&mut DriftState) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts the watches that are missing for a release whose drift is reported.
    fn watch_kinds(&self, release: &str) {
        self.lock(|state| {
            let tracked = state.releases.get(release).filter(|tracked| tracked.listener.is_some());
            let resources: Vec<Resource> =
                tracked.into_iter().flat_map(|tracked| tracked.objects.values().cloned()).collect();
            self.watch_all(state, resources.iter());
        });
    }

    /// Starts the watches that are missing; returns the paths of all collections that are watched for `resources`.
    fn watch_all<'r>(
        &self,
        state: &mut DriftState,
        resources: impl Iterator<Item = &'r Resource>,
    ) -> BTreeSet<String> {
        let mut collections = BTreeSet::new();
        for resource in resources {
            if !resource.verbs.is_empty() && resource.verbs.iter().all(|verb| verb != "watch") {
                continue;
            }
            let collection = resource.path(None);
            state.watches.entry(collection.clone()).or_insert_with(|| WatchedCollection {
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
            let reports = self.lock(|state| state.apply(&path, &resource, update));
            if is_tried {
                self.lists.send_replace(());
            }
            for (sink, event) in reports {
                sink(event).await;
            }
        }
    }
}

//! Watches the objects of releases by their metadata.
//!
//! There is one watch for each kind that any release owns, for the labels that all
//! objects of modules carry; it is shared by all releases. Where the operator may not
//! watch a kind in the whole cluster, there is one for each namespace of such objects.
//! An object that others may have changed is read, and compared with what was rendered. One
//! that a watch shows no more is asked for by its name: if it has lost a label only, its
//! kind is watched without labels in its namespace, until the labels are back. While somebody
//! else changes a release, nothing is told of its objects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::{DriftSettings, ModuleName};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::awaited_releases::{AwaitedReleases, ReadinessLook};
use super::drift::{Doubt, DriftState, EventSink, Finding, LOOK_AGAIN, Report, TrackedRelease, shown};
use super::error::ReleaseError;
use super::last_release::WORK;
use super::object::Key;
use super::object_look::ObjectLook;
use super::watched_collection::Written;
use crate::cluster::list::Collection;
use crate::cluster::request::Requests;
use crate::cluster::watch::{Reflector, Update, WatchError};
use crate::cluster::{Discovery, Resource};
use crate::lasting_task::lasting;

/// The label that objects have where nobody configured another.
const FALLBACK: &str = "app.kubernetes.io/managed-by=Helm";

/// How long a release waits for the first list of a kind. After that the watch reports what it lacks.
const FIRST_LIST: Duration = Duration::from_secs(10);

/// How long a watch may fail for another reason than a missing right until that is told.
const PATIENCE: Duration = Duration::from_mins(1);

/// Where objects are watched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum WatchReach {
    /// In the whole cluster, unless that is forbidden: one watch for each kind.
    Cluster,
    /// In the namespaces of the objects: of those that belong elsewhere there are few.
    Namespaces,
}

/// Watches the objects of all releases.
#[derive(Clone)]
pub(super) struct ObjectWatch {
    requests: Requests,
    discovery: Discovery,
    look: ObjectLook,
    selector: String,
    state: Arc<Mutex<DriftState>>,
    /// Changes when a list has come, or could not.
    lists: watch::Sender<()>,
    /// Wakes who waits for the next look.
    looks: Arc<Notify>,
    /// The releases whose objects somebody waits for.
    awaited: AwaitedReleases,
}

impl ObjectWatch {
    pub(super) fn new(
        requests: Requests,
        discovery: Discovery,
        look: ObjectLook,
        labels: BTreeMap<String, String>,
        reach: WatchReach,
    ) -> Self {
        let mut selector = String::new();
        for (key, value) in labels {
            let comma = if selector.is_empty() { "" } else { "," };
            let _ = write!(selector, "{comma}{key}={value}");
        }
        if selector.is_empty() {
            FALLBACK.clone_into(&mut selector);
        }
        let (lists, looks) = (watch::channel(()).0, Arc::default());
        let mut state = DriftState::default();
        state.is_in_namespaces = reach == WatchReach::Namespaces;
        Self {
            requests,
            discovery,
            look,
            selector,
            state: Arc::new(Mutex::new(state)),
            lists,
            looks,
            awaited: AwaitedReleases::default(),
        }
    }

    /// Reports whether no object of a release is known to be gone. Those that no watch shows are asked for.
    pub(super) async fn is_intact(&self, release: &str) -> bool {
        let (is_intact, unseen) = self.lock(|state| (state.is_intact(release), state.unseen(release, false)));
        is_intact && self.look.are_there(&unseen).await
    }

    /// Reports nothing of a release until its objects are tracked again.
    pub(super) fn pause(&self, release: &str) {
        self.lock(|state| {
            if let Some(tracked) = state.releases.get_mut(release) {
                tracked.paused = true;
            }
        });
    }

    /// Records which objects a release has now. `is_written` says whether they were all written just now.
    pub(super) fn track(&self, release: &str, objects: Vec<(Key, Resource)>, is_written: bool) {
        let objects = named(objects).into_iter().collect();
        self.lock(|state| state.track(release, objects, is_written, Instant::now()));
        self.watch_kinds(release);
    }

    /// Records which objects a release should have, and returns whether all are there.
    ///
    /// What can't be listed, or is not in the list, is asked for by name, and what can't be read counts as there.
    pub(super) async fn is_complete(&self, release: &str, objects: Vec<(Key, Resource)>) -> bool {
        let objects = named(objects);
        let first_lists = async {
            let mut known = BTreeSet::new();
            loop {
                let paths = self.lock(|state| self.watch_all(state, &objects));
                // A kind that may not be watched as a whole is watched in namespaces instead.
                if paths == known {
                    return;
                }
                let mut lists = self.lists.subscribe();
                let _ = lists.wait_for(|()| self.lock(|state| state.all_tried(&paths))).await;
                known = paths;
            }
        };
        // An API server that does not answer here is reported by the tasks that it stops.
        let _ = tokio::time::timeout(FIRST_LIST, first_lists).await;
        self.track(release, objects, false);
        let unseen = self.lock(|state| state.unseen(release, true));
        let is_complete = self.look.are_there(&unseen).await;
        if !is_complete {
            self.lock(|state| state.set_lost(release));
        }
        is_complete
    }

    /// Reports what drifts from now on, but for fields that `settings` leave to others.
    pub(super) fn watch(&self, module: ModuleName, sink: EventSink, settings: DriftSettings) {
        let release = module.as_str().to_owned();
        self.lock(|state| {
            state.crds.get_or_insert_with(|| self.discovery.crd_changes());
            state.listen(&release, (module, sink), settings, Instant::now());
        });
        self.watch_kinds(&release);
    }

    /// Writes the rendered fields of an object of a release back, but for those that are left to others. An object that is gone
    /// or that is no more of the release stays as it is. While somebody else changes the release, that is waited for.
    ///
    /// # Errors
    ///
    /// It can't be read or written, or was changed by somebody else at the same moment.
    pub(super) async fn mend(&self, release: &str, object: &str) -> Result<(), ReleaseError> {
        let waits_until = Instant::now() + WORK;
        while self.look.is_changed_by_others(release).await? && Instant::now() < waits_until {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        let Some(doubt) = self.lock(|state| state.to_mend(release, object)) else { return Ok(()) };
        self.look.mend(&doubt).await?;
        self.lock(|state| state.mended(&doubt));
        Ok(())
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
                let mut names: Vec<String> = tracked.objects.iter().map(|(key, _)| shown(key)).collect();
                names.sort();
                names
            };
            listened.map(|(release, tracked)| (release.clone(), names(tracked))).collect()
        })
    }

    /// Forgets a release; watches that nobody needs any more end.
    pub(super) fn forget(&self, module: &ModuleName) {
        self.awaited.forget(module.as_str());
        self.lock(|state| state.forget(module.as_str()));
    }

    /// Returns the releases whose objects somebody waits for.
    pub(super) fn awaited(&self) -> &AwaitedReleases {
        &self.awaited
    }

    /// Returns the objects of a release.
    pub(super) fn tracked(&self, release: &str) -> Vec<(Key, Resource)> {
        self.lock(|state| {
            let tracked = state.releases.get(release).into_iter().flat_map(|tracked| &tracked.objects);
            tracked.map(|(key, resource)| (key.clone(), resource.clone())).collect()
        })
    }

    /// Looks which objects are not ready.
    pub(super) async fn look_at_readiness(&self, objects: &[(Key, Resource)]) -> ReadinessLook {
        self.look.readiness(objects).await
    }

    fn lock<T>(&self, work: impl FnOnce(&mut DriftState) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts the watches that are missing for a release whose drift is reported, and the looks that are due.
    fn watch_kinds(&self, release: &str) {
        let report = self.lock(|state| {
            let tracked = state.releases.get(release).filter(|tracked| tracked.listener.is_some())?;
            let objects: Vec<(Key, Resource)> =
                tracked.objects.iter().map(|(key, resource)| (key.clone(), resource.clone())).collect();
            self.watch_all(state, &objects);
            state.report_unwatched(release)
        });
        if let Some(report) = report {
            tokio::spawn(send(vec![report]));
        }
        self.look_on();
    }

    /// Starts the watches that are missing; returns the paths of all collections that are watched for `objects`.
    fn watch_all(&self, state: &mut DriftState, objects: &[(Key, Resource)]) -> BTreeSet<String> {
        let mut paths = BTreeSet::new();
        for (key, resource) in objects {
            let Some((path, namespace)) = state.collection(key, resource) else { continue };
            if !state.watches.contains_key(&path) {
                let collection = Collection::new(&path).with_labels(&self.selector);
                let is_whole = namespace.is_none();
                let task = self.begin(Followed::new(&path, collection, resource, is_whole));
                state.watch(path.clone(), resource.clone(), namespace, task);
            }
            paths.insert(path);
        }
        paths
    }

    /// Follows one collection in a task of its own.
    fn begin(&self, followed: Followed) -> AbortHandle {
        let this = self.clone();
        let follow = async move {
            lasting("a watch for drift", || this.clone().follow(followed.clone())).await;
        };
        tokio::spawn(follow).abort_handle()
    }

    /// Follows one collection for ever. One of all namespaces ends when that is forbidden: its namespaces are followed
    /// instead.
    async fn follow(self, Followed { path, collection, resource, is_whole }: Followed) {
        let mut reflector = Reflector::new(self.requests.clone(), collection);
        // Not each failure of the reflector breaks this watch, so that it does not report by itself.
        let mut report =
            self.discovery.watch_reports().of(&format!("{} of releases ({path})", resource.kind));
        let mut fails_since = None;
        loop {
            let update: Update<Written> = reflector.next().await;
            // What is new of whether the watch works. A list says nothing of that.
            let mut broken = None;
            match &update {
                Update::Failed(error) => {
                    tracing::debug!(kind = %resource.kind, "the watch for drift begins anew: {error}");
                    let is_forbidden = matches!(error, WatchError::Forbidden(_));
                    if is_forbidden && is_whole && resource.namespaced {
                        return self.split(&path, &resource);
                    }
                    let since: Instant = *fails_since.get_or_insert_with(Instant::now);
                    let is_told = is_forbidden || since.elapsed() >= PATIENCE;
                    // Nothing of a kind that does not exist can be watched, and nothing is missed.
                    if is_told && !matches!(error, WatchError::KindMissing) {
                        report.broke(error);
                        broken = Some(Some(error.to_string()));
                    }
                }
                Update::Restored => {
                    fails_since = None;
                    report.works();
                    broken = Some(None);
                }
                Update::Listed(_) | Update::Changed(..) => {}
            }
            let is_tried = matches!(update, Update::Listed(_) | Update::Failed(_));
            match &update {
                Update::Changed(_, object) => self.awaited.changed(Some(&object.name())),
                Update::Listed(_) => self.awaited.changed(None),
                Update::Failed(_) | Update::Restored => {}
            }
            let reports = self.lock(|state| {
                state.apply(&path, update, Instant::now());
                broken.map_or_else(Vec::new, |broken| state.set_broken(&path, broken))
            });
            if is_tried {
                self.lists.send_replace(());
            }
            self.look_on();
            send(reports).await;
        }
    }

    /// Follows the namespaces of a collection that may not be watched as a whole.
    fn split(&self, path: &str, resource: &Resource) {
        tracing::info!(kind = %resource.kind, "it may not be watched in the whole cluster, but perhaps in namespaces");
        let releases: Vec<String> = self.lock(|state| {
            state.split(path);
            state.releases.keys().cloned().collect()
        });
        for release in releases {
            self.watch_kinds(&release);
        }
        self.lists.send_replace(());
    }

    /// Begins to look at the objects that others may have changed, if somebody has to.
    fn look_on(&self) {
        let (is_due, was_looking) = self.lock(|state| {
            let is_due = state.looks.next().is_some();
            let was_looking = state.is_looking;
            state.is_looking |= is_due;
            (is_due, was_looking)
        });
        if was_looking {
            self.looks.notify_one();
        } else if is_due {
            let this = self.clone();
            tokio::spawn(async move { lasting("the look at drift", || this.clone().look_at_all()).await });
        }
    }

    /// Looks at one object after the other until none is left.
    async fn look_at_all(self) {
        loop {
            let next = self.lock(|state| {
                let next = state.looks.next();
                state.is_looking = next.is_some();
                next
            });
            let Some(next) = next else { return };
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                () = self.looks.notified() => continue,
            }
            let Some(doubt) = self.lock(|state| state.next_doubt(Instant::now())) else { continue };
            if let Err(error) = self.look_at(&doubt).await {
                tracing::debug!(release = doubt.release, "an object can't be compared: {error}");
                self.lock(|state| state.look_again(&doubt, Instant::now()));
            }
        }
    }

    /// Looks at one object, and tells what is new.
    async fn look_at(&self, doubt: &Doubt) -> Result<(), ReleaseError> {
        let found = if doubt.is_unseen() {
            Some(self.look.presence(doubt).await?)
        } else {
            self.look.at(doubt).await?
        };
        // Otherwise nobody knows what was rendered.
        let Some(finding) = found else { return Ok(()) };
        if finding.is_news() && self.lock(|state| state.may_wait(&doubt.release, Instant::now())) {
            let is_changed_by_others = self.look.is_changed_by_others(&doubt.release).await?;
            self.lock(|state| state.hold(doubt, is_changed_by_others, Instant::now()));
            if is_changed_by_others {
                return Ok(());
            }
        }
        if let Finding::There = finding {
            self.lock(|state| {
                state.stray(doubt, Instant::now(), |path, at| {
                    self.begin(Followed::new(path, Collection::new(at), &doubt.resource, false))
                });
            });
            return Ok(());
        }
        let report = self.lock(|state| state.looked(doubt, finding, Instant::now()));
        send(report.into_iter().collect()).await;
        Ok(())
    }
}

/// A collection that is to be followed.
#[derive(Clone)]
struct Followed {
    /// By what it is known.
    path: String,
    collection: Collection,
    resource: Resource,
    /// Whether it is about all namespaces.
    is_whole: bool,
}

impl Followed {
    fn new(path: &str, collection: Collection, resource: &Resource, is_whole: bool) -> Self {
        let (path, collection) = (path.to_owned(), collection.metadata_only());
        Self { path, collection, resource: resource.clone(), is_whole }
    }
}

/// Returns the objects with keys as watches see them: what is in no namespace has none.
fn named(objects: Vec<(Key, Resource)>) -> Vec<(Key, Resource)> {
    let name = |(mut key, resource): (Key, Resource)| {
        if !resource.namespaced {
            key.namespace.clear();
        }
        (key, resource)
    };
    objects.into_iter().map(name).collect()
}

async fn send(reports: Vec<Report>) {
    for (sink, event) in reports {
        sink(event).await;
    }
}

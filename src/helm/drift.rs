//! Drift of the objects of releases: which of them are gone, or changed by others. No I/O.
//!
//! It is long because watches, looks and mends ask and change one state: what is known of each object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::hook::WatchEvent;
use engine::{Drift, DriftSettings, Event, IgnoreRule, ModuleName, UnwatchedKind};
use futures::future::BoxFuture;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::look_schedule::{LookReason, LookSchedule};
use super::object::Key;
use super::tracked_objects::{SharedKinds, TrackedObjects};
use super::writers::{ManagedFields, Writers};
use crate::cluster::Crds;
use crate::cluster::Resource;
use crate::cluster::watch::Update;

/// What is known of the objects of all releases, and who wants to know of their drift.
#[derive(Default)]
pub(super) struct DriftState {
    pub(super) releases: BTreeMap<String, TrackedRelease>,
    kinds: SharedKinds,
    /// Whether kinds are watched in the namespaces of objects, and never as a whole.
    pub(super) is_in_namespaces: bool,
    /// By the path of the collection.
    pub(super) watches: BTreeMap<String, WatchedCollection>,
    /// Keeps the CRDs watched, so that the kinds of the cluster are looked up again when one changes.
    pub(super) crds: Option<watch::Receiver<Crds>>,
    /// The objects that others may have changed.
    pub(super) looks: LookSchedule,
    /// Whether somebody looks at them.
    pub(super) is_looking: bool,
}

/// The watch of one collection: a kind in all namespaces or, where that is forbidden, in one.
pub(super) struct WatchedCollection {
    task: AbortHandle,
    resource: Resource,
    /// The namespace, if it is about one.
    namespace: Option<String>,
    /// Whether this may not be watched as a whole: there is a collection for each namespace.
    is_split: bool,
    /// Whether its first list has come, or could not.
    tried: bool,
    /// Whether a list has come.
    listed: bool,
    /// Why it can't be watched.
    broken: Option<String>,
    /// Who has written each object that is there, and when.
    objects: BTreeMap<ObjectName, Writers>,
}

/// What is watched for one release.
#[derive(Default)]
pub(super) struct TrackedRelease {
    /// The objects and the kind of each.
    pub(super) objects: TrackedObjects,
    /// The module, and where its drift is reported.
    pub(super) listener: Option<(ModuleName, EventSink)>,
    /// Which fields are left to others.
    settings: DriftSettings,
    /// Whether the release is being changed by ourselves.
    pub(super) paused: bool,
    /// Whether an object is gone since the last upgrade.
    lost: bool,
    /// Whether that was reported.
    is_loss_told: bool,
    /// Counts what is written and tracked anew.
    generation: u64,
    /// The objects that were reported as changed, each with the place.
    changed: BTreeMap<Key, String>,
    /// The kinds that were reported as not watched.
    unwatched: Vec<UnwatchedKind>,
}

/// Where events go; ready when there is room for more.
pub type EventSink = Arc<dyn Fn(Event) -> BoxFuture<'static, ()> + Send + Sync>;

/// An event and where it goes.
pub(super) type Report = (EventSink, Event);

/// An object that is to be looked at.
pub(super) struct Doubt {
    pub(super) release: String,
    pub(super) key: Key,
    pub(super) resource: Resource,
    /// What of it is left to others.
    pub(super) left: Vec<IgnoreRule>,
    generation: u64,
    /// Who has written it; `None` if no watch shows it.
    writers: Option<Writers>,
}

/// What a look at an object shows.
pub(super) enum Finding {
    /// It is gone.
    Absent,
    /// It is there.
    Compared {
        /// The first rendered field that others have changed, if there is one.
        changed: Option<ChangedField>,
        /// Who has written no rendered field.
        harmless: Vec<u64>,
    },
}

/// A rendered field that others have changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChangedField {
    /// Its JSON pointer.
    pub(super) place: String,
    /// Who wrote it last, if that is known.
    pub(super) writer: Option<String>,
}

/// As much of an object as is read.
#[derive(Deserialize)]
pub(super) struct Written {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    namespace: Option<String>,
    #[serde(default, rename = "managedFields")]
    managed_fields: Vec<ManagedFields>,
}

/// Namespace and name.
type ObjectName = (String, String);

impl Written {
    /// Returns its namespace and name.
    pub(super) fn name(&self) -> ObjectName {
        (self.metadata.namespace.clone().unwrap_or_default(), self.metadata.name.clone())
    }

    fn writers(&self) -> Writers {
        Writers::of(&self.metadata.managed_fields)
    }
}

impl DriftState {
    /// Records what a reflector of the collection at `path` has seen, and returns what is to be reported of it.
    pub(super) fn apply(&mut self, path: &str, update: Update<Written>, now: Instant) -> Vec<Report> {
        let Some(watched) = self.watches.get_mut(path) else { return Vec::new() };
        let mut doubtful = Vec::new();
        match update {
            Update::Listed(objects) => {
                let mut before = std::mem::take(&mut watched.objects);
                for object in objects {
                    let (name, mut writers) = (object.name(), object.writers());
                    let is_doubtful = match before.remove(&name) {
                        Some(before) => writers.renew(&before),
                        None => writers.are_doubtful(),
                    };
                    if is_doubtful {
                        doubtful.push(name.clone());
                    }
                    watched.objects.insert(name, writers);
                }
                watched.tried = true;
                watched.listed = true;
                self.doubt(path, &doubtful, now);
                return self.missing(path);
            }
            Update::Changed(WatchEvent::Added | WatchEvent::Modified, object) => {
                let (name, mut writers) = (object.name(), object.writers());
                let before = watched.objects.get(&name);
                if before.is_some_and(|before| writers.renew(before)) {
                    doubtful.push(name.clone());
                }
                watched.objects.insert(name, writers);
                self.doubt(path, &doubtful, now);
            }
            Update::Changed(WatchEvent::Deleted, object) => {
                watched.objects.remove(&object.name());
                return self.gone(path, &object.name());
            }
            Update::Failed(_) => watched.tried = true,
            Update::Restored => {}
        }
        Vec::new()
    }

    /// Adds a collection that is watched from now on.
    pub(super) fn watch(
        &mut self,
        path: String,
        resource: Resource,
        namespace: Option<String>,
        task: AbortHandle,
    ) {
        let collection = WatchedCollection {
            task,
            resource,
            namespace,
            is_split: false,
            tried: false,
            listed: false,
            broken: None,
            objects: BTreeMap::new(),
        };
        self.watches.insert(path, collection);
    }

    /// Records that a collection may not be watched as a whole.
    pub(super) fn split(&mut self, path: &str) {
        if let Some(watched) = self.watches.get_mut(path) {
            watched.is_split = true;
            watched.tried = true;
            watched.listed = false;
            watched.objects.clear();
        }
    }

    /// Returns the path of the collection in which an object is watched, and its namespace if that is a part of it;
    /// `None` if objects of this kind can't be watched.
    pub(super) fn collection(&self, key: &Key, resource: &Resource) -> Option<(String, Option<String>)> {
        if !resource.verbs.is_empty() && resource.verbs.iter().all(|verb| verb != "watch") {
            return None;
        }
        let whole = resource.path(None);
        let is_split = |whole: &str| self.watches.get(whole).is_some_and(|watched| watched.is_split);
        if (self.is_in_namespaces && resource.namespaced) || is_split(&whole) {
            return Some((resource.path(Some(&key.namespace)), Some(key.namespace.clone())));
        }
        Some((whole, None))
    }

    fn watched(&self, key: &Key, resource: &Resource) -> Option<&WatchedCollection> {
        self.watches.get(&self.collection(key, resource)?.0)
    }

    /// Records whether a collection is broken, and returns what is to be reported of it.
    pub(super) fn set_broken(&mut self, path: &str, broken: Option<String>) -> Vec<Report> {
        match self.watches.get_mut(path) {
            Some(watched) if watched.broken != broken => watched.broken = broken,
            Some(_) | None => return Vec::new(),
        }
        let releases: Vec<String> = self.releases.keys().cloned().collect();
        releases.iter().filter_map(|release| self.report_unwatched(release)).collect()
    }

    /// Returns the report of the kinds of a release that can't be watched, if they are others than were told.
    pub(super) fn report_unwatched(&mut self, release: &str) -> Option<Report> {
        let tracked = self.releases.get(release)?;
        let mut kinds: Vec<UnwatchedKind> = Vec::new();
        for (key, resource) in &tracked.objects {
            let watched = self.watched(key, resource);
            if let Some((watched, why)) =
                watched.and_then(|watched| Some((watched, watched.broken.as_ref()?)))
            {
                let kind = match &watched.namespace {
                    Some(namespace) => format!("{} in {namespace}", resource.kind),
                    None => resource.kind.clone(),
                };
                if !kinds.iter().any(|known| known.kind == kind) {
                    kinds.push(UnwatchedKind { kind, why: why.clone() });
                }
            }
        }
        let tracked = self.releases.get_mut(release)?;
        let (module, sink) = tracked.listener.as_ref()?;
        if tracked.unwatched == kinds {
            return None;
        }
        tracked.unwatched.clone_from(&kinds);
        Some((Arc::clone(sink), Event::ReleaseUnwatched { module: module.clone(), kinds }))
    }

    /// Records the objects that a release has now. `is_written` says whether they were all written just now.
    pub(super) fn track(
        &mut self,
        release: &str,
        objects: BTreeMap<Key, Resource>,
        is_written: bool,
        now: Instant,
    ) {
        let tracked = self.releases.entry(release.to_owned()).or_default();
        tracked.objects = TrackedObjects::new(objects, &mut self.kinds);
        tracked.paused = false;
        tracked.lost = false;
        tracked.is_loss_told = false;
        tracked.generation += 1;
        if is_written {
            // What others changed of a custom resource stays so, unless the chart changed it, too.
            for key in std::mem::take(&mut tracked.changed).into_keys() {
                if tracked.objects.get(&key).is_some() {
                    self.looks.add(release, &key, LookReason::Changed, now);
                }
            }
        } else {
            let objects = &tracked.objects;
            tracked.changed.retain(|key, _| objects.get(key).is_some());
        }
        self.doubt_all(release, now);
    }

    /// Has the drift of a release reported, but for fields that are left to others. What was told is looked at again.
    pub(super) fn listen(
        &mut self,
        release: &str,
        listener: (ModuleName, EventSink),
        settings: DriftSettings,
        now: Instant,
    ) {
        let tracked = self.releases.entry(release.to_owned()).or_default();
        tracked.listener = Some(listener);
        tracked.settings = settings;
        for key in tracked.changed.keys() {
            self.looks.add(release, key, LookReason::Changed, now);
        }
        self.doubt_all(release, now);
    }

    /// Returns an object that is to be put right, by the name that was told of it; `None` if there is none, or if its release is
    /// being changed by ourselves.
    pub(super) fn to_mend(&self, release: &str, object: &str) -> Option<Doubt> {
        let tracked = self.releases.get(release).filter(|tracked| !tracked.paused)?;
        let (key, resource) = tracked.objects.iter().find(|(key, _)| shown(key) == object)?;
        let left = tracked.settings.rules(&key.kind, &key.name).cloned().collect();
        let (release, generation) = (release.to_owned(), tracked.generation);
        Some(Doubt { release, key: key.clone(), resource: resource.clone(), left, generation, writers: None })
    }

    /// Records that an object was put right: what is found from now on is new.
    pub(super) fn mended(&mut self, doubt: &Doubt) {
        if let Some(tracked) = self.releases.get_mut(&doubt.release)
            && tracked.generation == doubt.generation
        {
            tracked.changed.remove(&doubt.key);
        }
    }

    /// Has the objects of a release looked at that others may have changed before it was known, and those that are not
    /// seen: what is deleted while the release is changed by ourselves is not reported.
    pub(super) fn doubt_all(&mut self, release: &str, now: Instant) {
        let Some(tracked) = self.releases.get(release).filter(|tracked| tracked.listener.is_some()) else {
            return;
        };
        for (key, resource) in &tracked.objects {
            let Some(watched) = self.watched(key, resource).filter(|watched| watched.listed) else {
                continue;
            };
            let reason = match watched.objects.get(&name_of(key)) {
                Some(writers) if writers.are_doubtful() => LookReason::Changed,
                Some(_) => continue,
                None => LookReason::Unseen,
            };
            self.looks.add(release, key, reason, now);
        }
    }

    /// Has objects of a collection looked at, as far as they are of releases.
    fn doubt(&mut self, path: &str, names: &[ObjectName], now: Instant) {
        let Some(watched) = self.watches.get(path).filter(|_| !names.is_empty()) else { return };
        for (release, tracked) in self.releases.iter().filter(|(_, tracked)| tracked.listener.is_some()) {
            for (key, resource) in &tracked.objects {
                if watched.is_of(key, resource) && names.contains(&name_of(key)) {
                    self.looks.add(release, key, LookReason::Changed, now);
                }
            }
        }
    }

    /// Returns an object that is due to be looked at. One whose release we change ourselves comes later.
    pub(super) fn next_doubt(&mut self, now: Instant) -> Option<Doubt> {
        let (release, key, reason) = self.looks.take(now)?;
        let tracked = self.releases.get(&release).filter(|tracked| tracked.listener.is_some())?;
        if tracked.paused {
            self.looks.add(&release, &key, reason, now);
            return None;
        }
        let resource = tracked.objects.get(&key)?.clone();
        let writers = self.watched(&key, &resource)?.objects.get(&name_of(&key)).cloned();
        let is_due = match (&writers, reason) {
            (Some(writers), LookReason::Unseen) => writers.are_doubtful(),
            (Some(_), LookReason::Changed) => true,
            // Somebody has been told already that an object is gone.
            (None, _) => !tracked.is_loss_told,
        };
        let left = tracked.settings.rules(&key.kind, &key.name).cloned().collect();
        is_due.then_some(Doubt { generation: tracked.generation, release, key, resource, left, writers })
    }

    /// Records that a look has failed; it comes again.
    pub(super) fn look_again(&mut self, doubt: &Doubt, now: Instant) {
        let reason = if doubt.writers.is_some() { LookReason::Changed } else { LookReason::Unseen };
        self.looks.add(&doubt.release, &doubt.key, reason, now);
    }

    /// Records what a look has shown, and returns what is to be reported of it.
    pub(super) fn looked(&mut self, doubt: &Doubt, finding: Finding, now: Instant) -> Option<Report> {
        let tracked = self.releases.get_mut(&doubt.release)?;
        if tracked.paused || tracked.generation != doubt.generation {
            // It was written meanwhile.
            self.look_again(doubt, now);
            return None;
        }
        let object = shown(&doubt.key);
        let (drift, harmless) = match finding {
            // The watch tells it of those that it has shown.
            Finding::Absent if doubt.writers.is_some() || tracked.is_loss_told => (None, Vec::new()),
            Finding::Absent => {
                tracked.lost = true;
                tracked.is_loss_told = true;
                tracked.changed.remove(&doubt.key);
                (Some(Drift::Absent(object)), Vec::new())
            }
            Finding::Compared { changed: Some(ChangedField { place, writer }), harmless } => {
                let known = tracked.changed.insert(doubt.key.clone(), place.clone());
                let is_known = known.as_ref() == Some(&place);
                ((!is_known).then_some(Drift::Changed { object, place, writer }), harmless)
            }
            Finding::Compared { changed: None, harmless } => {
                (tracked.changed.remove(&doubt.key).map(|_| Drift::Restored(object)), harmless)
            }
        };
        let report = drift.and_then(|drift| {
            let (module, sink) = tracked.listener.as_ref()?;
            Some((Arc::clone(sink), Event::ReleaseDrifted { module: module.clone(), drift }))
        });
        let path = self.collection(&doubt.key, &doubt.resource).map(|(path, _)| path);
        if let Some(looked) = &doubt.writers
            && let Some(watched) = path.and_then(|path| self.watches.get_mut(&path))
            && let Some(writers) = watched.objects.get_mut(&name_of(&doubt.key))
        {
            writers.judge(looked, &harmless);
        }
        report
    }

    /// Reports whether all objects of a release are there as far as they are watched, and remembers it.
    pub(super) fn has_all(&mut self, release: &str) -> bool {
        let is_there = |(key, resource): (&Key, &Resource)| {
            let watched = self.watched(key, resource).filter(|watched| watched.listed);
            watched.is_none_or(|watched| watched.objects.contains_key(&name_of(key)))
        };
        let has_all = self.releases.get(release).is_none_or(|tracked| tracked.objects.iter().all(is_there));
        if let Some(tracked) = self.releases.get_mut(release) {
            tracked.lost = !has_all;
        }
        has_all
    }

    /// Reports whether no object of a release is known to be gone.
    pub(super) fn is_intact(&self, release: &str) -> bool {
        self.releases.get(release).is_none_or(|tracked| !tracked.lost)
    }

    /// Returns the objects of a release that no watch shows.
    pub(super) fn unseen(&self, release: &str) -> Vec<(Key, Resource)> {
        let tracked = self.releases.get(release).into_iter().flat_map(|tracked| &tracked.objects);
        let unseen = tracked.filter(|(key, resource)| {
            let watched = self.watched(key, resource);
            watched.is_some_and(|watched| watched.tried && !watched.listed || watched.broken.is_some())
        });
        unseen.map(|(key, resource)| (key.clone(), resource.clone())).collect()
    }

    /// Reports whether the first list of all collections at these paths has come, or could not.
    pub(super) fn all_tried(&self, paths: &BTreeSet<String>) -> bool {
        paths.iter().all(|path| self.watches.get(path).is_none_or(|watched| watched.tried))
    }

    /// Forgets a release; watches that nobody needs any more end.
    pub(super) fn forget(&mut self, release: &str) {
        self.releases.remove(release);
        self.looks.forget(release);
        let objects = || self.releases.values().flat_map(|tracked| &tracked.objects);
        let mut used: BTreeSet<String> = objects().map(|(_, resource)| resource.path(None)).collect();
        used.extend(objects().filter_map(|(key, resource)| Some(self.collection(key, resource)?.0)));
        self.watches.retain(|path, watched| {
            let keep = used.contains(path);
            if !keep {
                watched.task.abort();
            }
            keep
        });
    }

    /// Returns reports of all tracked objects that a list lacks.
    fn missing(&mut self, path: &str) -> Vec<Report> {
        let Some(watched) = self.watches.remove(path) else { return Vec::new() };
        let is_missing = |key: &Key, resource: &Resource| {
            watched.is_of(key, resource) && !watched.objects.contains_key(&name_of(key))
        };
        let reports = self.report_absent(is_missing);
        self.watches.insert(path.to_owned(), watched);
        reports
    }

    fn gone(&mut self, path: &str, name: &ObjectName) -> Vec<Report> {
        let Some(watched) = self.watches.remove(path) else { return Vec::new() };
        let reports =
            self.report_absent(|key, resource| watched.is_of(key, resource) && name_of(key) == *name);
        self.watches.insert(path.to_owned(), watched);
        reports
    }

    fn report_absent(&mut self, is_absent: impl Fn(&Key, &Resource) -> bool) -> Vec<Report> {
        let mut reports = Vec::new();
        for tracked in self.releases.values_mut().filter(|tracked| !tracked.paused) {
            for (key, _) in tracked.objects.iter().filter(|(key, resource)| is_absent(key, resource)) {
                tracked.lost = true;
                tracked.changed.remove(key);
                if let Some((module, sink)) = &tracked.listener {
                    tracked.is_loss_told = true;
                    let drift = Drift::Absent(shown(key));
                    reports.push((Arc::clone(sink), Event::ReleaseDrifted { module: module.clone(), drift }));
                }
            }
        }
        reports
    }
}

impl WatchedCollection {
    /// Reports whether an object is one of this collection.
    fn is_of(&self, key: &Key, resource: &Resource) -> bool {
        (&self.resource.group, &self.resource.kind) == (&resource.group, &resource.kind)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
    }
}

fn name_of(key: &Key) -> ObjectName {
    (key.namespace.clone(), key.name.clone())
}

/// Returns how an object is called in reports.
pub(super) fn shown(key: &Key) -> String {
    format!("{}/{}/{}", key.namespace, key.kind, key.name)
}

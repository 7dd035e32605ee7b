//! Drift of the objects of releases: which of them are gone, or changed by others. No I/O.
//!
//! It is long because watches, looks and mends ask and change one state: what is known of each object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use engine::hook::WatchEvent;
use engine::{Drift, DriftSettings, Event, IgnoreRule, ModuleName, UnwatchedKind};
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::last_release::WORK;
use super::look_schedule::{LookReason, LookSchedule};
use super::object::Key;
use super::tracked_objects::{SharedKinds, TrackedObjects};
use super::watched_collection::{
    ObjectName, WatchedCollection, Written, end_strays, name_of, uid_mark, unlabelled_path,
};
use super::writers::Writers;
use crate::cluster::Crds;
use crate::cluster::Resource;
use crate::cluster::watch::{Update, WatchError};

/// How long nobody looks at the objects of a release that somebody else is changing.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What is known of the objects of all releases, and who wants to know of their drift.
#[derive(Default)]
pub(super) struct DriftState {
    pub(super) releases: BTreeMap<String, TrackedRelease>,
    kinds: SharedKinds,
    /// Whether kinds are watched in the namespaces of objects, and never as a whole.
    pub(super) is_in_namespaces: bool,
    /// By the path of the collection; without labels, by [`unlabelled_path`].
    pub(super) watches: BTreeMap<String, WatchedCollection>,
    /// Keeps the CRDs watched, so that the kinds of the cluster are looked up again when one changes.
    pub(super) crds: Option<watch::Receiver<Crds>>,
    /// The objects that others may have changed.
    pub(super) looks: LookSchedule,
    /// Whether somebody looks at them.
    pub(super) is_looking: bool,
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
    /// Since when nothing is told of it because somebody else is changing it, and until when nobody looks.
    held: Option<Hold>,
}

/// A release that is left to somebody else for a while.
struct Hold {
    since: Instant,
    until: Instant,
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
    /// Why it is looked at.
    reason: LookReason,
    /// Who has written it; `None` if no watch shows it.
    writers: Option<Writers>,
}

/// What a look at an object shows.
pub(super) enum Finding {
    /// It is gone.
    Absent,
    /// It is there, and the watch of its kind does not show it.
    There,
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

impl Doubt {
    /// Returns whether no watch shows the object, so that it is only looked whether it is there.
    pub(super) fn is_unseen(&self) -> bool {
        self.writers.is_none()
    }

    /// Returns whether the object left what the watch shows.
    pub(super) fn is_left(&self) -> bool {
        matches!(self.reason, LookReason::Left(_))
    }

    /// Reports whether an object with this `uid` is the one that is looked for, and no other that was made in its place.
    pub(super) fn is_of(&self, uid: &str) -> bool {
        match self.reason {
            LookReason::Left(Some(left)) => uid_mark(uid) == left,
            LookReason::Left(None) | LookReason::Changed | LookReason::Unseen => true,
        }
    }
}

impl Finding {
    /// Reports whether there is something to tell, as far as it was not told before.
    pub(super) fn is_news(&self) -> bool {
        match self {
            Self::Absent | Self::Compared { changed: Some(_), .. } => true,
            Self::There | Self::Compared { changed: None, .. } => false,
        }
    }
}

impl DriftState {
    /// Records what a reflector of the collection at `path` has seen.
    pub(super) fn apply(&mut self, path: &str, update: Update<Written>, now: Instant) {
        let Some(watched) = self.watches.get_mut(path) else { return };
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
                    if is_doubtful && watched.follows(&name) {
                        doubtful.push(name.clone());
                    }
                    watched.objects.insert(name, writers);
                }
                watched.tried = true;
                watched.listed = true;
                self.end_strays_shown_at(path);
                self.doubt(path, &doubtful, now);
                self.missing(path, now);
            }
            Update::Changed(WatchEvent::Added | WatchEvent::Modified, object) => {
                let (name, mut writers) = (object.name(), object.writers());
                let is_doubtful = match watched.objects.get(&name) {
                    Some(before) => writers.renew(before),
                    None => writers.are_doubtful(),
                };
                if is_doubtful && watched.follows(&name) {
                    doubtful.push(name.clone());
                }
                watched.objects.insert(name, writers);
                self.end_strays_shown_at(path);
                self.doubt(path, &doubtful, now);
            }
            Update::Changed(WatchEvent::Deleted, object) => {
                watched.objects.remove(&object.name());
                self.left(path, &object, now);
            }
            Update::Failed(error) => {
                watched.tried = true;
                // The objects of a kind go with it.
                if matches!(error, WatchError::KindMissing) && !watched.objects.is_empty() {
                    watched.objects.clear();
                    self.missing(path, now);
                }
            }
            Update::Restored => {}
        }
    }

    /// Adds a collection that is watched from now on.
    pub(super) fn watch(
        &mut self,
        path: String,
        resource: Resource,
        namespace: Option<String>,
        task: AbortHandle,
    ) {
        self.watches.insert(path, WatchedCollection::new(task, resource, namespace));
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

    /// Returns the path of the collection that shows an object, or that would if the object was there.
    fn watched_path(&self, key: &Key, resource: &Resource) -> Option<String> {
        let (path, _) = self.collection(key, resource)?;
        let shows = |watched: &WatchedCollection| watched.objects.contains_key(&name_of(key));
        if self.watches.get(&path).is_some_and(shows) {
            return Some(path);
        }
        let unlabelled = unlabelled_path(resource, &key.namespace);
        let is_followed = self.watches.get(&unlabelled).is_some_and(|watched| watched.is_of(key, resource));
        Some(if is_followed { unlabelled } else { path })
    }

    fn watched(&self, key: &Key, resource: &Resource) -> Option<&WatchedCollection> {
        self.watches.get(&self.watched_path(key, resource)?)
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
        tracked.held = None;
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
        self.end_untracked_strays();
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
        let (key, resource, reason) = (key.clone(), resource.clone(), LookReason::Changed);
        Some(Doubt { release, key, resource, left, generation, reason, writers: None })
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
        if tracked.paused || tracked.held.as_ref().is_some_and(|held| now < held.until) {
            self.looks.add(&release, &key, reason, now);
            return None;
        }
        let resource = tracked.objects.get(&key)?.clone();
        let writers = self.watched(&key, &resource)?.objects.get(&name_of(&key)).cloned();
        let is_due = match (&writers, reason) {
            (Some(writers), LookReason::Unseen) => writers.are_doubtful(),
            (Some(_), LookReason::Changed | LookReason::Left(_)) | (None, LookReason::Left(_)) => true,
            // Somebody has been told already that an object is gone.
            (None, LookReason::Changed | LookReason::Unseen) => !tracked.is_loss_told,
        };
        let left = tracked.settings.rules(&key.kind, &key.name).cloned().collect();
        let generation = tracked.generation;
        is_due.then_some(Doubt { release, key, resource, left, generation, reason, writers })
    }

    /// Records that a look has failed; it comes again.
    pub(super) fn look_again(&mut self, doubt: &Doubt, now: Instant) {
        let reason = match (&doubt.writers, doubt.reason) {
            (Some(_), _) => LookReason::Changed,
            // Which object it was that left says whether what is found is another one.
            (None, left @ LookReason::Left(_)) => left,
            (None, LookReason::Changed | LookReason::Unseen) => LookReason::Unseen,
        };
        self.looks.add(&doubt.release, &doubt.key, reason, now);
    }

    /// Reports whether what was found of a release may be told later, if somebody else is changing it.
    pub(super) fn may_wait(&self, release: &str, now: Instant) -> bool {
        let tracked = self.releases.get(release);
        let is_over = |held: &Hold| now.duration_since(held.since) >= WORK;
        tracked.is_some_and(|tracked| !tracked.is_loss_told && !tracked.held.as_ref().is_some_and(is_over))
    }

    /// Records whether somebody else is changing the release of an object. Then the object is looked at again, and no other one of
    /// that release before.
    pub(super) fn hold(&mut self, doubt: &Doubt, is_changed_by_others: bool, now: Instant) {
        let Some(tracked) = self.releases.get_mut(&doubt.release) else { return };
        if is_changed_by_others {
            let since = tracked.held.as_ref().map_or(now, |held| held.since);
            tracked.held = Some(Hold { since, until: now + LOOK_AGAIN });
            self.looks.add(&doubt.release, &doubt.key, doubt.reason, now);
        } else {
            tracked.held = None;
        }
    }

    /// Has an object that is there, and that the watch of its kind does not show, followed without labels. `watch` begins to
    /// watch a collection, given by what it is known and its path.
    pub(super) fn stray(
        &mut self,
        doubt: &Doubt,
        now: Instant,
        watch: impl FnOnce(&str, &str) -> AbortHandle,
    ) {
        let Doubt { release, key, resource, generation, .. } = doubt;
        let Some(tracked) = self.releases.get(release) else { return };
        if tracked.paused || tracked.generation != *generation {
            return self.look_again(doubt, now);
        }
        let name = name_of(key);
        if self.watched(key, resource).is_none_or(|watched| watched.objects.contains_key(&name)) {
            return;
        }
        let path = unlabelled_path(resource, &key.namespace);
        if !self.watches.contains_key(&path) {
            let namespace = resource.namespaced.then(|| key.namespace.clone());
            let task = watch(&path, &resource.path(namespace.as_deref()));
            self.watch(path.clone(), resource.clone(), namespace, task);
        }
        let Some(known) = self.watches.get_mut(&path) else { return };
        known.strays.get_or_insert_default().insert(name);
        // A label that it lacks was rendered.
        self.looks.add(release, key, LookReason::Changed, now);
    }

    /// Follows objects no longer without labels that the watch at `path` shows again.
    fn end_strays_shown_at(&mut self, path: &str) {
        if self.watches.values().all(|watched| watched.strays.is_none()) {
            return;
        }
        let Some(shown) = self.watches.remove(path) else { return };
        if shown.strays.is_none() {
            let is_shown = |resource: &Resource, name: &ObjectName| {
                shown.is_of_kind(resource) && shown.objects.contains_key(name)
            };
            end_strays(&mut self.watches, is_shown);
        }
        self.watches.insert(path.to_owned(), shown);
    }

    /// Follows objects no longer without labels that are of no release any more.
    fn end_untracked_strays(&mut self) {
        let objects = || self.releases.values().flat_map(|tracked| &tracked.objects);
        end_strays(&mut self.watches, |resource, name| {
            let is_it = |(key, kind): (&Key, &Resource)| {
                (&kind.group, &kind.kind) == (&resource.group, &resource.kind) && name_of(key) == *name
            };
            !objects().any(is_it)
        });
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
        let is_left = doubt.is_left();
        let (drift, harmless) = match finding {
            // The watch tells it of those that it has shown.
            Finding::Absent if doubt.writers.is_some() || (tracked.is_loss_told && !is_left) => {
                (None, Vec::new())
            }
            Finding::There => (None, Vec::new()),
            Finding::Absent => {
                self.looks.forget_object(&doubt.release, &doubt.key);
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
        let path = self.watched_path(&doubt.key, &doubt.resource);
        if let Some(looked) = &doubt.writers
            && let Some(watched) = path.and_then(|path| self.watches.get_mut(&path))
            && let Some(writers) = watched.objects.get_mut(&name_of(&doubt.key))
        {
            writers.judge(looked, &harmless);
        }
        report
    }

    /// Records that an object of a release is gone.
    pub(super) fn set_lost(&mut self, release: &str) {
        if let Some(tracked) = self.releases.get_mut(release) {
            tracked.lost = true;
        }
    }

    /// Reports whether no object of a release is known to be gone.
    pub(super) fn is_intact(&self, release: &str) -> bool {
        self.releases.get(release).is_none_or(|tracked| !tracked.lost)
    }

    /// Returns the objects of a release of which no watch says whether they are there: none shows their kind, or they left what
    /// it shows. With `asks_lacking`, or if nobody is told of them, also those that it does not show, though it may be late.
    pub(super) fn unseen(&self, release: &str, asks_lacking: bool) -> Vec<(Key, Resource)> {
        let Some(tracked) = self.releases.get(release) else { return Vec::new() };
        let asks_lacking = asks_lacking || tracked.listener.is_none();
        let is_unseen = |(key, resource): &(&Key, &Resource)| {
            let Some(watched) = self.watched(key, resource) else { return false };
            let is_lacking = || watched.listed && !watched.objects.contains_key(&name_of(key));
            (watched.tried && !watched.listed)
                || watched.broken.is_some()
                || (asks_lacking && is_lacking())
                || self.looks.has_left(release, key)
        };
        let unseen = tracked.objects.iter().filter(is_unseen);
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
            let keep = watched.strays.is_some() || used.contains(path);
            if !keep {
                watched.end();
            }
            keep
        });
        self.end_untracked_strays();
    }

    /// Has all tracked objects looked for that a list lacks, but for those that are followed without labels.
    fn missing(&mut self, path: &str, now: Instant) {
        let Some(watched) = self.watches.get(path) else { return };
        let is_followed = |key: &Key, resource: &Resource| {
            let unlabelled = self.watches.get(&unlabelled_path(resource, &key.namespace));
            watched.strays.is_none() && unlabelled.is_some_and(|watched| watched.is_of(key, resource))
        };
        for (release, tracked) in self.releases.iter().filter(|(_, tracked)| tracked.is_told_of()) {
            for (key, resource) in &tracked.objects {
                let is_missing = watched.is_of(key, resource) && !watched.objects.contains_key(&name_of(key));
                if is_missing && !is_followed(key, resource) {
                    self.looks.add(release, key, LookReason::Left(None), now);
                }
            }
        }
    }

    /// Has an object looked for that left what the watch at `path` shows: it was deleted, or has lost a label.
    fn left(&mut self, path: &str, object: &Written, now: Instant) {
        let Some(watched) = self.watches.get(path) else { return };
        let (name, reason) = (object.name(), LookReason::Left(Some(object.uid())));
        for (release, tracked) in self.releases.iter().filter(|(_, tracked)| tracked.is_told_of()) {
            for (key, resource) in &tracked.objects {
                if name_of(key) == name && watched.is_of(key, resource) {
                    self.looks.add(release, key, reason, now);
                }
            }
        }
    }
}

impl TrackedRelease {
    /// Reports whether what happens to its objects is told.
    fn is_told_of(&self) -> bool {
        self.listener.is_some() && !self.paused
    }
}

/// Returns how an object is called in reports.
pub(super) fn shown(key: &Key) -> String {
    format!("{}/{}/{}", key.namespace, key.kind, key.name)
}

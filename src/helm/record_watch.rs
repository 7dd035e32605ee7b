//! Watches the records of releases by their metadata.
//!
//! One watch for all releases shows when somebody else may have written or deleted a
//! record. Then the records of that release are read, so that neither a watch that is
//! late nor our own writes are taken for somebody else's. It begins where the first
//! list of all records ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chart::record;
use engine::hook::WatchEvent;
use engine::{Drift, Event};
use tokio::task::AbortHandle;

use super::continuations::parse_part_name;
use super::error::ReleaseError;
use super::first_list::FirstList;
use super::last_release::{Deviation, LastRelease, LastReleases, WORK};
use super::object_watch::ObjectWatch;
use super::storage::{self, Storage, StoredRevision};
use crate::cluster::list::MetadataOnly;
use crate::cluster::request::Requests;
use crate::cluster::watch::{Reflector, Update, WatchError};
use crate::lasting_task::lasting;

/// How long after a change the records are read: who writes one, often writes another.
const QUIET: Duration = Duration::from_millis(300);

/// How often it is checked whether somebody else has finished.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Watches the records of all releases.
#[derive(Clone)]
pub(super) struct RecordWatch {
    requests: Requests,
    storage: Storage,
    objects: ObjectWatch,
    last_releases: LastReleases,
    first_list: FirstList,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    is_watching: bool,
    tasks: Vec<AbortHandle>,
    /// The releases whose records are about to be read.
    doubted: BTreeSet<String>,
}

/// What the records of a release show.
enum Verdict {
    Done,
    /// Somebody else seems to change the release.
    Passing,
    /// The records could not be read.
    Unasked,
}

impl RecordWatch {
    pub(super) fn new(
        requests: Requests,
        storage: Storage,
        objects: ObjectWatch,
        last_releases: LastReleases,
        first_list: FirstList,
    ) -> Self {
        Self { requests, storage, objects, last_releases, first_list, state: Arc::default() }
    }

    /// Begins to watch, if that was not done yet.
    pub(super) fn watch(&self) {
        if !self.lock(|state| std::mem::replace(&mut state.is_watching, true)) {
            let (watch, mut listed) = (self.clone(), self.first_list.watch());
            let follow = async move {
                lasting("the watch of records", || watch.clone().follow(listed.take())).await;
            };
            let parts = self.clone();
            let follow_parts = async move {
                lasting("the watch of continuations", || parts.clone().follow_parts()).await;
            };
            let tasks = vec![tokio::spawn(follow).abort_handle(), tokio::spawn(follow_parts).abort_handle()];
            self.lock(|state| state.tasks = tasks);
        }
    }

    /// Ends the watch.
    pub(super) fn end(&self) {
        for task in self.lock(|state| std::mem::take(&mut state.tasks)) {
            task.abort();
        }
    }

    fn lock<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Follows the records for ever, behind the version at which they were `listed`.
    async fn follow(self, listed: Option<String>) {
        let collection = self.storage.all();
        let mut reflector = match listed {
            Some(version) => Reflector::behind(self.requests.clone(), collection, version),
            None => Reflector::new(self.requests.clone(), collection),
        };
        let mut is_reported = false;
        loop {
            let update = reflector.next().await;
            if let Update::Listed(_) | Update::Failed(_) = update {
                self.first_list.end();
            }
            match update {
                Update::Listed(objects) => self.compare(objects),
                Update::Changed(event, object) => self.apply(event, object),
                Update::Failed(WatchError::Forbidden(error))
                    if !std::mem::replace(&mut is_reported, true) =>
                {
                    tracing::warn!(
                        "{} may not watch Secrets: what others do to releases there is seen at the next start: {error}",
                        self.storage.asker()
                    );
                }
                Update::Failed(error) => tracing::debug!("the watch of records begins anew: {error}"),
                Update::Restored => {}
            }
        }
    }

    /// Follows the continuations of records for ever, from the first record on that has some.
    async fn follow_parts(self) {
        let mut parts = self.storage.parts().subscribe();
        let _ = parts.wait_for(|parts| !parts.is_empty()).await;
        let mut reflector: Reflector<MetadataOnly> =
            Reflector::new(self.requests.clone(), self.storage.all_parts());
        loop {
            match reflector.next().await {
                Update::Listed(parts) => self.count_parts(&parts),
                Update::Changed(WatchEvent::Deleted | WatchEvent::Modified, part) => {
                    if let Some((release, version)) = parse_part_name(&part.metadata.name) {
                        self.doubt_revision(release, version);
                    }
                }
                Update::Failed(error) => tracing::debug!("the watch of continuations begins anew: {error}"),
                Update::Changed(WatchEvent::Added, _) | Update::Restored => {}
            }
        }
    }

    /// Looks which continuations went while nobody watched.
    fn count_parts(&self, listed: &[MetadataOnly]) {
        let mut counts: BTreeMap<(&str, u32), usize> = BTreeMap::new();
        for part in listed.iter().filter_map(|part| parse_part_name(&part.metadata.name)) {
            *counts.entry(part).or_default() += 1;
        }
        let known = self.storage.parts().borrow().clone();
        for ((release, version), count) in &known {
            if counts.get(&(release.as_str(), *version)) != Some(count) {
                self.doubt_revision(release, *version);
            }
        }
    }

    /// Has the records of a release read if a continuation of the revision that counts may be another.
    fn doubt_revision(&self, release: &str, version: u32) {
        if self.last_releases.get(release).is_some_and(|last| last.revision == version) {
            self.doubt(release.to_owned());
        }
    }

    /// Has the records of a release read if a change of one may be somebody else's.
    fn apply(&self, event: WatchEvent, object: MetadataOnly) {
        let Some((release, stored)) = read(object) else { return };
        self.first_list.pass_by(&release);
        let Some(last) = self.last_releases.get(&release) else { return };
        let is_doubtful = match event {
            WatchEvent::Added | WatchEvent::Modified => last.may_differ(&stored),
            WatchEvent::Deleted => last.revision == stored.version,
        };
        if is_doubtful {
            self.doubt(release);
        }
    }

    /// Looks for what changed while nobody watched.
    fn compare(&self, objects: Vec<MetadataOnly>) {
        let mut listed: BTreeMap<String, Vec<StoredRevision>> = BTreeMap::new();
        for (release, stored) in objects.into_iter().filter_map(read) {
            if self.last_releases.get(&release).is_none() {
                continue;
            }
            listed.entry(release).or_default().push(stored);
        }
        for release in self.last_releases.names() {
            let Some(last) = self.last_releases.get(&release) else { continue };
            let mut history = listed.remove(&release).unwrap_or_default();
            history.sort_by_key(|stored| stored.version);
            let differs = last.deviation(&history, |stored| self.storage.is_ours(stored)).is_some();
            if differs || history.last().is_some_and(|newest| last.may_differ(newest)) {
                self.doubt(release);
            }
        }
    }

    /// Has the records of a release read soon.
    fn doubt(&self, release: String) {
        let is_listened_to = self.objects.listener(&release).is_some();
        if is_listened_to && self.lock(|state| state.doubted.insert(release.clone())) {
            tokio::spawn(self.clone().ask(release));
        }
    }

    async fn ask(self, release: String) {
        let (mut waited, mut pause) = (Duration::ZERO, QUIET);
        loop {
            tokio::time::sleep(pause).await;
            waited += pause;
            // From here on a change is a reason to read once more.
            self.lock(|state| state.doubted.remove(&release));
            pause = match self.judge(&release, waited >= WORK).await {
                Verdict::Done => return,
                Verdict::Passing => LOOK_AGAIN,
                Verdict::Unasked => (pause * 2).clamp(LOOK_AGAIN, WORK),
            };
            if !self.lock(|state| state.doubted.insert(release.clone())) {
                return;
            }
        }
    }

    /// Reads the records of a release, and reports if somebody else wrote them.
    async fn judge(&self, release: &str, is_last: bool) -> Verdict {
        let Some(last) = self.last_releases.get(release) else { return Verdict::Done };
        // A release that we change ourselves is checked by that change.
        if self.objects.listener(release).is_none() {
            return Verdict::Done;
        }
        let what = match self.found(release, &last).await {
            Ok(None) => return Verdict::Done,
            Ok(Some(found)) if found.passes && !is_last => return Verdict::Passing,
            Ok(Some(found)) => found.what,
            Err(error) => {
                tracing::debug!(release, "the records can't be asked: {error}");
                return Verdict::Unasked;
            }
        };
        if let Some((module, sink)) = self.objects.listener(release)
            && self.last_releases.forget(release, &last)
        {
            sink(Event::ReleaseDrifted { module, drift: Drift::Status(what) }).await;
        }
        Verdict::Done
    }

    async fn found(&self, release: &str, last: &LastRelease) -> Result<Option<Deviation>, ReleaseError> {
        let history = self.storage.history(release).await?;
        let deviation = last.deviation(&history, |stored| self.storage.is_ours(stored));
        if deviation.is_some() {
            return Ok(deviation);
        }
        match self.storage.read(release, last.revision).await {
            Ok(Some(_)) => Ok(None),
            Ok(None) => Ok(Some(Deviation::new("its records are gone".to_owned()))),
            Err(ReleaseError::Record { problem, .. }) => {
                let what = format!("the record of revision {} can not be read: {problem}", last.revision);
                Ok(Some(Deviation::new(what)))
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns the release that a Secret belongs to, and what its metadata says.
fn read(object: MetadataOnly) -> Option<(String, StoredRevision)> {
    let release = record::parse_secret_name(&object.metadata.name)?.0.to_owned();
    storage::stored(object.metadata, &release).map(|stored| (release, stored))
}

//! Watches the records of releases by their metadata.
//!
//! One watch for all releases tells when somebody else may have written or deleted a
//! record. Then the records of that release are asked, so that neither what the watch
//! is late with nor our own writes are taken for somebody else's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chart::record;
use engine::hook::WatchEvent;
use engine::{Drift as Difference, Event};

use super::drift::Drift;
use super::error::ReleaseError;
use super::last_release::{Known, KnownReleases, Unexpected};
use super::storage::{self, Storage, Stored};
use crate::cluster::list::{Collection, MetadataOnly};
use crate::cluster::request::Requests;
use crate::cluster::watch::{Reflector, Update, WatchError};

/// How long after a change the records are asked: who writes one, often writes another.
const QUIET: Duration = Duration::from_millis(300);

/// How long somebody who seems to be at work is left to it.
const WORK: Duration = Duration::from_secs(30);

/// How often is looked whether somebody is through with it.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Watches the records of all releases.
#[derive(Clone)]
pub(super) struct Records {
    requests: Requests,
    storage: Storage,
    drift: Drift,
    known: KnownReleases,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    is_watching: bool,
    /// The releases whose records are about to be asked.
    doubted: BTreeSet<String>,
}

/// What comes of asking the records of a release.
enum Verdict {
    Done,
    /// Somebody seems to be at work.
    Passing,
    /// The records could not be asked.
    Unasked,
}

impl Records {
    pub(super) fn new(requests: Requests, storage: Storage, drift: Drift, known: KnownReleases) -> Self {
        Self { requests, storage, drift, known, state: Arc::default() }
    }

    /// Begins to watch, if that was not done yet.
    pub(super) fn watch(&self) {
        if !self.with(|state| std::mem::replace(&mut state.is_watching, true)) {
            tokio::spawn(self.clone().follow());
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Follows the records for ever.
    async fn follow(self) {
        let collection =
            Collection::new(&self.storage.collection()).with_labels("owner=helm").metadata_only();
        let mut reflector = Reflector::new(self.requests.clone(), collection);
        let mut is_reported = false;
        loop {
            match reflector.next().await {
                Update::Listed(objects) => self.compare(objects),
                Update::Changed(event, object) => self.apply(event, object),
                Update::Failed(WatchError::Forbidden(error))
                    if !std::mem::replace(&mut is_reported, true) =>
                {
                    tracing::warn!(
                        "the operator's ServiceAccount may not watch Secrets of its namespace: what others do to releases is seen at the next start: {error}"
                    );
                }
                Update::Failed(error) => tracing::debug!("the watch of records begins anew: {error}"),
            }
        }
    }

    /// Has the records of a release asked if a change of one may be somebody else's.
    fn apply(&self, event: WatchEvent, object: MetadataOnly) {
        let Some((release, stored)) = read(object) else { return };
        let Some(known) = self.known.get(&release) else { return };
        let is_doubtful = match event {
            WatchEvent::Added | WatchEvent::Modified => known.may_differ(&stored),
            WatchEvent::Deleted => known.revision == stored.version,
        };
        if is_doubtful {
            self.doubt(release);
        }
    }

    /// Looks for what changed while nobody watched.
    fn compare(&self, objects: Vec<MetadataOnly>) {
        let mut listed: BTreeMap<String, Vec<Stored>> = BTreeMap::new();
        for (release, stored) in objects.into_iter().filter_map(read) {
            if self.known.get(&release).is_none() {
                continue;
            }
            listed.entry(release).or_default().push(stored);
        }
        for release in self.known.names() {
            let Some(known) = self.known.get(&release) else { continue };
            let mut history = listed.remove(&release).unwrap_or_default();
            history.sort_by_key(|stored| stored.version);
            let differs = known.unexpected(&history, |stored| self.storage.is_ours(stored)).is_some();
            if differs || history.last().is_some_and(|newest| known.may_differ(newest)) {
                self.doubt(release);
            }
        }
    }

    /// Has the records of a release asked soon.
    fn doubt(&self, release: String) {
        let is_listened_to = self.drift.listener(&release).is_some();
        if is_listened_to && self.with(|state| state.doubted.insert(release.clone())) {
            tokio::spawn(self.clone().ask(release));
        }
    }

    async fn ask(self, release: String) {
        let (mut waited, mut pause) = (Duration::ZERO, QUIET);
        loop {
            tokio::time::sleep(pause).await;
            waited += pause;
            // From here on a change is a reason to ask once more.
            self.with(|state| state.doubted.remove(&release));
            pause = match self.judge(&release, waited >= WORK).await {
                Verdict::Done => return,
                Verdict::Passing => LOOK_AGAIN,
                Verdict::Unasked => (pause * 2).clamp(LOOK_AGAIN, WORK),
            };
            if !self.with(|state| state.doubted.insert(release.clone())) {
                return;
            }
        }
    }

    /// Asks the records of a release, and tells if somebody else wrote them.
    async fn judge(&self, release: &str, is_last: bool) -> Verdict {
        let Some(known) = self.known.get(release) else { return Verdict::Done };
        // What is being changed by ourselves is looked at by that.
        if self.drift.listener(release).is_none() {
            return Verdict::Done;
        }
        let what = match self.found(release, &known).await {
            Ok(None) => return Verdict::Done,
            Ok(Some(found)) if found.passes && !is_last => return Verdict::Passing,
            Ok(Some(found)) => found.what,
            Err(error) => {
                tracing::debug!(release, "the records can't be asked: {error}");
                return Verdict::Unasked;
            }
        };
        if let Some((module, tell)) = self.drift.listener(release)
            && self.known.forget(release, &known)
        {
            tell(Event::ReleaseDrifted { module, drift: Difference::Status(what) }).await;
        }
        Verdict::Done
    }

    async fn found(&self, release: &str, known: &Known) -> Result<Option<Unexpected>, ReleaseError> {
        let history = self.storage.history(release).await?;
        let unexpected = known.unexpected(&history, |stored| self.storage.is_ours(stored));
        if unexpected.is_some() {
            return Ok(unexpected);
        }
        match self.storage.read(release, known.revision).await {
            Ok(Some(_)) => Ok(None),
            Ok(None) => Ok(Some(Unexpected::new("its records are gone".to_owned()))),
            Err(ReleaseError::Record { .. }) => {
                let what = format!("the record of revision {} can not be read", known.revision);
                Ok(Some(Unexpected::new(what)))
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns the release that a Secret belongs to, and what its metadata says.
fn read(object: MetadataOnly) -> Option<(String, Stored)> {
    let release = record::parse_secret_name(&object.metadata.name)?.0.to_owned();
    storage::stored(object.metadata, &release).map(|stored| (release, stored))
}

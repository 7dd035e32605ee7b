//! Watches the records of releases by their metadata.
//!
//! One watch for all releases tells when somebody else may have written or deleted a
//! record. Then the records of that release are asked, so that neither what the watch
//! is late with nor our own writes are taken for somebody else's.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chart::record;
use engine::{Drift as Difference, Event};
use futures::TryStreamExt as _;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};

use super::drift::Drift;
use super::error::ReleaseError;
use super::last_release::{Known, KnownReleases, Unexpected};
use super::storage::{self, Storage, Stored};
use crate::cluster::request::Labelled;

/// How long after a change the records are asked: who writes one, often writes another.
const QUIET: Duration = Duration::from_millis(300);

/// How long somebody who seems to be at work is left to it.
const WORK: Duration = Duration::from_secs(30);

/// How often is looked whether somebody is through with it.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Watches the records of all releases.
#[derive(Clone)]
pub(super) struct Records {
    client: Client,
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
    pub(super) fn new(client: Client, storage: Storage, drift: Drift, known: KnownReleases) -> Self {
        Self { client, storage, drift, known, state: Arc::default() }
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

    /// Follows the records for ever; the stream begins anew after errors.
    async fn follow(self) {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Secret"));
        let api: Api<PartialObjectMeta<DynamicObject>> =
            Api::namespaced_with(self.client.clone(), self.storage.namespace(), &kind);
        let config = watcher::Config::default().labels("owner=helm");
        let mut stream = pin!(watcher(api, config).default_backoff());
        let mut listed = BTreeMap::new();
        let mut is_told = false;
        loop {
            match stream.try_next().await {
                Ok(Some(event)) => self.take(event, &mut listed),
                Ok(None) => return,
                Err(error) if is_forbidden(&error) && !std::mem::replace(&mut is_told, true) => {
                    tracing::warn!(
                        "the operator's ServiceAccount may not watch Secrets of its namespace: what others do to releases is seen at the next start: {error}"
                    );
                }
                Err(error) => tracing::debug!("the watch of records begins anew: {error}"),
            }
        }
    }

    /// Takes in one event of the watch; `listed` holds the list that is coming in.
    fn take(
        &self,
        event: watcher::Event<PartialObjectMeta<DynamicObject>>,
        listed: &mut BTreeMap<String, Vec<Stored>>,
    ) {
        match event {
            watcher::Event::Init => listed.clear(),
            watcher::Event::InitApply(object) => {
                if let Some((release, stored)) = read(object)
                    && self.known.get(&release).is_some()
                {
                    listed.entry(release).or_default().push(stored);
                }
            }
            watcher::Event::InitDone => self.compare(std::mem::take(listed)),
            watcher::Event::Apply(object) => {
                if let Some((release, stored)) = read(object)
                    && self.known.get(&release).is_some_and(|known| known.may_differ(&stored))
                {
                    self.doubt(release);
                }
            }
            watcher::Event::Delete(object) => {
                if let Some((release, stored)) = read(object)
                    && self.known.get(&release).is_some_and(|known| known.revision == stored.version)
                {
                    self.doubt(release);
                }
            }
        }
    }

    /// Looks for what changed while nobody watched.
    fn compare(&self, mut listed: BTreeMap<String, Vec<Stored>>) {
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

fn is_forbidden(error: &watcher::Error) -> bool {
    let cause = match error {
        watcher::Error::InitialListFailed(cause)
        | watcher::Error::WatchStartFailed(cause)
        | watcher::Error::WatchFailed(cause) => cause,
        watcher::Error::WatchError(status) => return status.code == 403,
        watcher::Error::NoResourceVersion => return false,
    };
    matches!(cause, kube::Error::Api(status) if status.code == 403)
}

/// Returns the release that a Secret belongs to, and what its metadata says.
fn read(object: PartialObjectMeta<DynamicObject>) -> Option<(String, Stored)> {
    let name = object.name_any();
    let release = record::parse_secret_name(&name)?.0.to_owned();
    let labelled = Labelled {
        name,
        resource_version: object.resource_version().unwrap_or_default(),
        namespace: None,
        labels: object.metadata.labels.unwrap_or_default(),
        annotations: BTreeMap::new(),
    };
    storage::stored(labelled, &release).map(|stored| (release, stored))
}

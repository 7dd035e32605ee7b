//! The namespaces whose labels match, as they come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine::hook::WatchEvent;
use engine::hook::selection::Namespaces;
use serde::Deserialize;
use tokio::time::Instant;

use crate::cluster::list::Collection;
use crate::cluster::request::Requests;
use crate::cluster::watch::{Attempts, Reflector, Update, WatchError, WatchReport};

/// How long the deletions in a namespace that was deleted itself may be on their way.
const LATE_DELETIONS: Duration = Duration::from_secs(1);

/// The namespaces that a watch is about.
pub(super) struct LabelledNamespaces {
    reflector: Reflector<Namespace>,
    /// Whether they were read once.
    is_read: bool,
    /// Those that match.
    wanted: BTreeSet<String>,
    /// Those whose objects are known, with the version up to which they were known when their namespace joined.
    joined: BTreeMap<String, u64>,
    /// Those that were deleted, and until when changes of their objects still count.
    leaving: BTreeMap<String, Instant>,
    /// When a failed join is tried again.
    retry: Option<Instant>,
    joins: Attempts,
}

/// As much of a namespace as is read.
#[derive(Debug, Deserialize)]
pub(super) struct Namespace {
    metadata: Metadata,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    name: String,
    #[serde(rename = "deletionTimestamp")]
    deletion: Option<String>,
}

/// What the informer has to do.
#[derive(Debug)]
pub(super) enum Step {
    /// The objects of this namespace have to be read; then [`LabelledNamespaces::join`] or `put_off` is called.
    Join(String),
    /// The objects of this namespace have to be forgotten; then [`LabelledNamespaces::leave`] is called.
    Leave(String),
}

impl LabelledNamespaces {
    /// Returns the namespaces of a selection; `None` when it has no selector for them. `report` gets to know whether they
    /// can be read. Has to be called within a runtime.
    pub(super) fn new(
        requests: &Requests,
        namespaces: &Namespaces,
        report: impl FnOnce(String) -> WatchReport,
    ) -> Option<Self> {
        match namespaces {
            Namespaces::Labelled(selector) => {
                let selector = selector.to_string();
                let collection = Collection::new("/api/v1/namespaces").with_labels(&selector);
                let report = report(format!("namespaces with {selector}"));
                Some(Self {
                    reflector: Reflector::reporting(requests.clone(), collection, report),
                    is_read: false,
                    wanted: BTreeSet::new(),
                    joined: BTreeMap::new(),
                    leaving: BTreeMap::new(),
                    retry: None,
                    joins: Attempts::default(),
                })
            }
            Namespaces::All | Namespaces::Named(_) => None,
        }
    }

    /// Reads the namespaces for the first time, if that was not done; all of them are joined then.
    pub(super) async fn begin(&mut self) -> Result<(), WatchError> {
        if self.is_read {
            return Ok(());
        }
        loop {
            match self.reflector.next().await {
                Update::Failed(error) => return Err(error),
                update @ (Update::Changed(..) | Update::Restored) => self.apply(update),
                update @ Update::Listed(_) => {
                    self.apply(update);
                    self.joined = self.wanted.iter().map(|name| (name.clone(), 0)).collect();
                    self.is_read = true;
                    return Ok(());
                }
            }
        }
    }

    /// Returns the namespaces whose objects are known, or are to be known by a list of all.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.joined.keys().cloned().collect()
    }

    /// Returns whether a state of an object in a namespace counts.
    pub(super) fn counts(&self, namespace: &str, version: u64) -> bool {
        self.joined.get(namespace).is_some_and(|known| version == 0 || version > *known)
    }

    /// Records that the objects of a namespace are known as of this version.
    pub(super) fn join(&mut self, namespace: String, version: u64) {
        self.retry = None;
        self.joins.work();
        self.joined.insert(namespace, version);
    }

    /// Records that the objects of a namespace could not be read; it is tried again.
    pub(super) fn put_off(&mut self) {
        self.retry = Some(self.joins.fail());
    }

    /// Records that the objects of a namespace are forgotten.
    pub(super) fn leave(&mut self, namespace: &str) {
        self.joined.remove(namespace);
        self.leaving.remove(namespace);
    }

    /// Returns what has to be done next. Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Step {
        loop {
            let now = Instant::now();
            let goes = |name: &&String| match self.leaving.get(*name) {
                Some(until) => *until <= now,
                None => !self.wanted.contains(*name),
            };
            if let Some(name) = self.joined.keys().find(goes) {
                return Step::Leave(name.clone());
            }
            if self.retry.is_none_or(|retry| retry <= now)
                && let Some(name) = self.wanted.iter().find(|name| !self.joined.contains_key(*name))
            {
                return Step::Join(name.clone());
            }
            let wakeup = self.leaving.values().copied().chain(self.retry).filter(|at| *at > now).min();
            tokio::select! {
                update = self.reflector.next() => self.apply(update),
                () = sleep_until(wakeup) => {}
            }
        }
    }

    fn apply(&mut self, update: Update<Namespace>) {
        match update {
            Update::Listed(namespaces) => {
                self.wanted = namespaces.into_iter().map(|namespace| namespace.metadata.name).collect();
            }
            Update::Changed(WatchEvent::Added | WatchEvent::Modified, namespace) => {
                let name = namespace.metadata.name;
                // One that was deleted is there again: its old objects go before the new ones come.
                if let Some(until) = self.leaving.get_mut(&name) {
                    *until = Instant::now();
                }
                self.wanted.insert(name);
            }
            Update::Changed(WatchEvent::Deleted, namespace) => {
                let name = namespace.metadata.name;
                self.wanted.remove(&name);
                // Its objects went before it, but their watch may report so later than the one of namespaces.
                if namespace.metadata.deletion.is_some() && self.joined.contains_key(&name) {
                    self.leaving.insert(name, Instant::now() + LATE_DELETIONS);
                }
            }
            Update::Failed(_) | Update::Restored => {}
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

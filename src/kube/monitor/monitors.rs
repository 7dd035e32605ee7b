//! Monitors: which informers run, and which monitors each of them serves.

use std::collections::{BTreeMap, BTreeSet};

use engine::hook::selection::{MonitorSpec, Selection};
use engine::{Event, Failure, FailureKind, MonitorId, RepositoryKind, SourceKind};
use jq::Threads;
use kube::Client;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::informer::Informer;
use super::object_filter::{ObjectFilter, Subscribers};
use super::selection::selection_name;
use super::timing::WatchTimings;
use crate::cluster::request::Requests;
use crate::cluster::{Crds, Discovery};
use crate::driver::Inbox;

/// The monitors of all bindings. Those with equal selections share an informer.
pub struct Monitors {
    requests: Requests,
    discovery: Discovery,
    threads: Threads,
    watches: BTreeMap<Selection, Running>,
    selections: BTreeMap<MonitorId, Selection>,
    timings: WatchTimings,
    /// What waits for kinds of the operator's own. It ends with the monitors.
    waiting: JoinSet<()>,
}

/// An informer that runs.
struct Running {
    subscribers: watch::Sender<Subscribers>,
    task: JoinHandle<()>,
}

impl Monitors {
    /// Returns monitors of the cluster behind `client`; none runs yet.
    pub fn new(client: Client, discovery: Discovery) -> Self {
        Self {
            requests: Requests::new(client),
            discovery,
            threads: Threads::default(),
            watches: BTreeMap::new(),
            selections: BTreeMap::new(),
            timings: WatchTimings::default(),
            waiting: JoinSet::new(),
        }
    }

    /// Has filters run on these threads.
    #[must_use]
    pub fn on(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }

    /// Returns where it is reported how long watches take.
    pub fn timings(&self) -> WatchTimings {
        self.timings.clone()
    }

    /// Begins to list and watch, or adds the monitor to an informer that runs.
    pub fn start(&mut self, monitor: MonitorId, spec: &MonitorSpec, inbox: &Inbox) {
        let filter = match ObjectFilter::new(spec.jq_filter.as_deref(), spec.keep_objects) {
            Ok(filter) => filter.timed(monitor, self.timings.clone()),
            Err(error) => {
                let failure = Failure::new(FailureKind::HookOutput, error);
                inbox.answer(Event::WatchFailed { monitor, failure });
                return;
            }
        };
        let selection = spec.selection.clone();
        self.selections.insert(monitor, selection.clone());
        if let Some(watch) = self.watches.get(&selection) {
            watch.subscribers.send_modify(|subscribers| {
                subscribers.insert(monitor, filter);
            });
            return;
        }
        let (subscribers, receiver) = watch::channel(Subscribers::from([(monitor, filter)]));
        let informer = Informer {
            requests: self.requests.clone(),
            discovery: self.discovery.clone(),
            threads: self.threads.clone(),
            selection: selection.clone(),
            name: selection_name(&selection),
            subscribers: receiver,
            inbox: inbox.clone(),
            listed: BTreeSet::new(),
        };
        let task = tokio::spawn(informer.run());
        self.watches.insert(selection, Running { subscribers, task });
    }

    /// Reports once when the API server has kinds of module sources.
    pub fn await_source_kinds(&mut self, inbox: &Inbox) {
        let (mut crds, inbox) = (self.discovery.crd_changes(), inbox.clone());
        self.waiting.spawn(async move {
            // It fails only when the watch of CRDs ends, which it does not while somebody listens.
            let kinds = [SourceKind::Cluster, SourceKind::Namespaced];
            let is_there = |crds: &Crds| kinds.iter().any(|kind| crds.is_established(kind.crd()));
            if crds.wait_for(is_there).await.is_ok() {
                inbox.event(Event::SourceKindsServed).await;
            }
        });
    }

    /// Reports once when the API server has kinds of chart repositories.
    pub fn await_repository_kinds(&mut self, inbox: &Inbox) {
        let (mut crds, inbox) = (self.discovery.crd_changes(), inbox.clone());
        self.waiting.spawn(async move {
            // It fails only when the watch of CRDs ends, which it does not while somebody listens.
            let is_there =
                |crds: &Crds| RepositoryKind::ALL.iter().all(|kind| crds.is_established(kind.crd()));
            if crds.wait_for(is_there).await.is_ok() {
                inbox.event(Event::RepositoryKindsServed).await;
            }
        });
    }

    /// Ends a monitor, and its informer if it serves no other.
    pub fn stop(&mut self, monitor: MonitorId) {
        let Some(selection) = self.selections.remove(&monitor) else { return };
        let Some(watch) = self.watches.get(&selection) else { return };
        watch.subscribers.send_modify(|subscribers| {
            subscribers.remove(&monitor);
        });
        if watch.subscribers.borrow().is_empty() {
            watch.task.abort();
            self.watches.remove(&selection);
        }
    }
}

impl Drop for Monitors {
    fn drop(&mut self) {
        for watch in self.watches.values() {
            watch.task.abort();
        }
    }
}

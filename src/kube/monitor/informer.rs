//! One supervised watch: it lists, follows, and after any break begins again.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use engine::hook::selection::{Namespaces, Selection};
use engine::{Event, Failure, FailureKind, MonitorId};
use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;

use super::follow::names;
use super::monitors::{Healths, Users};
use super::namespaces::LabelledNamespaces;
use super::object_filter::Completion;
use crate::cluster::watch::{Kinds, Source, StreamError, backoff, encode, is_custom};
use crate::cluster::{ResolveError, Resource};
use crate::driver::Inbox;
use crate::jq::Threads;

/// The first wait after a failure, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(800), Duration::from_secs(30));

/// The first wait and the longest before a missing kind is looked for without a CRD that changed.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_mins(1));

/// How long a new watch waits for others that start with it.
const GATHER: Duration = Duration::from_millis(2);

/// One watch and whom it feeds.
pub(super) struct Watching {
    pub(super) client: Client,
    pub(super) kinds: Arc<Kinds>,
    pub(super) threads: Threads,
    pub(super) selection: Selection,
    pub(super) name: String,
    pub(super) users: watch::Receiver<Users>,
    pub(super) inbox: Inbox,
    pub(super) health: Healths,
    /// When the API server gave its last sign of life.
    pub(super) alive: Instant,
}

/// Why a round of listing and following ended.
pub(super) enum Ended {
    /// Something that a new list mends: a forgotten version, a kind that is another one.
    Relist,
    /// The kind is not there.
    KindMissing,
    /// An error; the next round waits.
    Failed(String),
    /// What the binding asks for can't be had of this kind.
    Misfit(String),
    /// Nobody listens any more.
    Over,
}

/// What is watched, as far as the API server knows.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) resource: Resource,
    pub(super) sources: Vec<Source>,
    pub(super) completion: Completion,
}

/// What lasts from round to round.
pub(super) struct Lasting {
    /// Failures in a row.
    pub(super) failures: u32,
    /// The namespaces that the watch is about, if they are selected by labels.
    pub(super) namespaces: Option<LabelledNamespaces>,
    /// Wakes the watch when CRDs change, if its kind depends on one.
    pub(super) crds: Option<watch::Receiver<u64>>,
    /// How often the kind was looked for since it is missing; `None` when it is there.
    missing: Option<u32>,
}

impl Watching {
    pub(super) async fn run(mut self) {
        tokio::time::sleep(GATHER).await;
        let namespaces = LabelledNamespaces::new(&self.client, &self.selection.namespaces);
        let mut lasting = Lasting { failures: 0, namespaces, crds: None, missing: None };
        loop {
            match self.round(&mut lasting).await {
                Ended::Over => return,
                Ended::Relist => {}
                Ended::KindMissing => self.wait_for_kind(&mut lasting).await,
                Ended::Misfit(reason) => {
                    lasting.failures += 1;
                    // A new start of the operator would not mend it.
                    self.health.works(&self.name);
                    let failure = Failure::new(FailureKind::HookOutput, reason)
                        .advise("correct the configuration that the hook prints");
                    self.tell(|monitor| Event::WatchFailed { monitor, failure: failure.clone() }).await;
                    tokio::time::sleep(backoff(BACKOFF, lasting.failures)).await;
                }
                Ended::Failed(error) => {
                    lasting.failures += 1;
                    self.health.broke(&self.name, error.clone(), self.alive);
                    self.tell_failure(&error).await;
                    tokio::time::sleep(backoff(BACKOFF, lasting.failures)).await;
                }
            }
        }
    }

    /// Waits until it is worth to look for the kind again.
    async fn wait_for_kind(&mut self, lasting: &mut Lasting) {
        let mut crds = lasting.crds.take().unwrap_or_else(|| self.kinds.changes());
        if lasting.missing.is_none() {
            let kind = kind_name(&self.selection);
            self.tell(|monitor| Event::KindVanished { monitor, kind: kind.clone() }).await;
        }
        self.health.works(&self.name);
        let looks = lasting.missing.insert(lasting.missing.unwrap_or(0).saturating_add(1));
        // A kind of another API server that joins this one has no CRD.
        match tokio::time::timeout(backoff(LOOK_AGAIN, *looks), crds.changed()).await {
            // A CRD is told of a moment before its kind is served: it is looked for often again.
            Ok(_) => *looks = 0,
            Err(_) => self.kinds.refresh(),
        }
        lasting.crds = Some(crds);
    }

    /// Lists and then follows until something ends it.
    async fn round(&mut self, lasting: &mut Lasting) -> Ended {
        let target = match self.target(lasting).await {
            Ok(target) => target,
            Err(ended) => return ended,
        };
        if let Some(namespaces) = &mut lasting.namespaces
            && let Err(error) = namespaces.begin().await
        {
            return Ended::Failed(error);
        }
        let users = self.users.borrow_and_update().clone();
        let listed = match self.list(&target, &target.sources, &users, names(lasting)).await {
            Ok(listed) => listed,
            Err(error) => return error.into(),
        };
        if lasting.missing.take().is_some() {
            self.tell(|monitor| Event::KindAppeared { monitor }).await;
        }
        self.tell_listed(listed.objects).await;
        lasting.failures = 0;
        self.sign_of_life();
        self.follow(target, listed.versions, users, listed.failed, lasting).await
    }

    /// Returns what has to be listed and watched.
    async fn target(&mut self, lasting: &mut Lasting) -> Result<Target, Ended> {
        let resource = match self.kinds.resolve(&self.selection.api_version, &self.selection.kind).await {
            Ok(resource) => resource,
            Err(ResolveError::Unknown(_)) => return Err(Ended::KindMissing),
            Err(error @ ResolveError::Cluster(_)) => {
                return Err(Ended::Failed(Failure::of(FailureKind::Cluster, &error).to_string()));
            }
        };
        if !resource.namespaced && self.selection.namespaces != Namespaces::All {
            let kind = &resource.kind;
            return Err(Ended::Misfit(format!(
                "kind {kind} has no namespaces: remove `namespace` from the binding"
            )));
        }
        if !is_custom(&resource) {
            lasting.crds = None;
        } else if lasting.crds.is_none() {
            lasting.crds = Some(self.kinds.changes());
        }
        let completion =
            Completion { api_version: resource.api_version().into(), kind: resource.kind.as_str().into() };
        Ok(Target { sources: sources(&resource, &self.selection), resource, completion })
    }

    /// Returns why the kind that is followed has to be looked at anew; `None` when it is as it was.
    pub(super) async fn kind_changed(&self, resource: &Resource) -> Option<Ended> {
        match self.kinds.resolve(&self.selection.api_version, &self.selection.kind).await {
            Ok(now) if now.api_version() == resource.api_version() && now.plural == resource.plural => None,
            Ok(_) => Some(Ended::Relist),
            Err(ResolveError::Unknown(_)) => Some(Ended::KindMissing),
            // The watch itself will tell.
            Err(ResolveError::Cluster(_)) => None,
        }
    }

    pub(super) fn sign_of_life(&mut self) {
        self.alive = Instant::now();
        self.health.works(&self.name);
    }

    pub(super) async fn tell_failure(&self, error: &str) {
        let failure = Failure::new(FailureKind::Cluster, format!("watch of {}: {error}", self.name));
        self.tell(|monitor| Event::WatchFailed { monitor, failure: failure.clone() }).await;
    }

    async fn tell(&self, event: impl Fn(MonitorId) -> Event) {
        let users: Vec<MonitorId> = self.users.borrow().keys().copied().collect();
        for monitor in users {
            self.inbox.event(event(monitor)).await;
        }
    }
}

impl From<StreamError> for Ended {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Expired => Self::Relist,
            StreamError::Gone => Self::KindMissing,
            StreamError::Silent | StreamError::Failed(_) => Self::Failed(error.to_string()),
        }
    }
}

/// Returns what is listed and watched for a selection.
fn sources(resource: &Resource, selection: &Selection) -> Vec<Source> {
    match &selection.namespaces {
        Namespaces::Named(names) => {
            names.iter().map(|name| source(resource, selection, Some(name))).collect()
        }
        Namespaces::All | Namespaces::Labelled(_) => vec![source(resource, selection, None)],
    }
}

/// Returns the part of a selection that is in one namespace, or in all.
pub(super) fn source(resource: &Resource, selection: &Selection, namespace: Option<&str>) -> Source {
    let mut fields = selection.fields.to_string();
    if let (Some(name), 1) = (selection.names.first(), selection.names.len()) {
        let by_name = format!("metadata.name={name}");
        fields = if fields.is_empty() { by_name } else { format!("{fields},{by_name}") };
    }
    let mut query = String::new();
    for (parameter, selector) in [("labelSelector", selection.labels.to_string()), ("fieldSelector", fields)]
    {
        if !selector.is_empty() {
            let _ = write!(query, "&{parameter}={}", encode(&selector));
        }
    }
    Source::new(&resource.path(namespace), &query)
}

fn kind_name(selection: &Selection) -> String {
    if selection.api_version.is_empty() {
        selection.kind.clone()
    } else {
        format!("{}/{}", selection.api_version, selection.kind)
    }
}

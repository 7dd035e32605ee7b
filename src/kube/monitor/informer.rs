//! Informers: each lists the objects of one selection, follows them, and begins again after any break.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use engine::hook::selection::{Namespaces, Selection};
use engine::{Event, Failure, FailureKind, MonitorId};
use futures::FutureExt as _;
use jq::Threads;
use tokio::sync::watch;

use super::condition::Condition;
use super::namespaces::LabelledNamespaces;
use super::object_filter::Subscribers;
use super::selection::{Target, kind_name};
use super::subscriptions::Subscriptions;
use crate::cluster::request::{RequestError, Requests};
use crate::cluster::watch::{Attempts, Backoff, Steadiness, WatchError};
use crate::cluster::{Crds, Discovery, ResolveError, Resource};
use crate::driver::Inbox;

/// The waits before a missing kind is looked for without a CRD that changed.
const LOOK_AGAIN: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_mins(1));

/// How long a new informer waits for others that start with it.
const GATHER: Duration = Duration::from_millis(2);

/// The watch of one selection, and the monitors that it serves.
pub(super) struct Informer {
    pub(super) requests: Requests,
    pub(super) discovery: Discovery,
    pub(super) threads: Threads,
    pub(super) selection: Selection,
    pub(super) name: String,
    pub(super) subscribers: watch::Receiver<Subscribers>,
    pub(super) inbox: Inbox,
    /// The monitors that had a list.
    pub(super) listed: BTreeSet<MonitorId>,
}

/// Why a round of listing and following ended.
pub(super) enum RoundEnd {
    /// The kind is another one: its objects are listed at once.
    Relist,
    /// The API server has forgotten what came behind the last list.
    Expired,
    /// The kind is not there.
    KindMissing,
    /// An error; the next round waits.
    Failed(FailureKind, String),
    /// What the binding asks for can't be had of this kind.
    Misfit(String),
    /// No monitor is left.
    Over,
}

/// What an informer keeps from round to round.
pub(super) struct State {
    /// When something that failed is tried again. Outlives lists: they may work while the watch behind them never does.
    pub(super) attempts: Attempts,
    /// Whether the watches work.
    pub(super) condition: Condition,
    /// How steady the watch of each collection was that the last round left.
    pub(super) steadiness: BTreeMap<usize, Steadiness>,
    /// The namespaces that the watch is about, if they are selected by labels.
    pub(super) namespaces: Option<LabelledNamespaces>,
    /// Wakes the watch when CRDs change, if its kind depends on one.
    pub(super) crds: Option<watch::Receiver<Crds>>,
    /// How often the kind was looked for since it is missing; `None` when it is there.
    missing: Option<u32>,
    /// Why there are no lists; `None` when there are, or when nobody was told.
    obstacle: Option<Obstacle>,
}

/// Why an informer has no lists for its monitors, and who was told.
struct Obstacle {
    what: Lack,
    told: BTreeSet<MonitorId>,
}

/// What keeps an informer from listing.
enum Lack {
    /// The kind is not there.
    Kind(String),
    /// The last attempt failed.
    Failed(Failure),
}

impl Informer {
    /// Lists and follows until no monitor is left.
    pub(super) async fn run(mut self) {
        tokio::time::sleep(GATHER).await;
        let mut state = self.new_state();
        loop {
            // A panic is a failure as any other, and what it left half done is not used again.
            let round = AssertUnwindSafe(self.round(&mut state)).catch_unwind().await;
            let end = round.unwrap_or_else(|_| {
                let State { attempts, condition, steadiness, .. } =
                    std::mem::replace(&mut state, self.new_state());
                (state.attempts, state.condition, state.steadiness) = (attempts, condition, steadiness);
                WatchError::panicked().into()
            });
            match end {
                RoundEnd::Over => return,
                RoundEnd::Relist => {}
                RoundEnd::KindMissing => self.wait_for_kind(&mut state).await,
                RoundEnd::Misfit(reason) => {
                    let failure = Failure::new(FailureKind::HookOutput, reason)
                        .advise("correct the configuration that the hook prints");
                    state.obstacle = Some(self.obstacle(Lack::Failed(failure)).await);
                    state.attempts.fail();
                }
                RoundEnd::Expired => {
                    state.attempts.fail();
                    // That happens. That a list does not help is news.
                    if state.attempts.failures() > 1 {
                        let error = WatchError::Expired;
                        self.report_unlisted(error.kind(), &error.to_string(), &mut state).await;
                    }
                }
                RoundEnd::Failed(kind, error) => {
                    state.attempts.fail();
                    self.report_unlisted(kind, &error, &mut state).await;
                }
            }
            let State { attempts, obstacle, .. } = &mut state;
            self.wait(obstacle, attempts.ready()).await;
        }
    }

    /// Waits, and tells monitors that join meanwhile what all others were told: until the wait is over nothing else is.
    async fn wait<T>(&mut self, obstacle: &mut Option<Obstacle>, until: impl Future<Output = T>) -> T {
        let mut until = pin!(until);
        loop {
            tokio::select! {
                over = &mut until => return over,
                Ok(()) = self.subscribers.changed() => {
                    if let Some(obstacle) = obstacle {
                        self.tell(obstacle).await;
                    }
                }
            }
        }
    }

    /// Tells all monitors what keeps them from being listed for.
    async fn obstacle(&self, what: Lack) -> Obstacle {
        let mut obstacle = Obstacle { what, told: BTreeSet::new() };
        self.tell(&mut obstacle).await;
        obstacle
    }

    /// Tells those who do not know it yet.
    async fn tell(&self, obstacle: &mut Obstacle) {
        let monitors: BTreeSet<MonitorId> = self.subscribers.borrow().keys().copied().collect();
        for monitor in monitors.difference(&obstacle.told) {
            self.inbox.event(obstacle.what.event(*monitor)).await;
        }
        obstacle.told = monitors;
    }

    fn new_state(&self) -> State {
        let reports = self.discovery.watch_reports();
        let report = |namespaces| reports.of(&format!("{namespaces} for {}", self.name));
        State {
            attempts: Attempts::default(),
            condition: Condition::default(),
            steadiness: BTreeMap::new(),
            namespaces: LabelledNamespaces::new(&self.requests, &self.selection.namespaces, report),
            crds: None,
            missing: None,
            obstacle: None,
        }
    }

    /// Waits until it is worth to look for the kind again.
    async fn wait_for_kind(&mut self, state: &mut State) {
        let mut crds = state.crds.take().unwrap_or_else(|| self.discovery.crd_changes());
        match &mut state.obstacle {
            Some(known @ Obstacle { what: Lack::Kind(_), .. }) => self.tell(known).await,
            obstacle => *obstacle = Some(self.obstacle(Lack::Kind(kind_name(&self.selection))).await),
        }
        let looks = state.missing.unwrap_or(0).saturating_add(1);
        // A kind of another API server that joins this one has no CRD.
        let changed = tokio::time::timeout(LOOK_AGAIN.after(looks), crds.changed());
        let is_changed = self.wait(&mut state.obstacle, changed).await.is_ok();
        // A CRD is reported a moment before its kind is served: the kind is looked for often again.
        state.missing = Some(if is_changed { 0 } else { looks });
        if !is_changed {
            self.discovery.refresh();
        }
        state.crds = Some(crds);
    }

    /// Lists and then follows until something ends it.
    async fn round(&mut self, state: &mut State) -> RoundEnd {
        let target = match self.target(state).await {
            Ok(target) => target,
            Err(ended) => return ended,
        };
        if let Some(namespaces) = &mut state.namespaces
            && let Err(error) = namespaces.begin().await
        {
            return RoundEnd::Failed(error.kind(), format!("can't list namespaces: {error}"));
        }
        let subscribers = self.subscribers.borrow_and_update().clone();
        let listed = match self
            .list(&target.type_meta, &target.collections, &subscribers, state.namespace_names())
            .await
        {
            Ok(listed) => listed,
            Err(error) => return error.into(),
        };
        state.obstacle = None;
        if state.missing.take().is_some() {
            self.report(|monitor| Event::KindAppeared { monitor }).await;
        }
        self.publish_lists(&target.resource, listed.objects).await;
        let subscriptions = Subscriptions::new(subscribers, listed.failed);
        self.follow(target, listed.versions, subscriptions, state).await
    }

    /// Returns what has to be listed and watched.
    async fn target(&mut self, state: &mut State) -> Result<Target, RoundEnd> {
        let resource = match self.discovery.resolve(&self.selection.api_version, &self.selection.kind).await {
            Ok(resource) => resource,
            Err(ResolveError::Unknown(_)) => return Err(RoundEnd::KindMissing),
            Err(error @ ResolveError::Cluster(_)) => {
                let kind = if error.is_forbidden() { FailureKind::Forbidden } else { FailureKind::Cluster };
                return Err(RoundEnd::Failed(kind, Failure::of(kind, &error).to_string()));
            }
        };
        if !resource.namespaced && self.selection.namespaces != Namespaces::All {
            let kind = &resource.kind;
            return Err(RoundEnd::Misfit(format!(
                "kind {kind} has no namespaces: remove `namespace` from the binding"
            )));
        }
        if !resource.is_custom() {
            state.crds = None;
        } else if state.crds.is_none() {
            state.crds = Some(self.discovery.crd_changes());
        }
        Ok(Target::new(resource, &self.selection))
    }

    /// Returns why the round has to end after CRDs changed; `None` when the kind is as it was.
    pub(super) async fn kind_changed(&self, resource: &Resource) -> Option<RoundEnd> {
        match self.discovery.resolve(&self.selection.api_version, &self.selection.kind).await {
            Ok(now) if now.api_version() == resource.api_version() && now.plural == resource.plural => None,
            Ok(_) => Some(RoundEnd::Relist),
            Err(ResolveError::Unknown(_)) => Some(RoundEnd::KindMissing),
            // The watch itself will fail.
            Err(ResolveError::Cluster(_)) => None,
        }
    }

    /// Reports to all monitors that the objects can't be read.
    pub(super) async fn report_failure(&self, error: &WatchError, state: &mut State) {
        self.report_failed(error.kind(), &error.to_string(), state).await;
    }

    /// Does the same for any error.
    pub(super) async fn report_failed(&self, kind: FailureKind, error: &str, state: &mut State) {
        state.condition.report();
        let failure = self.failure(kind, error);
        self.report(|monitor| Event::WatchFailed { monitor, failure: failure.clone() }).await;
    }

    /// Reports it to those as well that join until there are lists again.
    async fn report_unlisted(&self, kind: FailureKind, error: &str, state: &mut State) {
        state.condition.report();
        state.obstacle = Some(self.obstacle(Lack::Failed(self.failure(kind, error))).await);
    }

    fn failure(&self, kind: FailureKind, error: &str) -> Failure {
        Failure::new(kind, format!("watch of {}: {error}", self.name))
    }

    pub(super) async fn report(&self, event: impl Fn(MonitorId) -> Event) {
        let monitors: Vec<MonitorId> = self.subscribers.borrow().keys().copied().collect();
        for monitor in monitors {
            self.inbox.event(event(monitor)).await;
        }
    }
}

impl Lack {
    /// Returns how a monitor is told.
    fn event(&self, monitor: MonitorId) -> Event {
        match self {
            Self::Kind(kind) => Event::KindVanished { monitor, kind: kind.clone() },
            Self::Failed(failure) => Event::WatchFailed { monitor, failure: failure.clone() },
        }
    }
}

impl State {
    /// Returns the namespaces that the watch is about; `None` when there is no selector for them.
    pub(super) fn namespace_names(&self) -> Option<BTreeSet<String>> {
        self.namespaces.as_ref().map(LabelledNamespaces::names)
    }
}

impl From<WatchError> for RoundEnd {
    fn from(error: WatchError) -> Self {
        match error {
            WatchError::Expired => Self::Expired,
            WatchError::KindMissing => Self::KindMissing,
            WatchError::Silent
            | WatchError::Forbidden(_)
            | WatchError::Unreachable(_)
            | WatchError::Unavailable(_)
            | WatchError::Failed(_) => Self::Failed(error.kind(), error.to_string()),
        }
    }
}

impl From<RequestError> for RoundEnd {
    fn from(error: RequestError) -> Self {
        WatchError::from(error).into()
    }
}

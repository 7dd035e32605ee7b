//! Releases: charts on disk, records in Secrets, objects in the cluster.
//!
//! ```text
//! module ── files ──▶ chart ── render (own stack) ──▶ manifests, hooks
//!                                                         │ checksum equal to the label of the last revision: done
//!                                                         ▼
//! Secrets ── first list, history ──▶ plan ──▶ record pending ▶ hooks ▶ apply ▶ delete ▶ hooks ▶ record deployed
//! ```

mod adoption;
mod apply;
mod archives;
mod awaited_releases;
mod cancellation;
mod certificates;
mod chart_cache;
mod chart_directory;
pub mod chart_files;
mod chart_hook;
mod chart_test;
mod command_upgrade;
mod continuations;
mod crds;
mod credentials;
mod drift;
mod dsa_key;
mod error;
mod first_list;
mod guest_limits;
mod helm_command;
mod last_release;
mod left_alone;
mod live_diff;
mod look_schedule;
mod marks;
mod merge;
mod object;
mod object_diff;
mod object_look;
mod object_watch;
mod package_mark;
mod permission;
mod pod_log;
mod readiness;
mod record_parts;
mod record_watch;
mod release_targets;
mod render;
mod render_environment;
pub mod render_thread;
mod server_side;
mod settled;
mod source_mark;
mod storage;
mod taken_objects;
pub mod template;
mod tracked_objects;
mod uninstall;
mod upgrade;
mod upgrade_plan;
mod watched_collection;
mod writers;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use chart::object::{Capabilities, KubeVersion};
use engine::{
    DriftSettings, Failure, Module, ModuleName, OwnedRelease, ReleaseName, ReleaseOutcome, ReleaseTarget,
    RunId, SourceKey, ValuesInput,
};
use kube::Client;
use serde_json::{Map, Value};

pub use archives::Archives;
pub use cancellation::{Cancellation, Listener};
pub use chart_directory::write_private;
pub use credentials::CredentialsRun;
pub use drift::EventSink;
pub use error::ReleaseError;
pub use helm_command::{HelmCommand, HelmCommandError, HelmCommandOptions};
pub use object::ObjectError;
pub use release_targets::ReleaseTargets;
pub use render::RenderedModule;
pub use upgrade::Revision;

use crate::cluster::request::Requests;
use crate::cluster::{Discovery, QUOTA, Resource, impersonating};
use crate::driver::Inbox;
use archives::ArchiveSource;
use chart_cache::ChartCache;
use first_list::FirstList;
use guest_limits::GuestPlaces;
use last_release::{LastRelease, LastReleases};
use object_look::ObjectLook;
use object_watch::{ObjectWatch, WatchReach};
use record_watch::RecordWatch;
use storage::Storage;
use taken_objects::TakenObjects;

/// What a run of a module does to its release.
#[derive(Clone, Copy)]
pub struct ReleaseRun<'r> {
    /// The module.
    pub module: &'r Arc<Module>,
    /// What its chart reads.
    pub values: &'r ValuesInput,
    /// Whether it is in maintenance.
    pub maintenance: bool,
    /// The configuration of sources that brought it; the release is marked with it.
    pub source: Option<&'r SourceKey>,
    /// Whether it is on record that there may be a release; without that none is begun.
    pub is_recorded: bool,
}

/// What the adapter has to know: where releases are, and how they are made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace of the releases.
    pub namespace: String,
    /// The name of the operator's ConfigMap, which says whose releases are whose.
    pub config_map: String,
    /// Labels that every object of a release gets.
    pub extra_labels: BTreeMap<String, String>,
    /// How many revisions are kept; 0 for all.
    pub history_max: usize,
    /// How long one hook of a chart may take.
    pub timeout: Duration,
}

/// Installs, upgrades, watches and removes the releases of modules.
pub struct Helm {
    settings: Settings,
    requests: Requests,
    discovery: Discovery,
    storage: Storage,
    charts: ChartCache,
    objects: ObjectWatch,
    records: RecordWatch,
    first_list: FirstList,
    last_releases: LastReleases,
    taken_over: TakenObjects,
    version: Arc<OnceLock<KubeVersion>>,
    /// What templates know about the cluster. There are hundreds of kinds, and each render asks.
    capabilities: Mutex<Option<KnownCapabilities>>,
    /// Where the archives come from of charts that modules name.
    archives: ArchiveSource,
    /// The program that renders and writes releases, if not the operator itself.
    command: Arc<OnceLock<Arc<HelmCommand>>>,
    /// As whom everything is done, if not as the operator.
    guest: Option<Guest>,
    /// How many charts of namespaces are rendered and run at the same time.
    guest_places: GuestPlaces,
}

/// What templates know about the cluster, with the kinds of which it was made.
#[derive(Debug)]
struct KnownCapabilities {
    kinds: Arc<[Resource]>,
    capabilities: Arc<Capabilities>,
}

/// A `ServiceAccount` as which releases are changed.
struct Guest {
    /// `namespace/name`
    account: String,
    /// Asks as the operator whether the namespace is going.
    operator: Requests,
}

/// What to do about CRDs that the operator may not write.
const RIGHTS_OF_CRDS: &str = "the operator's ServiceAccount needs get, create and patch of customresourcedefinitions, in a ClusterRole";

impl Helm {
    /// Returns an adapter that has not asked the cluster anything yet.
    pub fn new(client: Client, discovery: Discovery, settings: Settings) -> Self {
        let owner = storage::owner(&settings.namespace, &settings.config_map);
        let storage = Storage::new(Requests::new(client), &settings.namespace, owner, None);
        let shared = (Arc::default(), ArchiveSource::default());
        Self::with(storage, discovery, settings, shared, WatchReach::Cluster)
    }

    /// Returns the adapter for releases of the same operator in another target, which has not asked anything yet.
    fn elsewhere(
        &self,
        client: Client,
        discovery: Discovery,
        settings: Settings,
        target: &ReleaseTarget,
    ) -> Self {
        let account = target.account.as_deref();
        let acting = match account {
            Some(account) => impersonating(&client, &target.namespace, account),
            None => client.clone(),
        };
        let owner = self.storage.owner().to_owned();
        let storage = Storage::new(Requests::new(acting), &target.namespace, owner, account);
        let shared = (Arc::clone(&self.version), self.archives.clone());
        let mut helm = Self::with(storage, discovery, settings, shared, WatchReach::Namespaces);
        helm.command = Arc::clone(&self.command);
        helm.guest_places = self.guest_places.clone();
        helm.guest = account.map(|account| Guest {
            account: format!("{}/{account}", target.namespace),
            operator: Requests::new(client),
        });
        helm
    }

    fn with(
        storage: Storage,
        discovery: Discovery,
        settings: Settings,
        (version, archives): (Arc<OnceLock<KubeVersion>>, ArchiveSource),
        reach: WatchReach,
    ) -> Self {
        let requests = storage.requests().clone();
        let last_releases = LastReleases::default();
        let first_list = FirstList::new(storage.clone());
        let look =
            ObjectLook::new(requests.clone(), storage.clone(), last_releases.clone(), &settings.namespace);
        let labels = settings.extra_labels.clone();
        let objects = ObjectWatch::new(requests.clone(), discovery.clone(), look, labels, reach);
        Self {
            records: RecordWatch::new(
                requests.clone(),
                storage.clone(),
                objects.clone(),
                last_releases.clone(),
                first_list.clone(),
            ),
            first_list,
            storage,
            objects,
            charts: ChartCache::new(archives.clone()),
            archives,
            last_releases,
            taken_over: TakenObjects::default(),
            version,
            guest: None,
            guest_places: GuestPlaces::default(),
            capabilities: Mutex::default(),
            command: Arc::default(),
            requests,
            discovery,
            settings,
        }
    }

    /// Says which program renders and writes releases; without one the operator itself does. A second one is ignored.
    pub fn set_command(&self, command: Arc<HelmCommand>) {
        let _ = self.command.set(command);
    }

    /// Installs or upgrades the release of a module, if anything changed.
    pub async fn upgrade(
        &self,
        module: &Arc<Module>,
        values: &ValuesInput,
        maintenance: bool,
    ) -> Result<ReleaseOutcome, Failure> {
        let run = ReleaseRun { module, values, maintenance, source: None, is_recorded: true };
        self.upgrade_until(run, &Cancellation::never()).await
    }

    /// Does the same, but ends the new revision as failed as soon as `cancellation` is requested.
    pub async fn upgrade_until(
        &self,
        run: ReleaseRun<'_>,
        cancellation: &Cancellation,
    ) -> Result<ReleaseOutcome, Failure> {
        let values = chart_values(run.module, run.values)?;
        let outcome = self.upgrade_module(&run, &values, cancellation).await;
        outcome.map_err(|error| self.failure(&error, "helm upgrade failed"))
    }

    /// Removes a release with its history.
    pub async fn uninstall(&self, release: &ReleaseName) -> Result<ReleaseOutcome, Failure> {
        self.uninstall_until(release, &Cancellation::never()).await
    }

    /// Does the same, but waits for no hook any more as soon as `cancellation` is requested.
    pub async fn uninstall_until(
        &self,
        release: &ReleaseName,
        cancellation: &Cancellation,
    ) -> Result<ReleaseOutcome, Failure> {
        let name = release.as_str();
        let outcome = self.uninstall_release(name, cancellation).await;
        outcome.map_err(|error| self.failure(&error, &format!("helm uninstall {name} invocation error")))
    }

    /// Returns the releases that carry our owner label.
    pub async fn list(&self) -> Result<Vec<OwnedRelease>, Failure> {
        self.list_or_refusal().await?
    }

    /// Does the same. That they may not be listed is a result, other failures are an error.
    async fn list_or_refusal(&self) -> Result<Result<Vec<OwnedRelease>, Failure>, Failure> {
        let what = "can not list the releases";
        // No converge waits for the modules of a namespace: their first runs begin with it.
        let owned = match self.first_list.owned(self.guest.is_some()).await {
            Ok(None) => self.storage.owned().await,
            Ok(Some(owned)) => Ok(owned),
            Err(error) => Err(error),
        };
        let owned = match owned {
            Ok(owned) => owned,
            Err(error) if error.code() == 403 => return Ok(Err(self.failure(&error.into(), what))),
            Err(error) => return Err(self.failure(&error.into(), what)),
        };
        let release = |(name, is_sourced)| OwnedRelease { name: ReleaseName::from(name), is_sourced };
        Ok(Ok(owned.into_iter().map(release).collect()))
    }

    /// Returns the failure for the engine, after `what` was tried.
    fn failure(&self, error: &ReleaseError, what: &str) -> Failure {
        let failure = error.failure(what);
        let is_refused = match self.guest {
            Some(_) => error.may_be_a_refusal(),
            None => error.is_refusal(),
        };
        if is_refused {
            failure.advise(self.missing_right())
        } else if error.is_of_quota() {
            failure.advise(QUOTA)
        } else {
            failure
        }
    }

    /// Returns what to do about something that is forbidden: whose right is missing.
    fn missing_right(&self) -> String {
        match &self.guest {
            Some(Guest { account, .. }) => format!(
                "what is forbidden needs a Role for ServiceAccount {account}, as which this module is changed; \
                 the operator needs the right to impersonate it"
            ),
            None => "the operator's ServiceAccount needs a role that allows this".to_owned(),
        }
    }

    /// Writes the CRDs of a module and waits until they are established.
    pub async fn ensure_crds(&self, module: &Arc<Module>) -> Result<(), Failure> {
        let outcome = self.ensure_module_crds(module).await;
        outcome.map_err(|error| {
            let failure = self.failure(&error, "CRDs are not in force");
            let is_ours = error.is_refusal() && self.guest.is_none();
            if is_ours { failure.advise(RIGHTS_OF_CRDS) } else { failure }
        })
    }

    /// Returns the revisions of a release, the oldest first.
    pub async fn history(&self, release: &str) -> Result<Vec<Revision>, Failure> {
        let history = self.storage.history(release).await;
        let history = history.map_err(|error| self.failure(&error.into(), "can not read the release"))?;
        Ok(history.iter().map(Revision::from).collect())
    }

    /// Renders a module as its next upgrade would, and changes nothing.
    pub async fn render(
        &self,
        module: &Arc<Module>,
        values: &ValuesInput,
    ) -> Result<RenderedModule, Failure> {
        let values = chart_values(module, values)?;
        let outcome = self.render_module(module, values).await;
        outcome.map_err(|error| self.failure(&error, "the chart does not render"))
    }

    /// Watches the objects and records of a module's release and reports to `inbox` what drifts.
    pub fn watch(&self, module: ModuleName, drift: DriftSettings, inbox: &Inbox) {
        self.watch_by(module, sink(inbox), drift);
    }

    /// Reports to `inbox` which objects of a module's release are not ready, until all of them are.
    pub fn await_readiness(&self, run: RunId, module: ModuleName, inbox: &Inbox) {
        self.await_readiness_by(run, module, sink(inbox));
    }

    /// Calls `sink` with which objects of a module's release are not ready, until all of them are.
    pub fn await_readiness_by(&self, run: RunId, module: ModuleName, sink: EventSink) {
        self.objects.await_ready(run, module, sink);
    }

    /// Watches the objects and records of a module's release and calls `sink` with what drifts, but for fields that `drift`
    /// leaves to others.
    pub fn watch_by(&self, module: ModuleName, sink: EventSink, drift: DriftSettings) {
        self.objects.watch(module, sink, drift);
        self.records.watch();
    }

    /// Writes the rendered fields of an object of a module's release back, given as `namespace/Kind/name`.
    ///
    /// # Errors
    ///
    /// It can't be read or written.
    pub async fn mend(&self, module: &ModuleName, object: &str) -> Result<(), Failure> {
        let done = self.objects.mend(module.as_str(), object).await;
        done.map_err(|error| self.failure(&error, "the object can't be put right"))
    }

    /// Returns the objects that are watched for each release, as `namespace/Kind/name`, sorted.
    pub fn watched(&self) -> BTreeMap<String, Vec<String>> {
        self.objects.watched()
    }

    /// Stops watching the objects of a module's release.
    pub fn forget(&self, module: &ModuleName) {
        self.objects.forget(module);
    }
}

fn sink(inbox: &Inbox) -> EventSink {
    let inbox = inbox.clone();
    Arc::new(move |event| {
        let inbox = inbox.clone();
        Box::pin(async move {
            inbox.event(event).await;
        })
    })
}

impl Drop for Helm {
    fn drop(&mut self) {
        self.records.end();
    }
}

/// Returns the values that the chart of a module reads.
fn chart_values(module: &Module, input: &ValuesInput) -> Result<Map<String, Value>, Failure> {
    let mut values = input.for_chart(module.layout, &module.chart_key)?;
    // Templates see every number as YAML gives it to them.
    values.values_mut().for_each(chart::yaml::floats);
    Ok(values)
}

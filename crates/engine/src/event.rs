//! What happens outside of the engine.
//!
//! It is long because each event stands here once, with all that the engine is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use values::patch::Patch;

use crate::addon::{Digest, Fetched, Registry, SourceKey};
use crate::catalog::{Catalog, Module};
use crate::chart_test::{TestReport, TestRequest};
use crate::config_object::{ConfigObject, ConfigText};
use crate::failure::Failure;
use crate::hook::AdmissionKind;
use crate::hook::metric::MetricOperation;
use crate::hook::object_patch::ObjectPatch;
use crate::hook::reconcile::{ObjectKind, ReconcileResult};
use crate::hook::response::{AdmissionResponse, ConversionResponse};
use crate::hook::snapshot::{Item, Key, Objects};
use crate::lease::LeaseRecord;
use crate::name::{BrokerCallId, CommandId, CronLine, ModuleName, MonitorId, ReleaseName, ReviewId, RunId};
use crate::package::{ChartConfigMap, FetchedIndex, Pins, ResolvedChart, StoredPackage};
use crate::release_target::ReleaseTarget;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The driver is ready and the configuration was read; the first converge may begin.
    Started,
    /// A platform asks the broker. Who asks has proved who they are.
    BrokerAsked {
        /// Which call.
        id: BrokerCallId,
        /// What it asks.
        request: BrokerRequest,
    },
    /// Answers [`RegisterBrokers`](crate::Effect::RegisterBrokers).
    BrokersRegistered {
        /// The attempt.
        run: RunId,
        /// Whether there is a Service Catalog, or why it was not told all.
        outcome: Result<bool, Failure>,
    },
    /// Answers [`DropBundles`](crate::Effect::DropBundles).
    BundlesDropped {
        /// The attempt.
        run: RunId,
        /// Why not all could be removed.
        outcome: Result<(), Failure>,
    },
    /// Answers [`RestoreBundles`](crate::Effect::RestoreBundles).
    BundlesRestored {
        /// The attempt.
        run: RunId,
        /// Those that can't be had.
        lost: BTreeSet<Digest>,
    },
    /// Answers [`KeepBundles`](crate::Effect::KeepBundles).
    BundlesKept {
        /// The attempt.
        run: RunId,
        /// Why the registry was not written.
        outcome: Result<(), StoreError>,
    },
    /// Files changed while the operator runs.
    CatalogChanged {
        /// All hooks and modules as they are now.
        catalog: Catalog,
    },
    /// Files changed and can't be loaded at all: the old ones stay in force.
    CatalogRejected {
        /// Why.
        failure: Failure,
    },
    /// Maps in which charts are kept are gone, or are others than before. Some may have gone because nobody wants them.
    ChartMapsLost {
        /// The maps as they were.
        maps: Vec<ChartConfigMap>,
    },
    /// Answers [`ResolveChart`](crate::Effect::ResolveChart).
    ChartResolved {
        /// The attempt.
        run: RunId,
        /// What was found, or what is wrong with the chart or its repository. A failure is one of the API server or of ourselves.
        outcome: Result<Result<ResolvedChart, String>, Failure>,
    },
    /// A person or program asked for something through HTTP or the socket.
    Commanded {
        /// Where the answer goes.
        id: CommandId,
        /// What was asked.
        command: Command,
    },
    /// The ConfigMap or the Secret over it was read or changed.
    ConfigChanged {
        /// Which of the two.
        object: ConfigObject,
        /// Its resource version.
        version: String,
        /// Its `data`, decoded; `None` when there is no such object.
        data: Option<Arc<ConfigData>>,
    },
    /// The ConfigMap or the Secret over it could not be read as one.
    ConfigRejected {
        /// Which of the two.
        object: ConfigObject,
        /// Why.
        failure: Failure,
    },
    /// Answers [`SaveConfigValues`](crate::Effect::SaveConfigValues).
    ConfigSaved {
        /// The attempt.
        run: RunId,
        /// The resource version after it, or why nothing was written.
        outcome: Result<String, Failure>,
    },
    /// Answers [`EnsureCrds`](crate::Effect::EnsureCrds).
    CrdsEnsured {
        /// The attempt.
        run: RunId,
        /// Why they are not all established.
        outcome: Result<(), Failure>,
    },
    /// Answers [`WriteCredentials`](crate::Effect::WriteCredentials).
    CredentialsWritten {
        /// The attempt.
        run: RunId,
        /// Why the Secret is not as it is to be.
        outcome: Result<(), Failure>,
    },
    /// A crontab line of [`SetSchedules`](crate::Effect::SetSchedules) is due.
    CronFired {
        /// The line.
        line: CronLine,
    },
    /// Answers [`RunHook`](crate::Effect::RunHook).
    HookFinished {
        /// The attempt.
        run: RunId,
        /// What the hook wrote, or why it failed.
        outcome: Result<HookOutput, Failure>,
        /// What the process used; absent when none was started.
        usage: Option<Usage>,
    },
    /// Answers [`KeepInstances`](crate::Effect::KeepInstances).
    InstancesKept {
        /// The attempt.
        run: RunId,
        /// Why they were not written.
        outcome: Result<(), Failure>,
    },
    /// Answers [`ReadInstances`](crate::Effect::ReadInstances).
    InstancesRead {
        /// The attempt.
        run: RunId,
        /// What is kept; `None` if nothing is.
        outcome: Result<Option<ConfigText>, Failure>,
    },
    /// Answers [`FetchIndex`](crate::Effect::FetchIndex).
    IndexFetched {
        /// The attempt.
        run: RunId,
        /// What was kept, or what is wrong with the repository. A failure is one of the API server or of ourselves.
        outcome: Result<Result<FetchedIndex, String>, Failure>,
    },
    /// The work on an object of controllers is asked for, whether it changed or not.
    KeyRequested {
        /// The kind of the object.
        kind: ObjectKind,
        /// Where it is.
        key: Key,
    },
    /// The kind of a monitor exists (again).
    KindAppeared {
        /// The monitor that waited for it.
        monitor: MonitorId,
    },
    /// The objects of the kind of a monitor are in no namespace. It comes before its lists; of other kinds nothing is said.
    KindIsClusterWide {
        /// The monitor.
        monitor: MonitorId,
    },
    /// The kind of a monitor does not exist (any more); the monitor waits for it.
    KindVanished {
        /// The monitor.
        monitor: MonitorId,
        /// The kind, as `apiVersion/Kind`.
        kind: String,
    },
    /// Answers [`ReadLease`](crate::Effect::ReadLease).
    LeaseRead {
        /// The attempt.
        run: RunId,
        /// The record; `None` when there is no Lease.
        outcome: Result<Option<LeaseRecord>, Failure>,
    },
    /// Answers [`WriteLease`](crate::Effect::WriteLease).
    LeaseWritten {
        /// The attempt.
        run: RunId,
        /// The record as it is now; `None` when somebody else wrote it in between.
        outcome: Result<Option<LeaseRecord>, Failure>,
    },
    /// The lists that begin or renew watches, of one moment. What a list does not name is gone.
    Listed {
        /// For each watch its objects, filtered.
        lists: Vec<(MonitorId, Objects)>,
    },
    /// How much memory is used came close to the limit of the container, or is not close any more.
    MemoryChanged {
        /// How many bytes are used, without what can be had back at any time.
        used: u64,
        /// How many bytes may be used.
        limit: u64,
    },
    /// Answers [`LoadModule`](crate::Effect::LoadModule).
    ModuleLoaded {
        /// The attempt.
        run: RunId,
        /// The module as its files are now.
        outcome: Result<Arc<Module>, Failure>,
    },
    /// Answers [`LoadModules`](crate::Effect::LoadModules).
    ModulesLoaded {
        /// The attempt.
        run: RunId,
        /// All hooks and modules as they are now.
        outcome: Result<Catalog, Failure>,
    },
    /// A namespace has joined or left those that a watch is about, and these are its objects now.
    ///
    /// No hook runs because of it: hooks see it in their snapshots.
    NamespaceListed {
        /// The watch.
        monitor: MonitorId,
        /// The namespace.
        namespace: Arc<str>,
        /// Its objects, filtered; none when it has left.
        objects: Vec<(Key, Arc<Item>)>,
    },
    /// A watched object changed. The adapter already applied the jq filters.
    ///
    /// All watches that share a stream hear of it at once: a hook with two of them must not find
    /// the object in the snapshot of one and miss it in that of the other.
    ///
    /// Whether it is new is not told: snapshots know. A watch calls things new that are not, after a gap or when an object
    /// begins to match, and an informer of client-go decides by what it knows, too.
    ObjectChanged {
        /// Which object.
        key: Key,
        /// Whether it is gone, from the cluster or from what the watch selects.
        is_gone: bool,
        /// For each watch the object after the change; its last known state if it is gone.
        items: Vec<(MonitorId, Arc<Item>)>,
    },
    /// Answers [`PatchObjects`](crate::Effect::PatchObjects).
    ObjectsPatched {
        /// The attempt.
        run: RunId,
        /// Why not all patches were carried out; names the index and what was done before.
        outcome: Result<(), Failure>,
    },
    /// Answers [`PinPackage`](crate::Effect::PinPackage).
    PackagePinned {
        /// The attempt.
        run: RunId,
        /// Why it was not written.
        outcome: Result<(), Failure>,
    },
    /// Answers [`StorePackage`](crate::Effect::StorePackage).
    PackageStored {
        /// The attempt.
        run: RunId,
        /// What is kept, or what is wrong with the archive or may not be written. A failure is one of the API server or of ourselves.
        outcome: Result<Result<StoredPackage, String>, Failure>,
    },
    /// A release differs from what the chart says, or does no longer.
    ReleaseDrifted {
        /// The module.
        module: ModuleName,
        /// How.
        drift: Drift,
    },
    /// Answers [`UpgradeRelease`](crate::Effect::UpgradeRelease) and
    /// [`UninstallRelease`](crate::Effect::UninstallRelease).
    ReleaseFinished {
        /// The attempt.
        run: RunId,
        /// What was done, or why it failed.
        outcome: Result<ReleaseOutcome, Failure>,
    },
    /// Answers [`MendObject`](crate::Effect::MendObject).
    ObjectMended {
        /// The attempt.
        run: RunId,
        /// Why the object is not as it was rendered.
        outcome: Result<(), Failure>,
    },
    /// Which objects of a release are not ready, each with the reason; none when all are. Answers
    /// [`AwaitReadiness`](crate::Effect::AwaitReadiness), more than once.
    ReadinessChanged {
        /// The question.
        run: RunId,
        /// The module.
        module: ModuleName,
        /// The objects.
        unready: Vec<String>,
    },
    /// Which kinds of objects of a release can't be watched, all of them; none when all are watched.
    ReleaseUnwatched {
        /// The module.
        module: ModuleName,
        /// The kinds.
        kinds: Vec<UnwatchedKind>,
    },
    /// What the work on a release waits for while its attempt goes on: the end of a hook of its chart; `None` when that has ended.
    ReleaseWaits {
        /// The attempt.
        run: RunId,
        /// What, for people.
        what: Option<String>,
    },
    /// Answers [`TestRelease`](crate::Effect::TestRelease).
    ReleaseTested {
        /// The attempt.
        run: RunId,
        /// What came of the tests, also of those that failed. An error is that they could not be run.
        outcome: Result<TestReport, Failure>,
    },
    /// Answers [`ListReleases`](crate::Effect::ListReleases).
    ReleasesListed {
        /// The attempt.
        run: RunId,
        /// The releases that carry our owner label, by target. An error is one of the operator's own namespace, or of the
        /// API server itself.
        outcome: Result<Vec<OwnedReleases>, Failure>,
    },
    /// Nobody waits for the answer to a review any more.
    ReviewAbandoned {
        /// The review.
        id: ReviewId,
    },
    /// The API server has kinds of chart repositories now. Answers
    /// [`AwaitRepositoryKinds`](crate::Effect::AwaitRepositoryKinds).
    RepositoryKindsServed,
    /// The API server asks a hook (admission, conversion).
    ReviewRequested {
        /// Where the answer goes.
        id: ReviewId,
        /// The path that was asked, which says which webhook is meant.
        webhook: String,
        /// The review.
        review: Arc<Value>,
        /// How long the API server waits, if it says so.
        timeout: Option<Duration>,
    },
    /// Answers [`Restore`](crate::Effect::Restore).
    Restored {
        /// The attempt.
        run: RunId,
        /// What is kept in the cluster now.
        outcome: Result<Box<Restored>, Failure>,
    },
    /// Answers [`RunEnabledScript`](crate::Effect::RunEnabledScript).
    ScriptFinished {
        /// The attempt.
        run: RunId,
        /// What the script says, or why it failed.
        outcome: Result<Verdict, Failure>,
        /// What the process used; absent when none was started.
        usage: Option<Usage>,
    },
    /// Answers [`FetchSource`](crate::Effect::FetchSource).
    SourceFetched {
        /// The attempt.
        run: RunId,
        /// What the repositories offer. An error is one of the API server or of our own disk: what is wrong with a
        /// repository is in [`Fetched`].
        outcome: Result<Fetched, Failure>,
    },
    /// The API server has kinds of module sources now. Answers [`AwaitSourceKinds`](crate::Effect::AwaitSourceKinds).
    SourceKindsServed,
    /// The operator shall end.
    ShutdownRequested,
    /// A deadline from [`Engine::next_wakeup`](crate::Engine::next_wakeup) passed.
    TimerFired,
    /// A watch that no binding asked for could not be opened or broke, or works again: that of the ConfigMap, for example.
    OwnWatchChanged {
        /// What it watches, in words.
        watch: String,
        /// Why it does not work; the adapter goes on trying. `None` when it works again.
        failure: Option<Failure>,
    },
    /// Nobody waits for the answer to a command any more.
    CommandAbandoned {
        /// The command.
        id: CommandId,
    },
    /// Our own certificate of webhooks is followed in its Secret, or can't be; the adapter goes on trying. It is said when it changes.
    WebhookCertificateKept {
        /// Why not.
        outcome: Result<(), Failure>,
    },
    /// The certificate of the webhooks was renewed.
    WebhookCertificateRenewed {
        /// The new one.
        certificate: WebhookCertificate,
    },
    /// Answers [`RegisterWebhooks`](crate::Effect::RegisterWebhooks).
    WebhooksRegistered {
        /// The attempt.
        run: RunId,
        /// Why not everything is as it is to be, beside what was refused.
        outcome: Result<(), Failure>,
        /// The configurations that the API server refused.
        refusals: Vec<WebhookRefusal>,
        /// How new the objects are that were written.
        versions: WrittenVersions,
    },
    /// Answers [`ServeWebhooks`](crate::Effect::ServeWebhooks).
    WebhooksServed {
        /// The attempt.
        run: RunId,
        /// The certificate that reviews are taken with, or why none are taken.
        outcome: Result<WebhookCertificate, Failure>,
    },
    /// A watch could not be opened or broke; the adapter goes on trying.
    WatchFailed {
        /// The watch.
        monitor: MonitorId,
        /// Why.
        failure: Failure,
    },
    /// A watch that had failed works again.
    WatchRestored {
        /// The watch.
        monitor: MonitorId,
    },
}

/// What is kept in the cluster of modules that do not come from files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restored {
    /// All that is registered.
    pub registry: Registry,
    /// The bundles of it that are lost.
    pub lost: BTreeSet<Digest>,
    /// The packages that modules stay with.
    pub pins: Pins,
    /// All hooks and modules, if others are registered than were known.
    pub catalog: Option<Catalog>,
}

/// The `data` of the ConfigMap or of the Secret over it. Its texts are values and can hold secrets.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct ConfigData(pub BTreeMap<String, String>);

/// What a person or program asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command {
    /// Discover and run all modules again.
    Converge,
    /// Uninstall the release of a module whose directory is gone.
    PurgeModule(ModuleName),
    /// Take a parked module up again.
    ResumeModule(ModuleName),
    /// Run one module.
    RunModule(ModuleName),
    /// Write `<key>Enabled` into the ConfigMap.
    SetEnabled(ModuleName, bool),
    /// Suspend a configuration of module sources, or end that: write `spec.suspend`.
    SuspendSource(SourceKey, bool),
    /// Have a configuration of module sources processed again: raise the counter of its spec.
    SyncSource(SourceKey),
    /// Run the tests of a module's chart. The answer is a [`TestReport`] as JSON.
    TestModule(ModuleName, TestRequest),
}

/// What a hook wrote, parsed and well-formed; nothing of it has taken effect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookOutput {
    /// Why the hook failed, if it did. Then all that is left are changes of objects that are carried out all the same.
    pub failed: Option<Failure>,
    /// Operations on the values that the user configured.
    pub config_patch: Patch,
    /// Operations on the values in memory.
    pub values_patch: Patch,
    /// Metrics to export.
    pub metrics: Vec<MetricOperation>,
    /// Changes of objects in the cluster.
    pub object_patches: Vec<ObjectPatch>,
    /// What it answers to a review of an object.
    pub admission: Option<Box<AdmissionResponse>>,
    /// What it answers to a review of a conversion.
    pub conversion: Option<Box<ConversionResponse>>,
    /// What should be, if it ran for a reconcile binding.
    pub reconcile: Box<ReconcileResult>,
}

impl HookOutput {
    /// Returns whether the hook did well, and wrote neither values nor metrics nor changes of objects.
    pub(crate) fn is_silent(&self) -> bool {
        self.failed.is_none()
            && self.config_patch.is_empty()
            && self.values_patch.is_empty()
            && self.metrics.is_empty()
            && self.object_patches.is_empty()
    }
}

/// What a process used.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    /// From start to end.
    pub took: Duration,
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// The largest resident memory, in bytes.
    pub max_rss: u64,
}

/// What an enabled script says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Verdict {
    /// Whether the module may be enabled.
    pub enabled: bool,
    /// Why not, if the script said so.
    pub reason: Option<String>,
}

/// What was done to a release.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReleaseOutcome {
    /// What was done.
    pub action: ReleaseAction,
    /// The revision that is deployed now; 0 when there is none.
    pub revision: u32,
    /// A hash of the rendered manifests; equal when a run changes nothing.
    pub checksum: u64,
    /// What an upgrade changed first: an object, and the JSON path in it. Values are not told.
    pub changed: Option<String>,
    /// The first objects, and fields of objects, that it took over from others since that was told last.
    pub taken_over: Vec<TakenObject>,
}

/// An object that a release took over from others, as a whole or a field of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TakenObject {
    /// The object: `Kind namespace/name`.
    pub object: String,
    /// Who has lost it.
    pub from: TakenFrom,
}

/// Who has lost what a release took over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TakenFrom {
    /// Another release, `namespace/name`, whose objects the whole object is among, too.
    Release(String),
    /// Another writer of the object.
    Writer {
        /// Its name as a field manager.
        manager: String,
        /// The first field that it had, and that the release has now: `.spec.replicas`.
        field: String,
    },
}

/// The releases of one target that carry our owner label.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OwnedReleases {
    /// Where they are.
    pub target: ReleaseTarget,
    /// They by name, or why they may not be listed: nothing is known of them then.
    pub outcome: Result<Vec<OwnedRelease>, Failure>,
}

/// A release that carries our owner label.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct OwnedRelease {
    /// Its name.
    pub name: ReleaseName,
    /// Whether it has the mark of a source: nothing but its removal by that source or by a command takes it away.
    pub is_sourced: bool,
}

/// Why bundles and registry were not written.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreError {
    /// These bundles could not be written, so the registry was not.
    Bundles(Vec<(Digest, Failure)>),
    /// The registry could not be written.
    Registry(Failure),
}

/// What a run did to a release.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReleaseAction {
    /// There was nothing to remove.
    Absent,
    /// A first revision was written.
    Installed,
    /// The release and its history are gone.
    Uninstalled,
    /// The cluster already was as the chart says; nothing was written.
    Unchanged,
    /// The module is in maintenance; nothing was compared.
    Unmanaged,
    /// There would be a release from now on, and it is not on record that there may be one; nothing was written.
    Unrecorded,
    /// A new revision was written.
    Upgraded,
}

/// How a release differs from its chart.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Drift {
    /// An object is gone: `namespace/Kind/name`.
    Absent(String),
    /// Somebody else changed a field that was rendered. A change of anything else is none.
    Changed {
        /// `namespace/Kind/name`
        object: String,
        /// The JSON path of the first such field.
        place: String,
        /// Who wrote that field last, as its managed fields say.
        writer: Option<String>,
    },
    /// An object that was told as changed is as rendered again: `namespace/Kind/name`.
    Restored(String),
    /// Its records are not as they were left: what was found.
    Status(String),
}

/// A kind of objects of a release that can't be watched: what becomes of them is seen at the next run only.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct UnwatchedKind {
    /// The kind, with the namespace if it is about one: `Deployment`, `Deployment in web`.
    pub kind: String,
    /// Why not.
    pub why: String,
}

impl fmt::Debug for ConfigData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The certificate that reviews are taken with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WebhookCertificate {
    /// The certificates that the API server has to trust: PEM in base64.
    pub ca_bundle: Arc<str>,
    /// How long it is valid from now on.
    pub valid_for: Duration,
}

/// How new the objects are that the API server was told of webhooks in: their `resourceVersion`, which grows with each write.
///
/// What was removed has none, and what has a version that is no number.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WrittenVersions {
    /// Those of configurations.
    pub configurations: BTreeMap<AdmissionKind, u64>,
    /// Those of definitions, by name.
    pub definitions: BTreeMap<String, u64>,
}

/// A configuration of webhooks that the API server refused.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookRefusal {
    /// Which one.
    pub kind: AdmissionKind,
    /// What it said.
    pub failure: Failure,
    /// The webhooks that it named, by full name, with what is wrong with each; none if it named none.
    pub webhooks: BTreeMap<String, String>,
}

/// What a platform asks the broker, as it came over HTTP.
#[derive(Clone, Eq, PartialEq)]
pub struct BrokerRequest {
    /// The method: `PUT`.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query without the question mark; empty if there is none.
    pub query: String,
    /// The header `X-Broker-API-Version`, if it is there.
    pub api_version: Option<String>,
    /// The body, if there is one.
    pub body: Option<Arc<Value>>,
}

// Its body can hold secrets.
impl fmt::Debug for BrokerRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerRequest")
            .field("method", &self.method)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

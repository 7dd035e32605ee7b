//! What the engine asks the outside world to do.
//!
//! It is long because each effect stands here once, with all that its adapter has to know.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redaction::Secrets;
use serde_json::Value;

use crate::addon::{Approvals, Digest, Registry, SourceKey, SourceReference, SourceSpec};
use crate::catalog::{Hook, Module};
use crate::cause::Cause;
use crate::chart_test::TestRequest;
use crate::config_object::{ConfigObject, ConfigText};
use crate::drift_settings::DriftSettings;
use crate::enabled::EnabledModules;
use crate::failure::Failure;
use crate::hook::object_patch::ObjectPatch;
use crate::hook::snapshot::Key;
use crate::hook::{AdmissionKind, MonitorSpec, RunContexts};
use crate::lease::LeaseRecord;
use crate::name::{
    BrokerCallId, CommandId, CronLine, HookId, ModuleName, MonitorId, QueueName, ReleaseName, ReviewId,
    RunId, TaskId,
};
use crate::notice::Notice;
use crate::package::{IndexRequest, Pin, RepositoryKey, ResolveRequest, StoreRequest};
use crate::release_target::ReleaseTarget;

/// A request to the driver.
///
/// Effects that finish answer with an [`Event`](crate::Event) carrying the same
/// [`RunId`]. The engine keeps at most one such effect in flight per queue, beside enabled scripts that it asks before
/// their turn.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "an effect that is not carried out stalls its queue"]
pub enum Effect {
    /// End at once: somebody else may act now. Whatever runs is killed, and nothing is written any more.
    Abort(Abort),
    /// Write a Kubernetes Event. Never answered.
    Announce(Announcement),
    /// Answer a platform.
    AnswerBroker {
        /// Which call.
        id: BrokerCallId,
        /// What is answered.
        answer: BrokerAnswer,
    },
    /// Tell who gave a command what came of it.
    AnswerCommand {
        /// Which command.
        id: CommandId,
        /// One line for a person, or why it was refused.
        outcome: Result<String, Failure>,
    },
    /// Tell the API server what the hook answered.
    AnswerReview {
        /// Which question.
        id: ReviewId,
        /// The review with its response, or why there is none: then the API server does what the webhook's failure policy says.
        outcome: Result<Arc<Value>, ReviewRefusal>,
    },
    /// Report when the API server has kinds of chart repositories: it has none. Answered by
    /// [`RepositoryKindsServed`](crate::Event::RepositoryKindsServed), or never.
    AwaitRepositoryKinds,
    /// Report when the API server has kinds of module sources: it has none. Answered by
    /// [`SourceKindsServed`](crate::Event::SourceKindsServed), or never.
    AwaitSourceKinds,
    /// End what is running, because the operator ends or nobody wants its answer. A process: SIGTERM to its group, later
    /// SIGKILL. A change of a release: its revision ends as failed. It still answers.
    CancelRun {
        /// The attempt.
        run: RunId,
    },
    /// Remove bundles that nobody needs any more, from the cluster and from the store directory.
    DropBundles {
        /// The attempt.
        run: RunId,
        /// All that is registered: its bundles stay.
        registry: Arc<Registry>,
        /// The other bundles that stay: modules are in force from them.
        others: Vec<Digest>,
    },
    /// Put bundles into the store directory that the cluster has.
    RestoreBundles {
        /// The attempt.
        run: RunId,
        /// Which ones.
        digests: Vec<Digest>,
    },
    /// Create or update the CRDs of a module and wait until they are established.
    EnsureCrds {
        /// The attempt.
        run: RunId,
        /// The module whose `crds` are meant.
        module: Arc<Module>,
    },
    /// Nothing is in flight any more: end.
    Exit,
    /// Fetch the index of a chart repository, unless it is the one that is known, and write what is kept of it. Can be
    /// cancelled.
    FetchIndex {
        /// The attempt.
        run: RunId,
        /// What is asked for.
        request: Box<IndexRequest>,
    },
    /// Fetch what the repositories of a configuration offer, check it and put it into the store directory.
    ///
    /// Everything is tried, also after something failed. Can be cancelled.
    FetchSource {
        /// The attempt.
        run: RunId,
        /// The configuration.
        source: SourceKey,
        /// What it asks for.
        spec: Arc<SourceSpec>,
        /// Whether nobody asked for it: bundles that were fetched before are not asked for while their index did not change.
        is_refresh: bool,
        /// The versions that people have approved, if those wait for that.
        approvals: Arc<Approvals>,
    },
    /// Stop watching the objects of a release.
    ForgetRelease {
        /// The module.
        module: ModuleName,
        /// Where the release is.
        target: ReleaseTarget,
    },
    /// Write the bundles that are missing in the cluster, then the registry: it never names what is not there.
    KeepBundles {
        /// The attempt.
        run: RunId,
        /// All that is registered from now on.
        registry: Arc<Registry>,
        /// The bundles of it that could not be restored: they were missing before, and are no reason to fail.
        lost: Vec<Digest>,
    },
    /// Write down the instances of the broker. Answered by [`InstancesKept`](crate::Event::InstancesKept).
    KeepInstances {
        /// This attempt.
        run: RunId,
        /// All of them. It holds secrets.
        text: ConfigText,
    },
    /// List the releases that carry our owner label.
    ListReleases {
        /// The attempt.
        run: RunId,
        /// Where there may be some, the operator's own namespace first.
        targets: Vec<ReleaseTarget>,
    },
    /// Read one module from its files again, its hooks' `--config` too.
    LoadModule {
        /// The attempt.
        run: RunId,
        /// The module.
        module: ModuleName,
    },
    /// Make the store directory show exactly these modules, and read all files again.
    LoadModules {
        /// The attempt.
        run: RunId,
        /// What is registered: its active addons are the modules.
        registry: Arc<Registry>,
        /// The bundles of it that are not there: nothing is made of them.
        lost: Vec<Digest>,
    },
    /// Write the rendered fields of one object of a release back, but for those that are left to others. No revision is added.
    /// Answered by [`ObjectMended`](crate::Event::ObjectMended).
    MendObject {
        /// The attempt.
        run: RunId,
        /// The module.
        module: ModuleName,
        /// `namespace/Kind/name`, as [`Drift`](crate::Drift) names it.
        object: Arc<str>,
        /// Where the release is.
        target: ReleaseTarget,
    },
    /// Tell whom it may concern. Never answered.
    Notify(Notice),
    /// Change objects in the cluster, in order.
    PatchObjects {
        /// The attempt.
        run: RunId,
        /// On whose behalf.
        author: PatchAuthor,
        /// The changes.
        patches: Arc<[ObjectPatch]>,
    },
    /// Read the instances of the broker. Answered by [`InstancesRead`](crate::Event::InstancesRead).
    ReadInstances {
        /// This attempt.
        run: RunId,
    },
    /// Read the Lease.
    ReadLease {
        /// The attempt.
        run: RunId,
    },
    /// Tell Service Catalog which brokers there are, if there is one. Answered by
    /// [`BrokersRegistered`](crate::Event::BrokersRegistered).
    RegisterBrokers {
        /// This attempt.
        run: RunId,
        /// All of it.
        registration: Arc<BrokerRegistration>,
    },
    /// Make the API server ask for reviews, or not ask any more.
    RegisterWebhooks {
        /// The attempt.
        run: RunId,
        /// What is to be there.
        registration: Arc<WebhookRegistration>,
    },
    /// Write which package a module stays with, or that it stays with none any more. What is pinned is kept, whatever becomes of
    /// its Chart and its Repository.
    PinPackage {
        /// The attempt.
        run: RunId,
        /// The module.
        module: ModuleName,
        /// The package.
        pin: Option<Box<Pin>>,
    },
    /// Look for versions of a chart in what is kept of the index. Nobody outside of the cluster is asked. Can be cancelled.
    ResolveChart {
        /// The attempt.
        run: RunId,
        /// What is looked for.
        request: Box<ResolveRequest>,
    },
    /// Read again what is kept in the cluster of modules that do not come from files: another operator may have changed it while
    /// this one was a standby. Answered by [`Restored`](crate::Event::Restored).
    Restore {
        /// The attempt.
        run: RunId,
        /// What was registered when this operator read it last.
        known: Arc<Registry>,
        /// Whether modules stay with packages.
        has_pins: bool,
    },
    /// Run an enabled script.
    RunEnabledScript {
        /// The attempt.
        run: RunId,
        /// The module whose script it is.
        module: Arc<Module>,
        /// What it reads.
        values: ValuesInput,
        /// How long it may take; `None` for ever.
        timeout: Option<Duration>,
    },
    /// Start a hook process.
    RunHook {
        /// The attempt.
        run: RunId,
        /// The hook.
        hook: Arc<Hook>,
        /// Why it runs, with the snapshots it is shown.
        contexts: RunContexts,
        /// What it reads.
        values: ValuesInput,
        /// How long it may take; `None` for ever.
        timeout: Option<Duration>,
        /// What its log lines carry.
        labels: RunLabels,
    },
    /// Write one key of the ConfigMap or of the Secret over it, or remove it.
    SaveConfigValues {
        /// The attempt.
        run: RunId,
        /// The object.
        object: ConfigObject,
        /// The key.
        key: String,
        /// Its new text; `None` removes it. Can hold secrets.
        text: Option<ConfigText>,
        /// What the new text was made from.
        basis: Basis,
    },
    /// Begin to take reviews of the API server, which lasts until the end. Answered by
    /// [`WebhooksServed`](crate::Event::WebhooksServed).
    ServeWebhooks {
        /// The attempt.
        run: RunId,
    },
    /// Let exactly these crontab lines fire from now on.
    SetSchedules {
        /// The lines; empty stops the clock.
        lines: BTreeSet<CronLine>,
    },
    /// List and watch objects, and report them filtered.
    StartMonitor {
        /// The watch.
        monitor: MonitorId,
        /// What it selects and how it filters.
        spec: Arc<MonitorSpec>,
    },
    /// Stop a watch.
    StopMonitor {
        /// The watch.
        monitor: MonitorId,
    },
    /// Keep a version of a chart: fetch its archive, if it is not there, and write what is missing of it. Can be cancelled.
    StorePackage {
        /// The attempt.
        run: RunId,
        /// What is kept.
        request: Box<StoreRequest>,
    },
    /// Run the tests of the deployed revision of a release, and write down how they ran. Can be cancelled. Answered by
    /// [`ReleaseTested`](crate::Event::ReleaseTested).
    TestRelease {
        /// The attempt.
        run: RunId,
        /// The module.
        module: ModuleName,
        /// Where the release is.
        target: ReleaseTarget,
        /// Which tests, and how.
        request: TestRequest,
    },
    /// Remove a release with its history. Answered by `ReleaseFinished`.
    UninstallRelease {
        /// The attempt.
        run: RunId,
        /// The release.
        release: ReleaseName,
        /// Where it is.
        target: ReleaseTarget,
    },
    /// Install or upgrade the release of a module. Answered by `ReleaseFinished`.
    UpgradeRelease {
        /// The attempt.
        run: RunId,
        /// The module.
        module: Arc<Module>,
        /// The chart's values.
        values: ValuesInput,
        /// Whether the module is in maintenance.
        maintenance: bool,
        /// The configuration that brought the module: its mark is put on the release, which no start purges then.
        source: Option<SourceKey>,
        /// Where the release belongs.
        target: ReleaseTarget,
        /// Whether it is on record that there may be a release. Otherwise nothing is written: where there would be one from now on,
        /// the answer is [`ReleaseAction::Unrecorded`](crate::ReleaseAction::Unrecorded).
        is_recorded: bool,
    },
    /// Watch the maps in which charts are kept, and report those that others removed or changed, until the operator ends.
    WatchChartMaps,
    /// Report which objects of a release are not ready, until all of them are. A later one for the same release takes its place.
    AwaitReadiness {
        /// The question.
        run: RunId,
        /// The module.
        module: ModuleName,
        /// Where the release is.
        target: ReleaseTarget,
    },
    /// Watch the objects of a release and report what drifts. Of a release that is watched already the settings count from now on.
    WatchRelease {
        /// The module.
        module: ModuleName,
        /// Where the release is.
        target: ReleaseTarget,
        /// Which fields are left to others.
        drift: DriftSettings,
    },
    /// Render the credentials of a release, look up what they name, and write them into its Secret, if they differ.
    WriteCredentials {
        /// The attempt.
        run: RunId,
        /// The module.
        module: Arc<Module>,
        /// The file of the template; `None` removes the Secret, if it is there.
        template: Option<Arc<str>>,
        /// The chart's values.
        values: ValuesInput,
        /// The revision of the release.
        revision: u32,
        /// Where the release is.
        target: ReleaseTarget,
    },
    /// Write the Lease, if nobody else did since it was read.
    WriteLease {
        /// The attempt.
        run: RunId,
        /// What it is to say. The adapter fills in the times: when it is renewed, and when it was acquired if that is missing.
        record: Box<LeaseRecord>,
        /// Whether there is a Lease, with the version of the record; otherwise it is made.
        exists: bool,
        /// How long the operator may act if that works, from now on, on a clock that goes on while the machine sleeps. `None` if
        /// the Lease does not say who may act.
        acts_for: Option<Duration>,
    },
}

/// Why the operator ends at once.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Abort {
    /// It held the Lease, and does not any more.
    LeadershipLost,
    /// Somebody else is alive who holds the Lease.
    AnotherOperator(Arc<str>),
}

/// What is answered to a platform.
#[derive(Clone, Eq, PartialEq)]
pub struct BrokerAnswer {
    /// The status of HTTP.
    pub status: u16,
    /// What comes with it.
    pub body: BrokerBody,
}

/// The body of an answer to a platform.
#[derive(Clone, Eq, PartialEq)]
pub enum BrokerBody {
    /// The credentials in a Secret, which are not known to the engine.
    Credentials {
        /// Its namespace.
        namespace: String,
        /// Its name.
        secret: String,
    },
    /// An object.
    Json(Arc<Value>),
}

// It can hold secrets.
impl fmt::Debug for BrokerAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerAnswer").field("status", &self.status).finish_non_exhaustive()
    }
}

/// What Service Catalog is to know of the broker. What is offered stands for itself by a number.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct BrokerRegistration {
    /// What is offered to the cluster; `None` if there is to be no broker of the cluster.
    pub cluster: Option<String>,
    /// What is offered to each namespace that has a broker.
    pub namespaces: BTreeMap<Arc<str>, String>,
}

/// Why a review has no response.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReviewRefusal {
    /// What is wrong.
    pub reason: RefusalReason,
    /// One line for whoever reads the answer. It quotes no object and no output.
    pub message: String,
}

/// What is wrong with a review, or with who should answer it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RefusalReason {
    /// Too many reviews wait, or the operator ends.
    Busy,
    /// The time that the API server waits is over.
    Expired,
    /// It is no review.
    Malformed,
    /// No hook answers reviews of this path.
    Unknown,
}

/// What the API server is to know of webhooks. It holds all that the adapter writes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WebhookRegistration {
    /// The `ValidatingWebhookConfiguration`; `None` if there is to be none.
    pub validating: Option<Value>,
    /// The `MutatingWebhookConfiguration`; `None` if there is to be none.
    pub mutating: Option<Value>,
    /// Those of their webhooks, by full name, that are left out unless the API server knows them already: it is not known yet whether
    /// they are wanted.
    pub kept: BTreeSet<(AdmissionKind, String)>,
    /// Whether those of their webhooks that lead to this operator and that are not named here stay, and let requests go on: it is not
    /// known yet whether they are wanted.
    pub keeps_others: bool,
    /// The `spec.conversion` of definitions of custom resources that differs; `None` where it is given back.
    pub conversions: BTreeMap<String, Option<Value>>,
    /// Whether definitions are looked for that an operator before this one has left behind: all but these are given back.
    pub sweep: Option<BTreeSet<String>>,
    /// The configurations that are made harmless instead, whatever is said of them above.
    pub narrowed: BTreeMap<AdmissionKind, Narrowing>,
}

/// How a configuration is made harmless: what is registered there stays as it is, and requests go on whose webhook does not answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Narrowing {
    /// The configuration without its webhooks.
    pub head: Value,
    /// Which of the webhooks that lead to this operator stay, by full name; `None` for all.
    pub stay: Option<BTreeSet<String>>,
}

/// On whose behalf objects are changed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PatchAuthor {
    /// A hook wrote the changes.
    Hook(HookId),
    /// The operator looks after an object of a chart repository.
    Repository(RepositoryKey),
    /// The operator looks after a configuration of sources.
    Source(SourceKey),
}

/// Writes `hook web/init.sh` or the name of the configuration.
impl fmt::Display for PatchAuthor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hook(hook) => write!(f, "hook {hook}"),
            Self::Repository(repository) => repository.fmt(f),
            Self::Source(source) => source.fmt(f),
        }
    }
}

/// What a process or chart reads as values. Shared, never copied.
#[derive(Clone, PartialEq)]
pub struct ValuesInput {
    /// The `global` section.
    pub global: Arc<Value>,
    /// What the user configured in the `global` section; null when nothing.
    pub global_config: Arc<Value>,
    /// The module's section; `None` for a global hook.
    pub module: Option<ModuleValues>,
    /// What `global.enabledModules` says, for readers that see it.
    pub enabled_modules: Option<EnabledModules>,
    /// What the Secret over the ConfigMap says for all modules: no output quotes it, whatever it may quote else.
    pub secret: Arc<Secrets<'static>>,
}

/// The section of one module.
#[derive(Clone, PartialEq)]
pub struct ModuleValues {
    /// Its key: `certManager`.
    pub key: Arc<str>,
    /// Its values.
    pub values: Arc<Value>,
    /// What the user configured; null when nothing.
    pub config: Arc<Value>,
}

/// What the new text of a key of the ConfigMap was made from. A write must not undo what somebody else wrote since.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Basis {
    /// Nothing that was there: whatever the key says now is replaced.
    Nothing,
    /// This text, or that there was no such key.
    Text(Option<ConfigText>),
}

/// What the log lines and metrics of a run carry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RunLabels {
    /// The task it is part of.
    pub task: TaskId,
    /// The queue the task is in.
    pub queue: QueueName,
    /// The type of binding of its first context: `beforeHelm`, `kubernetes`, `schedule`.
    pub binding_type: &'static str,
    /// The name of that binding.
    pub binding: Arc<str>,
    /// Why the task exists.
    pub cause: Cause,
}

impl Effect {
    /// Returns what a process or chart reads as values, if one is started.
    pub(crate) fn values(&self) -> Option<&ValuesInput> {
        match self {
            Self::RunEnabledScript { values, .. }
            | Self::RunHook { values, .. }
            | Self::UpgradeRelease { values, .. }
            | Self::WriteCredentials { values, .. } => Some(values),
            Self::Abort(_)
            | Self::Announce(_)
            | Self::AnswerBroker { .. }
            | Self::AnswerCommand { .. }
            | Self::AnswerReview { .. }
            | Self::AwaitRepositoryKinds
            | Self::AwaitSourceKinds
            | Self::CancelRun { .. }
            | Self::DropBundles { .. }
            | Self::EnsureCrds { .. }
            | Self::Exit
            | Self::FetchIndex { .. }
            | Self::FetchSource { .. }
            | Self::ForgetRelease { .. }
            | Self::KeepBundles { .. }
            | Self::KeepInstances { .. }
            | Self::ListReleases { .. }
            | Self::LoadModule { .. }
            | Self::LoadModules { .. }
            | Self::MendObject { .. }
            | Self::Notify(_)
            | Self::PatchObjects { .. }
            | Self::ReadInstances { .. }
            | Self::ReadLease { .. }
            | Self::RegisterBrokers { .. }
            | Self::RegisterWebhooks { .. }
            | Self::ServeWebhooks { .. }
            | Self::PinPackage { .. }
            | Self::ResolveChart { .. }
            | Self::Restore { .. }
            | Self::RestoreBundles { .. }
            | Self::SaveConfigValues { .. }
            | Self::SetSchedules { .. }
            | Self::StartMonitor { .. }
            | Self::StopMonitor { .. }
            | Self::StorePackage { .. }
            | Self::TestRelease { .. }
            | Self::UninstallRelease { .. }
            | Self::WatchChartMaps
            | Self::AwaitReadiness { .. }
            | Self::WatchRelease { .. }
            | Self::WriteLease { .. } => None,
        }
    }
}

impl ValuesInput {
    /// Iterates over the sections that are read.
    pub fn sections(&self) -> impl Iterator<Item = &Arc<Value>> {
        let module = self.module.iter().flat_map(|module| [&module.values, &module.config]);
        [&self.global, &self.global_config].into_iter().chain(module)
    }
}

impl fmt::Debug for ValuesInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let module = self.module.as_ref().map(|module| &module.key);
        f.debug_struct("ValuesInput").field("module", &module).finish_non_exhaustive()
    }
}

impl fmt::Debug for ModuleValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModuleValues").field("key", &self.key).finish_non_exhaustive()
    }
}

/// An object in the cluster, for those who write about it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ObjectReference {
    /// Its version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Where it is.
    pub key: Key,
    /// Its identity, which no later object of that name has.
    pub uid: String,
}

/// A Kubernetes Event about a module, a converge or the operator. It quotes no values.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Announcement {
    /// The module; `None` when it is about no single one.
    pub module: Option<ModuleName>,
    /// The configuration of sources that it is about, if it is about one: the Event belongs to that object.
    pub source: Option<SourceReference>,
    /// The object that it is about, if a hook is its controller: the Event belongs to it.
    pub object: Option<ObjectReference>,
    /// Whether a person should look at it.
    pub warning: bool,
    /// One word for machines: `ModuleFailed`.
    pub reason: &'static str,
    /// One line for people.
    pub message: String,
}

//! Records all events and effects: what is pending, and what happened since the last step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::hook::{BindingContext, RunContexts, Trigger};
use engine::metric::MetricOperation;
use engine::{CronLine, Effect, Event, Failure, Hook, HookOutput, ModuleName, MonitorId, Notice, RunId};

use crate::driver::{Effects, Inbox};

/// The adapters of production, with a recorder. Only schedules differ: a step of the test fires them.
pub(super) struct RecordedEffects<O> {
    pub(super) inner: O,
    pub(super) recorder: Recorder,
}

/// The recording. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorder(Arc<Mutex<Recording>>);

#[derive(Debug, Default)]
struct Recording {
    under_way: BTreeSet<RunId>,
    running: BTreeMap<RunId, usize>,
    unlisted: BTreeSet<MonitorId>,
    lines: BTreeSet<CronLine>,
    modules: Arc<[(ModuleName, bool)]>,
    record: StepRecord,
    hooks_took: Duration,
}

/// What happened in a step.
#[derive(Clone, Debug, Default)]
pub(super) struct StepRecord {
    /// The runs of hooks, in order of their start.
    pub(super) runs: Vec<Run>,
    /// Why tasks, discoveries and watches failed.
    pub(super) failures: Vec<Failure>,
    /// The metrics that took effect.
    pub(super) metrics: Vec<MetricOperation>,
}

/// A run of a hook.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) hook: Arc<Hook>,
    /// Its binding contexts, in short.
    pub(super) contexts: String,
    /// Whether it says what should be.
    pub(super) is_reconciliation: bool,
    /// `None` while it runs.
    pub(super) outcome: Option<Result<HookOutput, Failure>>,
}

impl Recorder {
    fn with<T>(&self, work: impl FnOnce(&mut Recording) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether no effect is pending and all watches have listed.
    pub(super) fn is_idle(&self) -> bool {
        self.with(|recorder| recorder.under_way.is_empty() && recorder.unlisted.is_empty())
    }

    /// Returns what was recorded since the last call.
    pub(super) fn take(&self) -> StepRecord {
        self.with(|recorder| {
            recorder.running.clear();
            std::mem::take(&mut recorder.record)
        })
    }

    /// Returns the hooks that run now.
    pub(super) fn running(&self) -> Vec<String> {
        self.with(|recorder| {
            let runs = recorder.running.values().filter_map(|position| recorder.record.runs.get(*position));
            runs.map(|run| run.hook.id.to_string()).collect()
        })
    }

    /// Returns which modules are on.
    pub(super) fn modules(&self) -> Arc<[(ModuleName, bool)]> {
        self.with(|recorder| Arc::clone(&recorder.modules))
    }

    /// Returns whether a crontab line is active.
    pub(super) fn is_scheduled(&self, line: &CronLine) -> bool {
        self.with(|recorder| recorder.lines.contains(line))
    }

    /// Returns how long processes of hooks and scripts ran.
    pub(super) fn hooks_took(&self) -> Duration {
        self.with(|recorder| recorder.hooks_took)
    }
}

impl<O: Effects> Effects for RecordedEffects<O> {
    fn look(&mut self) -> Option<Event> {
        self.inner.look()
    }

    fn begin(&mut self, effect: Effect, inbox: &Inbox) {
        self.recorder.with(|recorder| recorder.started(&effect));
        if !matches!(effect, Effect::Announce(_) | Effect::SetSchedules { .. }) {
            self.inner.begin(effect, inbox);
        }
    }

    fn observe_decision(&mut self, took: Duration, effects: &[Effect]) {
        self.inner.observe_decision(took, effects);
    }

    fn observe_event(&mut self, event: &Event) {
        self.recorder.with(|recorder| recorder.answered(event));
    }
}

impl Recording {
    fn started(&mut self, effect: &Effect) {
        match effect {
            Effect::RunHook { run, hook, contexts, .. } => {
                self.under_way.insert(*run);
                self.running.insert(*run, self.record.runs.len());
                self.record.runs.push(Run {
                    hook: Arc::clone(hook),
                    contexts: summary(contexts),
                    is_reconciliation: contexts.is_reconciliation(),
                    outcome: None,
                });
            }
            Effect::DropBundles { run, .. }
            | Effect::EnsureCrds { run, .. }
            | Effect::FetchIndex { run, .. }
            | Effect::FetchSource { run, .. }
            | Effect::KeepBundles { run, .. }
            | Effect::KeepInstances { run, .. }
            | Effect::ListReleases { run, .. }
            | Effect::LoadModule { run, .. }
            | Effect::LoadModules { run, .. }
            | Effect::MendObject { run, .. }
            | Effect::PatchObjects { run, .. }
            | Effect::PinPackage { run, .. }
            | Effect::ReadInstances { run }
            | Effect::ReadLease { run }
            | Effect::RegisterBrokers { run, .. }
            | Effect::RegisterWebhooks { run, .. }
            | Effect::ResolveChart { run, .. }
            | Effect::Restore { run, .. }
            | Effect::RestoreBundles { run, .. }
            | Effect::RunEnabledScript { run, .. }
            | Effect::SaveConfigValues { run, .. }
            | Effect::ServeWebhooks { run }
            | Effect::StorePackage { run, .. }
            | Effect::TestRelease { run, .. }
            | Effect::UninstallRelease { run, .. }
            | Effect::UpgradeRelease { run, .. }
            | Effect::WriteCredentials { run, .. }
            | Effect::WriteLease { run, .. } => {
                self.under_way.insert(*run);
            }
            Effect::StartMonitor { monitor, .. } => {
                self.unlisted.insert(*monitor);
            }
            Effect::StopMonitor { monitor } => {
                self.unlisted.remove(monitor);
            }
            Effect::SetSchedules { lines } => self.lines.clone_from(lines),
            Effect::Notify(notice) => self.noticed(notice),
            Effect::Abort(_)
            | Effect::Announce(_)
            | Effect::AnswerBroker { .. }
            | Effect::AnswerCommand { .. }
            | Effect::AnswerReview { .. }
            | Effect::AwaitReadiness { .. }
            | Effect::AwaitRepositoryKinds
            | Effect::AwaitSourceKinds
            | Effect::CancelRun { .. }
            | Effect::Exit
            | Effect::ForgetRelease { .. }
            | Effect::WatchChartMaps
            | Effect::WatchRelease { .. } => {}
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most notices say nothing that a test expects")]
    fn noticed(&mut self, notice: &Notice) {
        match notice {
            Notice::ConfigChecked { problems } => {
                self.record.failures.extend(problems.iter().map(|(_, failure)| failure.clone()));
            }
            Notice::DiscoveryFailed { failure } | Notice::WatchFailed { failure, .. } => {
                self.record.failures.push(failure.clone());
            }
            Notice::MetricsExported { operations, .. } => {
                self.record.metrics.extend(operations.iter().cloned());
            }
            Notice::ModulesDiscovered { modules } => self.modules = Arc::clone(modules),
            Notice::TaskFinished { failure: Some(failure), .. } => self.record.failures.push(failure.clone()),
            _ => {}
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each event")]
    fn answered(&mut self, event: &Event) {
        match event {
            Event::HookFinished { run, outcome, usage } => {
                self.under_way.remove(run);
                self.hooks_took += usage.map(|usage| usage.took).unwrap_or_default();
                let position = self.running.remove(run);
                if let Some(run) = position.and_then(|position| self.record.runs.get_mut(position)) {
                    run.outcome = Some(outcome.clone());
                }
            }
            Event::ScriptFinished { run, usage, .. } => {
                self.under_way.remove(run);
                self.hooks_took += usage.map(|usage| usage.took).unwrap_or_default();
            }
            Event::BrokersRegistered { run, .. }
            | Event::BundlesDropped { run, .. }
            | Event::BundlesKept { run, .. }
            | Event::BundlesRestored { run, .. }
            | Event::ChartResolved { run, .. }
            | Event::ConfigSaved { run, .. }
            | Event::CredentialsWritten { run, .. }
            | Event::CrdsEnsured { run, .. }
            | Event::IndexFetched { run, .. }
            | Event::InstancesKept { run, .. }
            | Event::InstancesRead { run, .. }
            | Event::LeaseRead { run, .. }
            | Event::LeaseWritten { run, .. }
            | Event::ModuleLoaded { run, .. }
            | Event::ModulesLoaded { run, .. }
            | Event::ObjectMended { run, .. }
            | Event::ReleaseTested { run, .. }
            | Event::ObjectsPatched { run, .. }
            | Event::PackagePinned { run, .. }
            | Event::PackageStored { run, .. }
            | Event::ReleaseFinished { run, .. }
            | Event::ReleasesListed { run, .. }
            | Event::Restored { run, .. }
            | Event::SourceFetched { run, .. }
            | Event::WebhooksRegistered { run, .. }
            | Event::WebhooksServed { run, .. } => {
                self.under_way.remove(run);
            }
            Event::Listed { lists } => {
                for (monitor, _) in lists {
                    self.unlisted.remove(monitor);
                }
            }
            Event::KindVanished { monitor, .. } | Event::WatchFailed { monitor, .. } => {
                self.unlisted.remove(monitor);
            }
            Event::BrokerAsked { .. }
            | Event::CatalogChanged { .. }
            | Event::CatalogRejected { .. }
            | Event::ChartMapsLost { .. }
            | Event::CommandAbandoned { .. }
            | Event::Commanded { .. }
            | Event::ConfigChanged { .. }
            | Event::ConfigRejected { .. }
            | Event::CronFired { .. }
            | Event::RepositoryKindsServed
            | Event::SourceKindsServed
            | Event::KeyRequested { .. }
            | Event::KindAppeared { .. }
            | Event::KindIsClusterWide { .. }
            | Event::NamespaceListed { .. }
            | Event::ObjectChanged { .. }
            | Event::OwnWatchChanged { .. }
            | Event::ReleaseDrifted { .. }
            | Event::ReadinessChanged { .. }
            | Event::ReleaseUnwatched { .. }
            | Event::ReleaseWaits { .. }
            | Event::ReviewAbandoned { .. }
            | Event::ReviewRequested { .. }
            | Event::WebhookCertificateKept { .. }
            | Event::WebhookCertificateRenewed { .. }
            | Event::ShutdownRequested
            | Event::Started
            | Event::MemoryChanged { .. }
            | Event::TimerFired
            | Event::WatchRestored { .. } => {}
        }
    }
}

/// Returns binding contexts in short: `beforeHelm`, `pods Added web/cart`.
fn summary(contexts: &RunContexts) -> String {
    let one = |context: &BindingContext| match &context.trigger {
        Trigger::Lifecycle(_) | Trigger::Schedule => context.binding.to_string(),
        Trigger::Review { kind, .. } => format!("{} {kind}", context.binding),
        Trigger::Conversion { from, to, .. } => format!("{} Conversion {from} to {to}", context.binding),
        Trigger::Reconcile(one) => format!("{} {} {}", context.binding, one.type_name(), one.key),
        Trigger::Synchronization { .. } => format!("{} Synchronization", context.binding),
        Trigger::Event { event, key, .. } if key.namespace.is_empty() => {
            format!("{} {event} {}", context.binding, key.name)
        }
        Trigger::Event { event, key, .. } => {
            format!("{} {event} {}/{}", context.binding, key.namespace, key.name)
        }
    };
    contexts.contexts().iter().map(one).collect::<Vec<_>>().join(" + ")
}

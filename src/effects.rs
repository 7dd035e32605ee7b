//! Routes each effect to the adapter that carries it out.
//!
//! It is long because each effect that ends has its few lines here, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use engine::object_patch::ObjectPatch;
use engine::{
    Approvals, Basis, BrokerRegistration, ConfigObject, ConfigText, Digest, Effect, Event, Failure,
    FailureKind, IndexRequest, LeaseRecord, Module, ModuleName, Notice, PatchAuthor, Pin, Pins, Registry,
    ReleaseName, ReleaseTarget, ResolveRequest, Restored, RunId, ShortMemory, SourceKey, SourceSpec,
    StoreError, StoreRequest, TestRequest, ValuesInput, WebhookRegistration, WrittenVersions,
};
use futures::FutureExt;
use tokio::sync::{Notify, oneshot};

use crate::broker::Broker;
use crate::driver::{Effects, Inbox};
use crate::helm::{Cancellation, CredentialsRun, Listener, ReleaseRun, ReleaseTargets};
use crate::hook::{HookRun, HookRunner, ScriptRun};
use crate::kube::{ConfigSources, EventRecorder, Monitors, Patcher};
use crate::lasting_task;
use crate::lease::LeaseObject;
use crate::load::Loader;
use crate::process::{MemoryLimit, memory};
use crate::repository::Repositories;
use crate::schedule::Clock;
use crate::source::Sources;
use crate::telemetry::Telemetry;
use crate::webhook::Webhooks;

/// All adapters of a running operator.
pub struct Adapters {
    /// Reads modules from files.
    pub loader: Arc<Loader>,
    /// Runs hooks and scripts.
    pub hooks: Arc<dyn HookRunner>,
    /// Write the ConfigMap and the Secret over it.
    pub config: ConfigSources,
    /// Writes Kubernetes Events.
    pub events: EventRecorder,
    /// Installs, upgrades and removes releases.
    pub helm: Arc<ReleaseTargets>,
    /// Fetches bundles of modules and keeps them.
    pub sources: Arc<Sources>,
    /// Fetches charts and keeps them.
    pub repositories: Arc<Repositories>,
    /// Watches objects.
    pub monitors: Monitors,
    /// Changes objects for hooks.
    pub patcher: Arc<Patcher>,
    /// Reports when crontab lines are due.
    pub clock: Clock,
    /// Reads and writes the Lease, if there is one.
    pub lease: Option<Arc<LeaseObject>>,
    /// Takes reviews of the API server, if hooks may answer them.
    pub webhooks: Option<Arc<Webhooks>>,
    /// Answers platforms, if they may ask.
    pub broker: Option<Arc<Broker>>,
    /// Hears of each decision of the engine, where somebody waits for one.
    pub decided: Option<Arc<Notify>>,
    /// Writes logs and metrics.
    pub telemetry: Arc<Telemetry>,
    /// What runs and can be cancelled.
    pub running: Running,
    /// The memory of the container, if it has a limit.
    pub memory: Option<MemoryGauge>,
}

/// Tells the engine when memory becomes short, and when it is not short any more.
#[derive(Debug)]
pub struct MemoryGauge {
    limit: MemoryLimit,
    was_short: bool,
    looked_at: Option<Instant>,
}

/// For how long what was seen of the memory counts: a flood of events must not look for each of them.
const LOOK_COUNTS: Duration = Duration::from_millis(10);

impl MemoryGauge {
    /// Returns one for the memory of this process; `None` if that has no limit.
    pub fn of_process() -> Option<Self> {
        Some(Self { limit: MemoryLimit::of_process()?, was_short: false, looked_at: None })
    }

    /// Looks at the memory, unless that was done a moment ago. Returns what is new.
    fn look(&mut self) -> Option<Event> {
        if self.looked_at.is_some_and(|looked_at| looked_at.elapsed() < LOOK_COUNTS) {
            return None;
        }
        self.looked_at = Some(Instant::now());
        // A group that can't be read any more says nothing.
        let used = self.limit.used().ok()?;
        let limit = self.limit.limit();
        let is_short = ShortMemory::of(used, limit).is_some();
        if std::mem::replace(&mut self.was_short, is_short) == is_short {
            return None;
        }
        let [used_mib, limit_mib] = [used, limit].map(|bytes| bytes >> 20);
        if is_short {
            tracing::warn!(
                "memory is short: {used_mib} of {limit_mib} MiB are used; hooks run one at a time"
            );
        } else {
            tracing::info!("memory is not short any more: {used_mib} of {limit_mib} MiB are used");
        }
        Some(Event::MemoryChanged { used, limit })
    }
}

/// The processes and changes of releases that can be cancelled.
#[derive(Clone, Debug, Default)]
pub struct Running(Arc<Mutex<BTreeMap<RunId, oneshot::Sender<()>>>>);

impl Running {
    fn add(&self, run: RunId) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run, sender);
        receiver
    }

    fn remove(&self, run: RunId) -> Option<oneshot::Sender<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&run)
    }
}

/// Returns who tells the engine what the work on a release waits for.
fn tells(run: RunId, inbox: &Inbox) -> Listener {
    let inbox = inbox.clone();
    Arc::new(move |what| {
        let inbox = inbox.clone();
        Box::pin(async move {
            inbox.event(Event::ReleaseWaits { run, what }).await;
        })
    })
}

/// Answers with what `work` returns, or with `failed` when it panics: a defect of one
/// adapter is a failure of one run.
fn spawn(
    inbox: &Inbox,
    work: impl Future<Output = Event> + Send + 'static,
    failed: impl FnOnce(Failure) -> Event + Send + 'static,
) {
    let inbox = inbox.clone();
    tokio::spawn(async move {
        let event = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| {
            let text = lasting_task::text(panic.as_ref());
            failed(Failure::new(FailureKind::Bug, format!("a defect of the operator: {text}")))
        });
        inbox.answer(event);
    });
}

impl Effects for Adapters {
    fn look(&mut self) -> Option<Event> {
        self.memory.as_mut()?.look()
    }

    fn observe_decision(&mut self, took: Duration, effects: &[Effect]) {
        self.telemetry.decided(took, effects);
        if let Some(decided) = &self.decided {
            decided.notify_one();
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each effect")]
    fn begin(&mut self, effect: Effect, inbox: &Inbox) {
        match effect {
            Effect::Announce(announcement) => self.events.record(announcement),
            // The driver itself answers commands and ends.
            Effect::Abort(_) | Effect::AnswerCommand { .. } | Effect::Exit => {}
            Effect::AnswerBroker { id, answer } => {
                self.broker.iter().for_each(|broker| broker.answer(id, answer.clone()));
            }
            Effect::AnswerReview { id, outcome } => {
                self.webhooks.iter().for_each(|webhooks| webhooks.answer(id, outcome.clone()));
            }
            Effect::AwaitRepositoryKinds => self.monitors.await_repository_kinds(inbox),
            Effect::AwaitSourceKinds => self.monitors.await_source_kinds(inbox),
            Effect::CancelRun { run } => {
                if let Some(cancel) = self.running.remove(run) {
                    let _ = cancel.send(());
                }
            }
            Effect::DropBundles { run, registry, others } => {
                self.drop_bundles(run, (registry, others), inbox);
            }
            Effect::FetchIndex { run, request } => self.fetch_index(run, *request, inbox),
            Effect::FetchSource { run, source, spec, is_refresh, approvals } => {
                self.fetch((run, source, spec), (is_refresh, approvals), inbox);
            }
            Effect::RestoreBundles { run, digests } => self.restore_bundles(run, digests, inbox),
            Effect::KeepBundles { run, registry, lost } => self.keep_bundles(run, (registry, lost), inbox),
            Effect::LoadModules { run, registry, lost } => self.load_modules(run, (registry, lost), inbox),
            Effect::KeepInstances { run, text } => self.keep_instances(run, text, inbox),
            Effect::EnsureCrds { run, module } => self.ensure_crds(run, module, inbox),
            Effect::ForgetRelease { module, target } => self.helm.forget(&target, &module),
            Effect::ListReleases { run, targets } => self.list_releases(run, targets, inbox),
            Effect::LoadModule { run, module } => self.load_module(run, module, inbox),
            Effect::MendObject { run, module, object, target } => {
                self.mend_object(run, (module, target), object, inbox);
            }
            Effect::Notify(notice) => self.notify(notice),
            Effect::PatchObjects { run, author, patches } => self.patch_objects(run, author, patches, inbox),
            Effect::Restore { run, known, has_pins } => self.restore(run, (known, has_pins), inbox),
            Effect::ReadInstances { run } => self.read_instances(run, inbox),
            Effect::ReadLease { run } => self.read_lease(run, inbox),
            Effect::RegisterBrokers { run, registration } => self.register_brokers(run, registration, inbox),
            Effect::RegisterWebhooks { run, registration } => {
                self.register_webhooks(run, registration, inbox);
            }
            Effect::PinPackage { run, module, pin } => self.pin_package(run, module, pin, inbox),
            Effect::ResolveChart { run, request } => self.resolve_chart(run, *request, inbox),
            Effect::RunEnabledScript { run, module, values, timeout } => {
                self.run_script(run, ScriptRun { module, values, timeout }, inbox);
            }
            Effect::RunHook { run, hook, contexts, values, timeout, labels } => {
                self.run_hook(run, HookRun { hook, contexts, values, timeout, labels }, inbox);
            }
            Effect::SaveConfigValues { run, object, key, text, basis } => {
                self.save_config(run, (object, key), text, basis, inbox);
            }
            Effect::ServeWebhooks { run } => self.serve_webhooks(run, inbox),
            Effect::SetSchedules { lines } => self.clock.set(lines, inbox),
            Effect::StartMonitor { monitor, spec } => self.monitors.start(monitor, &spec, inbox),
            Effect::StopMonitor { monitor } => self.monitors.stop(monitor),
            Effect::StorePackage { run, request } => self.store_package(run, *request, inbox),
            Effect::TestRelease { run, module, target, request } => {
                self.test_release(run, (module, target), request, inbox);
            }
            Effect::UninstallRelease { run, release, target } => self.uninstall(run, release, target, inbox),
            Effect::UpgradeRelease { run, module, values, maintenance, source, target, is_recorded } => {
                self.upgrade(run, (module, target), values, (maintenance, source, is_recorded), inbox);
            }
            Effect::WatchChartMaps => self.repositories.watch_maps(inbox),
            Effect::WatchRelease { module, target, drift } => {
                self.helm.watch(&target, module, drift, inbox);
            }
            Effect::AwaitReadiness { run, module, target } => {
                self.helm.await_readiness(&target, (run, module), inbox);
            }
            Effect::WriteCredentials { run, module, template, values, revision, target } => {
                self.write_credentials(run, (module, target), (template, values, revision), inbox);
            }
            Effect::WriteLease { run, record, exists, acts_for } => {
                self.write_lease(run, (*record, exists), acts_for, inbox);
            }
        }
    }
}

impl Adapters {
    fn run_hook(&self, run: RunId, hook: HookRun, inbox: &Inbox) {
        let (hooks, running, cancel) = (Arc::clone(&self.hooks), self.running.clone(), self.running.add(run));
        let work = async move {
            let (outcome, usage) = hooks.run(hook, cancel).await;
            running.remove(run);
            Event::HookFinished { run, outcome, usage }
        };
        spawn(inbox, work, move |failure| Event::HookFinished { run, outcome: Err(failure), usage: None });
    }

    fn run_script(&self, run: RunId, script: ScriptRun, inbox: &Inbox) {
        let (hooks, running, cancel) = (Arc::clone(&self.hooks), self.running.clone(), self.running.add(run));
        let work = async move {
            let (outcome, usage) = hooks.run_script(script, cancel).await;
            running.remove(run);
            Event::ScriptFinished { run, outcome, usage }
        };
        spawn(inbox, work, move |failure| Event::ScriptFinished { run, outcome: Err(failure), usage: None });
    }

    fn notify(&self, notice: Notice) {
        if let Notice::ConvergeStarted { .. }
        | Notice::ConvergeFinished { .. }
        | Notice::ElectionChanged { .. }
        | Notice::ScriptsAskedAgain { .. } = notice
        {
            // What the start needed, or the charts and releases, is not needed any more.
            tokio::task::spawn_blocking(memory::give_back);
        }
        self.telemetry.take(notice);
    }

    fn load_module(&self, run: RunId, module: ModuleName, inbox: &Inbox) {
        let loader = Arc::clone(&self.loader);
        let work = async move { Event::ModuleLoaded { run, outcome: loader.load_module(&module).await } };
        spawn(inbox, work, move |failure| Event::ModuleLoaded { run, outcome: Err(failure) });
    }

    /// Makes the bundles directory show these modules, and loads all files again.
    fn load_modules(&self, run: RunId, (registry, lost): (Arc<Registry>, Vec<Digest>), inbox: &Inbox) {
        let (loader, sources) = (Arc::clone(&self.loader), Arc::clone(&self.sources));
        let work = async move {
            let outcome = match sources.link(registry.links(&lost.into_iter().collect())).await {
                Ok(()) => loader.reload().await.map_err(|error| Failure::of(FailureKind::Files, &error)),
                Err(failure) => Err(failure),
            };
            Event::ModulesLoaded { run, outcome }
        };
        spawn(inbox, work, move |failure| Event::ModulesLoaded { run, outcome: Err(failure) });
    }

    fn fetch(
        &self,
        (run, source, spec): (RunId, SourceKey, Arc<SourceSpec>),
        (is_refresh, approvals): (bool, Arc<Approvals>),
        inbox: &Inbox,
    ) {
        let (sources, running) = (Arc::clone(&self.sources), self.running.clone());
        let cancel = self.running.add(run);
        let work = async move {
            let outcome = tokio::select! {
                outcome = sources.fetch_with(&source, &spec, (is_refresh, &approvals)) => outcome,
                Ok(()) = cancel => {
                    Err(Failure::new(FailureKind::Cancelled, format!("{source} is not fetched any more")))
                }
            };
            running.remove(run);
            Event::SourceFetched { run, outcome }
        };
        spawn(inbox, work, move |failure| Event::SourceFetched { run, outcome: Err(failure) });
    }

    /// Answers with what `work` returns, or that it was cancelled.
    fn cancellable<T: Send + 'static>(
        &self,
        run: RunId,
        inbox: &Inbox,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
        event: fn(RunId, Result<T, Failure>) -> Event,
    ) {
        let (running, cancel) = (self.running.clone(), self.running.add(run));
        let work = async move {
            let outcome = tokio::select! {
                outcome = work => outcome,
                Ok(()) = cancel => Err(Failure::new(FailureKind::Cancelled, "nobody asks for it any more")),
            };
            running.remove(run);
            event(run, outcome)
        };
        spawn(inbox, work, move |failure| event(run, Err(failure)));
    }

    fn fetch_index(&self, run: RunId, request: IndexRequest, inbox: &Inbox) {
        let repositories = Arc::clone(&self.repositories);
        let work = async move { repositories.fetch_index(&request).await };
        self.cancellable(run, inbox, work, |run, outcome| Event::IndexFetched { run, outcome });
    }

    fn resolve_chart(&self, run: RunId, request: ResolveRequest, inbox: &Inbox) {
        let repositories = Arc::clone(&self.repositories);
        let work = async move { repositories.resolve(&request).await };
        self.cancellable(run, inbox, work, |run, outcome| Event::ChartResolved { run, outcome });
    }

    fn store_package(&self, run: RunId, request: StoreRequest, inbox: &Inbox) {
        let repositories = Arc::clone(&self.repositories);
        let work = async move { repositories.store(&request).await };
        self.cancellable(run, inbox, work, |run, outcome| Event::PackageStored { run, outcome });
    }

    fn pin_package(&self, run: RunId, module: ModuleName, pin: Option<Box<Pin>>, inbox: &Inbox) {
        let repositories = Arc::clone(&self.repositories);
        let work = async move {
            Event::PackagePinned { run, outcome: repositories.pin(&module, pin.as_deref()).await }
        };
        spawn(inbox, work, move |failure| Event::PackagePinned { run, outcome: Err(failure) });
    }

    fn keep_bundles(&self, run: RunId, (registry, lost): (Arc<Registry>, Vec<Digest>), inbox: &Inbox) {
        let sources = Arc::clone(&self.sources);
        let work = async move { Event::BundlesKept { run, outcome: sources.keep(&registry, &lost).await } };
        let failed = move |failure| Event::BundlesKept { run, outcome: Err(StoreError::Registry(failure)) };
        spawn(inbox, work, failed);
    }

    fn restore_bundles(&self, run: RunId, digests: Vec<Digest>, inbox: &Inbox) {
        let sources = Arc::clone(&self.sources);
        let all: BTreeSet<Digest> = digests.iter().cloned().collect();
        let work = async move {
            let problems = sources.restore_bundles(digests).await;
            for (digest, failure) in &problems {
                tracing::warn!(error = %failure, "bundle {digest} can't be restored");
            }
            let lost = problems.into_iter().map(|(digest, _)| digest).collect();
            Event::BundlesRestored { run, lost }
        };
        spawn(inbox, work, move |_| Event::BundlesRestored { run, lost: all });
    }

    fn drop_bundles(&self, run: RunId, (registry, others): (Arc<Registry>, Vec<Digest>), inbox: &Inbox) {
        let sources = Arc::clone(&self.sources);
        let work = async move {
            Event::BundlesDropped { run, outcome: sources.drop_bundles(&registry, &others).await }
        };
        spawn(inbox, work, move |failure| Event::BundlesDropped { run, outcome: Err(failure) });
    }

    fn save_config(
        &self,
        run: RunId,
        (object, key): (ConfigObject, String),
        text: Option<ConfigText>,
        basis: Basis,
        inbox: &Inbox,
    ) {
        let config = self.config.of(object).clone();
        let work = async move {
            let text = text.as_ref().map(|text| text.0.as_str());
            Event::ConfigSaved { run, outcome: config.save(&key, text, &basis).await }
        };
        spawn(inbox, work, move |failure| Event::ConfigSaved { run, outcome: Err(failure) });
    }

    fn patch_objects(&self, run: RunId, author: PatchAuthor, patches: Arc<[ObjectPatch]>, inbox: &Inbox) {
        let writer = Arc::clone(&self.patcher);
        let work =
            async move { Event::ObjectsPatched { run, outcome: writer.apply(&author, &patches).await } };
        spawn(inbox, work, move |failure| Event::ObjectsPatched { run, outcome: Err(failure) });
    }

    fn upgrade(
        &self,
        run: RunId,
        (module, target): (Arc<Module>, ReleaseTarget),
        values: ValuesInput,
        (maintenance, source, is_recorded): (bool, Option<SourceKey>, bool),
        inbox: &Inbox,
    ) {
        let (helm, running, cancel) = (Arc::clone(&self.helm), self.running.clone(), self.running.add(run));
        let listener = tells(run, inbox);
        let work = async move {
            let cancellation = Cancellation::on(cancel).telling(listener);
            let source = source.as_ref();
            let release = ReleaseRun { module: &module, values: &values, maintenance, source, is_recorded };
            let outcome = helm.upgrade(&target, release, &cancellation).await;
            running.remove(run);
            Event::ReleaseFinished { run, outcome }
        };
        spawn(inbox, work, move |failure| Event::ReleaseFinished { run, outcome: Err(failure) });
    }

    fn write_credentials(
        &self,
        run: RunId,
        (module, target): (Arc<Module>, ReleaseTarget),
        (template, values, revision): (Option<Arc<str>>, ValuesInput, u32),
        inbox: &Inbox,
    ) {
        let helm = Arc::clone(&self.helm);
        let work = async move {
            let template = template.as_deref();
            let credentials = CredentialsRun { module: &module, template, values: &values, revision };
            Event::CredentialsWritten { run, outcome: helm.write_credentials(&target, credentials).await }
        };
        spawn(inbox, work, move |failure| Event::CredentialsWritten { run, outcome: Err(failure) });
    }

    fn uninstall(&self, run: RunId, release: ReleaseName, target: ReleaseTarget, inbox: &Inbox) {
        let (helm, running, cancel) = (Arc::clone(&self.helm), self.running.clone(), self.running.add(run));
        let listener = tells(run, inbox);
        let work = async move {
            let cancellation = Cancellation::on(cancel).telling(listener);
            let outcome = helm.uninstall(&target, &release, &cancellation).await;
            running.remove(run);
            Event::ReleaseFinished { run, outcome }
        };
        spawn(inbox, work, move |failure| Event::ReleaseFinished { run, outcome: Err(failure) });
    }

    fn test_release(
        &self,
        run: RunId,
        (module, target): (ModuleName, ReleaseTarget),
        request: TestRequest,
        inbox: &Inbox,
    ) {
        let (helm, running, cancel) = (Arc::clone(&self.helm), self.running.clone(), self.running.add(run));
        let work = async move {
            let outcome = helm.test(&target, &module, &request, &Cancellation::on(cancel)).await;
            running.remove(run);
            Event::ReleaseTested { run, outcome }
        };
        spawn(inbox, work, move |failure| Event::ReleaseTested { run, outcome: Err(failure) });
    }

    /// Reads what is kept of modules in the cluster. Files are read again only if others are registered than were known.
    fn restore(&self, run: RunId, (known, has_pins): (Arc<Registry>, bool), inbox: &Inbox) {
        let (sources, repositories) = (Arc::clone(&self.sources), Arc::clone(&self.repositories));
        let loader = Arc::clone(&self.loader);
        let work = async move {
            let reading = async || {
                let kept = sources.restore().await?;
                let pins = if has_pins { repositories.pins().await? } else { Pins::new() };
                let catalog = if kept.registry == *known {
                    None
                } else {
                    let files = loader.load().await;
                    Some(files.map_err(|error| Failure::of(FailureKind::Files, &error))?)
                };
                let lost = kept.problems.into_iter().map(|(digest, _)| digest).collect();
                Ok(Box::new(Restored { registry: kept.registry, lost, pins, catalog }))
            };
            Event::Restored { run, outcome: reading().await }
        };
        spawn(inbox, work, move |failure| Event::Restored { run, outcome: Err(failure) });
    }

    fn read_lease(&self, run: RunId, inbox: &Inbox) {
        let lease = self.lease.clone();
        let work = async move {
            let outcome = match lease {
                Some(lease) => lease.read().await,
                None => Err(no_lease()),
            };
            Event::LeaseRead { run, outcome }
        };
        spawn(inbox, work, move |failure| Event::LeaseRead { run, outcome: Err(failure) });
    }

    fn write_lease(
        &self,
        run: RunId,
        (record, exists): (LeaseRecord, bool),
        acts_for: Option<Duration>,
        inbox: &Inbox,
    ) {
        let lease = self.lease.clone();
        let work = async move {
            let outcome = match lease {
                Some(lease) => lease.write(&record, exists, acts_for).await,
                None => Err(no_lease()),
            };
            Event::LeaseWritten { run, outcome }
        };
        spawn(inbox, work, move |failure| Event::LeaseWritten { run, outcome: Err(failure) });
    }

    fn serve_webhooks(&self, run: RunId, inbox: &Inbox) {
        let (webhooks, events) = (self.webhooks.clone(), inbox.clone());
        let work = async move {
            let outcome = match webhooks {
                Some(webhooks) => webhooks.serve(&events).await,
                None => Err(no_webhooks()),
            };
            Event::WebhooksServed { run, outcome }
        };
        spawn(inbox, work, move |failure| Event::WebhooksServed { run, outcome: Err(failure) });
    }

    fn register_webhooks(&self, run: RunId, registration: Arc<WebhookRegistration>, inbox: &Inbox) {
        let webhooks = self.webhooks.clone();
        let work = async move {
            let (outcome, refusals, versions) = match webhooks {
                Some(webhooks) => webhooks.register(&registration).await,
                None => (Err(no_webhooks()), Vec::new(), WrittenVersions::default()),
            };
            Event::WebhooksRegistered { run, outcome, refusals, versions }
        };
        spawn(inbox, work, move |failure| Event::WebhooksRegistered {
            run,
            outcome: Err(failure),
            refusals: Vec::new(),
            versions: WrittenVersions::default(),
        });
    }

    fn read_instances(&self, run: RunId, inbox: &Inbox) {
        let broker = self.broker.clone();
        let work = async move {
            let outcome = match broker {
                Some(broker) => broker.instances().await,
                None => Err(no_broker()),
            };
            Event::InstancesRead { run, outcome }
        };
        spawn(inbox, work, move |failure| Event::InstancesRead { run, outcome: Err(failure) });
    }

    fn keep_instances(&self, run: RunId, text: ConfigText, inbox: &Inbox) {
        let broker = self.broker.clone();
        let work = async move {
            let outcome = match broker {
                Some(broker) => broker.keep(&text).await,
                None => Err(no_broker()),
            };
            Event::InstancesKept { run, outcome }
        };
        spawn(inbox, work, move |failure| Event::InstancesKept { run, outcome: Err(failure) });
    }

    fn register_brokers(&self, run: RunId, registration: Arc<BrokerRegistration>, inbox: &Inbox) {
        let broker = self.broker.clone();
        let work = async move {
            let outcome = match broker {
                Some(broker) => broker.register(&registration).await,
                None => Err(no_broker()),
            };
            Event::BrokersRegistered { run, outcome }
        };
        spawn(inbox, work, move |failure| Event::BrokersRegistered { run, outcome: Err(failure) });
    }

    fn list_releases(&self, run: RunId, targets: Vec<ReleaseTarget>, inbox: &Inbox) {
        let helm = Arc::clone(&self.helm);
        let work = async move { Event::ReleasesListed { run, outcome: helm.list(&targets).await } };
        spawn(inbox, work, move |failure| Event::ReleasesListed { run, outcome: Err(failure) });
    }

    fn mend_object(
        &self,
        run: RunId,
        (module, target): (ModuleName, ReleaseTarget),
        object: Arc<str>,
        inbox: &Inbox,
    ) {
        let helm = self.helm.of(&target);
        let work = async move { Event::ObjectMended { run, outcome: helm.mend(&module, &object).await } };
        spawn(inbox, work, move |failure| Event::ObjectMended { run, outcome: Err(failure) });
    }

    fn ensure_crds(&self, run: RunId, module: Arc<Module>, inbox: &Inbox) {
        let helm = Arc::clone(&self.helm);
        let work = async move { Event::CrdsEnsured { run, outcome: helm.ensure_crds(&module).await } };
        spawn(inbox, work, move |failure| Event::CrdsEnsured { run, outcome: Err(failure) });
    }
}

fn no_broker() -> Failure {
    Failure::new(FailureKind::Bug, "the broker is asked for, but it is switched off")
        .advise("report this together with the log of the last minute")
}

fn no_webhooks() -> Failure {
    Failure::new(FailureKind::Bug, "webhooks are asked for, but they are switched off")
}

fn no_lease() -> Failure {
    Failure::new(FailureKind::Bug, "the Lease is asked for, but there is no election")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use engine::hook::{HookKind, config};
    use engine::{Catalog, Config, Engine, Global, Hook, HookId, HookOutput, Scope};
    use tokio::sync::watch;

    use super::*;
    use crate::driver::{self, Stopped};

    /// Runs hooks by work of which the first has a defect.
    struct Defective {
        begun: Arc<AtomicUsize>,
        ran: Arc<Mutex<Vec<String>>>,
    }

    impl Effects for Defective {
        fn begin(&mut self, effect: Effect, inbox: &Inbox) {
            if let Effect::ListReleases { run, .. } = effect {
                inbox.answer(Event::ReleasesListed { run, outcome: Ok(Vec::new()) });
            } else if let Effect::RunHook { run, hook, .. } = effect {
                let (begun, ran) = (Arc::clone(&self.begun), Arc::clone(&self.ran));
                let work = async move {
                    let lines = ["a line"];
                    let line = lines[usize::from(begun.fetch_add(1, Ordering::SeqCst) == 0)];
                    ran.lock().unwrap().push(format!("{} wrote {line}", hook.id.name));
                    Event::HookFinished { run, outcome: Ok(HookOutput::default()), usage: None }
                };
                let failed = move |failure| Event::HookFinished { run, outcome: Err(failure), usage: None };
                spawn(inbox, work, failed);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn f_b13_a_panic_in_one_task_ends_neither_the_loop_nor_the_tasks_behind_it() {
        let hook = |name: &str, order: u32| {
            let text = format!("{{configVersion: v1, onStartup: {order}}}");
            let spec = config::parse(name.into(), HookKind::Global, &text).unwrap();
            let id = HookId { scope: Scope::Global, name: name.into() };
            Arc::new(Hook { id, path: name.into(), content: 1, launch: engine::Launch::default(), spec })
        };
        let hooks = vec![hook("first.sh", 1), hook("second.sh", 2)];
        let global = Arc::new(Global { hooks, ..Global::default() });
        let engine = Engine::new(Config::default(), Catalog { global, ..Catalog::default() });
        let ran = Arc::new(Mutex::new(Vec::new()));
        let effects = Defective { begun: Arc::default(), ran: Arc::clone(&ran) };
        let (inbox, questions, channels) = driver::channels();
        let (stop, shutdown) = watch::channel(false);
        let started = vec![Event::Started];
        let patience = Duration::from_secs(10);
        let running =
            tokio::spawn(driver::drive(engine, effects, (inbox, channels), started, shutdown, patience));
        while questions.view().await.unwrap().journal.is_empty() {
            tokio::task::yield_now().await;
        }
        let view = questions.view().await.unwrap();
        let failure = view.journal.last().unwrap().failure.clone().unwrap();
        assert_eq!(failure.kind, FailureKind::Bug);
        assert!(failure.message.contains("index out of bounds"), "{failure}");
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert!(questions.view().await.unwrap().converge.first_done);
        assert_eq!(*ran.lock().unwrap(), ["first.sh wrote a line", "second.sh wrote a line"]);
        stop.send_replace(true);
        assert_eq!(running.await.unwrap(), Stopped::AtRest);
    }
}

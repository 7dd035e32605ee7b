//! Wiring: builds the adapters and hands them to the driver. It decides nothing.
//!
//! It is long because each adapter is made here once, and nowhere else.

mod beginning;
mod broker;
mod election;
mod helm_command;
pub(crate) mod repositories;
pub(crate) mod sources;
mod surroundings;
pub(crate) mod user_values;
mod waiting;
pub(crate) mod webhooks;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use engine::{
    Catalog, Engine, Event, Failure, FailureKind, Module, OwnedReleases, ReleaseName, ReleaseTarget,
    ValuesInput,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use jq::Threads;
use kube::Client;
use thiserror::Error;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::cluster::{Access, ConnectError, Discovery, RateLimit, RequestMetrics, connect, server_host};
use crate::config::{self, Environment, Parameters, Settings};
use crate::driver::{self, Channels, Effects, Inbox, Questions, Stopped};
use crate::effects::{Adapters, MemoryGauge, Running};
use crate::fence::Fence;
use crate::helm::{self, ReleaseTargets};
use crate::hook::{HookRunner, Hooks, LogRules, Scratch, ScratchError};
use crate::http::{self, Releases};
use crate::kube::{ConfigSources, EventRecorder, Monitors, Patcher, WatchTiming, Written};
use crate::load::{self, LoadOptions, Loader};
use crate::process::{ChrootError, Chroots};
use crate::repository::Repositories;
use crate::schedule::Clock;
use crate::source::{self, FetchObservation, Sources};
use crate::telemetry::{Progress, Telemetry, log};
use crate::webhook;
use beginning::Beginning;
pub use surroundings::{Outcome, Surroundings};
use user_values::UserValues;

/// How long the Events about the last changes may take at the end, if there is as much time.
const LAST_EVENTS: Duration = Duration::from_secs(3);

/// What an operator uses of the machine that it runs on.
pub struct Host {
    /// Reads modules from files.
    pub loader: Arc<Loader>,
    /// Runs hooks and scripts.
    pub hooks: Arc<dyn HookRunner>,
    /// Runs filters.
    pub filters: Threads,
    /// Reports when crontab lines are due.
    pub clock: Clock,
    /// The memory of the container, if it has a limit.
    pub memory: Option<MemoryGauge>,
}

/// Why the machine can't be used as it should.
#[derive(Debug, Error)]
pub enum HostError {
    /// There is no directory for the files of hooks.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// Hooks can't run in chroots.
    #[error(transparent)]
    Chroot(#[from] ChrootError),
}

impl Host {
    /// Returns the files and the processes of this machine.
    ///
    /// # Errors
    ///
    /// When there is no directory for temporary files, or hooks of modules can't run in chroots.
    pub fn of_system(
        settings: &Settings,
        environment: &Environment,
        fence: &Fence,
    ) -> Result<Self, HostError> {
        let environment = variables(environment);
        let chroots = settings.shell_chroot_dir.as_deref().map(Chroots::new).transpose()?;
        let scratch = Arc::new(Scratch::open(settings.tmp_dir.as_deref(), settings.keep_tmp_files)?);
        let medium = if scratch.is_in_memory() { "in memory" } else { "on a disk" };
        tracing::info!("files of hooks are in {}, {medium}", scratch.path().display());
        let rules =
            LogRules { merge_json: settings.log_proxy_hook_json, show_values: settings.log_hook_values };
        Ok(Self {
            loader: Arc::new(Loader::new(load_options(settings, environment.clone(), chroots.clone()))),
            hooks: Arc::new(
                Hooks::new(scratch, environment, rules)
                    .behind(fence.clone())
                    .limited(settings.hook_limits)
                    .below(chroots),
            ),
            filters: Threads::default(),
            clock: Clock::default(),
            memory: MemoryGauge::of_process(),
        })
    }
}

/// Clients of one cluster with what measures their requests.
pub struct Clients {
    /// For the operator.
    pub client: Client,
    /// For what hooks write.
    pub patcher: Client,
    /// What measures the requests of both.
    pub request_metrics: [RequestMetrics; 2],
    /// The host of the API server.
    pub api_server: Option<String>,
}

/// Returns what measures the requests of the operator, and of what hooks write.
pub fn request_metrics() -> [RequestMetrics; 2] {
    [RequestMetrics::new("main"), RequestMetrics::new("object_patcher")]
}

/// Returns clients of the cluster that the settings lead to.
pub async fn clients(settings: &Settings, fence: &Fence) -> Result<Clients, ConnectError> {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let access = Access {
        kubeconfig: text(&settings.kube_config).map(PathBuf::from),
        context: text(&settings.kube_context),
        server: text(&settings.kube_server),
    };
    let request_metrics = request_metrics();
    let [main, hooks] = request_metrics.clone();
    let limit = RateLimit::new(settings.kube_qps, settings.kube_burst).with_metrics(main);
    let client = connect(&access, &limit, fence).await?;
    let limit = RateLimit::new(settings.patcher_qps, settings.patcher_burst).with_metrics(hooks);
    let patcher = connect(&access, &limit, fence).await?;
    let api_server = server_host(&access).await?;
    Ok(Clients { client, patcher, request_metrics, api_server })
}

/// Runs the operator until `shutdown` becomes true.
///
/// `listening` is called with the address of the HTTP server.
///
/// # Errors
///
/// Everything that makes a start impossible; nothing has been changed then.
pub async fn run(around: Surroundings, listening: impl FnOnce(SocketAddr)) -> anyhow::Result<Outcome> {
    let settings = &around.settings;
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    let operator = Operator::new(&around)?;
    if settings.helm_is_program {
        operator.parts.helm.set_command(helm_command::of(&around).await?);
    }
    let releases: Arc<dyn Releases> = Arc::new(ReleaseTexts(Arc::clone(&operator.parts.helm)));
    let (questions, parameters) = (operator.questions.clone(), operator.parameters.clone());
    let charts: Arc<dyn http::ChartArchives> =
        Arc::new(repositories::ChartsOfCluster(Arc::clone(&operator.parts.repositories)));
    let sources: Arc<dyn http::SourcePlans> = Arc::new(sources::PlansOfSources {
        sources: Arc::clone(&operator.parts.sources),
        loader: Loader::new(load_options(settings, variables(&around.environment), None)),
    });
    let asked = http::DebugState { questions, releases, sources, charts, parameters, shows_secrets: true };
    let served = http::serve(settings, &asked, &operator.parts.telemetry, around.any_port).await?;
    listening(served.address);
    let outcome = load_and_operate(&around, operator).await;
    served.close();
    outcome
}

/// Takes back what an operator with these settings told the API server of webhooks. It needs no operator that runs.
///
/// # Errors
///
/// When not everything could be taken back: the API server goes on to ask then.
pub(crate) async fn uninstall_webhooks(settings: &Settings) -> anyhow::Result<Outcome> {
    let Clients { client, .. } = clients(settings, &Fence::none()).await?;
    let uninstalled = webhook::uninstall(client, &webhooks::options(settings)).await;
    uninstalled.map_err(|failure| anyhow::anyhow!("{failure}"))?;
    tracing::info!("the API server asks no hook any more");
    Ok(Outcome::Done)
}

/// Loads the modules from their files, and runs the operator with them.
async fn load_and_operate(around: &Surroundings, operator: Operator) -> anyhow::Result<Outcome> {
    let settings = &around.settings;
    let host = Host::of_system(settings, &around.environment, &around.fence)?;
    let mut shutdown = around.shutdown.clone();
    operator.channels.1.say("it reads its modules and hooks".to_owned());
    let catalog = tokio::select! {
        files = host.loader.load() => files.context("the modules can't be loaded")?,
        // A hook that takes long to answer --config must not keep the end waiting.
        _ = shutdown.wait_for(|requested| *requested) => return Ok(Outcome::Done),
    };
    Box::pin(operator.operate(around, host, catalog, |adapters| adapters)).await
}

/// Passes on to the engine whether the watches work that no binding asked for.
fn report_watches(discovery: &Discovery, inbox: &Inbox) {
    let inbox = inbox.clone();
    discovery.watch_reports().listen(move |watch, error| {
        let failure = error.map(|error| Failure::new(FailureKind::Cluster, error));
        inbox.answer(Event::OwnWatchChanged { watch: watch.to_owned(), failure });
    });
}

/// Reports all requests to telemetry.
fn measure(request_metrics: &[RequestMetrics; 2], telemetry: &Arc<Telemetry>) {
    for metrics in request_metrics {
        let telemetry = Arc::clone(telemetry);
        metrics.listen(move |observed| telemetry.request(&observed));
    }
}

/// What the socket shows of releases, as text.
struct ReleaseTexts(Arc<ReleaseTargets>);

impl Releases for ReleaseTexts {
    fn list(&self, targets: Vec<ReleaseTarget>) -> BoxFuture<'_, Result<String, Failure>> {
        let lines = |lists: Vec<OwnedReleases>| {
            let releases = lists.into_iter().flat_map(|list| list.outcome.unwrap_or_default());
            releases.map(|release| release.name.to_string()).collect::<Vec<_>>().join("\n")
        };
        async move { self.0.list(&targets).await.map(lines) }.boxed()
    }

    fn watched(&self) -> BTreeMap<String, Vec<String>> {
        self.0.watched()
    }

    fn history(&self, release: String, target: ReleaseTarget) -> BoxFuture<'_, Result<String, Failure>> {
        async move {
            let revisions = self.0.of(&target).history(&release).await?;
            let line = |revision: &helm::Revision| {
                let time = revision.changed.and_then(|seconds| Timestamp::from_second(seconds).ok());
                let time = time.map_or_else(|| "-".to_owned(), |time| time.to_string());
                format!("{:<4} {:<16} {time}", revision.version, revision.status.name())
            };
            Ok(revisions.iter().map(line).collect::<Vec<_>>().join("\n"))
        }
        .boxed()
    }

    fn render(
        &self,
        (module, target): (Arc<Module>, ReleaseTarget),
        values: ValuesInput,
    ) -> BoxFuture<'_, Result<String, Failure>> {
        async move {
            if !module.has_chart {
                return Ok(String::new());
            }
            Ok(self.0.of(&target).render(&module, &values).await?.manifest)
        }
        .boxed()
    }

    fn diff(
        &self,
        (module, target): (Arc<Module>, ReleaseTarget),
        values: ValuesInput,
        shows_secrets: bool,
    ) -> BoxFuture<'_, Result<String, Failure>> {
        async move {
            if !module.has_chart {
                return Ok(String::new());
            }
            self.0.of(&target).diff(&module, &values, shows_secrets).await
        }
        .boxed()
    }
}

/// What is made before the other adapters, since others ask it too.
pub(crate) struct Parts {
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) helm: Arc<ReleaseTargets>,
    pub(crate) discovery: Discovery,
    pub(crate) monitors: Monitors,
    pub(crate) sources: Arc<Sources>,
    pub(crate) repositories: Arc<Repositories>,
}

/// An operator that can be asked, and has not begun.
pub struct Operator {
    questions: Questions,
    parameters: Parameters,
    parts: Parts,
    channels: (Inbox, Channels),
}

impl Operator {
    /// Returns an operator on the cluster of `around`.
    ///
    /// # Errors
    ///
    /// When metrics can't have names with the prefix of the settings, or options of module sources can't be used.
    pub fn new(around: &Surroundings) -> anyhow::Result<Self> {
        let settings = &around.settings;
        let telemetry =
            Arc::new(Telemetry::new(&settings.metrics_prefix).context("--prometheus-metrics-prefix")?);
        measure(&around.request_metrics, &telemetry);
        let (inbox, questions, channels) = driver::channels();
        let discovery = Discovery::new(around.client.clone());
        let monitors = Monitors::new(around.client.clone(), discovery.clone());
        let timed = Arc::clone(&telemetry);
        monitors.timings().listen(move |monitor, timing| match timing {
            WatchTiming::Filtered(took) => timed.watch_filtered(monitor, took),
            WatchTiming::PassedOn(took) => timed.watch_passed_on(monitor, took),
        });
        report_watches(&discovery, &inbox);
        let helm = ReleaseTargets::new(around.client.clone(), discovery.clone(), helm_settings(settings));
        let sources = sources::of(around)?;
        let counted = Arc::clone(&telemetry);
        sources.metrics().listen(move |FetchObservation { scheme, outcome, took }| {
            counted.fetched(scheme, outcome, took);
        });
        let repositories = repositories::of(around, &sources)?;
        let counted = Arc::clone(&telemetry);
        repositories.metrics().listen(move |FetchObservation { scheme, outcome, took }| {
            counted.chart_fetched(scheme, outcome, took);
        });
        let (helm, sources, repositories) = (Arc::new(helm), Arc::new(sources), Arc::new(repositories));
        helm.set_archives(Arc::new(repositories::PackageArchives(Arc::clone(&repositories))));
        let parts = Parts { telemetry, helm, discovery, monitors, sources, repositories };
        let parameters = Parameters::new(settings.log_level, log::set_level);
        Ok(Self { questions, parameters, parts, channels: (inbox, channels) })
    }

    /// Returns how people and programs ask it.
    pub fn questions(&self) -> Questions {
        self.questions.clone()
    }

    /// Returns where its metrics are kept.
    pub fn telemetry(&self) -> Arc<Telemetry> {
        Arc::clone(&self.parts.telemetry)
    }

    /// Runs it with the modules of `catalog` until it is asked to end.
    ///
    /// `effects` returns what carries out effects, by means of the adapters.
    ///
    /// # Errors
    ///
    /// When files can't be watched.
    pub async fn operate<E: Effects>(
        self,
        around: &Surroundings,
        host: Host,
        catalog: Catalog,
        effects: impl FnOnce(Adapters) -> E,
    ) -> anyhow::Result<Outcome> {
        let settings = &around.settings;
        let Self { questions, parameters, parts, channels } = self;
        let telemetry = Arc::clone(&parts.telemetry);
        for warning in &catalog.warnings {
            tracing::warn!("{warning}");
        }
        telemetry.count_bindings(&catalog);
        let config = user_values::of(around);
        let reports = parts.discovery.watch_reports();
        let user_values = match UserValues::read(config.clone(), reports, around, &channels.1).await {
            Ok(user_values) => user_values,
            Err(outcome) => return Ok(outcome),
        };
        let remote = (&parts.discovery, &*parts.sources, &*parts.repositories);
        let before = (engine_config(settings), catalog);
        let Beginning { config: mut config_of_engine, catalog, registry, lost, pins } =
            match Beginning::restore(around, remote, before, &host.loader, &channels.1).await? {
                Ok(beginning) => beginning,
                Err(outcome) => return Ok(outcome),
            };
        let webhooks = webhooks::of(around).await?;
        config_of_engine.webhooks = webhooks.as_ref().map(|it| webhooks::config(settings, it));
        let broker = broker::of(around, &parts.telemetry).await?;
        config_of_engine.has_broker = broker.is_some();
        let answering = broker::Answering::begin(broker.as_ref(), &channels.0);
        let loader = Arc::clone(&host.loader);
        config_of_engine.election = election::config(settings);
        let lease = election::lease(around, config_of_engine.election.as_ref());
        let is_standby = matches!(settings.election.mode, config::ElectionMode::Standby);
        let decided = is_standby.then(|| Arc::new(Notify::new()));
        let resting = decided.clone().map(|decided| election::keep_standby_small(decided, &questions));
        let adapters = Adapters { lease, webhooks, broker, decided, ..wire(around, config, parts, host) };
        let last_events = adapters.events.written();
        let effects = effects(adapters);
        let [values, secret_values] = user_values.first.clone();
        let following = user_values.follow(&channels.0, &parameters);
        let files = settings.watch_files.then(|| load::watch(loader, &channels.0)).transpose()?;
        if around.once {
            // Each module has its try, also behind one that fails.
            config_of_engine.on_module_failure = engine::OnModuleFailure::Pass;
        }
        let engine = Engine::restored(config_of_engine, catalog, (&registry, &lost), pins);
        let shutdown = ending(around, &telemetry);
        let deadline = tokio::spawn(deadline(shutdown.clone(), settings.shutdown_timeout));
        let started = vec![values, secret_values, Event::Started];
        let stopped =
            driver::drive(engine, effects, channels, started, shutdown, settings.shutdown_timeout).await;
        following.iter().chain(&resting).for_each(JoinHandle::abort);
        drop(answering);
        drop(files);
        if let Stopped::Aborted(abort) = stopped {
            return election::aborted(around, abort);
        }
        write_last_events(last_events, deadline).await;
        if stopped == Stopped::Deadline {
            tracing::warn!("hooks were still running at the end; they are left behind");
        }
        let progress = telemetry.progress().borrow().clone();
        if !around.once || progress == Progress::Converged {
            return Ok(Outcome::Done);
        }
        if let Progress::Stuck(why) = progress {
            tracing::error!("not converged, and --once does not try for ever: {why}");
        }
        Ok(Outcome::NotConverged)
    }
}

/// Returns the adapters that act on the cluster of `around`.
pub(crate) fn wire(around: &Surroundings, config: ConfigSources, parts: Parts, host: Host) -> Adapters {
    let settings = &around.settings;
    let patcher = Patcher::new(around.patcher.clone(), parts.discovery, settings.patcher_timeout);
    Adapters {
        loader: host.loader,
        hooks: host.hooks,
        config,
        events: EventRecorder::start(around.client.clone(), &settings.namespace, &settings.config_map),
        helm: parts.helm,
        sources: parts.sources,
        repositories: parts.repositories,
        monitors: parts.monitors.on(host.filters.clone()),
        patcher: Arc::new(patcher.on(host.filters)),
        clock: host.clock,
        lease: None,
        webhooks: None,
        broker: None,
        decided: None,
        telemetry: parts.telemetry,
        running: Running::default(),
        memory: host.memory,
    }
}

/// Returns the environment as processes take it.
pub(crate) fn variables(environment: &Environment) -> Vec<(OsString, OsString)> {
    environment.variables().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Waits until the operator shall end, and returns when it has to have ended.
async fn deadline(mut shutdown: watch::Receiver<bool>, timeout: Duration) -> Instant {
    // Nobody who could ask for the end any more is as good as one who did.
    let _ = shutdown.wait_for(|requested| *requested).await;
    Instant::now() + timeout
}

/// Waits until the Events about the last changes are written, as long as there is time.
async fn write_last_events(written: Written, deadline: JoinHandle<Instant>) {
    let Ok(deadline) = deadline.await else { return };
    let deadline = deadline.min(Instant::now() + LAST_EVENTS);
    if tokio::time::timeout_at(deadline, written.all()).await.is_err() {
        tracing::warn!("Kubernetes Events about the last changes are lost: there was no time to write them");
    }
}

/// Returns what becomes true when the operator shall end: when it is asked to, or with `--once` when it has converged or can't.
fn ending(around: &Surroundings, telemetry: &Telemetry) -> watch::Receiver<bool> {
    if !around.once {
        return around.shutdown.clone();
    }
    let (end, ended) = watch::channel(false);
    let (mut shutdown, mut progress) = (around.shutdown.clone(), telemetry.progress());
    tokio::spawn(async move {
        tokio::select! {
            _ = shutdown.wait_for(|requested| *requested) => {}
            _ = progress.wait_for(|progress| *progress != Progress::Running) => {}
        }
        end.send_replace(true);
    });
    ended
}

pub(crate) fn load_options(
    settings: &Settings,
    environment: Vec<(OsString, OsString)>,
    chroots: Option<Chroots>,
) -> LoadOptions {
    LoadOptions {
        modules_dirs: settings.modules_dirs.clone(),
        bundles_dir: Some(source::active(&settings.sources.dir)),
        global_hooks_dir: settings.global_hooks_dir.clone(),
        global_hooks_optional: settings.global_hooks_optional,
        unnumbered_order: settings.unnumbered_order,
        crd_filters: settings.crd_filters.clone(),
        strict: settings.strict_values,
        environment,
        serves_webhooks: settings.webhooks.enabled,
        config_timeout: settings.hook_config_timeout,
        chroots,
    }
}

pub(crate) fn engine_config(settings: &Settings) -> engine::Config {
    engine::Config {
        namespace: settings.namespace.clone(),
        config_map: settings.config_map.clone(),
        config_secret: settings.config_secret.clone(),
        retry_delay: settings.retry_delay,
        retry_max_delay: settings.retry_max_delay,
        longest_rest: engine::Config::default().longest_rest,
        seed: rand::random(),
        on_module_failure: match settings.on_module_failure {
            config::OnModuleFailure::Block => engine::OnModuleFailure::Block,
            config::OnModuleFailure::Pass => engine::OnModuleFailure::Pass,
        },
        module_concurrency: settings.module_concurrency,
        script_concurrency: settings.enabled_concurrency,
        extenders: settings.extenders.clone(),
        max_hooks: settings.max_hooks,
        hook_timeout: settings.hook_timeout,
        script_timeout: settings.enabled_timeout,
        shutdown_timeout: settings.shutdown_timeout,
        ignore_release: Some(settings.helm_ignore_release.as_str())
            .filter(|name| !name.is_empty())
            .map(ReleaseName::from),
        started_at: Timestamp::now(),
        time_zone: jiff::tz::TimeZone::system(),
        quote_values: false,
        source_workers: settings.sources.workers,
        are_source_kinds_served: true,
        source_relist: settings.sources.relist,
        source_retry: settings.sources.retry,
        webhooks: None,
        has_broker: false,
        election: None,
        chart_workers: 0,
        are_repository_kinds_served: true,
    }
}

pub(crate) fn helm_settings(settings: &Settings) -> helm::Settings {
    helm::Settings {
        namespace: settings.namespace.clone(),
        config_map: settings.config_map.clone(),
        extra_labels: settings.extra_labels.clone(),
        history_max: settings.helm_history_max,
        timeout: settings.helm_timeout,
    }
}

//! Wiring: builds the adapters and hands them to the driver. It decides nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use engine::{Engine, Event, Failure, Module, ReleaseName, ValuesInput};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::watch;

use crate::cluster::{Access, ConnectError, Discovery, RateLimit, RequestMetrics, connect};
use crate::config::{self, Environment, Parameters, Settings};
use crate::driver::{self, Channels, Inbox, Stopped};
use crate::effects::{Adapters, Running};
use crate::helm::{self, Helm};
use crate::hook::{Hooks, LogRules, Scratch, ScratchError};
use crate::http::{self, Health, Releases};
use crate::kube::{ConfigSource, EventRecorder, Monitors, Patcher, WatchTiming};
use crate::load::{self, LoadOptions, Loader};
use crate::schedule::Clock;
use crate::telemetry::{Progress, Telemetry, log};

/// How long the operator waits before it asks an API server that was not there again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// How a run of the operator ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The API server was away and `--once` does not wait for it.
    ClusterAway,
    /// As asked for.
    Done,
    /// `--once` ended before all modules had converged: it was asked to end, or a whole round brought none further.
    NotConverged,
}

/// What a run needs.
pub struct Surroundings {
    /// The settings.
    pub settings: Settings,
    /// The environment of hooks.
    pub environment: Environment,
    /// The API server.
    pub client: Client,
    /// The API server for what hooks write.
    pub patcher: Client,
    /// What measures the requests of both.
    pub request_metrics: [RequestMetrics; 2],
    /// Whether to end when all modules have converged.
    pub once: bool,
    /// Whether a port that is taken is replaced by a free one.
    pub any_port: bool,
    /// Becomes true when the operator shall end.
    pub shutdown: watch::Receiver<bool>,
}

/// Clients of one cluster with what measures their requests.
pub struct Clients {
    /// For the operator.
    pub client: Client,
    /// For what hooks write.
    pub patcher: Client,
    /// What measures the requests of both.
    pub request_metrics: [RequestMetrics; 2],
}

/// Returns what measures the requests of the operator, and of what hooks write.
pub fn request_metrics() -> [RequestMetrics; 2] {
    [RequestMetrics::new("main"), RequestMetrics::new("object_patcher")]
}

/// Returns clients of the cluster that the settings lead to.
pub async fn clients(settings: &Settings) -> Result<Clients, ConnectError> {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let access = Access {
        kubeconfig: text(&settings.kube_config).map(PathBuf::from),
        context: text(&settings.kube_context),
        server: text(&settings.kube_server),
    };
    let request_metrics = request_metrics();
    let [main, hooks] = request_metrics.clone();
    let limit = RateLimit::new(settings.kube_qps, settings.kube_burst).with_metrics(main);
    let client = connect(&access, &limit).await?;
    let limit = RateLimit::new(settings.patcher_qps, settings.patcher_burst).with_metrics(hooks);
    let patcher = connect(&access, &limit).await?;
    Ok(Clients { client, patcher, request_metrics })
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
    let health = Health { watches: monitors.health() };
    let helm = Arc::new(Helm::new(around.client.clone(), discovery.clone(), helm_settings(settings)));
    let releases: Arc<dyn Releases> = Arc::new(ReleaseTexts(Arc::clone(&helm)));
    let parameters = Parameters::new(settings.log_level, log::set_level);
    let asked = http::DebugState { questions, releases, parameters: parameters.clone() };
    let served = http::serve(settings, &asked, &telemetry, health, around.any_port).await?;
    listening(served.address);
    let cluster = Cluster { helm, discovery, monitors, parameters };
    let outcome = operate(&around, &telemetry, cluster, (inbox, channels)).await;
    served.close();
    outcome
}

/// Reports all requests to telemetry.
fn measure(request_metrics: &[RequestMetrics; 2], telemetry: &Arc<Telemetry>) {
    for metrics in request_metrics {
        let telemetry = Arc::clone(telemetry);
        metrics.listen(move |observed| telemetry.request(&observed));
    }
}

/// What the socket shows of releases, as text.
struct ReleaseTexts(Arc<Helm>);

impl Releases for ReleaseTexts {
    fn list(&self) -> BoxFuture<'_, Result<String, Failure>> {
        let lines =
            |names: Vec<ReleaseName>| names.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        async move { self.0.list().await.map(lines) }.boxed()
    }

    fn watched(&self) -> BTreeMap<String, Vec<String>> {
        self.0.watched()
    }

    fn history(&self, release: String) -> BoxFuture<'_, Result<String, Failure>> {
        async move {
            let revisions = self.0.history(&release).await?;
            let line = |revision: &helm::Revision| {
                let time = revision.changed.and_then(|seconds| Timestamp::from_second(seconds).ok());
                let time = time.map_or_else(|| "-".to_owned(), |time| time.to_string());
                format!("{:<4} {:<16} {time}", revision.version, revision.status.name())
            };
            Ok(revisions.iter().map(line).collect::<Vec<_>>().join("\n"))
        }
        .boxed()
    }

    fn render(&self, module: Arc<Module>, values: ValuesInput) -> BoxFuture<'_, Result<String, Failure>> {
        async move {
            if !module.has_chart {
                return Ok(String::new());
            }
            Ok(self.0.render(&module, &values).await?.manifest)
        }
        .boxed()
    }

    fn diff(&self, module: Arc<Module>, values: ValuesInput) -> BoxFuture<'_, Result<String, Failure>> {
        async move {
            if !module.has_chart {
                return Ok(String::new());
            }
            self.0.diff(&module, &values).await
        }
        .boxed()
    }
}

/// What is bound to the cluster.
struct Cluster {
    helm: Arc<Helm>,
    discovery: Discovery,
    monitors: Monitors,
    parameters: Parameters,
}

async fn operate(
    around: &Surroundings,
    telemetry: &Arc<Telemetry>,
    cluster: Cluster,
    channels: (Inbox, Channels),
) -> anyhow::Result<Outcome> {
    let settings = &around.settings;
    let Cluster { helm, discovery, monitors, parameters } = cluster;
    let loader = Arc::new(Loader::new(load_options(settings, variables(&around.environment))));
    let mut shutdown = around.shutdown.clone();
    let catalog = tokio::select! {
        files = loader.load() => files.context("the modules can't be loaded")?,
        // A hook that takes long to answer --config must not keep the end waiting.
        _ = shutdown.wait_for(|requested| *requested) => return Ok(Outcome::Done),
    };
    for warning in &catalog.warnings {
        tracing::warn!("{warning}");
    }
    telemetry.count_bindings(&catalog);
    let source = ConfigSource::new(around.client.clone(), &settings.namespace, &settings.config_map);
    let config = match read_config(&source, around).await {
        Ok(config) => config,
        Err(outcome) => return Ok(outcome),
    };
    let watch_health = monitors.health();
    let parts =
        Parts { telemetry: Arc::clone(telemetry), loader: Arc::clone(&loader), helm, discovery, monitors };
    let adapters = wire(around, &source, parts)?;
    let watching = tokio::spawn(source.watch(channels.0.clone(), watch_health, parameters));
    let files = settings.watch_files.then(|| load::watch(loader, &channels.0)).transpose()?;
    let mut config_of_engine = engine_config(settings);
    if around.once {
        // Each module has its try, also behind one that fails.
        config_of_engine.on_module_failure = engine::OnModuleFailure::Pass;
    }
    let engine = Engine::new(config_of_engine, catalog);
    let shutdown = ending(around, telemetry);
    let started = vec![config, Event::Started];
    let stopped =
        driver::drive(engine, adapters, channels, started, shutdown, settings.shutdown_timeout).await;
    watching.abort();
    drop(files);
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

/// What is made before the other adapters, since others ask it too.
pub(crate) struct Parts {
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) loader: Arc<Loader>,
    pub(crate) helm: Arc<Helm>,
    pub(crate) discovery: Discovery,
    pub(crate) monitors: Monitors,
}

/// Returns the adapters that act on the cluster of `around`.
pub(crate) fn wire(
    around: &Surroundings,
    source: &ConfigSource,
    parts: Parts,
) -> Result<Adapters, ScratchError> {
    let settings = &around.settings;
    let scratch = Arc::new(Scratch::open(settings.tmp_dir.as_deref(), settings.keep_tmp_files)?);
    let rules = LogRules { merge_json: settings.log_proxy_hook_json, show_values: settings.log_hook_values };
    let hooks = Hooks::new(scratch, variables(&around.environment), rules);
    let patcher = Patcher::new(around.patcher.clone(), parts.discovery, settings.patcher_timeout);
    Ok(Adapters {
        loader: parts.loader,
        hooks: Arc::new(hooks),
        config: Arc::new(source.clone()),
        events: EventRecorder::start(
            around.client.clone(),
            &around.settings.namespace,
            &around.settings.config_map,
        ),
        helm: parts.helm,
        monitors: parts.monitors,
        patcher: Arc::new(patcher),
        clock: Clock::default(),
        telemetry: parts.telemetry,
        running: Running::default(),
    })
}

/// Returns the environment as processes take it.
pub(crate) fn variables(environment: &Environment) -> Vec<(OsString, OsString)> {
    environment.variables().map(|(name, value)| (name.clone(), value.clone())).collect()
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

/// Reads the ConfigMap. An API server that is away is waited for, except with `--once`.
async fn read_config(source: &ConfigSource, around: &Surroundings) -> Result<Event, Outcome> {
    let mut is_reported = false;
    let mut shutdown = around.shutdown.clone();
    loop {
        let failure = match source.read().await {
            Ok(config) => return Ok(config),
            Err(failure) => failure,
        };
        if around.once {
            tracing::error!(error = %failure, "the API server does not answer");
            return Err(Outcome::ClusterAway);
        }
        if !std::mem::replace(&mut is_reported, true) {
            tracing::error!(error = %failure, "the API server does not answer; it is asked again every second");
        }
        tokio::select! {
            () = tokio::time::sleep(ASK_AGAIN) => {}
            _ = shutdown.wait_for(|requested| *requested) => return Err(Outcome::Done),
        }
    }
}

pub(crate) fn load_options(settings: &Settings, environment: Vec<(OsString, OsString)>) -> LoadOptions {
    LoadOptions {
        modules_dirs: settings.modules_dirs.clone(),
        global_hooks_dir: settings.global_hooks_dir.clone(),
        unnumbered_order: settings.unnumbered_order,
        crd_filters: settings.crd_filters.clone(),
        strict: settings.strict_values,
        environment,
        config_timeout: settings.hook_config_timeout,
    }
}

pub(crate) fn engine_config(settings: &Settings) -> engine::Config {
    engine::Config {
        namespace: settings.namespace.clone(),
        config_map: settings.config_map.clone(),
        retry_delay: settings.retry_delay,
        retry_max_delay: settings.retry_max_delay,
        seed: rand::random(),
        on_module_failure: match settings.on_module_failure {
            config::OnModuleFailure::Block => engine::OnModuleFailure::Block,
            config::OnModuleFailure::Pass => engine::OnModuleFailure::Pass,
        },
        module_concurrency: settings.module_concurrency,
        max_hooks: settings.max_hooks,
        hook_timeout: settings.hook_timeout,
        script_timeout: settings.enabled_timeout,
        shutdown_timeout: settings.shutdown_timeout,
        ignore_release: Some(settings.helm_ignore_release.as_str())
            .filter(|name| !name.is_empty())
            .map(ReleaseName::from),
        quote_values: false,
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

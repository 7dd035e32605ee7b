//! Runs one test: starts a cluster and an operator, then does the steps.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow};
use apiserver::ApiServer;
use engine::{Catalog, Engine, Event, TaskType};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt};

use super::check::{Mismatch, Observation, mismatches, parsed_config};
use super::idle::IdleSignal;
use super::objects::Objects;
use super::recorder::{RecordedEffects, Recorder};
use super::selection::{Selection, Trigger, hooks};
use super::test_file::{Action, Step, Test};
use crate::app::{self, Host, Parts, Surroundings};
use crate::cluster::{Discovery, connect_in_process};
use crate::config::{Environment, Parameters, Settings};
use crate::dev;
use crate::driver::{self, Inbox, Questions};
use crate::effects::Adapters;
use crate::fence::Fence;
use crate::helm::ReleaseTargets;
use crate::kube::Monitors;
use crate::load::Loader;
use crate::telemetry::Telemetry;

/// How long hooks may run after the last step.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(6);

/// A test with all its inputs.
pub(super) struct Case<'a> {
    pub(super) test: &'a Test,
    pub(super) selection: &'a Selection,
    pub(super) loader: &'a Arc<Loader>,
    pub(super) settings: &'a Settings,
    pub(super) environment: &'a Environment,
    /// The directory for temporary files.
    pub(super) root: &'a Path,
}

/// The outcome of a test.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) mismatches: Vec<Mismatch>,
    pub(super) lines: Vec<String>,
    pub(super) hooks_took: Duration,
}

impl Outcome {
    /// Returns the outcome of a test that can't be run to its end.
    pub(super) fn impossible(pointer: &str, message: String) -> Self {
        Self { mismatches: vec![impossible(pointer, message)], ..Self::default() }
    }
}

fn impossible(pointer: &str, message: String) -> Mismatch {
    Mismatch { pointer: pointer.to_owned(), key: "error", message, actual: None }
}

/// Runs a test on this thread.
pub(super) fn run(case: Case<'_>) -> Outcome {
    let pointer = case.test.pointer.clone();
    let idle = Arc::new(IdleSignal::default());
    let sleeping = Arc::clone(&idle);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || sleeping.runtime_sleeps())
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Outcome::impossible(&pointer, error.to_string()),
    };
    let lines = Lines::default();
    let _listening = tracing::subscriber::set_default(tracing_subscriber::registry().with(lines.clone()));
    let outcome = runtime.block_on(async {
        let running = Running::start(case, idle, lines).await?;
        anyhow::Ok(running.play().await)
    });
    runtime.shutdown_background();
    outcome.unwrap_or_else(|error| Outcome::impossible(&pointer, format!("{error:#}")))
}

/// A test that runs.
struct Running<'a> {
    case: Case<'a>,
    idle: Arc<IdleSignal>,
    lines: Lines,
    recorder: Recorder,
    objects: Objects,
    helm: Arc<ReleaseTargets>,
    questions: Questions,
    inbox: Inbox,
    shutdown: watch::Sender<bool>,
    driving: JoinHandle<driver::Stopped>,
    server: ApiServer,
    _serving: apiserver::Serving,
    _files: tempfile::TempDir,
}

impl<'a> Running<'a> {
    /// Starts the API server, puts the objects of the test into it, and starts the operator.
    async fn start(case: Case<'a>, idle: Arc<IdleSignal>, lines: Lines) -> anyhow::Result<Self> {
        let files = tempfile::Builder::new().prefix("test-").tempdir_in(case.root)?;
        let server = ApiServer::builder().simulate(Duration::ZERO).build()?;
        let serving = server.serve(TcpListener::bind("127.0.0.1:0").await?)?;
        let kubeconfig = files.path().join("kubeconfig");
        std::fs::write(&kubeconfig, serving.kubeconfig())?;
        let mut settings = case.settings.clone();
        settings.tmp_dir = Some(files.path().join("tmp"));
        let client = connect_in_process(server.service(), &settings.namespace);
        let discovery = Discovery::new(client.clone());
        let objects = Objects {
            client: client.clone(),
            discovery: discovery.clone(),
            operator_namespace: settings.namespace.as_str().into(),
        };
        dev::create_namespace(&client, &settings).await?;
        let given = prepared(&objects, case.test, &case.selection.catalog).await;
        given.map_err(|error| anyhow!("the cluster of the test can't be prepared: {error}"))?;
        write_config(&client, &settings, &case.test.setup.config).await?;
        server.settled().await;
        let (shutdown, ended) = watch::channel(false);
        let around = Surroundings {
            environment: case.environment.clone().with("KUBECONFIG", kubeconfig),
            patcher: client.clone(),
            client,
            request_metrics: app::request_metrics(),
            fence: Fence::none(),
            api_server: None,
            once: false,
            any_port: true,
            shutdown: ended.clone(),
            settings,
        };
        let recorder = Recorder::default();
        let helm = Arc::new(ReleaseTargets::new(
            around.client.clone(),
            discovery.clone(),
            app::helm_settings(&around.settings),
        ));
        let parts = (discovery, Arc::clone(&helm), recorder.clone(), ended);
        let (inbox, questions, driving) = operate(around, &case, parts).await?;
        let recording = recorder.clone();
        let still = server.clone();
        idle.set_check(move || recording.is_idle() && still.is_still());
        Ok(Self {
            case,
            idle,
            lines,
            recorder,
            objects,
            helm,
            questions,
            inbox,
            shutdown,
            driving,
            server,
            _serving: serving,
            _files: files,
        })
    }

    /// Does all steps and ends the operator.
    async fn play(self) -> Outcome {
        let mut outcome = Outcome::default();
        for step in &self.case.test.steps {
            let begun = self.lines.len();
            let found = match self.step(step, begun).await {
                Ok(found) => found,
                Err(message) => vec![impossible(&step.pointer, message)],
            };
            let is_over = found.iter().any(|mismatch| mismatch.actual.is_none());
            outcome.mismatches.extend(found);
            if is_over {
                break;
            }
        }
        outcome.hooks_took = self.recorder.hooks_took();
        outcome.lines = self.lines.from(0);
        self.shutdown.send_replace(true);
        let _ = self.driving.await;
        outcome
    }

    async fn step(&self, step: &Step, begun: usize) -> Result<Vec<Mismatch>, String> {
        let (mut refused, mut converted) = (Vec::new(), Vec::new());
        match &step.action {
            Action::Admit(objects) => refused = self.objects.admit(objects).await?,
            Action::Convert(objects, to) => match self.server.convert(objects.clone(), to).await {
                Ok(objects) => converted = objects,
                Err(error) => refused.push(error.to_string()),
            },
            Action::Start => {
                self.rest().await?;
                // The runs of the start itself are recorded with those of the binding.
                match &self.case.selection.trigger {
                    Some(Trigger::Disable(key)) => {
                        let off = Map::from_iter([(format!("{key}Enabled"), Value::Bool(false))]);
                        self.configure(&off).await?;
                    }
                    Some(Trigger::Fire(line)) => self.fire(line).await?,
                    None => {}
                }
            }
            Action::Apply(objects) => self.objects.apply(objects).await?,
            Action::Config(config) => self.configure(config).await?,
            Action::Delete(references) => refused = self.objects.delete(references).await?,
            Action::Reconcile(object) => {
                let kind = self.case.selection.controlled(object)?;
                let before = self.objects.state(object).await?;
                self.objects.apply(std::slice::from_ref(object)).await?;
                let state = self.objects.state(object).await?;
                // No watch tells of what is as it was.
                if let Some((key, _)) = state.filter(|state| before.as_ref() == Some(state)) {
                    self.inbox.event(Event::KeyRequested { kind, key }).await;
                }
            }
            Action::Schedule(name) => self.fire(&self.case.selection.crontab(name)?).await?,
        }
        self.rest().await?;
        let observation = self.observation(step, begun).await?;
        if let Action::Reconcile(object) = &step.action {
            self.has_run(object, &observation).await?;
        }
        Ok(mismatches(step, &Observation { refused, converted, ..observation }))
    }

    /// Checks that a controller ran for an object, or failed: otherwise the step would test nothing.
    async fn has_run(&self, object: &Value, observation: &Observation) -> Result<(), String> {
        let record = &observation.record;
        if record.runs.iter().any(|run| run.is_reconciliation) || !record.failures.is_empty() {
            return Ok(());
        }
        let tasks = self.questions.view().await.map(|view| view.queues).unwrap_or_default();
        let tasks = tasks.into_iter().flat_map(|queue| queue.tasks);
        let waits = tasks.filter(|task| task.kind == TaskType::ReconcileRun).find_map(|task| task.waits_for);
        let why = waits.unwrap_or_else(|| "no binding selects it".to_owned());
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        Err(format!("the key of {kind} {name} did not run; it waits for: {why}"))
    }

    async fn configure(&self, config: &Map<String, Value>) -> Result<(), String> {
        let written = write_config(&self.objects.client, self.case.settings, config).await;
        written.map_err(|error| format!("the ConfigMap can't be written: {error:#}"))
    }

    async fn fire(&self, line: &engine::CronLine) -> Result<(), String> {
        if !self.recorder.is_scheduled(line) {
            return Err(format!("the schedule {line} is not active: its module is off or has not run"));
        }
        self.inbox.event(Event::CronFired { line: line.clone() }).await;
        Ok(())
    }

    /// Waits until the operator is idle.
    async fn rest(&self) -> Result<(), String> {
        let timeout = self.case.test.setup.timeout();
        tokio::time::timeout(timeout, self.idle.wait()).await.map_err(|_| {
            let running = self.recorder.running();
            let what = if running.is_empty() { "something".to_owned() } else { running.join(", ") };
            format!(
                "after {} s {what} was still at work (the key timeout sets the limit)",
                timeout.as_secs_f64()
            )
        })
    }

    /// Collects everything that the step has expectations about.
    async fn observation(&self, step: &Step, begun: usize) -> Result<Observation, String> {
        let list = |key: &str| step.expect.get(key).and_then(Value::as_array).into_iter().flatten();
        let text = |value: &Value, pointer: &str| {
            value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let mut objects = Vec::new();
        for object in list("objects") {
            let (name, namespace) = (text(object, "/metadata/name"), text(object, "/metadata/namespace"));
            objects.push(self.objects.find(object, &name, &namespace).await?.unwrap_or_default());
        }
        let mut present = Vec::new();
        for reference in list("absent") {
            let (name, namespace) = (text(reference, "/name"), text(reference, "/namespace"));
            if self.objects.find(reference, &name, &namespace).await?.is_some() {
                present.push(reference.clone());
            }
        }
        let catalog = &self.case.selection.catalog;
        let enabled = self.recorder.modules();
        let key = |name: &engine::ModuleName| catalog.module(name).map(|module| module.key.to_string());
        Ok(Observation {
            refused: Vec::new(),
            converted: Vec::new(),
            record: self.recorder.take(),
            lines: self.lines.from(begun),
            values: self.values().await,
            config: self.config().await?,
            enabled: enabled.iter().filter_map(|(name, on)| Some((key(name)?, Value::Bool(*on)))).collect(),
            objects,
            present,
            rendered: if step.is_open { self.rendered().await? } else { Vec::new() },
            names_hooks: hooks(catalog).count() > 1,
        })
    }

    /// Returns the rendered objects of the modules that are on.
    async fn rendered(&self) -> Result<Vec<Value>, String> {
        let mut rendered = Vec::new();
        for (name, _) in self.recorder.modules().iter().filter(|(_, on)| *on) {
            let Some(((module, target), input)) = self.questions.chart_input(name.clone()).await else {
                continue;
            };
            if module.has_chart {
                let manifest = self.helm.of(&target).render(&module, &input).await;
                let manifest = manifest.map_err(|failure| failure.to_string())?.manifest;
                let documents = values::yaml::parse_all(&manifest).map_err(|error| error.to_string())?;
                rendered.extend(documents.into_iter().filter(|document| !document.is_null()));
            }
        }
        Ok(rendered)
    }

    async fn values(&self) -> Value {
        let Some(inspection) = self.questions.inspect().await else { return Value::Null };
        let scopes = inspection.modules.into_values().chain([inspection.global]);
        scopes.map(|scope| (scope.key, Value::clone(&scope.values))).collect()
    }

    async fn config(&self) -> Result<Value, String> {
        let settings = self.case.settings;
        let api: Api<ConfigMap> = Api::namespaced(self.objects.client.clone(), &settings.namespace);
        let map = api.get_opt(&settings.config_map).await.map_err(|error| error.to_string())?;
        let data = map.and_then(|map| map.data).unwrap_or_default();
        Ok(parsed_config(&data.into_iter().map(|(key, text)| (key, text.into())).collect()))
    }
}

/// Applies the CRDs of the modules and the objects of the test to the cluster.
async fn prepared(objects: &Objects, test: &Test, catalog: &Catalog) -> Result<(), String> {
    let mut definitions = Vec::new();
    for file in catalog.modules.iter().flat_map(|module| &module.crds) {
        let yaml = std::fs::read_to_string(&**file).map_err(|error| format!("{file}: {error}"))?;
        let documents = values::yaml::parse_all(&yaml).map_err(|error| format!("{file}: {error}"))?;
        definitions.extend(documents.into_iter().filter(|document| !document.is_null()));
    }
    objects.apply(&definitions).await?;
    objects.discovery.refresh();
    objects.apply(&test.setup.objects).await
}

/// Sets keys of the ConfigMap; null removes one.
async fn write_config(
    client: &kube::Client,
    settings: &Settings,
    config: &Map<String, Value>,
) -> anyhow::Result<()> {
    if config.is_empty() {
        return Ok(());
    }
    let text = |value: &Value| match value {
        Value::Null | Value::String(_) => value.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            values::yaml::emit(value).into()
        }
    };
    let data: Map<String, Value> = config.iter().map(|(key, value)| (key.clone(), text(value))).collect();
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &settings.namespace);
    let patch = Patch::Merge(json!({ "data": data }));
    api.patch(&settings.config_map, &PatchParams::default(), &patch).await.context("config")?;
    Ok(())
}

/// Starts the operator as production does, with a recorder between engine and adapters.
async fn operate(
    around: Surroundings,
    case: &Case<'_>,
    (discovery, helm, recorder, ended): (Discovery, Arc<ReleaseTargets>, Recorder, watch::Receiver<bool>),
) -> anyhow::Result<(Inbox, Questions, JoinHandle<driver::Stopped>)> {
    let settings = &around.settings;
    let (inbox, questions, channels) = driver::channels();
    let sources = Arc::new(app::sources::of(&around)?);
    let parts = Parts {
        repositories: Arc::new(app::repositories::of(&around, &sources)?),
        telemetry: Arc::new(Telemetry::new(&settings.metrics_prefix)?),
        helm,
        monitors: Monitors::new(around.client.clone(), discovery.clone()),
        discovery,
        sources,
    };
    let config = app::user_values::of(&around);
    let (values, version) = config.config_map.read().await.map_err(|failure| anyhow!("{failure}"))?;
    let (secret_values, secret_version) =
        config.secret.read().await.map_err(|failure| anyhow!("{failure}"))?;
    let reports = parts.discovery.watch_reports();
    let host = Host {
        loader: Arc::clone(case.loader),
        ..Host::of_system(settings, &around.environment, &around.fence)?
    };
    let asks = hooks(&case.selection.catalog).any(|hook| hook.spec.has_webhooks());
    let webhooks = if asks { app::webhooks::of(&around).await? } else { None };
    let config_of_webhooks = webhooks.as_ref().map(|webhooks| app::webhooks::config(settings, webhooks));
    let inner = Adapters { webhooks, ..app::wire(&around, config.clone(), parts, host) };
    // The reader of failures wrote the values, so they are shown. Scripts run once, in their turn, as a test expects it.
    // Modules of tests are those of their files.
    let production = app::engine_config(settings);
    let rules = engine::Config {
        quote_values: true,
        script_concurrency: 1,
        // A step ends when nothing runs, and waits for no timer.
        longest_rest: Duration::ZERO,
        source_workers: 0,
        webhooks: config_of_webhooks,
        ..production
    };
    let engine = Engine::new(rules, case.selection.catalog.clone());
    let parameters = Parameters::new(settings.log_level, |_| {});
    for (source, version) in [(config.config_map, version), (config.secret, secret_version)] {
        tokio::spawn(source.feed_behind(version, &reports).follow(inbox.clone(), parameters.clone()));
    }
    let started = vec![values, secret_values, Event::Started];
    let effects = RecordedEffects { inner, recorder };
    let driving = tokio::spawn(driver::drive(
        engine,
        effects,
        (inbox.clone(), channels),
        started,
        ended,
        SHUTDOWN_TIMEOUT,
    ));
    Ok((inbox, questions, driving))
}

/// The lines that hooks print, captured from the log of this thread.
#[derive(Clone, Debug, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn from(&self, begun: usize) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().skip(begun).cloned().collect()
    }
}

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: LayerContext<'_, S>) -> bool {
        metadata.target() == "addon_operator::hook"
    }

    fn on_event(&self, event: &tracing::Event<'_>, _: LayerContext<'_, S>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message.0);
    }
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

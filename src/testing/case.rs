//! One test: a cluster, an operator, steps.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow};
use apiserver::ApiServer;
use engine::{Catalog, Engine, Event};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt};

use super::check::{Mismatch, Seen, mismatches, parsed_config};
use super::idle::Stillness;
use super::objects::Objects;
use super::recorder::{Recorded, Tape};
use super::selection::{Subject, Trigger, hooks};
use super::test_file::{Action, Step, Test};
use crate::app::{self, Parts, Surroundings};
use crate::cluster::{Discovery, connect_in_process};
use crate::config::{Environment, Parameters, Settings};
use crate::dev;
use crate::driver::{self, Inbox, Questions};
use crate::helm::Helm;
use crate::kube::{ConfigSource, Monitors};
use crate::load::Loader;
use crate::telemetry::Telemetry;

/// How long hooks have at the end of a test.
const PATIENCE: Duration = Duration::from_secs(6);

/// A test with all that it needs.
pub(super) struct Case<'a> {
    pub(super) test: &'a Test,
    pub(super) subject: &'a Subject,
    pub(super) loader: &'a Arc<Loader>,
    pub(super) settings: &'a Settings,
    pub(super) environment: &'a Environment,
    /// Where files may be written.
    pub(super) root: &'a Path,
}

/// What came of a test.
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
    let stillness = Arc::new(Stillness::default());
    let sleeping = Arc::clone(&stillness);
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
        let running = Running::start(case, stillness, lines).await?;
        anyhow::Ok(running.play().await)
    });
    runtime.shutdown_background();
    outcome.unwrap_or_else(|error| Outcome::impossible(&pointer, format!("{error:#}")))
}

/// A test that runs.
struct Running<'a> {
    case: Case<'a>,
    stillness: Arc<Stillness>,
    lines: Lines,
    tape: Tape,
    objects: Objects,
    helm: Arc<Helm>,
    questions: Questions,
    inbox: Inbox,
    shutdown: watch::Sender<bool>,
    driving: JoinHandle<driver::Stopped>,
    _serving: apiserver::Serving,
    _files: tempfile::TempDir,
}

impl<'a> Running<'a> {
    /// Starts the API server, puts the objects of the test into it, and starts the operator.
    async fn start(case: Case<'a>, stillness: Arc<Stillness>, lines: Lines) -> anyhow::Result<Self> {
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
        let given = prepared(&objects, case.test, &case.subject.catalog).await;
        given.map_err(|error| anyhow!("the cluster of the test can't be prepared: {error}"))?;
        write_config(&client, &settings, &case.test.config).await?;
        server.settled().await;
        let (shutdown, ended) = watch::channel(false);
        let around = Surroundings {
            environment: case.environment.clone().with("KUBECONFIG", kubeconfig),
            patcher: client.clone(),
            client,
            meters: app::meters(),
            once: false,
            any_port: true,
            shutdown: ended.clone(),
            settings,
        };
        let tape = Tape::default();
        let helm = Arc::new(Helm::new(
            around.client.clone(),
            discovery.clone(),
            app::helm_settings(&around.settings),
        ));
        let parts = (discovery, Arc::clone(&helm), tape.clone(), ended);
        let (inbox, questions, driving) = operate(around, &case, parts).await?;
        let heard = tape.clone();
        stillness.ask(move || heard.is_still() && server.is_still());
        Ok(Self {
            case,
            stillness,
            lines,
            tape,
            objects,
            helm,
            questions,
            inbox,
            shutdown,
            driving,
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
        outcome.hooks_took = self.tape.hooks_took();
        outcome.lines = self.lines.from(0);
        self.shutdown.send_replace(true);
        let _ = self.driving.await;
        outcome
    }

    async fn step(&self, step: &Step, begun: usize) -> Result<Vec<Mismatch>, String> {
        match &step.action {
            Action::Start => {
                self.rest().await?;
                // What the start itself did before the binding of the test is not looked at.
                match &self.case.subject.trigger {
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
            Action::Delete(references) => self.objects.delete(references).await?,
            Action::Schedule(name) => self.fire(&self.case.subject.crontab(name)?).await?,
        }
        self.rest().await?;
        let seen = self.seen(step, begun).await?;
        Ok(mismatches(step, &seen))
    }

    async fn configure(&self, config: &Map<String, Value>) -> Result<(), String> {
        let written = write_config(&self.objects.client, self.case.settings, config).await;
        written.map_err(|error| format!("the ConfigMap can't be written: {error:#}"))
    }

    async fn fire(&self, line: &engine::CronLine) -> Result<(), String> {
        if !self.tape.is_scheduled(line) {
            return Err(format!("the schedule {line} is not active: its module is off or has not run"));
        }
        self.inbox.event(Event::CronFired { line: line.clone() }).await;
        Ok(())
    }

    /// Waits until nothing happens any more.
    async fn rest(&self) -> Result<(), String> {
        let patience = self.case.test.timeout;
        tokio::time::timeout(patience, self.stillness.wait()).await.map_err(|_| {
            let running = self.tape.running();
            let what = if running.is_empty() { "something".to_owned() } else { running.join(", ") };
            format!(
                "after {} s {what} was still at work (the key timeout sets the limit)",
                patience.as_secs_f64()
            )
        })
    }

    /// Looks at everything that the step expects something of.
    async fn seen(&self, step: &Step, begun: usize) -> Result<Seen, String> {
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
        let catalog = &self.case.subject.catalog;
        let enabled = self.tape.modules();
        let key = |name: &engine::ModuleName| catalog.module(name).map(|module| module.key.to_string());
        Ok(Seen {
            heard: self.tape.take(),
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

    /// Returns what the charts of the modules that are on consist of.
    async fn rendered(&self) -> Result<Vec<Value>, String> {
        let mut rendered = Vec::new();
        for (name, _) in self.tape.modules().iter().filter(|(_, on)| *on) {
            let Some((module, input)) = self.questions.chart_input(name.clone()).await else { continue };
            if module.has_chart {
                let manifest = self.helm.render(&module, &input).await;
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

/// Puts into the cluster what a test finds there: definitions of its modules, too.
async fn prepared(objects: &Objects, test: &Test, catalog: &Catalog) -> Result<(), String> {
    let mut definitions = Vec::new();
    for file in catalog.modules.iter().flat_map(|module| &module.crds) {
        let yaml = std::fs::read_to_string(&**file).map_err(|error| format!("{file}: {error}"))?;
        let documents = values::yaml::parse_all(&yaml).map_err(|error| format!("{file}: {error}"))?;
        definitions.extend(documents.into_iter().filter(|document| !document.is_null()));
    }
    objects.apply(&definitions).await?;
    objects.discovery.refresh();
    objects.apply(&test.objects).await
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

/// Starts the operator as production does, with a tape between engine and adapters.
async fn operate(
    around: Surroundings,
    case: &Case<'_>,
    (discovery, helm, tape, ended): (Discovery, Arc<Helm>, Tape, watch::Receiver<bool>),
) -> anyhow::Result<(Inbox, Questions, JoinHandle<driver::Stopped>)> {
    let settings = &around.settings;
    let (inbox, questions, channels) = driver::channels();
    let parts = Parts {
        telemetry: Arc::new(Telemetry::new(&settings.metrics_prefix)?),
        loader: Arc::clone(case.loader),
        helm,
        monitors: Monitors::new(around.client.clone(), discovery.clone()),
        discovery,
    };
    let source = ConfigSource::new(around.client.clone(), &settings.namespace, &settings.config_map);
    let config = source.read().await.map_err(|failure| anyhow!("{failure}"))?;
    let health = parts.monitors.health();
    let inner = app::wire(&around, &source, parts)?;
    // Whoever reads what failed wrote the values.
    let rules = engine::Config { quote_values: true, ..app::engine_config(settings) };
    let engine = Engine::new(rules, case.subject.catalog.clone());
    let parameters = Parameters::new(settings.log_level, |_| {});
    tokio::spawn(source.watch(inbox.clone(), health, parameters));
    let started = vec![config, Event::Started];
    let outside = Recorded { inner, tape };
    let driving =
        tokio::spawn(driver::drive(engine, outside, (inbox.clone(), channels), started, ended, PATIENCE));
    Ok((inbox, questions, driving))
}

/// What hooks print, as the log of this thread has it.
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

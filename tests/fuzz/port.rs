//! What must hold for every request to the port: an answer without values, whatever is asked for.

use std::sync::Arc;
use std::time::Duration;

use addon_operator::driver::{self, Effects, Inbox};
use addon_operator::http;
use addon_operator::telemetry::Telemetry;
use axum::Router;
use axum::body::Body;
use engine::hook::{HookKind, config};
use engine::{
    Catalog, Config, ConfigObject, Effect, EnabledFlag, Engine, Event, Failure, FailureKind, Global, Hook,
    HookId, Module, Scope,
};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tower::ServiceExt as _;

use super::requests::requests;

/// A value of the modules. No answer may have it.
const SECRET: &str = "hunter22-hunter22";

/// How many requests of an input are sent.
const MOST: usize = 12;

/// The largest answer, in bytes.
const LARGEST: usize = 1 << 20;

thread_local! {
    static OPERATOR: Operator = Operator::start();
}

/// Sends the requests in `bytes`, one after the other, to an operator whose hook fails for ever.
pub(crate) fn run(bytes: &[u8]) {
    OPERATOR.with(|operator| {
        for request in requests(bytes).into_iter().take(MOST) {
            operator.runtime.block_on(check(&operator.port, request));
        }
    });
}

async fn check(port: &Router, request: ::http::Request<Body>) {
    let what = format!("{} {}", request.method(), request.uri());
    let is_health = matches!(request.uri().path(), "/healthz" | "/readyz");
    let is_told = format!("{request:?}").contains("hunter");
    let answer = port.clone().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    assert!((200..500).contains(&status) || is_health, "{what}: {status}");
    let is_json = answer.headers().get("content-type").is_some_and(|kind| kind == "application/json");
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(body.len() <= LARGEST, "{what}: {} bytes", body.len());
    let text = String::from_utf8_lossy(&body);
    assert!(is_told || !text.contains("hunter"), "{what} shows a value: {text}");
    if is_json && !body.is_empty() {
        serde_json::from_slice::<Value>(&body).unwrap_or_else(|error| panic!("{what}: {error}: {text}"));
    }
}

/// An operator on a stage, with time that stands still but for its own waits.
struct Operator {
    runtime: Runtime,
    port: Router,
    _inbox: Inbox,
    _stop: watch::Sender<bool>,
}

/// A pretend outside, in which every hook fails.
struct Stage(Arc<Telemetry>);

impl Effects for Stage {
    fn begin(&mut self, effect: Effect, inbox: &Inbox) {
        if let Effect::RunHook { run, .. } = effect {
            let failure = Failure::new(FailureKind::HookExit, format!("exit status 1: <{SECRET}> & more"));
            inbox.answer(Event::HookFinished { run, outcome: Err(failure), usage: None });
        } else if let Effect::ListReleases { run, .. } = effect {
            inbox.answer(Event::ReleasesListed { run, outcome: Ok(Vec::new()) });
        } else if let Effect::Notify(notice) = effect {
            self.0.take(notice);
        }
    }
}

impl Operator {
    fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let telemetry = Arc::new(Telemetry::new("addon_operator_").unwrap());
        let (inbox, questions, channels) = driver::channels();
        let (stop, shutdown) = watch::channel(false);
        let engine = Engine::new(Config { namespace: "ops".to_owned(), ..Config::default() }, catalog());
        let started = vec![
            Event::ConfigChanged { object: ConfigObject::ConfigMap, version: "1".to_owned(), data: None },
            Event::Started,
        ];
        let stage = Stage(Arc::clone(&telemetry));
        let ends = (inbox.clone(), channels);
        runtime.spawn(driver::drive(engine, stage, ends, started, shutdown, Duration::from_secs(1)));
        // The first converge has failed by then, and the next one waits.
        runtime.block_on(async { tokio::time::sleep(Duration::from_secs(2)).await });
        Self { runtime, port: http::port(questions, telemetry), _inbox: inbox, _stop: stop }
    }
}

/// Two modules, `web` with a hook and `api` behind it.
fn catalog() -> Catalog {
    let text = "configVersion: v1\nbeforeHelm: 1\nschedule: [{name: s, crontab: '@hourly'}]\n";
    let spec = config::parse("hooks/a.sh".into(), HookKind::Module, text).unwrap();
    let id = HookId { scope: Scope::Module("web".into()), name: "hooks/a.sh".into() };
    let hook =
        Arc::new(Hook { id, path: "hooks/a.sh".into(), content: 1, launch: engine::Launch::default(), spec });
    let modules =
        [("web", vec![hook]), ("api", Vec::new())].into_iter().zip(1..).map(|((name, hooks), order)| {
            Arc::new(Module {
                name: name.into(),
                key: name.into(),
                chart_key: name.into(),
                order: order * 10,
                namespace: None,
                path: format!("/modules/{order}0-{name}").into(),
                content: 1,
                origin: engine::Origin::Files,
                enabled: Some(EnabledFlag { value: true, source: "modules/values.yaml".into() }),
                enabled_script: None,
                static_values: Arc::new(json!({"password": SECRET})),
                schemas: Arc::default(),
                hooks,
                layout: engine::ValuesLayout::Section,
                plans: engine::Plans::default(),
                has_unread_hooks: false,
                has_chart: true,
                chart: None,
                package: None,
                version: None,
                settings: engine::ModuleSettings::default(),
                dependencies: engine::ChartDependencies::default(),
                crds: Vec::new(),
                broken: None,
            })
        });
    let modules = modules.collect();
    Catalog {
        global: Arc::new(Global::default()),
        modules: Arc::new(modules),
        complete: true,
        warnings: Vec::new(),
    }
}

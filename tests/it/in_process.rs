//! The whole operator in this process, on an API server in this process that has faults.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use addon_operator::app::{self, Outcome, Surroundings};
use addon_operator::cluster::{Limit, connect_in_process};
use addon_operator::config::{Environment, Given, Settings};
use apiserver::{ApiServer, Endpoint, FaultPlan};
use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tower::{Layer as _, Service};

/// How long a fact is waited for before the test fails.
const DEADLINE: Duration = Duration::from_mins(1);

/// Files and a cluster that outlive operators.
pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) server: ApiServer,
}

/// A running operator.
pub(crate) struct Operator {
    pub(crate) port: u16,
    shutdown: watch::Sender<bool>,
    running: JoinHandle<anyhow::Result<Outcome>>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["modules", "global-hooks"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let world = Self { dir, server: ApiServer::builder().build().unwrap() };
        let namespaces: Api<Namespace> = Api::all(world.client());
        namespaces
            .create(&PostParams::default(), &object(json!({"metadata": {"name": "ops"}})))
            .await
            .unwrap();
        world
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        if text.starts_with("#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    pub(crate) fn client(&self) -> Client {
        connect_in_process(self.server.service(), "ops")
    }

    fn settings(&self, extra: &[(&str, &str)]) -> Settings {
        let path = |name: &str| self.path(name).to_string_lossy().into_owned();
        let mut flags: Vec<(&str, String)> = vec![
            ("modules-dir", path("modules")),
            ("global-hooks-dir", path("global-hooks")),
            ("tmp-dir", path("tmp")),
            ("debug-unix-socket", path("socket")),
            ("namespace", "ops".to_owned()),
            ("prometheus-listen-address", "127.0.0.1".to_owned()),
            ("prometheus-listen-port", "0".to_owned()),
            ("retry-delay", "100ms".to_owned()),
        ];
        flags.extend(extra.iter().map(|(flag, text)| (*flag, (*text).to_owned())));
        let flags = flags.into_iter().map(|(flag, text)| (flag.to_owned(), text)).collect();
        Settings::new(&Given::new(flags, Environment::default())).unwrap()
    }

    fn around(
        &self,
        client: Client,
        once: bool,
        shutdown: watch::Receiver<bool>,
        extra: &[(&str, &str)],
    ) -> Surroundings {
        let environment = Environment::default()
            .with("PATH", "/usr/local/bin:/usr/bin:/bin")
            .with("WORLD", self.dir.path());
        Surroundings {
            settings: self.settings(extra),
            environment,
            patcher: client.clone(),
            client,
            meters: app::meters(),
            once,
            any_port: true,
            shutdown,
        }
    }

    /// Starts an operator on the cluster.
    pub(crate) async fn start(&self, extra: &[(&str, &str)]) -> Operator {
        let (shutdown, ended) = watch::channel(false);
        let meters = app::meters();
        // As for a real cluster: a limit, here one that is not felt, and what measures.
        let [client, patcher] = meters.each_ref().map(|meter| {
            let limit = Limit::new(0.0, 1).measured(meter.clone());
            connect_in_process(limit.layer(meter.layer(self.server.service())), "ops")
        });
        let around = self.around(client.clone(), false, ended, extra);
        let around = Surroundings { client, patcher, meters, ..around };
        let (told, mut listening) = mpsc::unbounded_channel();
        let running = tokio::spawn(app::run(around, move |address| told.send(address).unwrap_or(())));
        let port = listening.recv().await.unwrap().port();
        Operator { port, shutdown, running }
    }

    /// Runs an operator until it has converged or can't.
    async fn once(&self) -> Outcome {
        let (_keep, ended) = watch::channel(false);
        app::run(self.around(self.client(), true, ended, &[]), drop).await.unwrap()
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client(), "ops")
    }

    /// Waits until the ConfigMap `name` `fits`; one that is not there is null.
    pub(crate) async fn settled(&self, name: &str, fits: impl Fn(&Value) -> bool) {
        let check = |map: Option<&ConfigMap>| fits(&serde_json::to_value(map).unwrap());
        let waiting = await_condition(self.maps(), name, check);
        match tokio::time::timeout(DEADLINE, waiting).await {
            Ok(found) => drop(found.unwrap()),
            Err(late) => {
                panic!("{name} did not settle ({late}); it is {:?}", self.maps().get_opt(name).await)
            }
        }
    }

    pub(crate) async fn put(&self, name: &str, map: Value) {
        let mut fields = map.as_object().cloned().unwrap();
        let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
        metadata.as_object_mut().unwrap().insert("name".to_owned(), name.into());
        fields.insert("apiVersion".to_owned(), "v1".into());
        fields.insert("kind".to_owned(), "ConfigMap".into());
        let map = Value::Object(fields);
        let params = PatchParams::apply("a-person").force();
        self.maps().patch(name, &params, &Patch::Apply(&map)).await.unwrap();
    }
}

impl Operator {
    pub(crate) async fn stop(self) -> Outcome {
        self.shutdown.send_replace(true);
        self.running.await.unwrap().unwrap()
    }
}

pub(crate) fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// A hook that writes what its snapshot holds into the ConfigMap `seen`.
const MIRROR: &str = r#"#!/usr/bin/env bash
if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
kubernetes:
- {name: items, apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {item: "yes"}}, jqFilter: .metadata.name, group: all}
CONFIG
  exit 0
fi
names=$(grep -o '"filterResult":"[a-z0-9]*"' "$BINDING_CONTEXT_PATH" | sort -u | cut -d'"' -f4 | tr '\n' ' ')
echo "{\"operation\": \"CreateOrUpdate\", \"object\": {\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"seen\", \"namespace\": \"ops\"}, \"data\": {\"names\": \"${names% }\"}}}" > "$KUBERNETES_PATCH_PATH"
"#;

fn item() -> Value {
    json!({"metadata": {"labels": {"item": "yes"}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_api_server_is_away_nothing_is_lost() {
    let world = World::new().await;
    world.write("global-hooks/mirror.sh", MIRROR);
    world.write("modules/values.yaml", "web: {text: first}\n");
    world.write("modules/010-web/Chart.yaml", "name: web\nversion: 0.1.0\n");
    world.write(
        "modules/010-web/templates/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {text: {{ .Values.web.text }}}\n",
    );
    world.put("one", item()).await;
    world.put("two", item()).await;
    world.put("addon-operator", json!({"data": {"webEnabled": "true"}})).await;
    let operator = world.start(&[]).await;
    world.settled("seen", |map| map["data"]["names"] == "one two").await;
    world.settled("web", |map| map["data"]["text"] == "first").await;
    // The operator sees nothing and creates nothing. People go on: they apply and delete.
    let faults = world.server.faults();
    for method in [Method::GET, Method::POST, Method::PUT] {
        faults.add(FaultPlan::on(method, "*").times(u64::MAX).cut());
    }
    faults.drop_watches();
    world.put("three", item()).await;
    world.maps().delete("one", &DeleteParams::default()).await.unwrap();
    world.put("addon-operator", json!({"data": {"webEnabled": "true", "web": "text: second"}})).await;
    while faults.hits() < 4 {
        tokio::task::yield_now().await;
    }
    faults.clear();
    world.settled("seen", |map| map["data"]["names"] == "three two").await;
    world.settled("web", |map| map["data"]["text"] == "second").await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_is_away_at_the_start_is_waited_for() {
    let world = World::new().await;
    world.write("global-hooks/mirror.sh", MIRROR);
    world.put("one", item()).await;
    world.server.faults().add(FaultPlan::on(Method::GET, "*").times(2).cut());
    let operator = world.start(&[]).await;
    while world.server.faults().hits() < 2 {
        tokio::task::yield_now().await;
    }
    world.settled("seen", |map| map["data"]["names"] == "one").await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn once_ends_when_a_round_of_tries_brings_nothing_further() {
    let world = World::new().await;
    let config =
        "if [ \"$1\" = --config ]; then echo '{\"configVersion\":\"v1\",\"beforeHelm\":1}'; exit; fi\n";
    world.write("modules/values.yaml", "aEnabled: true\nbEnabled: true\n");
    // The first needs what the second brings; with patience both come through.
    world.write("modules/010-a/hooks/a.sh", &format!("#!/bin/sh\n{config}test -e \"$WORLD/brought\"\n"));
    world.write("modules/020-b/hooks/b.sh", &format!("#!/bin/sh\n{config}touch \"$WORLD/brought\"\n"));
    assert_eq!(world.once().await, Outcome::Done);
    world.write("modules/020-b/hooks/b.sh", &format!("#!/bin/sh\n{config}exit 1\n"));
    assert_eq!(world.once().await, Outcome::NotConverged);
    world.write("modules/020-b/hooks/b.sh", &format!("#!/bin/sh\n{config}exit 0\n"));
    world.write("modules/020-b/enabled", "#!/bin/sh\nexit 1\n");
    assert_eq!(world.once().await, Outcome::NotConverged, "a discovery that fails");
    world.write("modules/020-b/enabled", "#!/bin/sh\necho true > \"$MODULE_ENABLED_RESULT\"\n");
    let watches = "if [ \"$1\" = --config ]; then echo '{\"configVersion\":\"v1\",\"kubernetes\":[{\"name\":\"things\",\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\"}]}'; exit; fi\n";
    world.write("modules/010-a/hooks/a.sh", &format!("#!/bin/sh\n{watches}"));
    assert_eq!(world.once().await, Outcome::NotConverged, "a module that waits for a kind");
    world.write("modules/010-a/hooks/a.sh", &format!("#!/bin/sh\n{config}"));
    assert_eq!(world.once().await, Outcome::Done);
    world.write("global-hooks/watch.sh", &format!("#!/bin/sh\n{watches}"));
    assert_eq!(world.once().await, Outcome::NotConverged, "a global hook that waits for a kind");
}

/// An API server that asks for the end of the operator at a certain request.
#[derive(Clone)]
struct Interrupting {
    service: Endpoint,
    asked: Arc<AtomicU64>,
    at: u64,
    shutdown: Arc<watch::Sender<bool>>,
}

impl<B> Service<http::Request<B>> for Interrupting
where
    Endpoint: Service<http::Request<B>>,
{
    type Response = <Endpoint as Service<http::Request<B>>>::Response;
    type Error = <Endpoint as Service<http::Request<B>>>::Error;
    type Future = <Endpoint as Service<http::Request<B>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        if self.asked.fetch_add(1, Ordering::SeqCst) + 1 == self.at {
            self.shutdown.send_replace(true);
        }
        self.service.call(request)
    }
}

/// A module with a hook at each point, and a chart.
fn write_busy_module(world: &World) {
    world.write("modules/values.yaml", "webEnabled: true\nweb: {text: first}\n");
    world.write("modules/010-web/Chart.yaml", "name: web\nversion: 0.1.0\n");
    world.write(
        "modules/010-web/templates/maps.yaml",
        "{{ range $n := until 3 }}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-{{ $n }}}\n{{ end }}",
    );
    world.write(
        "modules/010-web/hooks/a.sh",
        "#!/bin/sh\nif [ \"$1\" = --config ]; then\n\
         echo '{\"configVersion\":\"v1\",\"onStartup\":1,\"beforeHelm\":1,\"afterHelm\":1,\"kubernetes\":[{\"kind\":\"ConfigMap\"}]}'\n\
         exit\nfi\necho $$ >> \"$WORLD/pids\"\n",
    );
}

/// What an operator may not leave behind.
async fn assert_clean(world: &World, what: &str) {
    let pids = fs::read_to_string(world.path("pids")).unwrap_or_default();
    for pid in pids.lines() {
        // The number may belong to somebody else by now.
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!command.contains("010-web"), "{what}: hook {pid} still runs");
    }
    let tmp = fs::read_dir(world.path("tmp")).map_or(0, Iterator::count);
    assert_eq!(tmp, 0, "{what}: files of hooks are left");
    let secrets: Api<Secret> = Api::namespaced(world.client(), "ops");
    for secret in secrets.list(&ListParams::default().labels("owner=helm")).await.unwrap() {
        let status = secret.metadata.labels.unwrap_or_default().remove("status").unwrap_or_default();
        assert!(!status.starts_with("pending"), "{what}: the release is {status}");
    }
}

/// Runs a start that is told to end at the request `at`; returns how many requests there were.
async fn interrupted(world: &World, at: u64) -> u64 {
    let (shutdown, ended) = watch::channel(false);
    let asked = Arc::new(AtomicU64::new(0));
    let service = Interrupting {
        service: world.server.service(),
        asked: Arc::clone(&asked),
        at,
        shutdown: Arc::new(shutdown),
    };
    let client = connect_in_process(service.clone(), "ops");
    let begun = Instant::now();
    let outcome = app::run(world.around(client, true, ended, &[]), drop).await.unwrap();
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "at request {at}: the end took {took:?} ({outcome:?})");
    assert_clean(world, &format!("at request {at}")).await;
    asked.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread")]
async fn f_h2_an_end_at_any_moment_of_a_converge_leaves_nothing_behind() {
    let world = World::new().await;
    write_busy_module(&world);
    let requests = interrupted(&world, u64::MAX).await;
    assert!(requests > 10, "only {requests} requests");
    // All moments of a first start, and of starts on what an interrupted one has left.
    let mut points = 0;
    while points < 200 {
        let world = World::new().await;
        write_busy_module(&world);
        for round in 0..10 {
            let at = 1 + (points * 7 + round) % requests;
            interrupted(&world, at).await;
            points += 1;
        }
        assert_eq!(world.once().await, Outcome::Done, "after {points} interruptions");
        assert!(Path::new(&world.path("pids")).exists());
    }
}

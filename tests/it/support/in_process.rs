//! The operator in this process, on an API server in this process.

use std::fs;
use std::path::PathBuf;

use addon_operator::app::{self, Outcome, Surroundings};
use addon_operator::cluster::{RateLimit, connect_in_process};
use addon_operator::config::{Environment, OptionSources, Settings};
use addon_operator::fence::Fence;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tower::{Layer as _, ServiceExt as _};

use super::ApiServer;
use super::files::write;
use super::server::settled;

/// Returns a client of `server` that shows each request to `observe` before it is carried out.
pub(crate) fn observed(
    server: &ApiServer,
    namespace: &str,
    observe: impl Fn(&http::Request<kube::client::Body>) + Clone + Send + 'static,
) -> Client {
    let service = server.service().map_request(move |request| {
        observe(&request);
        request
    });
    connect_in_process(service, namespace)
}

/// Files and a cluster that outlive operators.
pub(crate) struct Cluster {
    pub(crate) dir: TempDir,
    pub(crate) server: ApiServer,
}

/// A running operator.
pub(crate) struct Operator {
    pub(crate) port: u16,
    pub(crate) shutdown: watch::Sender<bool>,
    pub(crate) running: JoinHandle<anyhow::Result<Outcome>>,
}

impl Cluster {
    pub(crate) async fn new() -> Self {
        let server = ApiServer::builder().impersonation().build().unwrap();
        Self::on(tempfile::tempdir().unwrap(), server).await
    }

    /// Makes what an operator needs in an empty directory and on an empty server.
    pub(crate) async fn on(dir: TempDir, server: ApiServer) -> Self {
        for name in ["modules", "global-hooks"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let cluster = Self { dir, server };
        let namespaces: Api<Namespace> = Api::all(cluster.client());
        namespaces
            .create(
                &PostParams::default(),
                &serde_json::from_value(json!({"metadata": {"name": "ops"}})).unwrap(),
            )
            .await
            .unwrap();
        cluster
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        write(&self.path(path), text);
    }

    /// Writes the module `web`, which is on: a chart with one ConfigMap.
    pub(crate) fn write_web(&self) {
        self.write("modules/values.yaml", "webEnabled: true\n");
        self.write("modules/010-web/Chart.yaml", "name: web\nversion: 0.1.0\n");
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n";
        self.write("modules/010-web/templates/map.yaml", map);
    }

    pub(crate) fn client(&self) -> Client {
        connect_in_process(self.server.service(), "ops")
    }

    pub(crate) fn settings(&self, extra: &[(&str, &str)]) -> Settings {
        let path = |name: &str| self.path(name).to_string_lossy().into_owned();
        let mut flags: Vec<(&str, String)> = vec![
            ("modules-dir", path("modules")),
            ("global-hooks-dir", path("global-hooks")),
            ("tmp-dir", path("tmp")),
            ("source-dir", path("sources")),
            ("debug-unix-socket", path("socket")),
            ("namespace", "ops".to_owned()),
            ("prometheus-listen-address", "127.0.0.1".to_owned()),
            ("prometheus-listen-port", "0".to_owned()),
            ("retry-delay", "100ms".to_owned()),
        ];
        flags.extend(extra.iter().map(|(flag, text)| (*flag, (*text).to_owned())));
        let flags = flags.into_iter().map(|(flag, text)| (flag.to_owned(), text)).collect();
        Settings::new(&OptionSources::new(flags, Environment::default())).unwrap()
    }

    pub(crate) fn around(
        &self,
        client: Client,
        once: bool,
        shutdown: watch::Receiver<bool>,
        extra: &[(&str, &str)],
    ) -> Surroundings {
        let environment = Environment::default()
            .with("PATH", "/usr/local/bin:/usr/bin:/bin")
            .with("WORLD", self.dir.path())
            // Hooks find the program as they do in production.
            .with("ADDON_OPERATOR_BINARY", env!("CARGO_BIN_EXE_addon-operator"));
        Surroundings {
            settings: self.settings(extra),
            environment,
            patcher: client.clone(),
            client,
            request_metrics: app::request_metrics(),
            fence: Fence::none(),
            api_server: None,
            once,
            any_port: true,
            shutdown,
        }
    }

    /// Starts an operator on the cluster.
    pub(crate) async fn start(&self, extra: &[(&str, &str)]) -> Operator {
        let (shutdown, ended) = watch::channel(false);
        let request_metrics = app::request_metrics();
        // As for a real cluster: a limit, here one that is not felt, and what measures.
        let [client, patcher] = request_metrics.each_ref().map(|meter| {
            let limit = RateLimit::new(0.0, 1).with_metrics(meter.clone());
            connect_in_process(limit.layer(meter.layer(self.server.service())), "ops")
        });
        let around = self.around(client.clone(), false, ended, extra);
        let around = Surroundings { client, patcher, request_metrics, ..around };
        let (told, mut listening) = mpsc::unbounded_channel();
        let running = tokio::spawn(app::run(around, move |address| told.send(address).unwrap_or(())));
        let Some(address) = listening.recv().await else {
            panic!("it does not start: {:?}", running.await);
        };
        Operator { port: address.port(), shutdown, running }
    }

    /// Runs an operator until it has converged or can't.
    pub(crate) async fn once(&self) -> Outcome {
        let (_keep, ended) = watch::channel(false);
        app::run(self.around(self.client(), true, ended, &[]), drop).await.unwrap()
    }

    pub(crate) fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client(), "ops")
    }

    /// Waits until the ConfigMap `name` `fits`; one that is not there is null.
    pub(crate) async fn settled(&self, name: &str, fits: impl Fn(&Value) -> bool) {
        settled(&self.maps(), name, fits).await;
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

/// Asks the socket of an operator for a path, and returns the whole answer.
pub(crate) fn ask_socket(world: &Cluster, path: &str) -> String {
    tell_socket(world, "GET", path)
}

/// Sends a request without a body to the socket of an operator, and returns the whole answer.
pub(crate) fn tell_socket(world: &Cluster, method: &str, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::os::unix::net::UnixStream::connect(world.path("socket")).unwrap();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

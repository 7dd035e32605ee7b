//! A release of a module against the embedded API server.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_operator::cluster::Discovery;
use addon_operator::helm::{Helm, Settings};
use apiserver::ApiServer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{
    DriftSettings, Event, Failure, Module, ModuleName, ModuleValues, ReleaseAction, ReleaseOutcome,
    ValuesInput,
};
use futures::StreamExt as _;
use http::Method;
use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedReceiver;
use tower::ServiceExt as _;

use super::files::write;
use super::server;

pub(crate) const NAMESPACE: &str = "default";

/// A module in a directory of its own, and the server that its release goes to.
pub(crate) struct ReleaseFixture {
    pub(crate) server: ApiServer,
    pub(crate) name: &'static str,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) history_max: usize,
    /// How long a hook of a chart may take.
    pub(crate) timeout: Duration,
    /// What the module says about itself.
    pub(crate) settings: engine::ModuleSettings,
    requests: Arc<Mutex<Vec<String>>>,
    directory: TempDir,
    content: AtomicUsize,
}

impl ReleaseFixture {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self::on(ApiServer::builder().seed(1).simulate(Duration::ZERO).build().unwrap(), files)
    }

    /// Returns one without nodes: no Job ever ends by itself.
    pub(crate) fn without_nodes(files: &[(&str, &str)]) -> Self {
        Self::on(ApiServer::builder().seed(1).build().unwrap(), files)
    }

    /// Returns one that answers requests in the name of others by the rights of these.
    pub(crate) fn with_rights(files: &[(&str, &str)]) -> Self {
        Self::on(ApiServer::builder().seed(1).impersonation().build().unwrap(), files)
    }

    fn on(server: ApiServer, files: &[(&str, &str)]) -> Self {
        let fixture = Self {
            server,
            name: "web",
            labels: [("heritage".to_owned(), "addon-operator".to_owned())].into(),
            history_max: 3,
            timeout: Duration::from_secs(5),
            settings: engine::ModuleSettings::default(),
            requests: Arc::default(),
            directory: tempfile::tempdir().unwrap(),
            content: 0.into(),
        };
        fixture.write(files);
        fixture
    }

    /// Writes a file beside the chart of the module. Returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.directory.path().join(name);
        write(&path, text);
        path.to_string_lossy().into_owned()
    }

    /// Replaces the files of the module.
    pub(crate) fn write(&self, files: &[(&str, &str)]) {
        for entry in std::fs::read_dir(self.directory.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                std::fs::remove_dir_all(path).unwrap();
            } else {
                std::fs::remove_file(path).unwrap();
            }
        }
        for (name, text) in files {
            write(&self.directory.path().join(name), text);
        }
        self.content.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn client(&self) -> Client {
        let requests = Arc::clone(&self.requests);
        let service = self.server.service().map_request(move |request: http::Request<kube::client::Body>| {
            let accept =
                request.headers().get(http::header::ACCEPT).map_or("", |accept| accept.to_str().unwrap());
            let kind = if accept.contains("PartialObjectMetadataList") { " (metadata)" } else { "" };
            requests.lock().unwrap().push(format!("{} {}{kind}", request.method(), request.uri()));
            request
        });
        Client::new(service, NAMESPACE)
    }

    /// Returns an operator that has just been started.
    pub(crate) fn helm(&self) -> Helm {
        self.helm_with(Discovery::new(self.client()))
    }

    /// Does the same with kinds that somebody asks about whether watches work.
    pub(crate) fn helm_with(&self, discovery: Discovery) -> Helm {
        self.helm_through(self.client(), discovery)
    }

    /// Does the same with a client that leads to the server in some other way.
    pub(crate) fn helm_through(&self, client: Client, discovery: Discovery) -> Helm {
        let settings = Settings {
            namespace: NAMESPACE.to_owned(),
            config_map: "addon-operator".to_owned(),
            extra_labels: self.labels.clone(),
            history_max: self.history_max,
            timeout: self.timeout,
        };
        Helm::new(client, discovery, settings)
    }

    pub(crate) fn module(&self) -> Arc<Module> {
        Arc::new(Module {
            name: ModuleName::from(self.name),
            key: "web".into(),
            chart_key: "web".into(),
            order: 0,
            namespace: None,
            path: self.directory.path().to_str().unwrap().into(),
            content: self.content.load(Ordering::SeqCst) as u64,
            origin: engine::Origin::Files,
            enabled: None,
            enabled_script: None,
            static_values: Arc::new(json!({})),
            schemas: Arc::default(),
            hooks: Vec::new(),
            layout: engine::ValuesLayout::Section,
            plans: engine::Plans::default(),
            has_unread_hooks: false,
            has_chart: true,
            chart: None,
            package: None,
            version: None,
            settings: self.settings.clone(),
            dependencies: engine::ChartDependencies::default(),
            crds: self.crds(),
            broken: None,
        })
    }

    /// Returns the files with definitions of kinds, by their paths in the module.
    fn crds(&self) -> Vec<Arc<str>> {
        let files = std::fs::read_dir(self.directory.path().join("crds")).into_iter().flatten();
        files.map(|file| format!("crds/{}", file.unwrap().file_name().to_str().unwrap()).into()).collect()
    }

    pub(crate) async fn upgrade(&self, helm: &Helm, values: Value) -> Result<ReleaseOutcome, Failure> {
        self.upgrade_in(helm, values, false).await
    }

    /// Upgrades, in maintenance or not.
    pub(crate) async fn upgrade_in(
        &self,
        helm: &Helm,
        values: Value,
        maintenance: bool,
    ) -> Result<ReleaseOutcome, Failure> {
        let values = self.values(values);
        helm.upgrade(&self.module(), &values, maintenance).await
    }

    /// Returns what the chart reads when the section of the module has these values.
    pub(crate) fn values(&self, values: Value) -> ValuesInput {
        ValuesInput {
            secret: Arc::default(),
            global: Arc::new(json!({})),
            global_config: Arc::new(Value::Null),
            module: Some(ModuleValues {
                key: self.module().key.clone(),
                values: Arc::new(values),
                config: Arc::new(Value::Null),
            }),
            enabled_modules: None,
        }
    }

    /// Upgrades with the default values and returns what was done.
    pub(crate) async fn upgraded(&self, helm: &Helm) -> ReleaseAction {
        self.upgrade(helm, json!({"k": "one"})).await.unwrap().action
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    /// Returns an object, if it is there.
    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        server::get(&self.server, path).await
    }

    /// Sends a request that has to be answered well, and returns the answer.
    pub(crate) async fn send(&self, method: Method, path: &str, body: &Value) -> Value {
        server::ok(&self.server, method, path, body).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        self.send(Method::POST, path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.send(Method::DELETE, path, &Value::Null).await;
    }

    pub(crate) async fn map(&self, name: &str) -> Option<Value> {
        self.get(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{name}")).await
    }

    /// Returns the revisions and their states.
    pub(crate) async fn states(&self) -> Vec<String> {
        let history = self.helm().history(self.name).await.unwrap();
        history.iter().map(|revision| format!("{} {}", revision.version, revision.status.name())).collect()
    }
}

pub(crate) const CRD: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.test}\nspec:\n  group: example.test\n  scope: Namespaced\n  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n";
pub(crate) const MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-map}\ndata: {k: '{{ .Values.web.k }}'}\n";
pub(crate) const EXTRA: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-extra}\ndata: {a: b}\n";
pub(crate) const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}], selector: {app: web}}\n";

pub(crate) fn files() -> Vec<(&'static str, &'static str)> {
    vec![("templates/map.yaml", MAP), ("templates/extra.yaml", EXTRA), ("templates/service.yaml", SERVICE)]
}

/// When jobs begin and end.
const NOON: &str = "2026-01-02T12:00:00Z";

/// Ends every Job that appears, as a cluster with nodes would: well, but for `fails` in all
/// its runs, and for every Job once that one failed.
pub(crate) async fn end_jobs(client: Client, fails: Option<&str>) {
    let jobs = kube::core::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("batch", "v1", "Job"));
    let api: kube::Api<kube::core::DynamicObject> = kube::Api::namespaced_with(client, NAMESPACE, &jobs);
    let mut found = pin!(watcher(api.clone(), watcher::Config::default()).applied_objects());
    let mut ended = BTreeSet::new();
    let mut failed = false;
    while let Some(Ok(job)) = found.next().await {
        let name = job.metadata.name.unwrap();
        if !ended.insert(job.metadata.uid) {
            continue;
        }
        failed |= fails == Some(name.as_str());
        let (kinds, reason, end) = if failed {
            (["FailureTarget", "Failed"], "BackoffLimitExceeded", None)
        } else {
            (["SuccessCriteriaMet", "Complete"], "CompletionsReached", Some(NOON))
        };
        let conditions = kinds.map(|kind| json!({"type": kind, "status": "True", "reason": reason}));
        let done = json!({"status": {"conditions": conditions, "startTime": NOON, "completionTime": end}});
        let _ = api.patch_status(&name, &PatchParams::default(), &Patch::Merge(done)).await;
    }
}

/// Watches the release and returns what is told of it.
pub(crate) fn watched(helm: &Helm) -> UnboundedReceiver<Event> {
    watched_as(helm, DriftSettings::default())
}

/// Watches the release `web`, whose module says this about drift.
pub(crate) fn watched_as(helm: &Helm, drift: DriftSettings) -> UnboundedReceiver<Event> {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    helm.watch_by(
        ModuleName::from("web"),
        Arc::new(move |event| {
            let _ = sender.send(event);
            Box::pin(async {})
        }),
        drift,
    );
    receiver
}

/// Returns a Secret as a record of a release is kept; `data` is base64.
pub(crate) fn record_secret(name: &str, labels: &Value, data: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {"name": name, "labels": labels},
        "data": {"release": data},
    })
}

/// Returns the record that a Secret holds.
pub(crate) fn decoded(secret: &Value) -> chart::record::Record {
    let data = STANDARD.decode(secret["data"]["release"].as_str().unwrap()).unwrap();
    chart::record::decode(&data).unwrap()
}

/// Returns a record as a Secret holds it.
pub(crate) fn encoded(record: &chart::record::Record) -> String {
    STANDARD.encode(chart::record::encode(record).unwrap())
}

/// Checks that a message says all that it should.
#[track_caller]
pub(crate) fn says(failure: &Failure, parts: &[&str]) {
    for part in parts {
        assert!(failure.message.contains(part), "{part} is not in: {}", failure.message);
    }
}

/// Returns the path of the Secrets, in which releases are kept.
pub(crate) fn secrets() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/secrets")
}

/// Changes an object as `kubectl patch` does.
pub(crate) async fn edit(world: &ReleaseFixture, kind: &str, object: &str, patch: &Value) {
    let group = if kind == "deployments" { "apis/apps/v1" } else { "api/v1" };
    let url = format!("/{group}/namespaces/{NAMESPACE}/{kind}/{object}?fieldManager=kubectl-patch");
    world.send(Method::PATCH, &url, patch).await;
}

/// Returns the names of releases.
pub(crate) fn names(releases: &[engine::OwnedRelease]) -> Vec<&str> {
    releases.iter().map(|release| release.name.as_str()).collect()
}

/// Returns letters that can't be packed well.
pub(crate) fn noise(length: usize) -> String {
    let mut state = 1_u64;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'0' + u8::try_from((state >> 40) % 64).unwrap())
    };
    (0..length).map(letter).collect()
}

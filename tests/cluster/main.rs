//! Releases against a real API server, side by side with the real `helm`, module sources, chart repositories, and hosted
//! clusters.
//!
//! `KUBECONFIG=… HELM=…/helm DISPOSABLE_CLUSTER=yes cargo test --test cluster -- --ignored --test-threads 1`
//!
//! Scenarios of `tests/it` run here with a real server. Without `DISPOSABLE_CLUSTER` they refuse to: they delete namespaces.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking"
)]

/// Makes a test of each scenario of `tests/it`.
macro_rules! scenarios {
    ($($name:ident),+ $(,)?) => {
        mod tests {
            $(
                #[tokio::test(flavor = "multi_thread")]
                #[ignore = "needs a cluster"]
                async fn $name() {
                    super::$name().await;
                }
            )+
        }
    };
}

#[path = "../it/chart_bundles.rs"]
mod chart_bundles;
#[path = "../it/chart_dependencies.rs"]
mod chart_dependencies;
#[path = "../it/chart_limits.rs"]
mod chart_limits;
#[path = "../it/chart_losses.rs"]
mod chart_losses;
#[path = "../it/chart_modules.rs"]
mod chart_modules;
#[path = "../it/chart_objects.rs"]
mod chart_objects;
#[path = "../it/chart_outcomes.rs"]
mod chart_outcomes;
#[path = "../it/chart_recordings.rs"]
mod chart_recordings;
#[path = "../it/chart_registries.rs"]
mod chart_registries;
#[path = "../it/chart_repositories.rs"]
mod chart_repositories;
mod charts;
#[path = "../it/git_modules.rs"]
mod git_modules;
mod hosted_clusters;
mod large_records;
#[path = "../it/module_sources.rs"]
mod module_sources;
#[path = "../it/namespaced_sources.rs"]
mod namespaced_sources;
mod operator;
mod random;
mod server_side;
#[path = "../it/source_behaviours.rs"]
mod source_behaviours;
mod sources;
mod stand_in;
mod support;
#[path = "../it/webhooks.rs"]
mod webhooks;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use addon_operator::cluster::Discovery;
use addon_operator::helm::{Helm, Settings};
use engine::{Module, ModuleName, ModuleValues, ReleaseAction, ReleaseName, ValuesInput};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\n";
const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-map}\ndata: {k: {{ .Values.web.k | quote }}}\n";
const HOOK: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-hook, annotations: {helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-delete-policy: hook-succeeded}}\n";
const NOTES: &str = "The value is {{ .Values.web.k }}.\n";
const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Release.Name }}}\nspec:\n  replicas: 2\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers:\n      - {name: c, image: 'img:{{ .Values.web.k }}', ports: [{containerPort: 80}]}\n";

struct Cluster {
    client: Client,
    kubeconfig: String,
    helm: String,
    namespace: String,
    chart: tempfile::TempDir,
    settings: engine::ModuleSettings,
}

/// Returns a client of the cluster.
async fn client() -> Client {
    let config = Kubeconfig::read_from(std::env::var("KUBECONFIG").unwrap()).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

impl Cluster {
    async fn connect(test: &str) -> Self {
        let chart = tempfile::tempdir().unwrap();
        let unique = chart.path().file_name().unwrap().to_str().unwrap().to_lowercase();
        let namespace = format!("ao-{test}-{}", unique.replace(|c: char| !c.is_ascii_alphanumeric(), ""));
        let cluster = Self {
            client: client().await,
            kubeconfig: std::env::var("KUBECONFIG").unwrap(),
            helm: std::env::var("HELM").unwrap(),
            namespace,
            chart,
            settings: engine::ModuleSettings::default(),
        };
        std::fs::create_dir(cluster.chart.path().join("templates")).unwrap();
        for (name, text) in [
            ("Chart.yaml", CHART),
            ("values.yaml", "web: {k: default}\n"),
            ("templates/map.yaml", MAP),
            ("templates/deployment.yaml", DEPLOYMENT),
            ("templates/hook.yaml", HOOK),
            ("templates/NOTES.txt", NOTES),
        ] {
            std::fs::write(cluster.chart.path().join(name), text).unwrap();
        }
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster.namespace}});
        let request = http::Request::post("/api/v1/namespaces").header("content-type", "application/json");
        let _: Value =
            cluster.client.request(request.body(namespace.to_string().into_bytes()).unwrap()).await.unwrap();
        cluster
    }

    fn adapter(&self) -> Helm {
        self.adapter_with([("heritage".to_owned(), "addon-operator".to_owned())].into())
    }

    fn adapter_with(&self, extra_labels: BTreeMap<String, String>) -> Helm {
        let settings = Settings {
            namespace: self.namespace.clone(),
            config_map: "addon-operator".to_owned(),
            extra_labels,
            history_max: 10,
            timeout: Duration::from_secs(10),
        };
        Helm::new(self.client.clone(), Discovery::new(self.client.clone()), settings)
    }

    async fn upgrade(&self, adapter: &Helm, k: &str) -> ReleaseAction {
        self.upgrade_with(adapter, k, 1).await
    }

    /// Upgrades after the files of the chart were changed for the `content`th time.
    async fn upgrade_files(&self, adapter: &Helm, content: u64) -> ReleaseAction {
        self.upgrade_with(adapter, "one", content).await
    }

    /// Deletes the namespace.
    async fn forget(&self) {
        let path = format!("/api/v1/namespaces/{}", self.namespace);
        let _ = self.client.request::<Value>(http::Request::delete(path).body(Vec::new()).unwrap()).await;
    }

    async fn upgrade_with(&self, adapter: &Helm, k: &str, content: u64) -> ReleaseAction {
        let module = Module {
            name: ModuleName::from("web"),
            key: "web".into(),
            chart_key: "web".into(),
            namespace: None,
            order: 0,
            path: self.chart.path().to_str().unwrap().into(),
            content,
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
            crds: Vec::new(),
            broken: None,
        };
        let values = ValuesInput {
            secret: Arc::default(),
            global: Arc::new(json!({})),
            global_config: Arc::new(Value::Null),
            module: Some(ModuleValues {
                key: "web".into(),
                values: Arc::new(json!({ "k": k })),
                config: Arc::new(Value::Null),
            }),
            enabled_modules: None,
        };
        adapter.upgrade(&Arc::new(module), &values, false).await.unwrap().action
    }

    /// Returns the names of the Secrets of the namespace.
    async fn secrets(&self) -> Vec<String> {
        let path = format!("/api/v1/namespaces/{}/secrets", self.namespace);
        let list: Value =
            self.client.request(http::Request::get(path).body(Vec::new()).unwrap()).await.unwrap();
        let names = list["items"].as_array().unwrap().iter().map(|secret| &secret["metadata"]["name"]);
        names.map(|name| name.as_str().unwrap().to_owned()).collect()
    }

    /// Runs the real helm and returns what it prints.
    fn helm(&self, args: &[&str]) -> String {
        let output = Command::new(&self.helm)
            .args(args)
            .args(["-n", &self.namespace, "--kubeconfig", &self.kubeconfig])
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns what has helm write as version 3 does, and as we do by default: not by server-side apply.
    fn by_client(&self) -> &'static [&'static str] {
        if self.helm(&["version", "--short"]).starts_with("v3") { &[] } else { &["--server-side=false"] }
    }

    async fn object(&self, collection: &str, name: &str) -> Option<Value> {
        let (version, plural) = collection.rsplit_once('/').unwrap();
        let path = format!("/{version}/namespaces/{}/{plural}/{name}", self.namespace);
        self.client.request(http::Request::get(path).body(Vec::new()).unwrap()).await.ok()
    }
}

#[tokio::test]
#[ignore = "needs a cluster"]
async fn helm_lists_shows_rolls_back_and_uninstalls_what_we_wrote() {
    let cluster = Cluster::connect("ours").await;
    let adapter = cluster.adapter();
    assert_eq!(cluster.upgrade(&adapter, "one").await, ReleaseAction::Installed);
    assert_eq!(cluster.upgrade(&adapter, "two").await, ReleaseAction::Upgraded);
    assert_eq!(cluster.upgrade(&adapter, "two").await, ReleaseAction::Unchanged);
    let list: Value = serde_json::from_str(&cluster.helm(&["list", "-o", "json"])).unwrap();
    assert_eq!(
        (&list[0]["name"], &list[0]["revision"], &list[0]["status"]),
        (&json!("web"), &json!("2"), &json!("deployed"))
    );
    assert!(cluster.helm(&["status", "web"]).contains("STATUS: deployed"));
    let values: Value = serde_json::from_str(&cluster.helm(&["get", "values", "web", "-o", "json"])).unwrap();
    assert_eq!(values, json!({"global": {}, "web": {"k": "two"}}));
    assert!(cluster.helm(&["get", "manifest", "web"]).contains("# Source: web/templates/map.yaml"));
    assert!(cluster.helm(&["get", "hooks", "web"]).contains("name: web-hook"));
    assert!(cluster.helm(&["get", "notes", "web"]).contains("The value is two."));
    assert!(cluster.helm(&["get", "all", "web"]).contains("REVISION: 2"));
    let metadata: Value =
        serde_json::from_str(&cluster.helm(&["get", "metadata", "web", "-o", "json"])).unwrap();
    assert_eq!((&metadata["chart"], &metadata["status"]), (&json!("web"), &json!("deployed")));
    assert!(cluster.helm(&["status", "web", "--revision", "1"]).contains("STATUS: superseded"));
    cluster.helm(&["rollback", "web", "1"]);
    assert_eq!(cluster.object("api/v1/configmaps", "web-map").await.unwrap()["data"]["k"], "one");
    let history: Value = serde_json::from_str(&cluster.helm(&["history", "web", "-o", "json"])).unwrap();
    assert_eq!(history.as_array().unwrap().len(), 3);
    // What helm rolled back to is no longer what the module says.
    assert_eq!(cluster.upgrade(&cluster.adapter(), "two").await, ReleaseAction::Upgraded);
    assert_eq!(cluster.object("api/v1/configmaps", "web-map").await.unwrap()["data"]["k"], "two");
    // So is what somebody upgraded with helm, which carries our labels on.
    cluster.helm(&["upgrade", "web", cluster.chart.path().to_str().unwrap(), "--set", "web.k=other"]);
    assert_eq!(cluster.object("api/v1/configmaps", "web-map").await.unwrap()["data"]["k"], "other");
    assert_eq!(cluster.upgrade(&cluster.adapter(), "two").await, ReleaseAction::Upgraded);
    assert_eq!(cluster.object("api/v1/configmaps", "web-map").await.unwrap()["data"]["k"], "two");
    cluster.helm(&["uninstall", "web"]);
    assert!(cluster.object("api/v1/configmaps", "web-map").await.is_none());
    assert_eq!(cluster.upgrade(&cluster.adapter(), "three").await, ReleaseAction::Installed);
    let done = adapter.uninstall(&ReleaseName::from("web")).await.unwrap();
    assert_eq!(done.action, ReleaseAction::Uninstalled);
    assert_eq!(cluster.secrets().await, Vec::<String>::new());
}

#[tokio::test]
#[ignore = "needs a cluster"]
async fn we_take_over_what_helm_wrote() {
    let cluster = Cluster::connect("theirs").await;
    cluster.helm(&["install", "web", cluster.chart.path().to_str().unwrap(), "--set", "web.k=one"]);
    let before = cluster.object("apis/apps/v1/deployments", "web").await.unwrap();
    let adapter = cluster.adapter();
    assert_eq!(cluster.upgrade(&adapter, "two").await, ReleaseAction::Upgraded);
    let after = cluster.object("apis/apps/v1/deployments", "web").await.unwrap();
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert_eq!(after["spec"]["template"]["spec"]["containers"][0]["image"], "img:two");
    assert!(cluster.helm(&["history", "web"]).contains("superseded"));
    assert_eq!(
        adapter.list().await.unwrap().into_iter().map(|owned| owned.name).collect::<Vec<_>>(),
        [ReleaseName::from("web")]
    );
    adapter.uninstall(&ReleaseName::from("web")).await.unwrap();
}

#[tokio::test]
#[ignore = "needs a cluster"]
async fn what_helm_wrote_is_taken_over_without_a_revision_if_nothing_differs() {
    let cluster = Cluster::connect("same").await;
    let chart = cluster.chart.path().to_str().unwrap();
    cluster.helm(&["install", "web", chart, "--set", "web.k=one"]);
    let before = cluster.object("apis/apps/v1/deployments", "web").await.unwrap();
    let adapter = cluster.adapter_with(BTreeMap::new());
    assert_eq!(cluster.upgrade(&adapter, "one").await, ReleaseAction::Unchanged);
    let after = cluster.object("apis/apps/v1/deployments", "web").await.unwrap();
    // Controllers write its status meanwhile.
    assert_eq!(before["metadata"]["generation"], after["metadata"]["generation"]);
    let history: Value = serde_json::from_str(&cluster.helm(&["history", "web", "-o", "json"])).unwrap();
    assert_eq!(history.as_array().unwrap().len(), 1);
    assert_eq!(
        adapter.list().await.unwrap().into_iter().map(|owned| owned.name).collect::<Vec<_>>(),
        [ReleaseName::from("web")]
    );
    // helm goes on with it, and so do we.
    cluster.helm(&["upgrade", "web", chart, "--set", "web.k=two"]);
    assert_eq!(
        cluster.upgrade(&cluster.adapter_with(BTreeMap::new()), "two").await,
        ReleaseAction::Unchanged
    );
    assert_eq!(
        cluster.upgrade(&cluster.adapter_with(BTreeMap::new()), "three").await,
        ReleaseAction::Upgraded
    );
    assert!(cluster.helm(&["history", "web"]).contains("superseded"));
    cluster.helm(&["uninstall", "web"]);
    assert!(cluster.object("apis/apps/v1/deployments", "web").await.is_none());
}

//! A cluster with the kinds of module sources, and a repository.

use addon_operator::source::crds;
use http::Method;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use super::in_process::{Cluster, Operator};
use super::repository::Repository;
use super::server::{self, get, ok};
use super::{ApiServer, DEADLINE};

pub(crate) const SOURCES: &str = "/apis/addons.kyma-project.io/v1alpha1/clusteraddonsconfigurations";

/// A cluster with the kinds of module sources, and a repository.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) repository: Repository,
    authority: String,
}

impl World {
    pub(crate) async fn new() -> Self {
        let world = Self::without_kinds().await;
        world.install_kinds().await;
        world
    }

    pub(crate) async fn install_kinds(&self) {
        install_kinds(&self.cluster.server).await;
    }

    pub(crate) async fn without_kinds() -> Self {
        Self::on(Cluster::new().await, Repository::tls(&["localhost"]).await)
    }

    pub(crate) fn on(cluster: Cluster, repository: Repository) -> Self {
        let authority = repository.write_authority(cluster.dir.path()).to_string_lossy().into_owned();
        Self { cluster, repository, authority }
    }

    pub(crate) fn options(&self) -> [(&str, &str); 3] {
        [("source-allow", "localhost"), ("source-ca", &*self.authority), ("source-relist", "1s")]
    }

    pub(crate) async fn start(&self) -> Operator {
        self.cluster.start(&self.options()).await
    }

    pub(crate) async fn apply(&self, name: &str, urls: &[String]) {
        let repositories: Vec<Value> = urls.iter().map(|url| json!({ "url": url })).collect();
        let object = json!({
            "apiVersion": "addons.kyma-project.io/v1alpha1", "kind": "ClusterAddonsConfiguration",
            "metadata": {"name": name}, "spec": {"repositories": repositories},
        });
        ok(&self.cluster.server, Method::POST, SOURCES, &object).await;
    }

    pub(crate) async fn object(&self, name: &str) -> Value {
        get(&self.cluster.server, &format!("{SOURCES}/{name}")).await.unwrap_or_default()
    }

    /// Waits until a configuration `fits`.
    pub(crate) async fn settled(&self, name: &str, fits: impl Fn(&Value) -> bool) {
        let kind = GroupVersionKind::gvk("addons.kyma-project.io", "v1alpha1", "ClusterAddonsConfiguration");
        let resource = ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = Api::all_with(self.cluster.client(), &resource);
        let check = |object: Option<&DynamicObject>| fits(&serde_json::to_value(object).unwrap());
        let waiting = kube::runtime::wait::await_condition(api, name, check);
        let is_settled = tokio::time::timeout(DEADLINE, waiting).await.is_ok();
        assert!(is_settled, "{name} did not settle: {}", self.object(name).await);
    }

    pub(crate) async fn enable(&self, key: &str, value: bool) {
        self.cluster
            .put("addon-operator", json!({"data": {format!("{key}Enabled"): value.to_string()}}))
            .await;
    }

    /// Returns the lines of a file that hooks write.
    pub(crate) fn lines(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.cluster.path(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// Defines the kinds of the operator, and waits until those of sources are served.
pub(crate) async fn install_kinds(server: &ApiServer) {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for crd in crds().unwrap() {
        ok(server, Method::POST, path, &crd).await;
    }
    for path in [SOURCES, &SOURCES.replace("/clusteraddons", "/addons")] {
        server::until_asked("the kinds of sources", async || get(server, path).await.is_some()).await;
    }
}

pub(crate) fn phase(object: &Value) -> &str {
    object.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn state(object: &Value) -> &str {
    let path = "/status/repositories/0/addons/0/module/state";
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

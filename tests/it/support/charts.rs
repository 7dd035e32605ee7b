//! Chart repositories in this process: packed charts, indexes, and the objects of a cluster that are about them.

use addon_operator::source::crds;
use http::Method;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use super::in_process::{Cluster, Operator};
use super::repository::{Packed, Reply, Repository, digest};
use super::server::{get, ok, until_asked};

const API: &str = "/apis/yaho.soer3n.dev/v1alpha1";
pub(crate) const MAPS: &str = "/api/v1/namespaces/ops/configmaps";

/// Returns a packed chart with these files beside its `Chart.yaml`, to which `more` is added.
pub(crate) fn chart(name: &str, version: &str, more: &str, files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut packed = Packed::new();
    let metadata = format!("apiVersion: v2\nname: {name}\nversion: {version}\n{more}");
    packed.file(&format!("{name}/Chart.yaml"), 0o644, metadata.as_bytes());
    for (path, data) in files {
        packed.file(&format!("{name}/{path}"), 0o644, data);
    }
    packed.finish()
}

/// Returns a chart with a template that shows a value, default values and a CRD.
pub(crate) fn alpha(version: &str) -> Vec<u8> {
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: shown}}\ndata: {{says: {{{{ .Values.says }}}}, version: '{version}'}}\n"
    );
    let files: [(&str, &[u8]); 3] = [
        ("values.yaml", b"# What it says.\nsays: hello\n"),
        ("templates/shown.yaml", map.as_bytes()),
        ("templates/tests/t.yaml", b"{{/* a test of the chart */}}\n"),
    ];
    chart("alpha", version, "", &files)
}

/// Returns one that needs `alpha` of the repository at `url`.
pub(crate) fn beta(version: &str, url: &str, constraint: &str) -> Vec<u8> {
    let more = format!("dependencies:\n- {{name: alpha, version: '{constraint}', repository: '{url}'}}\n");
    chart("beta", version, &more, &[("templates/b.yaml", b"")])
}

/// A cluster with the kinds of chart repositories, and a repository.
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

    pub(crate) async fn without_kinds() -> Self {
        Self::on(Cluster::new().await, Repository::tls(&["localhost"]).await)
    }

    pub(crate) fn on(cluster: Cluster, repository: Repository) -> Self {
        let authority = repository.write_authority(cluster.dir.path()).to_string_lossy().into_owned();
        Self { cluster, repository, authority }
    }

    pub(crate) async fn install_kinds(&self) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for crd in crds().unwrap() {
            ok(&self.cluster.server, Method::POST, path, &crd).await;
        }
        for plural in ["charts", "repogroups", "repositories"] {
            let path = format!("{API}/{plural}");
            until_asked(plural, async || get(&self.cluster.server, &path).await.is_some()).await;
        }
    }

    pub(crate) fn options(&self) -> [(&str, &str); 2] {
        [("source-allow", "localhost"), ("source-ca", &*self.authority)]
    }

    pub(crate) async fn start(&self) -> Operator {
        self.cluster.start(&self.options()).await
    }

    /// Publishes an index below a directory, and the archives beside it.
    pub(crate) fn publish(&self, directory: &str, charts: &[(&str, &str, Vec<u8>)]) {
        let mut entries = serde_json::Map::new();
        for (name, version, packed) in charts {
            let file = format!("{name}-{version}.tgz");
            let entry = json!({"name": name, "version": version, "urls": [file], "digest": digest(packed), "description": "x"});
            entries
                .entry((*name).to_owned())
                .or_insert_with(|| json!([]))
                .as_array_mut()
                .unwrap()
                .push(entry);
            self.repository.put(&format!("{directory}/{file}"), Reply::File(packed.clone()));
        }
        let index = json!({"apiVersion": "v1", "entries": entries}).to_string();
        self.repository.put(&format!("{directory}/index.yaml"), Reply::File(index.into_bytes()));
    }

    /// Writes the module `cache`, which is on and names a chart of `corp`.
    pub(crate) fn write_module(&self, chart: &str, version: &str) {
        let module =
            format!("chart: {{repository: corp, name: {chart}, version: '{version}'}}\nvaluesLayout: root\n");
        self.cluster.write("modules/040-cache/module.yaml", &module);
        self.cluster.write("modules/values.yaml", "cacheEnabled: true\n");
    }

    /// Creates an object, or merges it into the one that is there.
    pub(crate) async fn apply(&self, kind: &str, name: &str, spec: Value) {
        let plural = plural(kind);
        let path = format!("{API}/{plural}/{name}");
        if get(&self.cluster.server, &path).await.is_some() {
            ok(&self.cluster.server, Method::PATCH, &path, &json!({ "spec": spec })).await;
            return;
        }
        let object = json!({
            "apiVersion": "yaho.soer3n.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
        });
        ok(&self.cluster.server, Method::POST, &format!("{API}/{plural}"), &object).await;
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        let path = format!("{API}/{}/{name}", plural(kind));
        ok(&self.cluster.server, Method::DELETE, &path, &Value::Null).await;
    }

    pub(crate) async fn object(&self, kind: &str, name: &str) -> Value {
        get(&self.cluster.server, &format!("{API}/{}/{name}", plural(kind))).await.unwrap_or_default()
    }

    pub(crate) async fn annotate(&self, kind: &str, name: &str, annotations: Value) {
        let address = format!("{API}/{}/{name}", plural(kind));
        let patch = json!({"metadata": {"annotations": annotations}});
        ok(&self.cluster.server, Method::PATCH, &address, &patch).await;
    }

    /// Waits until an object `fits`.
    pub(crate) async fn settled(&self, kind: &str, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let gvk = GroupVersionKind::gvk("yaho.soer3n.dev", "v1alpha1", kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural(kind));
        let api: Api<DynamicObject> = Api::all_with(self.cluster.client(), &resource);
        let check = |object: Option<&DynamicObject>| fits(&serde_json::to_value(object).unwrap());
        let waiting = kube::runtime::wait::await_condition(api, name, check);
        let is_settled = tokio::time::timeout(super::DEADLINE, waiting).await.is_ok();
        let found = self.object(kind, name).await;
        assert!(is_settled, "{kind} {name} did not settle: {found}");
        found
    }

    /// Waits until an object says that it is synced as it is.
    pub(crate) async fn synced(&self, kind: &str, name: &str) -> Value {
        let is_so = |object: &Value| {
            object["status"]["observedGeneration"] == object["metadata"]["generation"]
                && condition(object)["status"] == "True"
        };
        self.settled(kind, name, is_so).await
    }

    /// Waits until an object says that it is not synced for this reason.
    pub(crate) async fn failed(&self, kind: &str, name: &str, reason: &str) -> String {
        let object = self.settled(kind, name, |object| condition(object)["reason"] == reason).await;
        condition(&object)["message"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn map(&self, name: &str) -> Option<Value> {
        get(&self.cluster.server, &format!("{MAPS}/{name}")).await
    }

    /// Returns the names of all maps with charts, sorted.
    pub(crate) async fn maps(&self) -> Vec<String> {
        let list = get(&self.cluster.server, MAPS).await.unwrap();
        let names = list["items"].as_array().unwrap().iter();
        let names = names.map(|map| map["metadata"]["name"].as_str().unwrap().to_owned());
        let mut names: Vec<String> = names.filter(|name| name.starts_with("helm-")).collect();
        names.sort();
        names
    }
}

fn plural(kind: &str) -> &'static str {
    match kind {
        "Chart" => "charts",
        "Repository" => "repositories",
        _ => "repogroups",
    }
}

/// Returns the condition `synced` of an object.
pub(crate) fn condition(object: &Value) -> &Value {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().find(|condition| condition["type"] == "synced").unwrap_or(&Value::Null)
}

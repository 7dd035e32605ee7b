//! Chart repositories against a real API server: its garbage collector, its rules in CEL, its immutable `ConfigMaps`, its tables.
//!
//! Repositories and Charts have no namespace, so these tests run one after the other (`--test-threads 1`).

use std::time::Duration;

use addon_operator::source::crds;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::operator::Running;
use super::sources::{Repository, packed};

const API: &str = "/apis/yaho.soer3n.dev/v1alpha1";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How long a fact is waited for before the test fails.
const DEADLINE: Duration = Duration::from_mins(1);

/// A namespace of its own for an operator, with a repository.
struct World {
    client: Client,
    dir: TempDir,
    /// What all names begin with.
    name: String,
    repository: Repository,
}

fn plural(kind: &str) -> &'static str {
    match kind {
        "Chart" => "charts",
        "Repository" => "repositories",
        _ => "repogroups",
    }
}

fn condition(object: &Value) -> &Value {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().find(|condition| condition["type"] == "synced").unwrap_or(&Value::Null)
}

/// Returns a chart with a template that shows a value, default values, and a template in a directory below.
fn alpha(version: &str, more: &str) -> Vec<u8> {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shown}\ndata: {says: {{ .Values.says }}, version: {{ .Chart.Version | quote }}}\n";
    packed(&[
        ("alpha/Chart.yaml", format!("apiVersion: v2\nname: alpha\nversion: {version}\n{more}")),
        ("alpha/values.yaml", "says: hello\n".to_owned()),
        ("alpha/templates/shown.yaml", map.to_owned()),
        ("alpha/templates/a/b/c/deep.yaml", "# deep\n".to_owned()),
    ])
}

fn beta(url: &str) -> Vec<u8> {
    let needs = format!("dependencies:\n- {{name: alpha, version: '~0.1', repository: '{url}'}}\n");
    packed(&[("beta/Chart.yaml", format!("apiVersion: v2\nname: beta\nversion: 0.1.0\n{needs}"))])
}

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let unique = dir.path().file_name().unwrap().to_str().unwrap().to_lowercase();
        let name = format!("cha{}", unique.replace(|c: char| !c.is_ascii_alphanumeric(), ""));
        for part in ["modules", "global-hooks"] {
            std::fs::create_dir(dir.path().join(part)).unwrap();
        }
        let world = Self { client: super::client().await, dir, name, repository: Repository::start() };
        for crd in crds().unwrap() {
            let (status, answer) = world.send(Method::POST, DEFINITIONS, &crd).await;
            assert!(matches!(status, 201 | 409), "{answer}");
        }
        let definitions =
            world.api("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions");
        for kind in ["Repository", "RepoGroup", "Chart"] {
            let is_there = |crd: &Value| {
                let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
                conditions.iter().any(|its| its["type"] == "Established" && its["status"] == "True")
            };
            world.settled(&definitions, &format!("{}.yaho.soer3n.dev", plural(kind)), is_there).await;
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": world.name}});
        world.ok(Method::POST, "/api/v1/namespaces", &namespace).await;
        world
    }

    /// Publishes an index below a directory, and the archives beside it.
    fn publish(&self, directory: &str, charts: &[(&str, &str, Vec<u8>)]) {
        let mut entries = serde_json::Map::new();
        for (name, version, archive) in charts {
            let file = format!("{name}-{version}.tgz");
            let digest = ::source::digest::Digest::of(archive).hex().to_owned();
            let entry = json!({"name": name, "version": version, "urls": [file], "digest": digest});
            let list = entries.entry((*name).to_owned()).or_insert_with(|| json!([]));
            list.as_array_mut().unwrap().push(entry);
            self.repository.put(&format!("{directory}/{file}"), archive.clone());
        }
        let index = json!({"apiVersion": "v1", "entries": entries}).to_string();
        self.repository.put(&format!("{directory}/index.yaml"), index.into_bytes());
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        let request = request.header("accept", "application/json").body(bytes.into()).unwrap();
        let response = self.client.send(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn ok(&self, method: Method, path: &str, body: &Value) -> Value {
        let (status, answer) = self.send(method.clone(), path, body).await;
        assert!(status < 300, "{method} {path}: {status} {answer}");
        answer
    }

    fn api(&self, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        if kind == "ConfigMap" {
            Api::namespaced_with(self.client.clone(), &self.name, &resource)
        } else {
            Api::all_with(self.client.clone(), &resource)
        }
    }

    /// Waits until an object `fits`; one that is not there is null.
    async fn settled(&self, api: &Api<DynamicObject>, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let check = |object: Option<&DynamicObject>| fits(&serde_json::to_value(object).unwrap());
        let waiting = await_condition(api.clone(), name, check);
        let Ok(found) = tokio::time::timeout(DEADLINE, waiting).await else {
            panic!("{name} did not settle: {}", json!(api.get_opt(name).await.unwrap()));
        };
        serde_json::to_value(found.unwrap()).unwrap()
    }

    /// Waits until one of the three kinds `fits`.
    async fn object(&self, kind: &str, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.settled(&self.api("yaho.soer3n.dev/v1alpha1", kind, plural(kind)), name, fits).await
    }

    async fn synced(&self, kind: &str, name: &str) -> Value {
        let is_so = |object: &Value| {
            object["status"]["observedGeneration"] == object["metadata"]["generation"]
                && condition(object)["status"] == "True"
        };
        self.object(kind, name, is_so).await
    }

    async fn failed(&self, kind: &str, name: &str, reason: &str) -> String {
        let is_so = |object: &Value| {
            object["status"]["observedGeneration"] == object["metadata"]["generation"]
                && condition(object)["reason"] == reason
        };
        let object = self.object(kind, name, is_so).await;
        condition(&object)["message"].as_str().unwrap().to_owned()
    }

    async fn gone(&self, kind: &str, name: &str) {
        self.object(kind, name, Value::is_null).await;
    }

    async fn apply(&self, kind: &str, name: &str, spec: Value) {
        let path = format!("{API}/{}/{name}", plural(kind));
        let (status, answer) = self.send(Method::PATCH, &path, &json!({ "spec": spec })).await;
        if status == 404 {
            let object = json!({"apiVersion": "yaho.soer3n.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
            self.ok(Method::POST, &format!("{API}/{}", plural(kind)), &object).await;
        } else {
            assert!(status < 300, "{path}: {status} {answer}");
        }
    }

    async fn annotate(&self, kind: &str, name: &str, annotations: Value) {
        let patch = json!({"metadata": {"annotations": annotations}});
        self.ok(Method::PATCH, &format!("{API}/{}/{name}", plural(kind)), &patch).await;
    }

    async fn delete(&self, kind: &str, name: &str) {
        self.ok(Method::DELETE, &format!("{API}/{}/{name}", plural(kind)), &Value::Null).await;
    }

    async fn map(&self, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.settled(&self.api("v1", "ConfigMap", "configmaps"), name, fits).await
    }

    /// Returns the names of all maps with charts, sorted.
    async fn maps(&self) -> Vec<String> {
        let path = format!("/api/v1/namespaces/{}/configmaps", self.name);
        let list = self.ok(Method::GET, &path, &Value::Null).await;
        let names = list["items"].as_array().unwrap().iter();
        let names = names.map(|map| map["metadata"]["name"].as_str().unwrap().to_owned());
        let mut names: Vec<String> = names.filter(|name| name.starts_with("helm-")).collect();
        names.sort();
        names
    }

    /// Returns what `kubectl get` prints of an object: its cells by the names of the columns.
    async fn printed(&self, kind: &str, name: &str) -> Value {
        let table = Request::get(format!("{API}/{}/{name}", plural(kind)))
            .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
        let response = self.client.send(table.body(Vec::new().into()).unwrap()).await.unwrap();
        let bytes = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        let table: Value = serde_json::from_slice(&bytes).unwrap();
        let columns = table["columnDefinitions"].as_array().unwrap().iter();
        let cells = table["rows"][0]["cells"].as_array().unwrap();
        let name = |column: &Value| column["name"].as_str().unwrap().to_owned();
        columns.map(name).zip(cells.iter().cloned()).collect::<serde_json::Map<_, _>>().into()
    }

    async fn start(&self) -> Running {
        let more = [("retry-delay", "100ms"), ("source-allow", "127.0.0.1"), ("source-develop", "true")];
        Running::start(&self.client, self.dir.path(), &self.name, &more).await
    }

    /// Removes what other tests would see, too.
    async fn forget(self, operator: Running) {
        for kind in ["RepoGroup", "Chart", "Repository"] {
            let list = self.ok(Method::GET, &format!("{API}/{}", plural(kind)), &Value::Null).await;
            let names: Vec<String> = list["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|object| object["metadata"]["name"].as_str().unwrap().to_owned())
                .filter(|name| name.contains(&self.name))
                .collect();
            for name in names {
                self.send(Method::DELETE, &format!("{API}/{}/{name}", plural(kind)), &Value::Null).await;
                self.gone(kind, &name).await;
            }
        }
        operator.stop().await;
        self.send(Method::DELETE, &format!("/api/v1/namespaces/{}", self.name), &Value::Null).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster"]
async fn b01_b07_b14_lists_versions_and_the_garbage_collector() {
    let world = World::new().await;
    let corp = world.name.clone();
    let mine = format!("{corp}-mine");
    let version = |version: &str| ("alpha", alpha(version, ""), version.to_owned());
    let all = [version("0.1.0"), version("0.1.1")];
    let all: Vec<(&str, &str, Vec<u8>)> =
        all.iter().map(|(name, packed, version)| (*name, &**version, packed.clone())).collect();
    world.publish("", &all);
    let operator = world.start().await;
    // A Chart before its Repository.
    let spec = json!({"name": "alpha", "repository": corp, "versions": ["0.1.1"]});
    world.apply("Chart", &mine, spec).await;
    let said = world.failed("Chart", &mine, "initChartFailed").await;
    assert!(said.contains("there is no Repository"), "{said}");
    world.apply("Repository", &corp, json!({"name": corp, "url": world.repository.url("")})).await;
    let repository = world.synced("Repository", &corp).await;
    assert_eq!(repository["metadata"]["finalizers"], json!(["finalizer.repo.yaho.soer3n.dev"]));
    let chart = world.synced("Chart", &mine).await;
    world.object("Repository", &corp, |object| object["status"]["charts"] == 1).await;
    let printed = world.printed("Repository", &corp).await;
    assert_eq!((&printed["Synced"], &printed["Charts"]), (&json!(true), &json!(1)), "{printed}");
    let printed = world.printed("Chart", &mine).await;
    assert_eq!(printed["Versions"], "synced", "{printed}");
    let index = format!("helm-{corp}-alpha-index");
    let words = ["crds", "default", "tmpl"].map(|word| format!("helm-{word}-{corp}-alpha-0.1.1"));
    for name in &words {
        let map = world.map(name, |map| !map.is_null()).await;
        assert_eq!(map["immutable"], true);
        assert_eq!(map["metadata"]["ownerReferences"][0]["uid"], chart["metadata"]["uid"]);
    }
    // Nobody can change what is kept.
    let path = format!("/api/v1/namespaces/{corp}/configmaps/{}", words[1]);
    let (status, _) = world.send(Method::PATCH, &path, &json!({"data": {"values": "{}"}})).await;
    assert_eq!(status, 422);
    let part = world.map(&format!("helm-pkg-{corp}-alpha-0.1.1-1"), |map| !map.is_null()).await;
    let bytes = STANDARD.decode(part["binaryData"]["part"].as_str().unwrap()).unwrap();
    assert_eq!(bytes, alpha("0.1.1", ""));
    let labels = part["metadata"]["labels"].as_object().unwrap();
    assert_eq!(labels.keys().collect::<Vec<_>>(), ["addon-operator.io/package"]);

    world.apply("Chart", &mine, json!({"versions": ["~0.1", "0.1.0", "9.9.9"]})).await;
    let said = world.failed("Chart", &mine, "initChartFailed").await;
    assert!(said.contains("9.9.9") && !said.contains("\"0.1.0\""), "{said}");
    // Templates in directories below have maps of their own.
    assert_eq!(world.maps().await.len(), 11, "{:?}", world.maps().await);
    world.apply("Chart", &mine, json!({"versions": ["~0.1"]})).await;
    let object = world.synced("Chart", &mine).await;
    assert_eq!(object["status"]["resolved"][0]["version"], "0.1.1");
    // A second owner: the maps go with the last.
    let other = format!("{corp}-other");
    let spec = json!({"name": "alpha", "repository": corp, "versions": ["0.1.1"]});
    world.apply("Chart", &other, spec).await;
    let second = world.synced("Chart", &other).await;
    let owned_by = |map: &Value, count: usize| {
        let owners = map["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        owners.len() == count && owners.iter().any(|owner| owner["uid"] == second["metadata"]["uid"])
    };
    world.map(&words[0], |map| owned_by(map, 2)).await;
    world.delete("Chart", &mine).await;
    world.map(&words[0], |map| owned_by(map, 1)).await;
    world.map(&format!("helm-pkg-{corp}-alpha-0.1.1-1"), |map| owned_by(map, 1)).await;
    world.delete("Chart", &other).await;
    for name in &words {
        world.map(name, Value::is_null).await;
    }
    world.map(&format!("helm-pkg-{corp}-alpha-0.1.1-1"), Value::is_null).await;
    assert!(!world.map(&index, |_| true).await.is_null(), "the list of versions stays");
    world.delete("Repository", &corp).await;
    world.gone("Repository", &corp).await;
    world.map(&index, Value::is_null).await;
    world.forget(operator).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster"]
async fn b09_b17_archives_that_can_not_be_used_or_are_published_again() {
    let world = World::new().await;
    let corp = world.name.clone();
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0", "")), ("text", "1.0.0", b"no archive".to_vec())]);
    let operator = world.start().await;
    world.apply("Repository", &corp, json!({"name": corp, "url": world.repository.url("")})).await;
    let (text, mine) = (format!("{corp}-text"), format!("{corp}-mine"));
    world.apply("Chart", &text, json!({"name": "text", "repository": corp, "versions": ["*"]})).await;
    let said = world.failed("Chart", &text, "createConfigmapsFailed").await;
    assert!(said.contains("is no chart"), "{said}");
    world.apply("Chart", &mine, json!({"name": "alpha", "repository": corp, "versions": ["0.1.0"]})).await;
    world.synced("Chart", &mine).await;
    let package = format!("helm-pkg-{corp}-alpha-0.1.0-1");
    let before = world.map(&package, |map| !map.is_null()).await;
    let again = alpha("0.1.0", "description: again\n");
    world.publish("", &[("alpha", "0.1.0", again.clone())]);
    world.annotate("Repository", &corp, json!({"addon-operator.io/reprocess": "1"})).await;
    let has_changed = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|its| its["type"] == "DigestChanged" && its["status"] == "True")
    };
    world.object("Chart", &mine, has_changed).await;
    assert_eq!(world.map(&package, |_| true).await["metadata"]["uid"], before["metadata"]["uid"]);
    world.annotate("Chart", &mine, json!({"addon-operator.io/reprocess": "1"})).await;
    let is_new = |map: &Value| map["binaryData"]["part"] == STANDARD.encode(&again);
    world.map(&package, is_new).await;
    world.object("Chart", &mine, |object| !has_changed(object)).await;
    world.forget(operator).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster"]
async fn b11_b12_b13_groups_and_what_charts_need() {
    let world = World::new().await;
    let group = world.name.clone();
    let [own, extra, apart] = ["own", "extra", "apart"].map(|name| format!("{group}-{name}"));
    let [own_url, extra_url, apart_url] = ["/own", "/extra", "/apart"].map(|path| world.repository.url(path));
    world.publish("/own", &[("beta", "0.1.0", beta(&extra_url))]);
    world.publish("/extra", &[("alpha", "0.1.1", alpha("0.1.1", ""))]);
    world.publish("/apart", &[("alpha", "0.1.1", alpha("0.1.1", ""))]);
    let operator = world.start().await;
    let repos = json!([{"name": own, "url": own_url}, {"name": extra, "url": extra_url}]);
    world.apply("RepoGroup", &group, json!({"labelSelector": group, "repos": repos})).await;
    world.synced("Repository", &own).await;
    let other = world.synced("Repository", &extra).await;
    let printed = world.printed("Repository", &own).await;
    assert_eq!(printed["Group"], group, "{printed}");
    let mine = format!("{group}-mine");
    let spec = json!({"name": "beta", "repository": own, "versions": ["0.1.0"], "createDeps": true});
    world.apply("Chart", &mine, spec).await;
    let child = format!("alpha-{extra}");
    let made = world.synced("Chart", &child).await;
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], other["metadata"]["uid"]);
    assert_eq!(world.synced("Chart", &mine).await["status"]["dependencies"], "synced");
    let printed = world.printed("Chart", &mine).await;
    assert_eq!((&printed["Group"], &printed["Deps"]), (&json!(group), &json!("synced")), "{printed}");

    // One that is outside of the group is not asked.
    world.apply("Repository", &apart, json!({"name": apart, "url": apart_url})).await;
    world.synced("Repository", &apart).await;
    world.publish("/own", &[("beta", "0.1.0", beta(&apart_url)), ("beta", "0.2.0", beta(&apart_url))]);
    world.annotate("Repository", &own, json!({"addon-operator.io/reprocess": "1"})).await;
    let outside = format!("{group}-outside");
    let spec = json!({"name": "beta", "repository": own, "versions": ["0.2.0"], "createDeps": true});
    world.apply("Chart", &outside, spec).await;
    let said = world.failed("Chart", &outside, "createDepsFailed").await;
    assert!(said.contains("alpha"), "{said}");
    world.object("Chart", &format!("alpha-{apart}"), Value::is_null).await;
    world.delete("Chart", &outside).await;

    // What is not listed any more goes, with its Charts and their maps.
    world.apply("RepoGroup", &group, json!({"repos": [{"name": own, "url": own_url}]})).await;
    world.gone("Repository", &extra).await;
    world.gone("Chart", &child).await;
    world.map(&format!("helm-tmpl-{extra}-alpha-0.1.1"), Value::is_null).await;
    world.map(&format!("helm-{extra}-alpha-index"), Value::is_null).await;
    world.forget(operator).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster"]
async fn b18_b21_a_module_is_held_and_then_needs_no_repository() {
    let world = World::new().await;
    let corp = world.name.clone();
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0", ""))]);
    let module = world.dir.path().join("modules/040-cache");
    std::fs::create_dir(&module).unwrap();
    let text = format!("chart: {{repository: {corp}, name: alpha, version: '~0.1'}}\nvaluesLayout: root\n");
    std::fs::write(module.join("module.yaml"), text).unwrap();
    let plain = world.dir.path().join("modules/050-plain/templates");
    std::fs::create_dir_all(&plain).unwrap();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n";
    std::fs::write(plain.join("map.yaml"), map).unwrap();
    std::fs::write(plain.with_file_name("Chart.yaml"), "name: plain\nversion: 0.1.0\n").unwrap();
    std::fs::write(world.dir.path().join("modules/values.yaml"), "cacheEnabled: true\nplainEnabled: true\n")
        .unwrap();
    let maps = format!("/api/v1/namespaces/{corp}/configmaps");
    let say = async |says: &str| {
        let data = json!({"data": {"cache": format!("says: {says}\n")}});
        let (status, _) = world.send(Method::PATCH, &format!("{maps}/addon-operator"), &data).await;
        if status == 404 {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "addon-operator"}, "data": data["data"]});
            world.ok(Method::POST, &maps, &map).await;
        }
    };
    let operator = world.start().await;
    world.map("plain", |map| !map.is_null()).await;
    let said = world.failed("Chart", "module-cache", "initChartFailed").await;
    assert!(said.contains("there is no Repository"), "{said}");
    world.apply("Repository", &corp, json!({"name": corp, "url": world.repository.url("")})).await;
    world.map("shown", |map| map["data"]["says"] == "hello").await;
    operator.stop().await;
    world.repository.forget();
    let operator = world.start().await;
    say("again").await;
    world.map("shown", |map| map["data"]["says"] == "again").await;
    world.delete("Repository", &corp).await;
    world.gone("Repository", &corp).await;
    operator.stop().await;
    // The garbage collector leaves what the module has pinned.
    world.map(&format!("helm-{corp}-alpha-index"), Value::is_null).await;
    let operator = world.start().await;
    say("still").await;
    let shown = world.map("shown", |map| map["data"]["says"] == "still").await;
    assert_eq!(shown["data"]["version"], "0.1.0");
    world.send(Method::DELETE, &format!("{API}/charts/module-cache"), &Value::Null).await;
    world.forget(operator).await;
}

//! Module sources against a real API server: what only that has (rules in CEL, RBAC), and the life of an object of each kind.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_operator::source::crds;
use http::{Method, Request};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::operator::Running;

const GROUP: &str = "/apis/addons.kyma-project.io/v1alpha1";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How long a fact is waited for before the test fails.
const DEADLINE: Duration = Duration::from_mins(1);

/// A repository of files on loopback, without TLS.
#[derive(Clone)]
struct Repository {
    address: SocketAddr,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl Repository {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let repository = Self { address: listener.local_addr().unwrap(), files: Arc::default() };
        let files = Arc::clone(&repository.files);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut head = String::new();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                for line in lines.by_ref().take_while(|line| !line.is_empty()) {
                    if head.is_empty() {
                        head = line;
                    }
                }
                let path = head.split(' ').nth(1).unwrap_or_default();
                let file = files.lock().unwrap().get(path).cloned();
                let status = if file.is_some() { "200 OK" } else { "404 Not Found" };
                let body = file.unwrap_or_default();
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(&body);
            }
        });
        repository
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Offers the module `web`, a chart with one ConfigMap that says this.
    fn offer(&self, name: &str, says: &str) {
        let meta = format!("id: id-{name}\nname: {name}\nversion: 1.0.0\ndescription: d\ndisplayName: D\n");
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{says: {says}, in: {{{{ .Release.Namespace }}}}}}\n"
        );
        let files = [
            ("meta.yaml", meta),
            ("Chart.yaml", format!("name: {name}\nversion: 0.1.0\n")),
            ("templates/map.yaml", map),
        ];
        let index = format!("entries: {{{name}: [{{version: 1.0.0}}]}}\n");
        let mut here = self.files.lock().unwrap();
        here.insert(format!("/{name}-1.0.0.tgz"), packed(&files));
        here.insert(format!("/{name}.yaml"), index.into_bytes());
    }
}

fn packed(files: &[(&str, String)]) -> Vec<u8> {
    let mut archive =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

/// Two namespaces of their own on the cluster, of the operator and of a team, with a repository.
struct World {
    client: Client,
    dir: TempDir,
    /// What all names begin with.
    name: String,
    repository: Repository,
}

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let unique = dir.path().file_name().unwrap().to_str().unwrap().to_lowercase();
        let name = format!("src{}", unique.replace(|c: char| !c.is_ascii_alphanumeric(), ""));
        for part in ["modules", "global-hooks"] {
            std::fs::create_dir(dir.path().join(part)).unwrap();
        }
        let world = Self { client: super::client().await, dir, name, repository: Repository::start() };
        for crd in crds().unwrap() {
            let (status, answer) = world.send(Method::POST, DEFINITIONS, &crd).await;
            assert!(matches!(status, 201 | 409), "{answer}");
        }
        for definition in ["clusteraddonsconfigurations", "addonsconfigurations"] {
            let api = world.api("apiextensions.k8s.io", "v1", "CustomResourceDefinition", None);
            let name = format!("{definition}.addons.kyma-project.io");
            world
                .settled(&api, &name, |crd| {
                    let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
                    conditions.iter().any(|its| its["type"] == "Established" && its["status"] == "True")
                })
                .await;
        }
        for namespace in [world.operator(), world.team()] {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            world.ok(Method::POST, "/api/v1/namespaces", &object).await;
        }
        world
    }

    fn operator(&self) -> String {
        format!("{}-ops", self.name)
    }

    /// The name of a namespace has to survive as a part of a module's name.
    fn team(&self) -> String {
        format!("{}-team", self.name)
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        let response = self.client.send(request.body(bytes.into()).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn ok(&self, method: Method, path: &str, body: &Value) -> Value {
        let (status, answer) = self.send(method.clone(), path, body).await;
        assert!(status < 300, "{method} {path}: {status} {answer}");
        answer
    }

    /// Waits for an Event about the source of the cluster. Events are written a moment later than everything else.
    async fn announced(&self, reason: &str) {
        let is_it =
            |event: &Value| event["involvedObject"]["name"] == *self.name && event["reason"] == reason;
        let waiting = async {
            loop {
                let all = self.ok(Method::GET, "/api/v1/namespaces/default/events", &Value::Null).await;
                if all["items"].as_array().unwrap().iter().any(is_it) {
                    return;
                }
            }
        };
        assert!(tokio::time::timeout(DEADLINE, waiting).await.is_ok(), "no Event {reason}");
    }

    fn api(&self, group: &str, version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
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

    async fn map(&self, namespace: &str, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.settled(&self.api("", "v1", "ConfigMap", Some(namespace)), name, fits).await
    }

    async fn source(&self, namespace: Option<&str>, fits: impl Fn(&Value) -> bool) -> Value {
        let api = self.api("addons.kyma-project.io", "v1alpha1", kind(namespace), namespace);
        self.settled(&api, &self.name, fits).await
    }

    /// Returns the path of the source of a namespace, or of that of the cluster.
    fn place(&self, namespace: Option<&str>) -> String {
        format!("{}/{}", collection(namespace), self.name)
    }

    async fn apply(&self, namespace: Option<&str>, url: &str) {
        let object = json!({
            "apiVersion": "addons.kyma-project.io/v1alpha1", "kind": kind(namespace), "metadata": {"name": self.name},
            "spec": {"repositories": [{"url": url}], "reprocessRequest": 0},
        });
        self.ok(Method::POST, &collection(namespace), &object).await;
    }

    /// Switches modules on.
    async fn enable(&self, modules: &[&str]) {
        let flag = |name: &&str| (format!("{}Enabled", values::name::camel(name)), json!("true"));
        let data: serde_json::Map<String, Value> = modules.iter().map(flag).collect();
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "addon-operator"}, "data": data});
        let path = format!("/api/v1/namespaces/{}/configmaps", self.operator());
        self.ok(Method::POST, &path, &map).await;
    }

    async fn start(&self) -> Running {
        let more = [
            ("retry-delay", "100ms"),
            ("source-allow", "127.0.0.1"),
            ("source-develop", "true"),
            ("source-relist", "1s"),
        ];
        Running::start(&self.client, self.dir.path(), &self.operator(), &more).await
    }

    /// Removes what tests of other worlds would see, too.
    async fn forget(&self) {
        for namespace in [self.operator(), self.team()] {
            self.send(Method::DELETE, &format!("/api/v1/namespaces/{namespace}"), &Value::Null).await;
        }
    }
}

/// Returns the kind of the sources of a namespace, or of those of the cluster.
fn kind(namespace: Option<&str>) -> &'static str {
    if namespace.is_some() { "AddonsConfiguration" } else { "ClusterAddonsConfiguration" }
}

fn collection(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("{GROUP}/namespaces/{namespace}/addonsconfigurations"),
        None => format!("{GROUP}/clusteraddonsconfigurations"),
    }
}

fn phase(object: &Value) -> &str {
    object["status"]["phase"].as_str().unwrap_or_default()
}

fn module<'o>(object: &'o Value, field: &str) -> &'o str {
    object["status"]["repositories"][0]["addons"][0]["module"][field].as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster"]
async fn a01_a02_a03_a11_a18_a22_a_source_is_added_changed_and_deleted() {
    let world = World::new().await;
    let (web, db) = (format!("{}-web", world.name), format!("{}-db", world.name));
    world.repository.offer(&web, "one");
    world.repository.offer(&db, "one");
    world.enable(&[&web, &db]).await;
    let operator = world.start().await;
    world.apply(None, &world.repository.url(&format!("/{web}.yaml"))).await;
    let object = world.source(None, |object| module(object, "state") == "Running").await;
    assert_eq!(object["metadata"]["finalizers"], json!(["addons.kyma-project.io"]));
    assert_eq!((phase(&object), &object["status"]["modules"]), ("Ready", &json!("1/1")));
    assert_eq!(object["status"]["observedGeneration"], object["metadata"]["generation"]);
    world.map(&world.operator(), &web, |map| map["data"]["says"] == "one").await;
    // kubectl prints what the columns say.
    let table =
        Request::get(collection(None)).header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let response = world.client.send(table.body(Vec::new().into()).unwrap()).await.unwrap();
    let bytes = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    let table: Value = serde_json::from_slice(&bytes).unwrap();
    let columns: Vec<&Value> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(columns, ["Name", "Phase", "Modules", "Age"]);
    // Another repository: its module comes, the first goes.
    let spec = json!({"spec": {"repositories": [{"url": world.repository.url(&format!("/{db}.yaml"))}]}});
    world.ok(Method::PATCH, &world.place(None), &spec).await;
    world.map(&world.operator(), &db, |map| map["data"]["says"] == "one").await;
    world.map(&world.operator(), &web, Value::is_null).await;
    world.announced("SourceReady").await;
    world.ok(Method::DELETE, &world.place(None), &Value::Null).await;
    world.source(None, Value::is_null).await;
    assert!(world.map(&world.operator(), &db, |_| true).await.is_null(), "the module goes before its object");
    operator.stop().await;
    world.forget().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster"]
async fn a09_a10_the_counter_only_grows_and_has_everything_fetched_again() {
    let world = World::new().await;
    let web = format!("{}-web", world.name);
    world.repository.offer(&web, "one");
    world.enable(&[&web]).await;
    let operator = world.start().await;
    world.apply(None, &world.repository.url(&format!("/{web}.yaml"))).await;
    let before = world.source(None, |object| module(object, "state") == "Running").await;
    // Other bytes under the same version.
    world.repository.offer(&web, "two");
    world.ok(Method::PATCH, &world.place(None), &json!({"spec": {"reprocessRequest": 5}})).await;
    world.map(&world.operator(), &web, |map| map["data"]["says"] == "two").await;
    let digest = "/status/repositories/0/addons/0/digest";
    let is_new =
        |object: &Value| object.pointer(digest) != before.pointer(digest) && phase(object) == "Ready";
    world.source(None, |object| is_new(object) && object["status"]["observedGeneration"] == 2).await;
    // The rules of the kind: the counter does not go back, nor away, nor below zero.
    for (counter, says) in [
        (json!(4), "reprocessRequest may only grow"),
        (Value::Null, "reprocessRequest may only grow"),
        (json!(-1), "greater than or equal to 0"),
    ] {
        let patch = json!({"spec": {"reprocessRequest": counter}});
        let (status, answer) = world.send(Method::PATCH, &world.place(None), &patch).await;
        assert!(status == 422 && answer["message"].as_str().unwrap().contains(says), "{status} {answer}");
    }
    let patch = json!({"spec": {"reprocessRequest": 5}});
    world.ok(Method::PATCH, &world.place(None), &patch).await;
    // What else is checked before we see it.
    for (patch, says) in [
        (json!({"failurePolicy": "Maybe"}), "spec.failurePolicy: Unsupported value"),
        (json!({"deletionPolicy": "Maybe"}), "spec.deletionPolicy: Unsupported value"),
        (json!({"repositories": [{}]}), "spec.repositories[0].url: Required value"),
        (
            json!({"repositories": [{"url": "https://a/i.yaml", "include": [{"name": "a", "digest": "sha256:0"}]}]}),
            "spec.repositories[0].include[0].digest in body should match",
        ),
    ] {
        let (status, answer) = world.send(Method::PATCH, &world.place(None), &json!({ "spec": patch })).await;
        assert!(
            status == 422 && answer["message"].as_str().unwrap().contains(says),
            "{says}: {status} {answer}"
        );
    }
    // Ready at equal generation: a restart writes nothing.
    let ready = world.source(None, |object| module(object, "state") == "Running").await;
    operator.stop().await;
    world.repository.files.lock().unwrap().clear();
    let operator = world.start().await;
    world
        .ok(
            Method::DELETE,
            &format!("/api/v1/namespaces/{}/configmaps/{web}", world.operator()),
            &Value::Null,
        )
        .await;
    world.map(&world.operator(), &web, |map| map["data"]["says"] == "two").await;
    let after = world.source(None, |_| true).await;
    assert_eq!(after["metadata"]["resourceVersion"], ready["metadata"]["resourceVersion"], "{after}");
    world.ok(Method::DELETE, &world.place(None), &Value::Null).await;
    world.source(None, Value::is_null).await;
    operator.stop().await;
    world.forget().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster"]
async fn a29_a_chart_of_a_namespace_has_the_rights_of_its_account_and_no_others() {
    let world = World::new().await;
    let team = world.team();
    world.repository.offer("web", "one");
    let name = format!("{team}-web");
    world.enable(&[&name]).await;
    let operator = world.start().await;
    world.apply(Some(&team), &world.repository.url("/web.yaml")).await;
    let account = format!("system:serviceaccount:{team}:addon-operator");
    let refused = world.source(Some(&team), |object| module(object, "state") == "Error").await;
    let message = module(&refused, "message");
    assert!(message.contains("is forbidden") && message.contains(&account), "{message}");
    assert!(message.contains("cannot list resource \"secrets\""), "{message}");
    assert_eq!((phase(&refused), module(&refused, "name")), ("Ready", &*name));
    // With records but without objects: one revision, however often it is tried.
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{team}");
    let role = |resources: &[&str]| json!({"metadata": {"name": "modules"}, "rules": [{"apiGroups": [""], "resources": resources, "verbs": ["*"]}]});
    world.ok(Method::POST, &format!("{rbac}/roles"), &role(&["secrets"])).await;
    let binding = json!({
        "metadata": {"name": "modules"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "modules"},
        "subjects": [{"kind": "ServiceAccount", "name": "addon-operator", "namespace": team}],
    });
    world.ok(Method::POST, &format!("{rbac}/rolebindings"), &binding).await;
    let about_maps = |object: &Value| module(object, "message").contains("resource \"configmaps\"");
    world.source(Some(&team), about_maps).await;
    world.ok(Method::PUT, &format!("{rbac}/roles/modules"), &role(&["secrets", "configmaps"])).await;
    world.source(Some(&team), |object| module(object, "state") == "Running").await;
    world.map(&team, "web", |map| map["data"] == json!({"says": "one", "in": team})).await;
    let secrets = world.ok(Method::GET, &format!("/api/v1/namespaces/{team}/secrets"), &Value::Null).await;
    let names: Vec<&Value> =
        secrets["items"].as_array().unwrap().iter().map(|secret| &secret["metadata"]["name"]).collect();
    assert_eq!(names, [&json!(format!("sh.helm.release.v1.{name}.v1"))]);
    world.ok(Method::DELETE, &world.place(Some(&team)), &Value::Null).await;
    world.source(Some(&team), Value::is_null).await;
    assert!(world.map(&team, "web", |_| true).await.is_null());
    operator.stop().await;
    world.forget().await;
}

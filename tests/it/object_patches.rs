//! Changes of objects that hooks ask for, against the embedded API server: what is asked and what is there then.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_operator::cluster::{Discovery, connect_in_process};
use addon_operator::kube::Patcher;
use apiserver::{ApiServer, FaultPlan};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::object_patch::{ObjectPatch, Operation, Purpose};
use engine::{HookId, Scope, object_patch};
use http::Method;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use kube::{Api, Client};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::support::server;

/// A server that writes down what it is asked: method, path, type and content.
struct Fixture {
    server: ApiServer,
    requests: Arc<Mutex<Vec<String>>>,
    /// Its requests are not written down.
    client: Client,
    patcher: Patcher,
}

impl Fixture {
    fn new() -> Self {
        let server = ApiServer::builder().seed(1).build().unwrap();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (service, seen) = (server.service(), Arc::clone(&requests));
        let recording = tower::service_fn(move |request: http::Request<Body>| {
            let (service, seen) = (service.clone(), Arc::clone(&seen));
            async move {
                let (parts, body) = request.into_parts();
                let bytes = body.collect().await.map(|body| body.to_bytes().to_vec()).unwrap_or_default();
                let kind = parts.headers.get(CONTENT_TYPE).map_or("", |kind| kind.to_str().unwrap());
                let path = parts.uri.to_string();
                if !path.contains("discovery") && !matches!(path.as_str(), "/api" | "/apis") {
                    let text = String::from_utf8(bytes.clone()).unwrap();
                    seen.lock().unwrap().push(format!("{} {path} {kind} {text}", parts.method));
                }
                service.oneshot(http::Request::from_parts(parts, Body::from(bytes))).await
            }
        });
        let client = connect_in_process(recording, "default");
        let patcher = Patcher::new(client.clone(), Discovery::new(client), Duration::from_secs(5));
        let client = Client::new(server.service(), "default");
        Self { server, requests, client, patcher }
    }

    /// Carries out what a hook wrote.
    async fn apply(&self, text: &str) -> Result<(), String> {
        let patches = object_patch::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}\n{error}"));
        self.carry_out(&patches).await
    }

    async fn carry_out(&self, patches: &[ObjectPatch]) -> Result<(), String> {
        let hook = HookId { scope: Scope::Global, name: "a.sh".into() };
        self.patcher
            .apply(&engine::PatchAuthor::Hook(hook), patches)
            .await
            .map_err(|failure| failure.to_string())
    }

    /// Asks whether a child would be made in the place of the one that lives.
    async fn try_create(&self, object: Value) -> Result<(), String> {
        let text = json!({"operation": "Apply", "object": object}).to_string();
        let mut patches = object_patch::parse(text.as_bytes()).unwrap();
        patches[0].operation = Operation::TryCreate { object };
        patches[0].purpose = Purpose::Child;
        self.carry_out(&patches).await
    }

    fn requests(&self) -> Vec<String> {
        let requests = std::mem::take(&mut *self.requests.lock().unwrap());
        requests.into_iter().map(|request| request.trim_end().to_owned()).collect()
    }

    async fn get(&self, path: &str) -> Option<Value> {
        server::get(&self.server, path).await
    }

    async fn post(&self, path: &str, object: &Value) {
        server::ok(&self.server, Method::POST, path, object).await;
    }

    async fn map(&self, name: &str) -> Option<Value> {
        self.get(&format!("/api/v1/namespaces/default/configmaps/{name}")).await
    }

    async fn make(&self, name: &str, data: Value) {
        let map = json!({"metadata": {"name": name, "labels": {"mine": "yes"}}, "data": data});
        self.post("/api/v1/namespaces/default/configmaps", &map).await;
    }
}

fn created(operation: &str, name: &str, data: &Value) -> String {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data});
    json!({"operation": operation, "object": object}).to_string()
}

fn on(operation: &str, name: &str, more: &Value) -> String {
    let mut document = json!({"operation": operation, "apiVersion": "v1", "kind": "configmap", "namespace": "default", "name": name});
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    document.to_string()
}

#[tokio::test]
async fn a_test_that_does_not_hold_is_a_conflict_and_a_patch_that_is_wrong_is_none() {
    let world = Fixture::new();
    world.make("a", json!({"k": "1"})).await;
    let steps = |value: &str| json!([{"op": "test", "path": "/data/k", "value": value}, {"op": "add", "path": "/data/k", "value": "2"}]);
    let error = world.apply(&on("JSONPatch", "a", &json!({"jsonPatch": steps("0")}))).await.unwrap_err();
    assert!(error.contains("somebody else changed the object: the test of /data/k does not hold"), "{error}");
    assert!(!error.contains("RBAC"), "{error}");
    let wrong = json!([{"op": "remove", "path": "/data/nothing"}]);
    let error = world.apply(&on("JSONPatch", "a", &json!({"jsonPatch": wrong}))).await.unwrap_err();
    assert!(error.contains("the server rejected our request"), "{error}");
    assert_eq!(world.map("a").await.unwrap()["data"]["k"], "1");
    world.apply(&on("JSONPatch", "a", &json!({"jsonPatch": steps("1")}))).await.unwrap();
    assert_eq!(world.map("a").await.unwrap()["data"]["k"], "2");
}

#[tokio::test]
async fn creations_ask_for_what_they_say() {
    let world = Fixture::new();
    world.apply(&created("Create", "a", &json!({"k": "1"}))).await.unwrap();
    let requests = world.requests();
    assert_eq!(requests.len(), 1, "{requests:#?}");
    assert!(
        requests[0].starts_with("POST /api/v1/namespaces/default/configmaps? application/json {"),
        "{requests:?}"
    );
    let error = world.apply(&created("Create", "a", &json!({"k": "2"}))).await.unwrap_err();
    assert!(
        error.starts_with("object patch 1 of 1 of hook global/a.sh: Create object v1/ConfigMap/default/a: ")
            && error.contains("already exists")
            && error.contains("(nothing was done)"),
        "{error}"
    );
    world.apply(&created("CreateIfNotExists", "a", &json!({"k": "3"}))).await.unwrap();
    assert_eq!(world.map("a").await.unwrap()["data"], json!({"k": "1"}));
    world.apply(&created("CreateIfNotExists", "b", &json!({"k": "3"}))).await.unwrap();
    assert_eq!(world.map("b").await.unwrap()["data"], json!({"k": "3"}));
}

#[tokio::test]
async fn a_conflict_that_is_not_about_the_object_is_not_taken_for_one_that_exists() {
    let world = Fixture::new();
    let map = "/api/v1/namespaces/default/configmaps";
    for operation in ["CreateIfNotExists", "CreateOrUpdate"] {
        // As the API server says it when it can't count the object in a quota.
        world.server.faults().add(FaultPlan::on(Method::POST, map).fail(409));
        let error = world.apply(&created(operation, "a", &json!({"k": "1"}))).await.unwrap_err();
        assert!(error.contains("this fault was planned"), "{operation}: {error}");
        assert_eq!(world.map("a").await, None);
    }
}

#[tokio::test]
async fn create_or_update_merges_and_leaves_the_status_alone() {
    let world = Fixture::new();
    world.make("a", json!({"k": "1", "stays": "x"})).await;
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"k": "2"}});
    object["status"] = json!({"phase": "mine"});
    world.apply(&json!({"operation": "CreateOrUpdate", "object": object}).to_string()).await.unwrap();
    let patch = world.requests().pop().unwrap();
    assert!(
        patch.starts_with("PATCH /api/v1/namespaces/default/configmaps/a? application/merge-patch+json {")
            && !patch.contains("phase"),
        "{patch}"
    );
    let map = world.map("a").await.unwrap();
    assert_eq!(map["data"], json!({"k": "2", "stays": "x"}));
    assert_eq!(map["metadata"]["labels"]["mine"], "yes");
    world.apply(&created("CreateOrUpdate", "b", &json!({"k": "1"}))).await.unwrap();
    // Numbers of YAML are numbers.
    let yaml = "operation: CreateOrUpdate\nobject:\n  apiVersion: apps/v1\n  kind: Deployment\n  metadata: {name: d, namespace: default}\n  spec:\n    replicas: 3\n    selector: {matchLabels: {a: b}}\n    template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: d}]}}\n";
    for text in [yaml.to_owned(), yaml.replace("replicas: 3", "replicas: 4")] {
        world.apply(&text).await.unwrap();
    }
    let deployment = world.get("/apis/apps/v1/namespaces/default/deployments/d").await;
    assert_eq!(deployment.unwrap()["spec"]["replicas"], 4);
}

#[tokio::test]
async fn create_or_update_looks_at_what_lives_before_it_writes() {
    let world = Fixture::new();
    let methods = |world: &Fixture| -> Vec<String> {
        let requests = world.requests();
        requests.iter().map(|request| request.split(' ').next().unwrap().to_owned()).collect()
    };
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    world.post("/api/v1/namespaces/default/pods", &pod).await;
    // As a whole this would be no Pod.
    let part = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "labels": {"seen": "yes"}}});
    let text = json!({"operation": "CreateOrUpdate", "object": part}).to_string();
    world.apply(&text).await.unwrap();
    assert_eq!(methods(&world), ["GET", "PATCH"]);
    let pod = world.get("/api/v1/namespaces/default/pods/p").await.unwrap();
    assert_eq!(pod["metadata"]["labels"]["seen"], "yes");
    world.apply(&text).await.unwrap();
    assert_eq!(methods(&world), ["GET"], "what is as it should be is not written");
    world.apply(&created("CreateOrUpdate", "new", &json!({"k": "1"}))).await.unwrap();
    assert_eq!(methods(&world), ["GET", "POST"]);
    // Somebody else is faster.
    let missed = FaultPlan::on(Method::GET, "/api/v1/namespaces/default/configmaps/new").fail(404);
    world.server.faults().add(missed);
    world.apply(&created("CreateOrUpdate", "new", &json!({"k": "2"}))).await.unwrap();
    assert_eq!(methods(&world), ["GET", "POST", "GET", "PATCH"]);
    assert_eq!(world.map("new").await.unwrap()["data"], json!({"k": "2"}));
    // What could not be read may be there.
    let broken = FaultPlan::on(Method::GET, "/api/v1/namespaces/default/configmaps/new").fail(500);
    world.server.faults().add(broken);
    world.apply(&created("CreateOrUpdate", "new", &json!({"k": "3"}))).await.unwrap_err();
    assert_eq!(methods(&world), ["GET"]);
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"generateName": "made-", "namespace": "default"}});
    world.apply(&json!({"operation": "CreateOrUpdate", "object": nameless}).to_string()).await.unwrap();
    assert_eq!(methods(&world), ["POST"]);
}

#[tokio::test]
async fn apply_owns_the_fields_that_it_sets() {
    let world = Fixture::new();
    world.make("a", json!({"theirs": "x"})).await;
    world.apply(&created("Apply", "a", &json!({"ours": "1"}))).await.unwrap();
    let request = world.requests().pop().unwrap();
    assert!(
        request.starts_with("PATCH /api/v1/namespaces/default/configmaps/a?")
            && request.contains("force=true")
            && request.contains("fieldManager=addon-operator")
            && request.contains("application/apply-patch+yaml"),
        "{request}"
    );
    assert_eq!(world.map("a").await.unwrap()["data"], json!({"theirs": "x", "ours": "1"}));
    world.apply(&created("Apply", "new", &json!({"ours": "1"}))).await.unwrap();
    assert!(world.map("new").await.is_some());
}

#[tokio::test]
async fn deletions_say_what_becomes_of_what_is_owned() {
    let world = Fixture::new();
    for (operation, policy) in
        [("Delete", "Foreground"), ("DeleteInBackground", "Background"), ("DeleteNonCascading", "Orphan")]
    {
        world.make("a", json!({})).await;
        let more = json!({"subresource": "/status"});
        world.apply(&on(operation, "a", &more)).await.unwrap();
        let requests = world.requests();
        let deletion = requests.iter().find(|request| request.starts_with("DELETE ")).unwrap();
        assert!(
            deletion.starts_with("DELETE /api/v1/namespaces/default/configmaps/a?")
                && deletion.contains(&format!("\"propagationPolicy\":\"{policy}\"")),
            "{deletion}"
        );
        // What owned objects are told, the server does on its own before the object goes.
        let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "default");
        server::settled(&maps, "a", Value::is_null).await;
        world.apply(&on(operation, "a", &json!({}))).await.expect("what is gone is gone");
        world.requests();
    }
}

#[tokio::test]
async fn patches_have_their_types_and_reach_subresources() {
    let world = Fixture::new();
    world.make("a", json!({"k": "1", "old": "x"})).await;
    let steps =
        json!([{"op": "remove", "path": "/data/old"}, {"op": "test", "path": "/data/k", "value": "1"}]);
    world.apply(&on("JSONPatch", "a", &json!({"jsonPatch": steps.clone()}))).await.unwrap();
    assert_eq!(
        world.requests(),
        [format!("PATCH /api/v1/namespaces/default/configmaps/a? application/json-patch+json {steps}")]
    );
    world.apply(&on("MergePatch", "a", &json!({"mergePatch": "data:\n  k: '2'\n"}))).await.unwrap();
    assert_eq!(
        world.requests(),
        [r#"PATCH /api/v1/namespaces/default/configmaps/a? application/merge-patch+json {"data":{"k":"2"}}"#]
    );
    world.apply(&on("JQPatch", "a", &json!({"jqFilter": ".data.n = (.data.k + \"!\")"}))).await.unwrap();
    let requests = world.requests();
    assert!(
        requests.len() == 2
            && requests[0].starts_with("GET /api/v1/namespaces/default/configmaps/a")
            && requests[1].starts_with("PUT /api/v1/namespaces/default/configmaps/a application/json {"),
        "{requests:#?}"
    );
    assert_eq!(world.map("a").await.unwrap()["data"], json!({"k": "2", "n": "2!"}));
    world.apply(&on("JQPatch", "a", &json!({"jqFilter": ".data.k = \"2\""}))).await.unwrap();
    assert_eq!(world.requests().len(), 1, "what is as it should be is not written");
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    world.post("/api/v1/namespaces/default/pods", &pod).await;
    for subresource in ["status", "/status"] {
        let patch = json!({"operation": "MergePatch", "kind": "po", "namespace": "default", "name": "p",
            "subresource": subresource, "mergePatch": {"status": {"message": subresource}}});
        world.apply(&patch.to_string()).await.unwrap();
        let request = world.requests().pop().unwrap();
        assert!(request.starts_with("PATCH /api/v1/namespaces/default/pods/p/status? "), "{request}");
    }
    let pod = world.get("/api/v1/namespaces/default/pods/p").await.unwrap();
    assert_eq!(pod["status"]["message"], "/status");
}

#[tokio::test]
async fn an_object_that_is_missing_is_an_error_unless_that_is_fine() {
    let world = Fixture::new();
    let patches = [
        ("MergePatch", json!({"mergePatch": {"data": {}}})),
        ("JSONPatch", json!({"jsonPatch": [{"op": "add", "path": "/data", "value": {}}]})),
        ("JQPatch", json!({"jqFilter": ".data = {}"})),
    ];
    for (operation, more) in patches {
        let error = world.apply(&on(operation, "nobody", &more)).await.unwrap_err();
        assert!(
            error.contains("Filter object v1/configmap/default/nobody") && error.contains("not found"),
            "{error}"
        );
        let mut more = more;
        more["ignoreMissingObject"] = json!(true);
        world.apply(&on(operation, "nobody", &more)).await.unwrap();
    }
}

#[tokio::test]
async fn an_error_says_which_operation_it_was_and_what_was_done() {
    let world = Fixture::new();
    let mut text = String::new();
    for n in 0..100 {
        let operation = if n == 42 {
            on("MergePatch", "nobody", &json!({"mergePatch": {"data": {}}}))
        } else {
            created("Create", &format!("m{n}"), &json!({}))
        };
        text.push_str(&operation);
        text.push('\n');
    }
    let error = world.apply(&text).await.unwrap_err();
    assert!(
        error.starts_with(
            "object patch 43 of 100 of hook global/a.sh: Filter object v1/configmap/default/nobody: "
        ) && error.contains("(the 42 operations before it and 57 after it are done)"),
        "{error}"
    );
    assert!(world.map("m41").await.is_some() && world.map("m99").await.is_some());
    assert_eq!(world.requests().len(), 100);
    let error =
        world.apply(&created("Create", "x", &json!({})).replace("ConfigMap", "Nonsense")).await.unwrap_err();
    assert!(error.contains("Nonsense"), "{error}");
}

#[tokio::test]
async fn f_b11_one_operation_that_can_not_be_right_keeps_all_from_being_done() {
    let world = Fixture::new();
    let wrong = [
        (on("JQPatch", "m0", &json!({"jqFilter": ".data |"})), "jq filter"),
        (on("JQPatch", "m0", &json!({"jqFilter": "nothing_like_that"})), "nothing_like_that"),
        (
            created("Create", "x", &json!({})).replace("\"name\":\"x\"", "\"name\":\"x\",\"labels\":5"),
            "this is no object",
        ),
        (
            on("JSONPatch", "m0", &json!({"jsonPatch": [{"op": "add", "path": "/a~2", "value": 1}]})),
            "this is no JSON Patch",
        ),
    ];
    for (operation, expected) in wrong {
        let mut text: String =
            (0..50).map(|n| created("Create", &format!("m{n}"), &json!({})) + "\n").collect();
        text.push_str(&operation);
        for n in 50..99 {
            text.push_str(&created("Create", &format!("m{n}"), &json!({})));
        }
        let error = world.apply(&text).await.unwrap_err();
        assert!(
            error.starts_with("object patch 51 of 100 of hook")
                && error.contains(expected)
                && error.contains("(nothing was done)"),
            "{error}"
        );
        assert_eq!(world.requests(), [""; 0]);
    }
}

#[tokio::test]
async fn a_filter_gives_one_object_or_an_error() {
    let world = Fixture::new();
    world.make("a", json!({"k": "1"})).await;
    for filter in ["empty", "., .", "5", "null", "[.]"] {
        let error = world.apply(&on("JQPatch", "a", &json!({"jqFilter": filter}))).await.unwrap_err();
        assert!(error.contains("exactly one object"), "{filter}: {error}");
    }
    let error =
        world.apply(&on("JQPatch", "a", &json!({"jqFilter": "error(\"no luck\")"}))).await.unwrap_err();
    assert!(error.contains("no luck"), "{error}");
}

#[tokio::test]
async fn slip_03_a_refused_change_of_a_secret_does_not_quote_it() {
    let fixture = Fixture::new();
    let encoded = "UHIwZC1wYXNzd29yZA==";
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "prod", "namespace": "default"},
        "data": {"password": encoded}});
    server::ok(&fixture.server, Method::POST, "/api/v1/namespaces/default/secrets", &secret).await;
    for change in [
        json!({"operation": "MergePatch", "mergePatch": {"stringData": {"count": 1}}}),
        json!({"operation": "MergePatch", "mergePatch": {"data": {"count": 1}}}),
        json!({"operation": "JSONPatch", "jsonPatch": [{"op": "add", "path": "/data/x", "value": 5}]}),
    ] {
        let mut operation = json!({"kind": "Secret", "namespace": "default", "name": "prod"});
        operation.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let said = fixture.apply(&operation.to_string()).await.unwrap_err();
        assert!(said.contains("prod") && !said.contains(encoded), "{said}");
    }
}

/// Where a filter can put what it took from a Secret, each with what the API server refuses it as.
const TAKEN: [&str; 16] = [
    ".kind = $v",
    ".apiVersion = $v",
    ".metadata.name = $v",
    ".metadata.namespace = $v",
    ".metadata.uid = $v",
    ".metadata.resourceVersion = $v",
    ".metadata.creationTimestamp = $v",
    ".metadata.labels = {\"a\": $v}",
    ".metadata.labels = {($v): \"a\"}",
    ".metadata.annotations = {($v): \"a\"}",
    ".metadata.finalizers = [$v]",
    ".metadata.ownerReferences = [{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"name\": $v, \"uid\": \"\"}]",
    ".metadata.managedFields = $v",
    ".type = $v",
    ".data = {($v): \"AA==\"}",
    ".data = {\"a\": $v}",
];

#[tokio::test]
async fn slip_03_what_a_filter_took_from_an_object_is_not_quoted() {
    let fixture = Fixture::new();
    let values = ["kQ7xPw2 rM9vLt4z", "hunter22secret-word_", "aB3$dE5&fG7*hJ9<kL"];
    for (number, value) in values.into_iter().enumerate() {
        let name = format!("s{number}");
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name, "namespace": "default"}, "stringData": {"password": value}});
        fixture.post("/api/v1/namespaces/default/secrets", &secret).await;
        let mut patches: Vec<Value> = TAKEN
            .iter()
            .map(|put| json!({"operation": "JQPatch", "jqFilter": format!("(.data.password | @base64d) as $v | {put}")}))
            .collect();
        for path in ["/kind", "/metadata/name", "/metadata/labels", "/metadata/creationTimestamp"] {
            for op in ["copy", "move"] {
                patches.push(json!({"operation": "JSONPatch", "jsonPatch": [{"op": op, "from": "/data/password", "path": path}]}));
            }
        }
        for mut patch in patches {
            let target = json!({"kind": "Secret", "namespace": "default", "name": name});
            patch.as_object_mut().unwrap().extend(target.as_object().unwrap().clone());
            // Some API servers take some of it.
            let Err(said) = fixture.apply(&patch.to_string()).await else { continue };
            let encoded = STANDARD.encode(value);
            for part in [&value[..7], &value[value.len() - 7..], &encoded[..8]] {
                assert!(!said.contains(part), "{patch}: {said}");
            }
            // A revision that is no number is an error of the server, as Kubernetes sees it.
            let is_code = ["4", "5"].iter().any(|begin| said.contains(&format!("code {begin}")));
            let is_named = is_code || said.contains("no name of a namespace");
            assert!(said.contains(&name) && is_named, "{patch}: {said}");
        }
    }
    let wrong = on(
        "JQPatch",
        "s0",
        &json!({"kind": "Secret", "jqFilter": ".metadata.labels.owner = (.data.password | @base64d)"}),
    );
    let said = fixture.apply(&wrong).await.unwrap_err();
    assert!(said.contains("Invalid (code 422) at metadata.labels (FieldValueInvalid)"), "{said}");
}

#[tokio::test]
async fn a_child_is_tried_in_the_place_of_the_one_that_lives_and_nothing_is_written() {
    let fixture = Fixture::new();
    let object = |kind: &str, more: Value| {
        let mut object =
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "namespace": "default"}});
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object
    };
    let served = |port: u64| json!({"spec": {"type": "NodePort", "ports": [{"name": "http", "port": 80, "nodePort": port}]}});
    let kinds = [
        ("Secret", "secrets", json!({"type": "Opaque", "data": {"k": "AA=="}})),
        ("ConfigMap", "configmaps", json!({"data": {"k": "v"}})),
        ("Service", "services", served(30_080)),
    ];
    let path = |plural: &str| format!("/api/v1/namespaces/default/{plural}/a");
    let mut before = Vec::new();
    for (kind, plural, more) in &kinds {
        fixture.post(path(plural).trim_end_matches("/a"), &object(kind, more.clone())).await;
        before.push(fixture.get(&path(plural)).await);
    }
    for good in [
        // What can't be changed is of no matter.
        object("Secret", json!({"type": "kubernetes.io/basic-auth", "data": {"username": "AA=="}})),
        object("ConfigMap", json!({"data": {"k": "other"}})),
        // The one that lives has the port.
        object("Service", served(30_080)),
    ] {
        assert_eq!(fixture.try_create(good.clone()).await, Ok(()), "{good}");
    }
    for (bad, why) in [
        (object("Secret", json!({"data": {"a b": "AA=="}})), "data"),
        (object("Secret", json!({"data": {"k": 5}})), "Secret.data"),
        (object("ConfigMap", json!({"date": {"k": "v"}})), "date"),
        (object("Service", json!({"spec": {"ports": [{"port": 80, "protocol": "X"}]}})), "protocol"),
    ] {
        let said = fixture.try_create(bad.clone()).await.unwrap_err();
        assert!(said.contains(why) && said.contains("what is there stays until"), "{bad}: {said}");
    }
    let mut after = Vec::new();
    for (_, plural, _) in &kinds {
        after.push(fixture.get(&path(plural)).await);
    }
    assert_eq!(after, before);
    // It is gone meanwhile: nothing is made of it before its turn.
    fixture
        .try_create({
            let mut object = object("ConfigMap", json!({}));
            object["metadata"]["name"] = "b".into();
            object
        })
        .await
        .unwrap();
    assert_eq!(fixture.map("b").await, None);
}

#[tokio::test]
async fn what_is_larger_than_an_api_server_takes_is_not_sent_and_the_error_names_object_and_size() {
    let world = Fixture::new();
    world.make("big", json!({"k": "1"})).await;
    let long = "x".repeat(4 << 20);
    let data = json!({"k": long});
    let status = json!({"operation": "MergePatch", "apiVersion": "v1", "kind": "Namespace", "name": "default", "subresource": "status", "mergePatch": {"status": {"phase": long}}}).to_string();
    let cases = [
        (created("Create", "big", &data), "ConfigMap/default/big"),
        (created("CreateOrUpdate", "big", &data), "ConfigMap/default/big"),
        (created("Apply", "big", &data), "ConfigMap/default/big"),
        (on("MergePatch", "big", &json!({"mergePatch": {"data": data}})), "configmap/default/big"),
        (
            on("JSONPatch", "big", &json!({"jsonPatch": [{"op": "add", "path": "/data/k", "value": long}]})),
            "configmap/default/big",
        ),
        (on("JQPatch", "big", &json!({"jqFilter": ".data.k = \"x\" * 4200000"})), "configmap/default/big"),
        (status, "Namespace/default"),
    ];
    for (text, object) in cases {
        let mut patches = object_patch::parse(text.as_bytes()).unwrap();
        if text.contains("Namespace") {
            patches[0].purpose = Purpose::Status;
        }
        let error = world.carry_out(&patches).await.unwrap_err();
        let (told, size) =
            error.split_once("Request entity too large: it has ").unwrap_or_else(|| panic!("{error}"));
        assert!(told.contains(object), "{error}");
        assert!(size.starts_with('4') && size.contains(" bytes, and the limit is 3145728"), "{error}");
        let requests = world.requests();
        assert!(requests.iter().all(|request| request.starts_with("GET ")), "{object}: {}", requests.len());
    }
    assert_eq!(world.map("big").await.unwrap()["data"]["k"], "1");
}

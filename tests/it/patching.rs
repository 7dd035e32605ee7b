//! Object patches of hooks against the embedded API server.

use std::time::Duration;

use addon_operator::cluster::Discovery;
use addon_operator::kube::Patcher;
use apiserver::{ApiServer, FaultPlan};
use axum::body::Body;
use engine::object_patch::{ObjectPatch, parse};
use engine::{HookId, Scope};
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

struct World {
    server: ApiServer,
    patcher: Patcher,
}

impl World {
    fn new() -> Self {
        let server = ApiServer::builder().seed(1).build().unwrap();
        let client = Client::new(server.service(), "default");
        let patcher = Patcher::new(client.clone(), Discovery::new(client), Duration::from_secs(10));
        Self { server, patcher }
    }

    async fn apply(&self, documents: &[Value]) -> Result<(), String> {
        let text = documents.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let patches: Vec<ObjectPatch> = parse(text.as_bytes()).unwrap();
        let hook = HookId { scope: Scope::Global, name: "h.sh".into() };
        self.patcher.apply(&hook, &patches).await.map_err(|failure| failure.to_string())
    }

    async fn get(&self, name: &str) -> Option<Value> {
        let request = Request::get(format!("{MAPS}/{name}")).body(Body::empty()).unwrap();
        let response = self.server.service().oneshot(request).await.unwrap();
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let object: Value = serde_json::from_slice(&bytes).unwrap();
        (object.get("kind")? == "ConfigMap").then_some(object)
    }
}

fn create(name: &str) -> Value {
    json!({"operation": "Create", "object": {"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": {"n": "0"}}})
}

fn filter(name: &str, filter: &str) -> Value {
    json!({"operation": "JQPatch", "apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": name,
        "jqFilter": filter})
}

#[tokio::test]
async fn f_b11_one_bad_operation_among_a_hundred_is_named_with_what_was_done_before() {
    let world = World::new();
    let mut documents: Vec<Value> = (0..100).map(|n| create(&format!("m{n}"))).collect();
    documents[56] = json!({"operation": "MergePatch", "apiVersion": "v1", "kind": "ConfigMap",
        "namespace": "default", "name": "missing", "mergePatch": {"data": {"a": "b"}}});
    let error = world.apply(&documents).await.unwrap_err();
    assert!(error.contains("object patch 57 of 100 of hook global/h.sh"), "{error}");
    assert!(error.contains("the 56 operations before it are done"), "{error}");
    assert!(world.get("m55").await.is_some() && world.get("m57").await.is_none());
}

#[tokio::test]
async fn f_b11_a_conflict_is_tried_again_and_a_deletion_of_what_is_gone_is_done() {
    let world = World::new();
    world.apply(&[create("m")]).await.unwrap();
    world.server.faults().add(FaultPlan::on(Method::PUT, &format!("{MAPS}/m")).times(2).fail(409));
    world.apply(&[filter("m", ".data.n = \"1\"")]).await.unwrap();
    assert_eq!(world.get("m").await.unwrap()["data"]["n"], "1");
    let delete = json!({"operation": "Delete", "apiVersion": "v1", "kind": "ConfigMap",
        "namespace": "default", "name": "m"});
    world.apply(std::slice::from_ref(&delete)).await.unwrap();
    assert!(world.get("m").await.is_none());
    world.apply(&[delete]).await.unwrap();
}

#[tokio::test]
async fn f_b11_a_filter_without_end_is_stopped_and_named() {
    let world = World::new();
    world.apply(&[create("m")]).await.unwrap();
    let error = world.apply(&[filter("m", "def f: f; f")]).await.unwrap_err();
    assert!(error.contains("object patch 1 of 1 of hook global/h.sh"), "{error}");
    assert!(error.contains("m: the filter took longer than 5 s") || error.contains("MiB"), "{error}");
    // The next one works.
    world.apply(&[filter("m", ".data.n = \"2\"")]).await.unwrap();
}

#[test]
fn f_b11_fifty_megabytes_are_read_and_a_cut_off_file_is_refused() {
    let mut document = create("m");
    document["object"]["data"]["n"] = Value::from("x".repeat(50_000_000));
    let text = document.to_string();
    assert_eq!(parse(text.as_bytes()).unwrap().len(), 1);
    let several = format!("{}\n{}", create("a"), &create("b").to_string()[..40]);
    assert!(parse(several.as_bytes()).is_err());
}

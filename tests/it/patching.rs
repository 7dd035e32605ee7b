//! Object patches of hooks against the embedded API server.

use std::time::Duration;

use addon_operator::cluster::Discovery;
use addon_operator::kube::Patcher;
use apiserver::{ApiServer, FaultPlan};
use engine::object_patch::{ObjectPatch, Purpose, parse};
use engine::{Failure, HookId, PatchAuthor, Scope};
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::support::held::HeldRequest;
use crate::support::server;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

struct Fixture {
    server: ApiServer,
    patcher: Patcher,
}

impl Fixture {
    fn new() -> Self {
        let server = ApiServer::builder().seed(1).build().unwrap();
        let client = Client::new(server.service(), "default");
        let patcher = Patcher::new(client.clone(), Discovery::new(client), Duration::from_secs(10));
        Self { server, patcher }
    }

    async fn apply(&self, documents: &[Value]) -> Result<(), String> {
        self.apply_for(Purpose::Asked, documents).await.map_err(|failure| failure.to_string())
    }

    async fn apply_for(&self, purpose: Purpose, documents: &[Value]) -> Result<(), Failure> {
        let text = documents.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let mut patches: Vec<ObjectPatch> = parse(text.as_bytes()).unwrap();
        for patch in &mut patches {
            patch.purpose = purpose;
        }
        let hook = HookId { scope: Scope::Global, name: "h.sh".into() };
        self.patcher.apply(&PatchAuthor::Hook(hook), &patches).await
    }

    async fn get(&self, name: &str) -> Option<Value> {
        server::get(&self.server, &format!("{MAPS}/{name}")).await
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
async fn f_b11_one_bad_operation_among_a_hundred_is_named_with_what_was_done() {
    let world = Fixture::new();
    let mut documents: Vec<Value> = (0..100).map(|n| create(&format!("m{n}"))).collect();
    documents[56] = json!({"operation": "MergePatch", "apiVersion": "v1", "kind": "ConfigMap",
        "namespace": "default", "name": "missing", "mergePatch": {"data": {"a": "b"}}});
    let error = world.apply(&documents).await.unwrap_err();
    assert!(error.contains("object patch 57 of 100 of hook global/h.sh"), "{error}");
    assert!(error.contains("(the 56 operations before it and 43 after it are done)"), "{error}");
    assert!(world.get("m55").await.is_some() && world.get("m57").await.is_some());
}

fn apply(name: &str, data: &Value) -> Value {
    json!({"operation": "Apply", "object": {"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": data}})
}

#[tokio::test]
async fn what_a_controller_writes_is_named_by_what_it_is_for_and_has_its_own_advice() {
    let world = Fixture::new();
    let (good, wrong) = (apply("a", &json!({"n": "0"})), apply("b", &json!({"n": 5})));
    let refused = async |purpose, documents: &[Value]| {
        let failure = world.apply_for(purpose, documents).await.unwrap_err();
        (failure.message, failure.advice.unwrap_or_default())
    };
    let (message, advice) = refused(Purpose::Asked, std::slice::from_ref(&wrong)).await;
    assert!(
        message.starts_with("object patch 1 of 1 of hook global/h.sh: Apply object v1/ConfigMap/default/b: ")
    );
    assert!(advice.contains("$KUBERNETES_PATCH_PATH"), "{advice}");
    let (message, advice) = refused(Purpose::Child, std::slice::from_ref(&wrong)).await;
    assert!(message.starts_with("child v1/ConfigMap/default/b: the API server refused: "), "{message}");
    assert!(!message.contains("done") && advice.contains("correct the child"), "{message}; {advice}");
    // Children come in order.
    let three = [good, wrong, apply("c", &json!({}))];
    let (message, _) = refused(Purpose::Child, &three).await;
    let done = "(the operation before it is done, and 1 behind it waits for it)";
    assert!(message.starts_with("child v1/ConfigMap/default/b: ") && message.ends_with(done), "{message}");
    assert!(world.get("a").await.is_some() && world.get("c").await.is_none());
    for name in ["A_B", "x."] {
        let (message, advice) = refused(Purpose::Child, &[apply(name, &json!({}))]).await;
        assert!(
            message.contains("metadata.name") && advice.contains("correct the child"),
            "{message}; {advice}"
        );
    }
    let change = json!({"operation": "MergePatch", "kind": "ConfigMap", "namespace": "default", "name": "a",
        "mergePatch": {"metadata": {"finalizers": ["no name"]}}});
    let (message, advice) = refused(Purpose::Finalizer, std::slice::from_ref(&change)).await;
    assert!(message.starts_with("finalizers of /ConfigMap/default/a: the API server refused: "), "{message}");
    assert!(advice.contains("correct the finalizer"), "{advice}");
    // What may work the next time is not wrong.
    world.server.faults().add(FaultPlan::on(Method::PATCH, "*/a").fail(500));
    let failure = world.apply_for(Purpose::Child, &[apply("a", &json!({}))]).await.unwrap_err();
    assert_eq!(failure.advice, None, "{failure}");
}

#[tokio::test]
async fn f_b11_all_that_failed_is_named_and_the_rest_is_done() {
    let world = Fixture::new();
    world.apply(&[create("a"), create("b")]).await.unwrap();
    let error = world.apply(&[create("a"), create("c"), create("b"), create("d")]).await.unwrap_err();
    assert!(
        error.starts_with("2 of 4 object patches of hook global/h.sh failed (2 others are done): ")
            && error
                .contains("object patch 1: Create object v1/ConfigMap/default/a: the API server refused: ")
            && error.contains("; object patch 3: Create object v1/ConfigMap/default/b: "),
        "{error}"
    );
    assert!(world.get("c").await.is_some() && world.get("d").await.is_some());
    let error = world.apply(&[create("a"), create("e")]).await.unwrap_err();
    assert!(error.contains("(the operation after it is done)"), "{error}");
    let error = world.apply(&[create("f"), create("a")]).await.unwrap_err();
    assert!(error.contains("(the operation before it is done)"), "{error}");
    let error = world.apply(&vec![create("a"); 12]).await.unwrap_err();
    assert!(error.contains("12 of 12 ") && error.contains("(nothing was done)"), "{error}");
    assert!(error.contains("object patch 10: ") && error.ends_with("; and 2 more"), "{error}");
}

#[tokio::test]
async fn f_b11_a_silent_api_server_is_not_asked_for_every_operation() {
    let world = Fixture::new();
    world.apply(&[create("a")]).await.unwrap();
    // One that is cut off is one that failed.
    world.server.faults().add(FaultPlan::on(Method::POST, MAPS).times(2).cut());
    let documents: Vec<Value> = (0..100).map(|n| create(&format!("m{n}"))).collect();
    let error = world.apply(&documents).await.unwrap_err();
    assert!(error.starts_with("2 of 100 ") && error.contains("(98 others are done)"), "{error}");
    world.server.faults().add(FaultPlan::on(Method::POST, MAPS).nth(2).times(u64::MAX).cut());
    let documents: Vec<Value> = (0..100).map(|n| create(&format!("n{n}"))).collect();
    let error = world.apply(&documents).await.unwrap_err();
    let done = "(one other is done, 96 were not tried, for the API server does not answer)";
    assert!(error.starts_with("3 of 100 ") && error.contains(done), "{error}");
}

fn delete(name: &str) -> Value {
    json!({"operation": "Delete", "apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": name})
}

fn held(name: &str) -> Value {
    let mut held = create(name);
    held["object"]["metadata"]["finalizers"] = json!(["example.com/mine"]);
    held
}

/// Takes the finalizers of an object away.
fn released(name: &str) -> Value {
    json!({"operation": "MergePatch", "apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": name,
        "mergePatch": {"metadata": {"finalizers": null}}})
}

#[tokio::test(start_paused = true)]
async fn a_deletion_needs_no_watch_and_ends_when_the_object_is_gone() {
    let world = Fixture::new();
    world.apply(&[held("m")]).await.unwrap();
    let object = format!("{MAPS}/m");
    world
        .server
        .faults()
        .add(FaultPlan::on(Method::GET, &format!("{MAPS}?*watch=*")).times(u64::MAX).fail(403));
    // A look that fails for a moment says nothing.
    world.server.faults().add(FaultPlan::on(Method::GET, &object).times(2).fail(500));
    world.server.faults().add(FaultPlan::on(Method::GET, &object).nth(3).times(2).cut());
    let documents = [delete("m")];
    let mut deletion = std::pin::pin!(world.apply(&documents));
    let early = tokio::time::timeout(Duration::from_secs(10), &mut deletion).await;
    assert!(early.is_err(), "it is still there, but the deletion ended: {early:?}");
    world.apply(&[released("m")]).await.unwrap();
    deletion.await.unwrap();
    assert!(world.get("m").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_is_held_up_names_the_finalizers_and_one_that_can_not_be_seen_the_reason() {
    let world = Fixture::new();
    world.apply(&[held("m")]).await.unwrap();
    let error = world.apply(&[delete("m")]).await.unwrap_err();
    assert!(error.contains("it is still there after 20 s; its finalizers are ["), "{error}");
    assert!(error.contains("example.com/mine"), "{error}");
    world.server.faults().add(FaultPlan::on(Method::GET, &format!("{MAPS}/m")).fail(403));
    let error = world.apply(&[delete("m")]).await.unwrap_err();
    assert!(error.contains("Delete object v1/ConfigMap/default/m: the API server refused"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_done_when_another_object_has_the_name() {
    let world = Fixture::new();
    world.apply(&[held("m")]).await.unwrap();
    let documents = [delete("m")];
    let mut deletion = std::pin::pin!(world.apply(&documents));
    let early = tokio::time::timeout(Duration::from_secs(3), &mut deletion).await;
    assert!(early.is_err(), "it is still there, but the deletion ended: {early:?}");
    world.apply(&[released("m"), held("m")]).await.unwrap();
    deletion.await.unwrap();
    assert!(world.get("m").await.is_some());
}

#[tokio::test]
async fn f_b11_a_conflict_is_tried_again_and_a_deletion_of_what_is_gone_is_done() {
    let world = Fixture::new();
    world.apply(&[create("m")]).await.unwrap();
    world.server.faults().add(FaultPlan::on(Method::PUT, &format!("{MAPS}/m")).times(2).fail(409));
    world.apply(&[filter("m", ".data.n = \"1\"")]).await.unwrap();
    assert_eq!(world.get("m").await.unwrap()["data"]["n"], "1");
    world.apply(&[delete("m")]).await.unwrap();
    assert!(world.get("m").await.is_none());
    world.apply(&[delete("m")]).await.unwrap();
}

fn put(n: &str) -> Value {
    let mut put = create("m");
    put["operation"] = json!("CreateOrUpdate");
    put["object"]["data"]["n"] = json!(n);
    put
}

#[tokio::test]
async fn an_object_that_others_change_meanwhile_is_read_again() {
    let world = Fixture::new();
    world.apply(&[create("m")]).await.unwrap();
    world.server.faults().add(FaultPlan::on(Method::PATCH, &format!("{MAPS}/m")).times(2).fail(409));
    world.apply(&[put("2")]).await.unwrap();
    assert_eq!(world.get("m").await.unwrap()["data"]["n"], "2");
    world.server.faults().add(FaultPlan::on(Method::PATCH, &format!("{MAPS}/m")).times(5).fail(409));
    let error = world.apply(&[put("3")]).await.unwrap_err();
    assert!(error.contains("v1/ConfigMap/default/m"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_given_up_and_comes_late_does_not_undo_what_was_written_since() {
    let server = ApiServer::builder().seed(1).build().unwrap();
    let (held, client) = HeldRequest::new(&server, |request| request.method() == Method::PATCH);
    let patcher = Patcher::new(client.clone(), Discovery::new(client), Duration::from_secs(10));
    let world = Fixture { server, patcher };
    world.apply(&[create("m")]).await.unwrap();
    let error = world.apply(&[put("1")]).await.unwrap_err();
    assert!(error.contains("no answer within 10 s"), "{error}");
    world.apply(&[put("2")]).await.unwrap();
    assert_eq!(held.carry_out(&world.server).await, 409);
    assert_eq!(world.get("m").await.unwrap()["data"]["n"], "2");
}

#[tokio::test]
async fn f_b11_a_filter_without_end_is_stopped_and_named() {
    let world = Fixture::new();
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

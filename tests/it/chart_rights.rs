//! The rights that charts from repositories need: those of the installation are enough, and what lacks is told.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use addon_operator::app;
use apiserver::FaultPlan;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::charts::{MAPS, World, alpha, beta};
use crate::support::in_process::observed;
use crate::support::rights::{Request, manifests};
use crate::support::server::ok;

/// Takes the archive of the module that was published again, and then switches the module off.
async fn taken_again_and_switched_off(world: &World) {
    world.annotate("Chart", "module-cache", json!({"addon-operator.io/reprocess": "1"})).await;
    world.settled("Chart", "module-cache", |object| object["status"]["reprocessed"] == 1).await;
    world.cluster.put("addon-operator", json!({"data": {"cacheEnabled": "false"}})).await;
    world.settled("Chart", "module-cache", Value::is_null).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b10_a_map_that_may_not_be_written_is_a_condition_and_is_tried_again() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let operator = world.start().await;
    world.apply("Repository", "corp", json!({"name": "corp", "url": world.repository.url("")})).await;
    world.synced("Repository", "corp").await;
    world.cluster.server.faults().add(FaultPlan::on(Method::POST, MAPS).fail(403));
    world.apply("Chart", "mine", json!({"name": "alpha", "repository": "corp", "versions": ["*"]})).await;
    let said = world.failed("Chart", "mine", "createConfigmapsFailed").await;
    assert!(
        said.contains("ConfigMap ops/helm-pkg-corp-alpha-0.1.0-1") && said.contains("(examples/install)"),
        "{said}"
    );
    assert_eq!(world.maps().await, ["helm-corp-alpha-index"]);
    world.cluster.server.faults().clear();
    world.apply("Chart", "mine", json!({"versions": ["0.1.0"]})).await;
    world.synced("Chart", "mine").await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b10_default_values_that_can_not_be_looked_up_are_a_condition() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0")), ("alpha", "0.1.1", alpha("0.1.1"))]);
    let operator = world.start().await;
    world.apply("Repository", "corp", json!({"name": "corp", "url": world.repository.url("")})).await;
    world.synced("Repository", "corp").await;
    world.apply("Chart", "mine", json!({"name": "alpha", "repository": "corp", "versions": ["0.1.0"]})).await;
    world.synced("Chart", "mine").await;
    let before = world.maps().await;
    let path = format!("{MAPS}/helm-default-corp-alpha-0.1.1");
    world.cluster.server.faults().add(FaultPlan::on(Method::GET, &path).fail(403).times(1_000));
    world.apply("Chart", "mine", json!({"versions": ["0.1.0", "0.1.1"]})).await;
    let said = world.failed("Chart", "mine", "initChartFailed").await;
    assert!(said.contains("0.1.1: can't read ConfigMap ops/helm-default-corp-alpha-0.1.1"), "{said}");
    assert_eq!(world.maps().await, before, "what was written before stays, and nothing else is");
    world.cluster.server.faults().clear();
    world.apply("Chart", "mine", json!({"versions": ["0.1.1", "0.1.0"]})).await;
    world.synced("Chart", "mine").await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_roles_of_the_installation_are_enough_for_charts() {
    let world = World::new().await;
    let url = world.repository.url("");
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0")), ("beta", "0.1.0", beta("0.1.0", &url, "~0.1"))]);
    world.write_module("alpha", "0.1.0");
    let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
    let (shutdown, ended) = watch::channel(false);
    let sink = Arc::clone(&seen);
    let client = observed(&world.cluster.server, "ops", move |request| {
        sink.lock().unwrap().extend(Request::of_client(request, "ops"));
    });
    let options = world.options();
    let around = world.cluster.around(client, false, ended, &options);
    let running = tokio::spawn(app::run(around, drop));
    let group = json!({"labelSelector": "group", "repos": [
        {"name": "corp", "url": url, "charts": [{"name": "beta", "versions": ["*"]}]},
        {"name": "extra", "url": url, "charts": []},
    ]});
    world.apply("RepoGroup", "group", group).await;
    world.synced("Chart", "beta-corp").await;
    world.cluster.settled("shown", |map| map["data"]["says"] == "hello").await;
    // What is published again and taken again, a repository that goes, and a module that is switched off.
    let other = crate::support::charts::chart("alpha", "0.1.0", "", &[]);
    world.publish("", &[("alpha", "0.1.0", other), ("beta", "0.1.0", beta("0.1.0", &url, "~0.1"))]);
    let group = json!({"labelSelector": "group", "repos": [{"name": "corp", "url": format!("{url}/"), "charts": [{"name": "beta", "versions": ["*"]}]}]});
    world.apply("RepoGroup", "group", group).await;
    world.settled("Repository", "extra", Value::is_null).await;
    taken_again_and_switched_off(&world).await;
    shutdown.send_replace(true);
    running.await.unwrap().unwrap();

    let seen = seen.lock().unwrap();
    let about = |resource: &str, verb: &str| {
        seen.iter().any(|request| request.text("resource") == resource && request.text("verb") == verb)
    };
    for (resource, verb) in [
        ("charts", "create"),
        ("charts", "patch"),
        ("charts", "delete"),
        ("repositories", "create"),
        ("repositories", "delete"),
        ("configmaps", "create"),
        ("configmaps", "delete"),
        ("configmaps", "patch"),
    ] {
        assert!(about(resource, verb), "nobody did this: {verb} {resource}");
    }
    let manifests = manifests();
    let refused: BTreeSet<String> =
        seen.iter().filter(|request| !request.is_allowed(&manifests)).map(ToString::to_string).collect();
    assert_eq!(refused, BTreeSet::new(), "the roles do not allow this");
}

#[tokio::test(flavor = "multi_thread")]
async fn charts_in_a_namespace_of_their_own_need_its_role_and_no_more() {
    const PLACE: &str = "addon-operator-charts";
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    world.write_module("alpha", "0.1.0");
    let namespace = json!({"metadata": {"name": PLACE}});
    ok(&world.cluster.server, Method::POST, "/api/v1/namespaces", &namespace).await;
    let secret =
        json!({"metadata": {"name": "auth"}, "stringData": {"user": "me", "password": "hunter2-word"}});
    ok(&world.cluster.server, Method::POST, &format!("/api/v1/namespaces/{PLACE}/secrets"), &secret).await;
    let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
    let (shutdown, ended) = watch::channel(false);
    let sink = Arc::clone(&seen);
    let client = observed(&world.cluster.server, "ops", move |request| {
        sink.lock().unwrap().extend(Request::of_client(request, "ops"));
    });
    let options = [&world.options()[..], &[("charts-namespace", PLACE)]].concat();
    let around = world.cluster.around(client, false, ended, &options);
    let running = tokio::spawn(app::run(around, drop));
    let url = world.repository.url("");
    let spec = json!({"name": "corp", "url": url, "authSecret": "auth", "sync": {"interval": "1h"}});
    world.apply("Repository", "corp", spec).await;
    world.cluster.settled("shown", |map| map["data"]["says"] == "hello").await;
    // An archive takes the place of another one, and the module is switched off.
    world.publish("", &[("alpha", "0.1.0", crate::support::charts::chart("alpha", "0.1.0", "", &[]))]);
    world.annotate("Repository", "corp", json!({"addon-operator.io/reprocess": "1"})).await;
    let is_told = |object: &Value| object["status"]["conditions"][1]["type"] == "DigestChanged";
    world.settled("Chart", "module-cache", is_told).await;
    taken_again_and_switched_off(&world).await;
    shutdown.send_replace(true);
    running.await.unwrap().unwrap();

    let seen = seen.lock().unwrap();
    let there: Vec<&Request> = seen.iter().filter(|request| request.text("namespace") == PLACE).collect();
    let verbs: BTreeSet<(&str, &str)> =
        there.iter().map(|request| (request.text("resource"), request.text("verb"))).collect();
    for (resource, verb) in [("configmaps", "create"), ("configmaps", "delete"), ("secrets", "get")] {
        assert!(verbs.contains(&(resource, verb)), "nobody did this there: {verb} {resource}");
    }
    let manifests = manifests();
    let roles: Vec<Value> = manifests.into_iter().filter(|object| object["kind"] == "Role").collect();
    let refused: BTreeSet<String> =
        there.iter().filter(|request| !request.is_allowed(&roles)).map(ToString::to_string).collect();
    assert_eq!(refused, BTreeSet::new(), "the role does not allow this");
}

//! Limits of chart repositories, end to end: what is too much, what hangs, what has the same name, and what costs nothing.

use std::cell::RefCell;

use http::Method;
use serde_json::{Value, json};

use crate::support::charts::{MAPS, World, alpha, chart, condition};
use crate::support::repository::{Reply, Repository, digest};
use crate::support::server::{self, get, ok};
use crate::support::{in_process, program};

/// Starts an operator with more options.
async fn started(world: &World, more: &[(&str, &str)]) -> in_process::Operator {
    world.cluster.start(&[&world.options(), more].concat()).await
}

fn listing(url: &str, charts: &Value) -> Value {
    json!({"name": "x", "url": url, "charts": charts})
}

async fn repositories_that_hang_delay_no_other() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let slow = Repository::plain().await;
    let operator = started(&world, &[("source-develop", "true")]).await;
    for number in 0..4 {
        slow.put(&format!("/{number}/index.yaml"), Reply::Gated(Vec::new()));
        let url = slow.url(&format!("/{number}"));
        world.apply("Repository", &format!("slow-{number}"), listing(&url, &json!([]))).await;
    }
    slow.busy(1).await;
    let charts = json!([{"name": "alpha", "versions": ["*"]}]);
    world.apply("Repository", "corp", listing(&world.repository.url(""), &charts)).await;
    world.synced("Chart", "alpha-corp").await;
    assert!(slow.in_flight() > 0, "they hang still");
    slow.open_gate();
    operator.stop().await;
}

async fn repositories_that_hang_delay_no_other_of_their_own_server() {
    let world = World::new().await;
    let all = Repository::plain().await;
    let operator = started(&world, &[("source-develop", "true")]).await;
    for number in 0..3 {
        all.put(&format!("/{number}/index.yaml"), Reply::Gated(Vec::new()));
        let url = all.url(&format!("/{number}"));
        world.apply("Repository", &format!("slow-{number}"), listing(&url, &json!([]))).await;
    }
    all.busy(2).await;
    let index = json!({"entries": {"alpha": [{"version": "0.1.0"}]}});
    all.put("/fast/index.yaml", Reply::File(index.to_string().into_bytes()));
    world.apply("Repository", "fast", listing(&all.url("/fast"), &json!([]))).await;
    world.synced("Repository", "fast").await;
    assert_eq!(all.in_flight(), 3, "they hang still");
    all.open_gate();
    operator.stop().await;
}

async fn of_too_many_charts_the_first_are_kept_and_those_that_are_listed() {
    let world = World::new().await;
    let all = ["alpha", "beta", "gamma"].map(|name| (name, "0.1.0", chart(name, "0.1.0", "", &[])));
    world.publish("", &all);
    let operator = started(&world, &[("charts-index-max", "2")]).await;
    let url = world.repository.url("");
    world.apply("Repository", "corp", listing(&url, &json!([]))).await;
    let truncated = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == "IndexTruncated")
    };
    let found = world.settled("Repository", "corp", |object| truncated(object).is_some()).await;
    assert_eq!(
        (&found["status"]["synced"], &truncated(&found).unwrap()["status"]),
        (&json!(true), &json!("True"))
    );
    assert!(truncated(&found).unwrap()["message"].as_str().unwrap().contains("the index has 3 charts"));
    assert_eq!(world.maps().await, ["helm-corp-alpha-index", "helm-corp-beta-index"]);
    world.apply("Repository", "corp", listing(&url, &json!([{"name": "gamma"}]))).await;
    world.cluster.settled("helm-corp-gamma-index", |map| !map.is_null()).await;
    world.settled("Repository", "corp", |object| truncated(object).is_none()).await;
    operator.stop().await;
}

async fn an_index_that_is_too_large_is_told() {
    let world = World::new().await;
    let operator = started(&world, &[("charts-index-bytes", "1000")]).await;
    let large = json!({"entries": {"alpha": [{"version": "0.1.0", "description": "x".repeat(1000)}]}});
    world.repository.put("/index.yaml", Reply::File(large.to_string().into_bytes()));
    world.apply("Repository", "corp", listing(&world.repository.url(""), &json!([]))).await;
    let said = world.failed("Repository", "corp", "fetchIndexFailed").await;
    assert!(said.contains("1000 bytes") || said.contains("longer than"), "{said}");
    assert!(world.maps().await.is_empty());
    operator.stop().await;
}

async fn names_that_come_to_the_same_are_told_apart() {
    let world = World::new().await;
    let packed =
        |name: &str| chart(name, "0.1.0", "", &[("values.yaml", format!("is: {name}\n").as_bytes())]);
    let operator = world.start().await;
    let both = [("a-b", "c"), ("a", "b-c")];
    for (number, (repository, name)) in both.into_iter().enumerate() {
        let directory = format!("/{number}");
        world.publish(&directory, &[(name, "0.1.0", packed(name))]);
        let charts = json!([{"name": name, "versions": ["*"]}]);
        let url = world.repository.url(&directory);
        world.apply("Repository", repository, listing(&url, &charts)).await;
        world.synced("Chart", &format!("{name}-{repository}")).await;
    }
    let maps = world.maps().await;
    assert!(maps.contains(&"helm-default-a-b-c-0.1.0".to_owned()), "{maps:?}");
    let list = get(&world.cluster.server, MAPS).await.unwrap();
    for (repository, name) in both {
        let is_its = |map: &&Value| {
            let labels = &map["metadata"]["labels"];
            labels["yaho.soer3n.dev/repo"] == repository && labels["yaho.soer3n.dev/type"] == "default"
        };
        let all = list["items"].as_array().unwrap();
        let its: Vec<&Value> = all.iter().filter(is_its).collect();
        assert_eq!(its.len(), 1, "{repository}");
        assert_eq!(its[0]["data"]["values"], format!("{{\"is\":\"{name}\"}}"));
        let digest = format!("sha256:{}", digest(&packed(name)));
        let is_kept = |map: &Value| map["metadata"]["annotations"]["addon-operator.io/digest"] == *digest;
        assert!(all.iter().any(is_kept), "{repository}");
    }
    operator.stop().await;
}

async fn all_maps_and_secrets_are_in_the_namespace_of_charts() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let namespace = json!({"metadata": {"name": "helm"}});
    ok(&world.cluster.server, Method::POST, "/api/v1/namespaces", &namespace).await;
    let secret =
        json!({"metadata": {"name": "auth"}, "stringData": {"username": "me", "password": "hunter2-word"}});
    ok(&world.cluster.server, Method::POST, "/api/v1/namespaces/helm/secrets", &secret).await;
    let module = "chart: {repository: corp, name: alpha, version: '*'}\nvaluesLayout: root\n";
    world.cluster.write("modules/040-cache/module.yaml", module);
    world.cluster.write("modules/values.yaml", "cacheEnabled: true\n");
    let operator = started(&world, &[("charts-namespace", "helm")]).await;
    let mut spec = listing(&world.repository.url(""), &json!([]));
    spec["authSecret"] = json!("auth");
    world.apply("Repository", "corp", spec).await;
    world.cluster.settled("shown", |map| map["data"]["says"] == "hello").await;
    let authorized =
        world.repository.requests().into_iter().all(|asked| asked.headers.contains_key("authorization"));
    assert!(authorized, "the Secret of that namespace is used");
    assert!(world.maps().await.is_empty(), "nothing is in the operator's own namespace");
    let list = get(&world.cluster.server, "/api/v1/namespaces/helm/configmaps").await.unwrap();
    let names: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|map| map["metadata"]["name"].as_str().unwrap())
        .collect();
    for name in ["helm-corp-alpha-index", "helm-pkg-corp-alpha-0.1.0-1", "addon-operator-charts"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    operator.stop().await;
}

async fn an_index_that_did_not_change_costs_a_request_and_no_write() {
    let world = World::new().await;
    world.publish("", &[("alpha", "0.1.0", alpha("0.1.0"))]);
    let operator = world.start().await;
    let mut spec = listing(&world.repository.url(""), &json!([{"name": "alpha", "versions": ["*"]}]));
    spec["sync"] = json!({"interval": 1});
    world.apply("Repository", "corp", spec).await;
    world.synced("Chart", "alpha-corp").await;
    let is_counted =
        |object: &Value| object["status"]["charts"] == 1 && condition(object)["status"] == "True";
    world.settled("Repository", "corp", is_counted).await;
    world.repository.asked();
    let versions = async || {
        let maps = get(&world.cluster.server, MAPS).await.unwrap();
        let mut all = maps["items"].as_array().unwrap().clone();
        all.extend([world.object("Repository", "corp").await, world.object("Chart", "alpha-corp").await]);
        all.iter().map(|object| object["metadata"]["resourceVersion"].clone()).collect::<Vec<_>>()
    };
    let before = versions().await;
    let asked = RefCell::new(Vec::new());
    let is_asked = || {
        asked.borrow_mut().extend(world.repository.asked());
        asked.borrow().len() >= 3
    };
    server::until("three looks", is_asked).await;
    assert!(asked.borrow().iter().all(|asked| *asked == ("/index.yaml".to_owned(), 304)), "{asked:?}");
    assert_eq!(versions().await, before);
    operator.stop().await;
}

async fn a_module_yaml_that_can_not_be_used_fails_its_module_only() {
    let world = World::new().await;
    let named = "chart: {repository: corp, name: alpha, version: '*'}\n";
    world.cluster.write("modules/040-both/module.yaml", named);
    world.cluster.write("modules/040-both/Chart.yaml", "name: both\nversion: 0.1.0\n");
    world
        .cluster
        .write("modules/050-odd/module.yaml", "chart: {repostory: corp, name: alpha, version: '*'}\n");
    world.cluster.write("modules/060-plain/Chart.yaml", "name: plain\nversion: 0.1.0\n");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n";
    world.cluster.write("modules/060-plain/templates/map.yaml", map);
    world.cluster.write("modules/values.yaml", "bothEnabled: true\noddEnabled: true\nplainEnabled: true\n");
    let operator = started(&world, &[("on-module-failure", "pass")]).await;
    world.cluster.settled("plain", |map| !map.is_null()).await;
    let why = |module: &str| in_process::ask_socket(&world.cluster, &format!("/why/module/{module}"));
    server::until("both reasons", || {
        why("both").contains("remove one of them") && why("odd").contains("did you mean repository?")
    })
    .await;
    let port = operator.port.to_string();
    assert!(program::get(&port, "/healthz").starts_with("HTTP/1.1 200"));
    operator.stop().await;
}

scenarios! {
    repositories_that_hang_delay_no_other,
    repositories_that_hang_delay_no_other_of_their_own_server,
    of_too_many_charts_the_first_are_kept_and_those_that_are_listed,
    an_index_that_is_too_large_is_told,
    names_that_come_to_the_same_are_told_apart,
    all_maps_and_secrets_are_in_the_namespace_of_charts,
    an_index_that_did_not_change_costs_a_request_and_no_write,
    a_module_yaml_that_can_not_be_used_fails_its_module_only,
}

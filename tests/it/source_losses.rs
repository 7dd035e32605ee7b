//! A bundle that is lost, on the disk and in the cluster, is fetched again by itself.

use addon_operator::app::Outcome;
use http::Method;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::{Value, json};

use crate::module_sources::{World, phase, state};
use crate::support::repository::{Packed, Reply, index};
use crate::support::server::{get, ok, settled};

const SECRETS: &str = "/api/v1/namespaces/ops/secrets";

/// Returns a module of one ConfigMap.
fn chart(name: &str) -> Vec<u8> {
    let meta =
        format!("id: id-{name}\nname: {name}\nversion: 1.0.0\ndescription: A test.\ndisplayName: Test\n");
    let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let mut packed = Packed::new();
    packed.file("meta.yaml", 0o644, meta.as_bytes());
    packed.file("Chart.yaml", 0o644, format!("name: {name}\nversion: 0.1.0\n").as_bytes());
    packed.file("templates/map.yaml", 0o644, map.as_bytes());
    packed.finish()
}

async fn secrets(world: &World) -> Vec<String> {
    let all = get(&world.cluster.server, SECRETS).await.unwrap();
    let items = all["items"].as_array().cloned().unwrap_or_default();
    items.iter().filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

/// Loses all bundles. The registry stays.
async fn lose(world: &World) {
    std::fs::remove_dir_all(world.cluster.path("sources")).unwrap();
    let is_bundle = |name: &&String| name.starts_with("addon-operator-") && *name != "addon-operator-sources";
    let names = secrets(world).await;
    assert!(names.iter().any(|name| is_bundle(&name)), "{names:?}");
    for name in names.iter().filter(is_bundle) {
        ok(&world.cluster.server, Method::DELETE, &format!("{SECRETS}/{name}"), &Value::Null).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_bundle_comes_back_and_holds_up_no_other_configuration_while_it_is_away() {
    let world = World::new().await;
    let repository = &world.repository;
    repository.publish(&[("web", "1.0.0", chart("web"))]);
    let operator = world.start().await;
    world.apply("platform", &[repository.url("/index.yaml")]).await;
    world.settled("platform", |object| phase(object) == "Ready").await;
    let ready = secrets(&world).await;
    assert_eq!(operator.stop().await, Outcome::Done);

    // The repository is down, too: the status says so, and another configuration goes on.
    lose(&world).await;
    let good = index(&[("web", "1.0.0", chart("web"))], true);
    repository.put("/index.yaml", Reply::Status(503, Vec::new()));
    let db = [("db", "1.0.0", chart("db"))];
    repository.put("/other.yaml", Reply::File(index(&db, true)));
    repository.put("/db-1.0.0.tgz", Reply::File(db[0].2.clone()));
    let operator = world.start().await;
    world.settled("platform", |object| phase(object) == "Failed").await;
    world.apply("other", &[repository.url("/other.yaml")]).await;
    world.settled("other", |object| phase(object) == "Ready").await;

    // It is up again. Its module is there as soon as it is switched on.
    repository.put("/index.yaml", Reply::File(good));
    let raise = json!({"spec": {"reprocessRequest": 1}});
    let path = format!("{}/platform", crate::module_sources::SOURCES);
    ok(&world.cluster.server, Method::PATCH, &path, &raise).await;
    world.settled("platform", |object| phase(object) == "Ready").await;
    world.enable("web", true).await;
    world.settled("platform", |object| state(object) == "Running").await;
    for name in &ready {
        assert!(secrets(&world).await.contains(name), "{name} was not written again");
    }
    assert_eq!(operator.stop().await, Outcome::Done);

    // Lost again, with the repository there: nobody has to do anything.
    lose(&world).await;
    let operator = world.start().await;
    let bundles: Api<Secret> = Api::namespaced(world.cluster.client(), "ops");
    for name in &ready {
        settled(&bundles, name, |secret| !secret.is_null()).await;
    }
    world.settled("platform", |object| phase(object) == "Ready" && state(object) == "Running").await;
    assert_eq!(operator.stop().await, Outcome::Done);
}

//! Releases in other namespaces than the operator's: `module.yaml` says where, and they can move.

use addon_operator::app::Outcome;
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::support::in_process::Cluster;
use crate::support::server::{get, ok, settled};

const RECORD: &str = "sh.helm.release.v1.web.v1";

async fn map(world: &Cluster, namespace: &str, fits: impl Fn(&Value) -> bool) {
    let maps: Api<ConfigMap> = Api::namespaced(world.client(), namespace);
    settled(&maps, "web", fits).await;
}

async fn has_record(world: &Cluster, namespace: &str) -> bool {
    get(&world.server, &format!("/api/v1/namespaces/{namespace}/secrets/{RECORD}")).await.is_some()
}

/// A cluster with the namespaces `a` and `b`, and a module `web` of one ConfigMap that names the namespace of its release.
async fn world() -> Cluster {
    let world = Cluster::new().await;
    for name in ["a", "b"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        ok(&world.server, Method::POST, "/api/v1/namespaces", &namespace).await;
    }
    world.write("modules/values.yaml", "webEnabled: true\n");
    world.write("modules/010-web/Chart.yaml", "name: web\nversion: 0.1.0\n");
    let map =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {in: {{ .Release.Namespace }}}\n";
    world.write("modules/010-web/templates/map.yaml", map);
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_where_module_yaml_says_and_moves_with_it() {
    let world = world().await;
    assert_eq!(world.once().await, Outcome::Done);
    map(&world, "ops", |map| map["data"]["in"] == "ops").await;

    // It moved while nobody looked: out of the operator's own namespace.
    world.write("modules/010-web/module.yaml", "namespace: a\n");
    let operator = world.start(&[]).await;
    map(&world, "a", |map| map["data"]["in"] == "a").await;
    map(&world, "ops", Value::is_null).await;
    let path = "/api/v1/namespaces/a/configmaps/web";
    ok(&world.server, Method::DELETE, path, &Value::Null).await;
    map(&world, "a", |map| map["data"]["in"] == "a").await;

    // A namespace that is not there takes nothing down, and neither does a key that nobody knows.
    world.write("modules/010-web/module.yaml", "namespace: nowhere\n");
    world.write("modules/010-web/module.yaml", "namspace: b\n");
    map(&world, "a", |map| map["data"]["in"] == "a").await;
    world.write("modules/010-web/module.yaml", "namespace: b\n");
    map(&world, "b", |map| map["data"]["in"] == "b").await;
    map(&world, "a", Value::is_null).await;
    let maps: Api<ConfigMap> = Api::all(world.client());
    let places = maps.list(&ListParams::default()).await.unwrap().items;
    let places: Vec<_> =
        places.into_iter().filter(|map| map.metadata.name.as_deref() == Some("web")).collect();
    assert_eq!(places.len(), 1);
    assert_eq!(operator.stop().await, Outcome::Done);
    assert!(has_record(&world, "b").await);

    // Switched off while nobody looked: the start finds it where its file says.
    world.write("modules/values.yaml", "webEnabled: false\n");
    let operator = world.start(&[]).await;
    map(&world, "b", Value::is_null).await;
    assert_eq!(operator.stop().await, Outcome::Done);
    assert!(!has_record(&world, "b").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_module_yaml_that_nobody_knows_is_named_with_the_nearest() {
    let world = world().await;
    world.write("modules/010-web/module.yaml", "namespaces: a\n");
    assert_eq!(world.once().await, Outcome::NotConverged);
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::namespaced(world.client(), "ops");
    let told = events.list(&ListParams::default()).await.unwrap().items;
    let told: Vec<String> = told.into_iter().filter_map(|event| event.message).collect();
    let is_named = |text: &String| text.contains("module.yaml") && text.contains("did you mean namespace?");
    assert!(told.iter().any(is_named), "{told:?}");
}

//! Hosted clusters on an API server that refuses every so many writes: they live and go all the same.
//!
//! A key that fails waits longer each time. With a first wait of a millisecond that takes seconds where every second write is
//! refused.

use std::time::Instant;

use apiserver::FaultPlan;
use http::Method;
use serde_json::{Value, json};

use crate::example_clusters::{CLUSTERS, World};
use crate::support::DEADLINE;
use crate::support::pause::pause;
use crate::support::server::send;

/// Sends a request of a person, who tries again.
async fn insist(world: &World, method: Method, path: &str, body: &Value) {
    let begun = Instant::now();
    while send(&world.cluster.server, method.clone(), path, body).await.0 >= 300 {
        assert!(begun.elapsed() < DEADLINE, "{method} {path}");
        pause().await;
    }
}

/// Lives the life of a cluster while of so many writes of each method one is refused.
async fn live_with_one_refused_of(step: u64) {
    let world = World::new().await;
    let faults = world.cluster.server.faults();
    faults.clear();
    for method in [Method::POST, Method::PATCH, Method::DELETE, Method::PUT] {
        faults.add(FaultPlan::on(method, "/api*").every(step).fail(500));
    }
    let operator = world.cluster.start(&[("retry-delay", "1ms")]).await;
    world.kinds().await;
    let object = json!({
        "apiVersion": "hypershift.openshift.io/v1alpha1", "kind": "HostedCluster", "metadata": {"name": "demo", "namespace": "clusters"},
        "spec": {"release": {"image": "registry.local/release:1.0"}, "initialComputeReplicas": 1, "infraID": "demo"},
    });
    insist(&world, Method::POST, CLUSTERS, &object).await;
    world.ready("demo").await;
    insist(&world, Method::DELETE, &format!("{CLUSTERS}/demo"), &Value::Null).await;
    world.gone("demo").await;
    let hits = faults.hits();
    assert!(hits > 40 / step, "only {hits} writes were refused");
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_lives_and_goes_when_every_second_write_is_refused() {
    live_with_one_refused_of(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_lives_and_goes_when_every_third_write_is_refused() {
    live_with_one_refused_of(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_lives_and_goes_when_every_fourth_write_is_refused() {
    live_with_one_refused_of(4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_lives_and_goes_when_every_seventh_write_is_refused() {
    live_with_one_refused_of(7).await;
}

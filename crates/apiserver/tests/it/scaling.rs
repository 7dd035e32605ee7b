//! Simulated Deployments that are scaled while they roll out.

use apiserver::ApiServer;
use serde_json::{Value, json};

use crate::simulation::{DEPLOYMENTS, condition, deployment, images, pass, simulated, strategic, with_image};
use crate::{get, merge, post};

const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";

/// Returns how many Pods have each of the two images.
async fn counts(server: &ApiServer) -> (usize, usize) {
    let images = images(server).await;
    let count = |image: &str| images.iter().filter(|found| *found == image).count();
    (count("one"), count("fails"))
}

/// Begins a roll-out that gets stuck. Returns how many Pods have each of the two images.
async fn stuck(server: &ApiServer, replicas: i64, strategy: Value) -> (usize, usize) {
    let mut web = deployment("one");
    web["spec"]["replicas"] = json!(replicas);
    web["spec"]["strategy"] = strategy;
    assert_eq!(post(server, DEPLOYMENTS, web).await.0, 201);
    pass(server, 5).await;
    strategic(server, WEB, &with_image("fails")).await;
    pass(server, 10).await;
    counts(server).await
}

async fn scale(server: &ApiServer, replicas: i64) -> (usize, usize) {
    merge(server, WEB, json!({"spec": {"replicas": replicas}})).await;
    pass(server, 10).await;
    counts(server).await
}

#[tokio::test(start_paused = true)]
async fn a_stuck_roll_out_that_is_scaled_up_grows_in_proportion() {
    let server = simulated();
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
    assert_eq!(stuck(&server, 4, strategy).await, (3, 1));
    assert_eq!(scale(&server, 8).await, (6, 2));
    let (_, web) = get(&server, WEB).await;
    assert_eq!((&web["status"]["readyReplicas"], &web["status"]["replicas"]), (&json!(6), &json!(8)));
    let (_, sets) = get(&server, "/apis/apps/v1/namespaces/default/replicasets").await;
    for set in sets["items"].as_array().unwrap() {
        let annotations = &set["metadata"]["annotations"];
        assert_eq!(annotations["deployment.kubernetes.io/desired-replicas"], "8", "{set}");
        assert_eq!(annotations["deployment.kubernetes.io/max-replicas"], "8", "{set}");
    }
    // It can still be undone.
    strategic(&server, WEB, &with_image("one")).await;
    pass(&server, 10).await;
    assert_eq!(counts(&server).await, (8, 0));
}

#[tokio::test(start_paused = true)]
async fn a_stuck_roll_out_that_is_scaled_down_stays_within_what_it_may_have() {
    let server = simulated();
    assert_eq!(stuck(&server, 8, json!({})).await, (6, 4));
    assert_eq!(scale(&server, 4).await, (3, 2));
    assert_eq!(scale(&server, 0).await, (0, 0));
    assert_eq!(scale(&server, 2).await, (0, 2));
}

#[tokio::test(start_paused = true)]
async fn a_paused_roll_out_is_scaled_in_proportion_too() {
    let server = simulated();
    assert_eq!(stuck(&server, 4, json!({})).await, (3, 2));
    merge(&server, WEB, json!({"spec": {"paused": true}})).await;
    assert_eq!(scale(&server, 8).await, (6, 4));
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_is_scaled_with_a_new_template_comes_to_its_end() {
    for strategy in ["RollingUpdate", "Recreate"] {
        let server = simulated();
        let mut web = deployment("one");
        web["spec"]["strategy"] = json!({"type": strategy});
        post(&server, DEPLOYMENTS, web).await;
        pass(&server, 5).await;
        let mut change = with_image("two");
        change["spec"]["replicas"] = json!(5);
        strategic(&server, WEB, &change).await;
        pass(&server, 15).await;
        assert_eq!(images(&server).await, ["two"; 5], "{strategy}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_recreates_is_not_available_without_all_its_pods() {
    let server = simulated();
    assert_eq!(stuck(&server, 1, json!({"type": "Recreate"})).await, (0, 1));
    let (_, web) = get(&server, WEB).await;
    assert_eq!(condition(&web, "Available")["status"], "False", "{web}");
}

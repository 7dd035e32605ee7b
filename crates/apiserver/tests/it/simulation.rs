//! Workloads that become ready although nothing runs.

use std::time::Duration;

use apiserver::ApiServer;
use serde_json::{Value, json};

use crate::{delete, get, post};

fn deployment(image: &str) -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
        },
    })
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Advances the simulated time until the server has nothing left to do.
async fn settle(server: &ApiServer) {
    for _ in 0..10 {
        server.settled().await;
        tokio::time::advance(Duration::from_millis(600)).await;
        tokio::task::yield_now().await;
    }
    server.settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_ready_and_goes_with_its_pods() {
    let server = ApiServer::builder().simulate(Duration::from_millis(500)).build().unwrap();
    post(&server, DEPLOYMENTS, deployment("nginx")).await;
    settle(&server).await;
    let (_, kept) = get(&server, &format!("{DEPLOYMENTS}/web")).await;
    assert_eq!(
        (&kept["status"]["readyReplicas"], &kept["status"]["updatedReplicas"]),
        (&json!(2), &json!(2))
    );
    let pods = "/api/v1/namespaces/default/pods";
    assert_eq!(get(&server, pods).await.1["items"].as_array().unwrap().len(), 2);
    delete(&server, &format!("{DEPLOYMENTS}/web"), json!({})).await;
    settle(&server).await;
    assert_eq!(get(&server, pods).await.1["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn images_called_fail_never_start() {
    let server = ApiServer::builder().simulate(Duration::from_millis(500)).build().unwrap();
    post(&server, DEPLOYMENTS, deployment("failing:1")).await;
    settle(&server).await;
    let (_, kept) = get(&server, &format!("{DEPLOYMENTS}/web")).await;
    assert_eq!((&kept["status"]["readyReplicas"], &kept["status"]["replicas"]), (&Value::Null, &json!(2)));
}

#[tokio::test(start_paused = true)]
async fn a_job_comes_to_its_end() {
    let server = ApiServer::builder().simulate(Duration::from_millis(500)).build().unwrap();
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let spec = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}});
    let (status, _) = post(&server, jobs, json!({"metadata": {"name": "j"}, "spec": spec})).await;
    assert_eq!(status, 201);
    settle(&server).await;
    let (_, kept) = get(&server, &format!("{jobs}/j")).await;
    assert_eq!(kept["status"]["succeeded"], json!(1), "{kept}");
    assert_eq!(kept["status"]["conditions"][1]["type"], "Complete");
}

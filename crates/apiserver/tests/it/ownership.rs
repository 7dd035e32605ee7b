//! Objects that have several owners, and owners that come later.

use apiserver::ApiServer;
use serde_json::{Value, json};

use crate::{delete, get, merge, post, server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn create(server: &ApiServer, name: &str, owners: &[&Value]) -> Value {
    let references: Vec<Value> = owners.iter().map(|owner| reference(owner)).collect();
    let (status, object) =
        post(server, MAPS, json!({"metadata": {"name": name, "ownerReferences": references}})).await;
    assert_eq!(status, 201, "{object}");
    object
}

fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
    })
}

async fn owners(server: &ApiServer, name: &str) -> Vec<String> {
    let (status, object) = get(server, &format!("{MAPS}/{name}")).await;
    assert_eq!(status, 200, "{name}: {object}");
    let list = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    list.iter().map(|owner| owner["name"].as_str().unwrap().to_owned()).collect()
}

async fn exists(server: &ApiServer, name: &str) -> bool {
    get(server, &format!("{MAPS}/{name}")).await.0 == 200
}

#[tokio::test]
async fn slip_26_a_dependent_stays_with_its_other_owner() {
    let server = server();
    let (a, b) = (create(&server, "a", &[]).await, create(&server, "b", &[]).await);
    create(&server, "shared", &[&a, &b]).await;
    create(&server, "own", &[&a]).await;
    delete(&server, &format!("{MAPS}/a"), json!({"propagationPolicy": "Foreground"})).await;
    server.settled().await;
    assert!(!exists(&server, "a").await && !exists(&server, "own").await);
    assert_eq!(owners(&server, "shared").await, ["b"]);
    delete(&server, &format!("{MAPS}/b"), json!({"propagationPolicy": "Foreground"})).await;
    server.settled().await;
    assert!(!exists(&server, "b").await && !exists(&server, "shared").await);
}

#[tokio::test]
async fn slip_26_owners_in_a_circle_go_together() {
    let server = server();
    let a = create(&server, "a", &[]).await;
    let b = create(&server, "b", &[&a]).await;
    merge(&server, &format!("{MAPS}/a"), json!({"metadata": {"ownerReferences": [reference(&b)]}})).await;
    delete(&server, &format!("{MAPS}/a"), json!({"propagationPolicy": "Foreground"})).await;
    server.settled().await;
    assert!(!exists(&server, "a").await && !exists(&server, "b").await);
}

#[tokio::test]
async fn slip_26_an_owner_goes_when_its_last_dependent_is_let_go() {
    let server = server();
    let a = create(&server, "a", &[]).await;
    create(&server, "held", &[&a]).await;
    merge(&server, &format!("{MAPS}/held"), json!({"metadata": {"finalizers": ["example.com/x"]}})).await;
    delete(&server, &format!("{MAPS}/a"), json!({"propagationPolicy": "Foreground"})).await;
    server.settled().await;
    assert!(exists(&server, "a").await);
    merge(&server, &format!("{MAPS}/held"), json!({"metadata": {"ownerReferences": null}})).await;
    server.settled().await;
    assert!(!exists(&server, "a").await && exists(&server, "held").await);
}

#[tokio::test]
async fn slip_33_owners_that_come_later_are_checked() {
    let server = server();
    let a = create(&server, "a", &[]).await;
    let mut gone = a.clone();
    gone["metadata"]["uid"] = json!("00000000-0000-0000-0000-000000000000");
    create(&server, "later", &[]).await;
    create(&server, "both", &[]).await;
    let references = |owners: &[&Value]| -> Value {
        let references: Vec<Value> = owners.iter().map(|owner| reference(owner)).collect();
        json!({"metadata": {"ownerReferences": references}})
    };
    merge(&server, &format!("{MAPS}/later"), references(&[&gone])).await;
    merge(&server, &format!("{MAPS}/both"), references(&[&a, &gone])).await;
    server.settled().await;
    assert!(!exists(&server, "later").await);
    assert_eq!(owners(&server, "both").await, ["a"]);
}

#[tokio::test]
async fn slip_33_owners_are_checked_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let server = ApiServer::builder().state(&path).build().unwrap();
    let a = create(&server, "a", &[]).await;
    create(&server, "owned", &[&a]).await;
    server.shutdown().await.unwrap();
    // The server ended after its owner was deleted and before the dependent was looked at.
    let kept = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = kept.lines().filter(|line| !line.contains(r#""key":"default/a""#)).collect();
    let (_, rest) = lines.last().unwrap().split_once(':').unwrap();
    let count: usize = rest.trim_end_matches('}').parse().unwrap();
    let kept = kept.lines().count();
    assert_eq!(lines.len() + 1, kept);
    let end = format!("{{\"objects\":{}}}", count - 1);
    let text = [&lines[..lines.len() - 1], &[end.as_str()]].concat().join("\n");
    std::fs::write(&path, text).unwrap();
    let server = ApiServer::builder().state(&path).build().unwrap();
    get(&server, "/version").await;
    server.settled().await;
    assert!(!exists(&server, "owned").await);
}

#[tokio::test]
async fn slip_26_pods_that_wait_do_not_hold_a_namespace() {
    let server = server();
    post(&server, "/api/v1/namespaces", json!({"metadata": {"name": "going"}})).await;
    let pods = "/api/v1/namespaces/going/pods";
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    });
    assert_eq!(post(&server, pods, pod).await.0, 201);
    let (_, deleted) = delete(&server, &format!("{pods}/p"), json!({})).await;
    assert_eq!(deleted["metadata"]["deletionGracePeriodSeconds"], json!(30));
    delete(&server, "/api/v1/namespaces/going", json!({})).await;
    server.settled().await;
    assert_eq!(get(&server, "/api/v1/namespaces/going").await.0, 404);
}

#[tokio::test]
async fn a_namespace_says_what_it_waits_for() {
    let server = server();
    post(&server, "/api/v1/namespaces", json!({"metadata": {"name": "going"}})).await;
    for name in ["a", "b"] {
        let map = json!({"metadata": {"name": name, "finalizers": ["example.com/x"]}});
        post(&server, "/api/v1/namespaces/going/configmaps", map).await;
    }
    delete(&server, "/api/v1/namespaces/going", json!({})).await;
    server.settled().await;
    let message = async |kind: &str| {
        let (_, namespace) = get(&server, "/api/v1/namespaces/going").await;
        let conditions = namespace["status"]["conditions"].as_array().unwrap().clone();
        assert_eq!(conditions.len(), 5);
        conditions.into_iter().find(|c| c["type"] == kind).unwrap()["message"].clone()
    };
    assert_eq!(
        message("NamespaceFinalizersRemaining").await,
        "Some content in the namespace has finalizers remaining: example.com/x in 2 resource instances"
    );
    merge(&server, "/api/v1/namespaces/going/configmaps/a", json!({"metadata": {"finalizers": null}})).await;
    server.settled().await;
    assert_eq!(
        message("NamespaceContentRemaining").await,
        "Some resources are remaining: configmaps. has 1 resource instances"
    );
}

//! What follows from deletions: owners and dependents, finalizers, definitions.

use serde_json::{Value, json};

use crate::{delete, get, merge, post, server, watch};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn create_owned(server: &apiserver::ApiServer, blocks: bool) -> Value {
    let (_, owner) = post(server, MAPS, json!({"metadata": {"name": "owner"}})).await;
    let reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    });
    let (status, _) =
        post(server, MAPS, json!({"metadata": {"name": "owned", "ownerReferences": [reference]}})).await;
    assert_eq!(status, 201);
    owner
}

#[tokio::test]
async fn dependents_go_after_their_owner() {
    let server = server();
    create_owned(&server, false).await;
    delete(&server, &format!("{MAPS}/owner"), json!({})).await;
    server.settled().await;
    assert_eq!(get(&server, &format!("{MAPS}/owned")).await.0, 404);
}

#[tokio::test]
async fn dependents_go_before_their_owner_when_asked() {
    let server = server();
    create_owned(&server, true).await;
    let (_, list) = get(&server, MAPS).await;
    let (status, owner) =
        delete(&server, &format!("{MAPS}/owner"), json!({"propagationPolicy": "Foreground"})).await;
    assert_eq!((status, &owner["metadata"]["finalizers"]), (200, &json!(["foregroundDeletion"])));
    server.settled().await;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{MAPS}?watch=1&resourceVersion={revision}&timeoutSeconds=1");
    let lines = watch(&server, &path, 4).await;
    let gone = lines.iter().filter(|line| line["type"] == "DELETED");
    let names: Vec<&Value> = gone.map(|line| &line["object"]["metadata"]["name"]).collect();
    assert_eq!(names, ["owned", "owner"]);
}

#[tokio::test]
async fn dependents_stay_without_their_owner_when_asked() {
    let server = server();
    create_owned(&server, true).await;
    delete(&server, &format!("{MAPS}/owner"), json!({"propagationPolicy": "Orphan"})).await;
    server.settled().await;
    let (status, owned) = get(&server, &format!("{MAPS}/owned")).await;
    assert_eq!((status, &owned["metadata"]["ownerReferences"]), (200, &Value::Null));
    assert_eq!(get(&server, &format!("{MAPS}/owner")).await.0, 404);
}

#[tokio::test]
async fn an_object_waits_for_its_finalizers() {
    let server = server();
    let path = format!("{MAPS}/x");
    post(&server, MAPS, json!({"metadata": {"name": "x", "finalizers": ["example.com/a"]}})).await;
    let (status, waiting) = delete(&server, &path, json!({})).await;
    assert_eq!(status, 200);
    assert!(waiting["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(get(&server, &path).await.0, 200);
    let (status, _) = merge(&server, &path, json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(status, 200);
    assert_eq!(get(&server, &path).await.0, 404);
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "shortNames": ["th"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                    "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
                }}},
                "subresources": {"status": {}},
            }],
        },
    })
}

#[tokio::test]
async fn custom_kinds_come_and_go() {
    let server = server();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let things = "/apis/example.com/v1/namespaces/default/things";
    assert_eq!(post(&server, definitions, definition()).await.0, 201);
    let (_, kept) = get(&server, &format!("{definitions}/things.example.com")).await;
    let conditions = kept["status"]["conditions"].as_array().unwrap();
    assert_eq!(
        conditions.iter().map(|c| c["type"].as_str().unwrap()).collect::<Vec<_>>(),
        ["NamesAccepted", "Established"]
    );
    let (_, resources) = get(&server, "/apis/example.com/v1").await;
    assert_eq!(resources["resources"][0]["shortNames"], json!(["th"]));
    let thing = json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"},
        "spec": {"size": 1}, "status": {"ready": true},
    });
    let (status, created) = post(&server, things, thing).await;
    assert_eq!(
        (status, &created["status"], &created["metadata"]["generation"]),
        (201, &Value::Null, &json!(1))
    );
    let path = format!("{things}/a");
    let (_, changed) = merge(&server, &path, json!({"spec": {"size": 2}})).await;
    assert_eq!(changed["metadata"]["generation"], json!(2));
    let (_, changed) =
        merge(&server, &format!("{path}/status"), json!({"spec": {"size": 9}, "status": {"ready": true}}))
            .await;
    assert_eq!((&changed["spec"]["size"], &changed["status"]["ready"]), (&json!(2), &json!(true)));
    assert_eq!(changed["metadata"]["generation"], json!(2));
    delete(&server, &format!("{definitions}/things.example.com"), json!({})).await;
    server.settled().await;
    assert_eq!(get(&server, &format!("{definitions}/things.example.com")).await.0, 404);
    assert_eq!(get(&server, &path).await.0, 404);
    assert_eq!(get(&server, "/apis/example.com/v1").await.0, 404);
}

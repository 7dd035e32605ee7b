//! Evictions and bindings: dry runs and preconditions.

use apiserver::ApiServer;
use serde_json::{Value, json};

use crate::{get, post, server};

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn pod(server: &ApiServer) -> Value {
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let (status, pod) = post(server, PODS, pod).await;
    assert_eq!(status, 201, "{pod}");
    pod
}

async fn evict(server: &ApiServer, query: &str, options: Value) -> (u16, Value) {
    let eviction = json!({"metadata": {"name": "p"}, "deleteOptions": options});
    post(server, &format!("{PODS}/p/eviction{query}"), eviction).await
}

#[tokio::test]
async fn slip_27_a_dry_eviction_deletes_nothing() {
    let server = server();
    let before = pod(&server).await;
    for (query, options) in [("", json!({"dryRun": ["All"]})), ("?dryRun=All", Value::Null)] {
        let (status, answer) = evict(&server, query, options).await;
        assert_eq!((status, &answer["status"]), (201, &json!("Success")));
        assert_eq!(get(&server, &format!("{PODS}/p")).await.1, before);
    }
    let (status, answer) = evict(&server, "", json!({"dryRun": ["x"]})).await;
    assert_eq!((status, &answer["details"]["kind"]), (422, &json!("DeleteOptions")));
    assert_eq!(get(&server, &format!("{PODS}/p")).await.1, before);
}

#[tokio::test]
async fn slip_27_an_eviction_keeps_its_preconditions() {
    let server = server();
    let before = pod(&server).await;
    for wrong in [json!({"uid": "other"}), json!({"resourceVersion": "1"})] {
        let (status, answer) = evict(&server, "", json!({"preconditions": wrong})).await;
        assert_eq!((status, &answer["reason"]), (409, &json!("Conflict")), "{answer}");
        assert_eq!(get(&server, &format!("{PODS}/p")).await.1, before);
    }
    let metadata = &before["metadata"];
    let right = json!({"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]});
    assert_eq!(evict(&server, "", json!({"preconditions": right})).await.0, 201);
    assert_eq!(get(&server, &format!("{PODS}/p")).await.0, 404);
    assert_eq!(evict(&server, "", Value::Null).await.0, 404);
}

#[tokio::test]
async fn slip_27_an_eviction_of_another_name_is_refused() {
    let server = server();
    pod(&server).await;
    let other = json!({"metadata": {"name": "other"}});
    assert_eq!(post(&server, &format!("{PODS}/p/eviction"), other).await.0, 400);
    assert_eq!(get(&server, &format!("{PODS}/p")).await.0, 200);
}

#[tokio::test]
async fn slip_27_a_dry_binding_binds_nothing() {
    let server = server();
    let before = pod(&server).await;
    let binding = |metadata: Value| {
        let mut metadata = metadata;
        metadata["name"] = json!("p");
        json!({"metadata": metadata, "target": {"kind": "Node", "name": "n"}})
    };
    let path = format!("{PODS}/p/binding");
    assert_eq!(post(&server, &format!("{path}?dryRun=All"), binding(json!({}))).await.0, 201);
    for wrong in [json!({"uid": "other"}), json!({"resourceVersion": "1"})] {
        let (status, answer) = post(&server, &path, binding(wrong)).await;
        assert_eq!((status, &answer["reason"]), (409, &json!("Conflict")), "{answer}");
    }
    assert_eq!(get(&server, &format!("{PODS}/p")).await.1, before);
    let right = json!({"uid": before["metadata"]["uid"], "annotations": {"a": "b"}});
    assert_eq!(post(&server, &path, binding(right)).await.0, 201);
    let (_, bound) = get(&server, &format!("{PODS}/p")).await;
    assert_eq!(
        (&bound["spec"]["nodeName"], &bound["metadata"]["annotations"]["a"]),
        (&json!("n"), &json!("b"))
    );
    let (status, answer) = post(&server, &path, binding(json!({}))).await;
    assert_eq!(status, 409);
    let message = answer["message"].as_str().unwrap();
    assert!(message.ends_with("pod p is already assigned to node \"n\""), "{message}");
}

//! Objects that are nested deeply.

use apiserver::ApiServer;
use http::Method;
use serde_json::{Value, json};

use crate::{get, post, put, send};

const DEFINITION: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
"names":{"plural":"things","singular":"thing","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}"#;

const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

fn nested(depth: usize) -> String {
    let (open, close) = (r#"{"a":"#.repeat(depth - 1), "}".repeat(depth - 1));
    format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Thing","metadata":{{"name":"deep"}},"spec":{open}1{close}}}"#
    )
}

async fn write(server: &ApiServer, method: Method, path: &str, content: &str, body: &str) -> u16 {
    send(server.service(), method, path, content, body).await.0
}

/// Returns the text of an answer, which no common reader reads.
async fn text(server: &ApiServer, path: &str) -> String {
    let (status, body) = get(server, path).await;
    assert_eq!(status, 200, "{body}");
    body.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn slip_30_what_is_stored_can_be_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let server = ApiServer::builder().state(&path).build().unwrap();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(post(&server, definitions, serde_json::from_str(DEFINITION).unwrap()).await.0, 201);
    for depth in [500, 410, 401] {
        for (method, path, content) in [
            (Method::POST, THINGS.to_owned(), "application/json"),
            (Method::POST, THINGS.to_owned(), "application/yaml"),
            (Method::PATCH, format!("{THINGS}/deep?fieldManager=m"), "application/apply-patch+yaml"),
        ] {
            let status = write(&server, method, &path, content, &nested(depth)).await;
            assert_eq!(status, 400, "{depth} {content}");
        }
    }
    assert_eq!(write(&server, Method::POST, THINGS, "application/json", &nested(400)).await, 201);
    let one = format!("{THINGS}/deep");
    let stored = text(&server, &one).await;
    assert!(text(&server, THINGS).await.contains(&r#"{"a":"#.repeat(398)));
    // It can be written as it was read, changed, patched and kept.
    assert_eq!(write(&server, Method::PUT, &one, "application/json", &stored).await, 200);
    let label = r#"{"metadata":{"labels":{"a":"b"}}}"#;
    assert_eq!(write(&server, Method::PATCH, &one, "application/merge-patch+json", label).await, 200);
    let label = r#"[{"op":"add","path":"/metadata/labels/c","value":"d"}]"#;
    assert_eq!(write(&server, Method::PATCH, &one, "application/json-patch+json", label).await, 200);
    let stored = text(&server, &one).await;
    assert!(stored.contains(r#""labels":{"a":"b","c":"d"}"#));
    server.shutdown().await.unwrap();
    let server = ApiServer::builder().state(&path).build().unwrap();
    assert_eq!(text(&server, &one).await, stored);
}

#[tokio::test]
async fn slip_29_patches_cannot_grow_an_object_without_end() {
    let server = crate::server();
    let maps = "/api/v1/namespaces/default/configmaps";
    let (_, created) = post(&server, maps, json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await;
    let copies: Vec<Value> =
        (0..40).map(|n| json!({"op": "copy", "from": "/data", "path": format!("/data/k{n}")})).collect();
    let body = Value::Array(copies).to_string();
    let path = format!("{maps}/a");
    let (status, answer) =
        send(server.service(), Method::PATCH, &path, "application/json-patch+json", &body).await;
    assert_eq!((status, &answer["reason"]), (422, &json!("Invalid")), "{answer}");
    assert_eq!(put(&server, &path, created.clone()).await, (200, created));
}

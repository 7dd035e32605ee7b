//! The audit log: what tests that count requests read.

use apiserver::{ApiServer, FaultPlan};
use axum::body::Body;
use http::{Method, Request};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{delete, get, merge, post};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Returns verb, resource, name and status of each request in a log.
fn requests(log: &str) -> Vec<String> {
    let text = |line: &Value, name: &str| line[name].as_str().unwrap_or("-").to_owned();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let shown = lines.map(|line| {
        format!(
            "{} {} {} {}",
            text(&line, "verb"),
            text(&line, "resource"),
            text(&line, "name"),
            line["status"]
        )
    });
    shown.collect()
}

#[tokio::test]
async fn every_request_is_one_line_of_the_audit_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.jsonl");
    let server = ApiServer::builder().audit(&path).build().unwrap();
    server.faults().add(FaultPlan::on(Method::GET, "/api/v1/nodes").cut());
    post(&server, MAPS, json!({"metadata": {"name": "a"}})).await;
    post(&server, MAPS, json!({"metadata": {"name": "a"}})).await;
    get(&server, MAPS).await;
    get(&server, &format!("{MAPS}/a")).await;
    get(&server, &format!("{MAPS}/missing")).await;
    merge(&server, &format!("{MAPS}/a"), json!({"data": {"x": "y"}})).await;
    let watch = Request::get(format!("{MAPS}?watch=1&timeoutSeconds=9")).body(Body::empty()).unwrap();
    drop(server.service().oneshot(watch).await.unwrap());
    let cut = Request::get("/api/v1/nodes").body(Body::empty()).unwrap();
    assert!(server.service().oneshot(cut).await.is_err());
    delete(&server, &format!("{MAPS}/a"), json!({})).await;
    get(&server, "/version").await;
    let log = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        requests(&log),
        [
            "create configmaps - 201",
            "create configmaps - 409",
            "list configmaps - 200",
            "get configmaps a 200",
            "get configmaps missing 404",
            "patch configmaps a 200",
            "watch configmaps - 200",
            "list nodes - 0",
            "delete configmaps a 200",
            "- - - 200",
        ]
    );
    let watch: Value = serde_json::from_str(log.lines().nth(6).unwrap()).unwrap();
    assert_eq!((&watch["query"], &watch["method"]), (&json!("watch=1&timeoutSeconds=9"), &json!("GET")));
    // A server that starts again writes on.
    let again = ApiServer::builder().audit(&path).build().unwrap();
    get(&again, MAPS).await;
    assert_eq!(requests(&std::fs::read_to_string(&path).unwrap()).len(), 11);
}

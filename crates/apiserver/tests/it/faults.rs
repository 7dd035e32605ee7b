//! Planned faults.

use apiserver::FaultPlan;
use http::Method;
use serde_json::json;

use crate::{get, post, server, watch};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn requests_fail_as_planned() {
    let server = server();
    server.faults().add(FaultPlan::on(Method::GET, MAPS).nth(2).fail(503));
    server.faults().add(FaultPlan::on(Method::POST, "*").too_many_requests(7));
    assert_eq!(get(&server, MAPS).await.0, 200);
    assert_eq!(get(&server, MAPS).await.0, 503);
    assert_eq!(get(&server, MAPS).await.0, 200);
    let (status, body) = post(&server, MAPS, json!({"metadata": {"name": "x"}})).await;
    assert_eq!((status, &body["details"]["retryAfterSeconds"]), (429, &json!(7)));
    assert_eq!(server.faults().hits(), 2);
}

#[tokio::test]
async fn one_request_of_so_many_fails_for_ever() {
    let server = server();
    server.faults().add(FaultPlan::on(Method::GET, MAPS).every(3).fail(500));
    let mut codes = Vec::new();
    for _ in 0..7 {
        codes.push(get(&server, MAPS).await.0);
    }
    assert_eq!(codes, [200, 200, 500, 200, 200, 500, 200]);
}

#[tokio::test]
async fn watches_are_dropped_and_revisions_expire() {
    let server = server();
    let (_, list) = get(&server, MAPS).await;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let path = format!("{MAPS}?watch=1&resourceVersion={revision}");
    post(&server, MAPS, json!({"metadata": {"name": "x"}})).await;
    assert_eq!(watch(&server, &path, 1).await[0]["type"], "ADDED");
    let faults = server.faults();
    let (lines, ()) = tokio::join!(watch(&server, &path, 9), async {
        tokio::task::yield_now().await;
        faults.drop_watches();
    });
    assert_eq!(lines.len(), 1);
    faults.expire_revisions();
    let lines = watch(&server, &path, 1).await;
    assert_eq!((&lines[0]["type"], &lines[0]["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

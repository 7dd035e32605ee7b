//! What must hold for every request: the server answers, what it answers can be read, and it comes to rest.

use std::time::Duration;

use apiserver::ApiServer;
use axum::body::Body;
use http::Request;
use serde_json::Value;

use super::requests::requests;
use super::server::{block_on, builder, send};

/// How many requests of an input are sent.
const MOST: usize = 12;

/// Sends the requests in `bytes`, one after the other, to a new server that simulates workloads.
pub(crate) fn run(bytes: &[u8]) {
    block_on(async {
        let server = builder().simulate(Duration::ZERO).build().unwrap();
        for request in requests(bytes).into_iter().take(MOST) {
            check(&server, request).await;
        }
        // Time passes when nobody works, so this is no wait. Work that makes itself anew would never end.
        tokio::time::timeout(Duration::from_hours(1), server.settled()).await.unwrap();
    });
}

async fn check(server: &ApiServer, request: Request<Body>) {
    let what = format!("{} {}", request.method(), request.uri());
    let answer = send(server, request).await;
    // kube-apiserver says 500 to some mistakes of clients, and so does this server.
    let text = String::from_utf8_lossy(&answer.body);
    assert!(answer.status.as_u16() >= 200 && !text.contains("server panic"), "{what}: {text}");
    let header =
        |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !answer.is_whole || header("content-encoding") == "gzip" || !header("content-type").contains("json") {
        return;
    }
    let mut documents = serde_json::Deserializer::from_slice(&answer.body).into_iter::<Value>();
    let first = documents.next();
    let Some(Ok(document)) = first else {
        return assert!(first.is_none(), "{what} {}: {first:?}", answer.status);
    };
    if document.get("kind").is_some_and(|kind| kind == "Status") && answer.status.as_u16() >= 400 {
        assert_eq!(document.get("code"), Some(&answer.status.as_u16().into()), "{what}");
        assert!(document.get("message").is_some_and(|message| message != ""), "{what}: {document}");
    }
}

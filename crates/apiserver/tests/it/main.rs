//! The server as its clients see it, in process.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod adoption;
mod audit;
mod changes;
mod clients;
mod cluster;
mod definitions;
mod deletions;
mod depth;
mod evictions;
mod faults;
mod impersonation;
mod jobs;
mod kubectl;
mod lifecycle;
mod ownership;
mod refusals;
mod replay;
mod requests;
mod scaling;
mod scheduling;
mod schema_changes;
mod simulation;
mod sockets;
mod state;
mod strain;
#[path = "../transcripts/mod.rs"]
mod transcripts;
mod versions;

use apiserver::{ApiServer, Endpoint};
use axum::body::Body;
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::Client;
use serde_json::Value;
use tower::ServiceExt;

/// A server whose names and identities are the same in each run.
fn server() -> ApiServer {
    ApiServer::builder().seed(1).build().unwrap()
}

fn client(server: &ApiServer) -> Client {
    Client::new(server.service(), "default")
}

/// Sends a request; returns status and body.
async fn send(service: Endpoint, method: Method, path: &str, content_type: &str, body: &str) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(Body::from(body.to_owned()))
        .unwrap();
    let answer = service.oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let text = || Value::String(String::from_utf8_lossy(&body).into_owned());
    (status, serde_json::from_slice(&body).unwrap_or_else(|_| text()))
}

async fn get(server: &ApiServer, path: &str) -> (u16, Value) {
    send(server.service(), Method::GET, path, "", "").await
}

async fn post(server: &ApiServer, path: &str, body: Value) -> (u16, Value) {
    send(server.service(), Method::POST, path, "application/json", &body.to_string()).await
}

async fn put(server: &ApiServer, path: &str, body: Value) -> (u16, Value) {
    send(server.service(), Method::PUT, path, "application/json", &body.to_string()).await
}

async fn delete(server: &ApiServer, path: &str, body: Value) -> (u16, Value) {
    send(server.service(), Method::DELETE, path, "application/json", &body.to_string()).await
}

async fn merge(server: &ApiServer, path: &str, body: Value) -> (u16, Value) {
    send(server.service(), Method::PATCH, path, "application/merge-patch+json", &body.to_string()).await
}

/// Reads the lines of a watch that ends by itself or after `count` lines.
async fn watch(server: &ApiServer, path: &str, count: usize) -> Vec<Value> {
    let request = Request::builder().uri(path).body(Body::empty()).unwrap();
    let answer = server.service().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    let mut body = answer.into_body();
    let mut text = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        text.extend_from_slice(frame.data_ref().unwrap());
        if text.split(|byte| *byte == b'\n').count() > count {
            break;
        }
    }
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

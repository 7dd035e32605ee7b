//! Requests to an embedded API server, and waiting for what it holds.

use std::time::Instant;

use http::header::CONTENT_TYPE;
use http::{Method, Request};
use kube::client::Body;
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{ApiServer, DEADLINE};

/// Sends a request and returns the status and the answer; nothing when it was cut off.
async fn answer(server: &ApiServer, method: Method, path: &str, body: &Value) -> Option<(u16, Value)> {
    let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, kind);
    let client = Client::new(server.service(), "default");
    let response = client.send(request.body(Body::from(body)).unwrap()).await.ok()?;
    let status = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await.ok()?;
    Some((status, serde_json::from_slice(&bytes).unwrap_or_default()))
}

/// Sends a request and returns the status and the answer. A patch is a merge patch; a body that is null is empty.
pub(crate) async fn send(server: &ApiServer, method: Method, path: &str, body: &Value) -> (u16, Value) {
    answer(server, method, path, body).await.unwrap()
}

/// Sends a request that has to be answered well, and returns the answer.
pub(crate) async fn ok(server: &ApiServer, method: Method, path: &str, body: &Value) -> Value {
    let (status, answer) = send(server, method.clone(), path, body).await;
    assert!(status < 300, "{method} {path}: {status} {answer}");
    answer
}

/// Returns an object; nothing if it is not there or the request fails.
pub(crate) async fn get(server: &ApiServer, path: &str) -> Option<Value> {
    let (status, answer) = answer(server, Method::GET, path, &Value::Null).await?;
    (status < 300).then_some(answer)
}

/// Waits until `api` holds the object `name` in a state that `fits`; no object is null.
pub(crate) async fn settled<K>(api: &Api<K>, name: &str, fits: impl Fn(&Value) -> bool)
where
    K: kube::Resource + Clone + std::fmt::Debug + DeserializeOwned + Serialize + Send + 'static,
{
    let check = |object: Option<&K>| fits(&serde_json::to_value(object).unwrap());
    let waiting = await_condition(api.clone(), name, check);
    match tokio::time::timeout(DEADLINE, waiting).await {
        Ok(found) => drop(found.unwrap()),
        Err(late) => panic!("{name} did not settle ({late}); it is {:?}", api.get_opt(name).await),
    }
}

/// Waits until `fits` holds.
pub(crate) async fn until(what: &str, fits: impl Fn() -> bool) {
    let begun = Instant::now();
    while !fits() {
        assert!(begun.elapsed() < DEADLINE, "{what} did not come");
        super::pause::pause().await;
    }
}

/// Waits until what `fits` asks for holds.
pub(crate) async fn until_asked(what: &str, fits: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !fits().await {
        assert!(begun.elapsed() < DEADLINE, "{what} did not come");
        super::pause::pause().await;
    }
}

/// Returns the definition of the kind `Thing` of `example.com/v1`.
pub(crate) fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

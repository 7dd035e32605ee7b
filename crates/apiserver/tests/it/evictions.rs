//! Evictions, bindings and scales: dry runs, preconditions and types.

use apiserver::ApiServer;
use axum::body::Body;
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{get, merge, post, put, send, server};

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

/// Posts a body; returns the status, the text of the answer, and what it warns of.
async fn told(server: &ApiServer, path: &str, body: &Value) -> (u16, String, Vec<String>) {
    asked(server, Method::POST, path, "application/json", body).await
}

/// Like [`told`], for a patch.
async fn patched(
    server: &ApiServer,
    path: &str,
    media_type: &str,
    body: &Value,
) -> (u16, String, Vec<String>) {
    asked(server, Method::PATCH, path, media_type, body).await
}

async fn asked(
    server: &ApiServer,
    method: Method,
    path: &str,
    media_type: &str,
    body: &Value,
) -> (u16, String, Vec<String>) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media_type)
        .body(Body::from(body.to_string()))
        .unwrap();
    let answer = server.service().oneshot(request).await.unwrap();
    let warnings = answer.headers().get_all("warning").iter();
    let warnings = warnings.map(|text| text.to_str().unwrap().to_owned()).collect();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    (status, body["message"].as_str().unwrap_or_default().to_owned(), warnings)
}

#[tokio::test]
async fn slip_27_bindings_take_the_options_of_their_query() {
    let server = server();
    let before = pod(&server).await;
    let bindings = "/api/v1/namespaces/default/bindings";
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    let (status, message, _) = told(&server, &format!("{bindings}?dryRun=Nope"), &binding).await;
    let why = "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Nope\"]: supported values: \"All\"";
    assert_eq!((status, message.as_str()), (422, why));
    assert_eq!(told(&server, &format!("{bindings}?dryRun=All"), &binding).await.0, 201);
    assert_eq!(get(&server, &format!("{PODS}/p")).await.1, before);
    let nameless = json!({"target": {"name": "n"}});
    assert_eq!(told(&server, bindings, &nameless).await.1, "Name parameter required.");
    assert_eq!(told(&server, bindings, &binding).await.0, 201);
    assert_eq!(get(&server, &format!("{PODS}/p")).await.1["spec"]["nodeName"], "n");
}

#[tokio::test]
async fn slip_27_what_is_asked_of_a_server_is_read_by_its_type() {
    let server = server();
    let before = pod(&server).await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    post(&server, accounts, json!({"metadata": {"name": "sa"}})).await;
    let access = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned();
    let binding = |target: Value| json!({"metadata": {"name": "p"}, "target": target, "foo": 1});
    let node = json!({"kind": "Node", "name": "n"});
    for (path, kind, body, unknown) in [
        ("/api/v1/namespaces/default/bindings".to_owned(), "Binding", binding(node.clone()), "foo"),
        (format!("{PODS}/p/binding"), "Binding", binding(node), "foo"),
        (
            format!("{PODS}/p/eviction"),
            "Eviction",
            json!({"metadata": {"name": "p"}, "deleteOptions": {"foo": 1}}),
            "deleteOptions.foo",
        ),
        (format!("{accounts}/sa/token"), "TokenRequest", json!({"spec": {"foo": 1}}), "spec.foo"),
        (
            access,
            "SelfSubjectAccessReview",
            json!({"spec": {"resourceAttributes": {"verb": "get", "foo": 1}}}),
            "spec.resourceAttributes.foo",
        ),
    ] {
        let refused = format!(
            "{kind} in version \"v1\" cannot be handled as a {kind}: strict decoding error: unknown field \"{unknown}\""
        );
        let strict = told(&server, &format!("{path}?fieldValidation=Strict"), &body).await;
        assert_eq!(strict, (400, refused, Vec::new()), "{path}");
        let dry = told(&server, &format!("{path}?dryRun=All"), &body).await;
        assert_eq!(
            dry,
            (201, String::new(), vec![format!("299 - \"unknown field \\\"{unknown}\\\"\"")]),
            "{path}"
        );
        let silent = told(&server, &format!("{path}?dryRun=All&fieldValidation=Ignore"), &body).await;
        assert_eq!(silent, (201, String::new(), Vec::new()), "{path}");
    }
    let wrong = told(&server, &format!("{PODS}/p/binding"), &binding(json!(3))).await;
    let why = "Binding in version \"v1\" cannot be handled as a Binding: json: cannot unmarshal number into Go struct field Binding.target of type v1.ObjectReference";
    assert_eq!((wrong.0, wrong.1.as_str()), (400, why));
    assert_eq!(get(&server, &format!("{PODS}/p")).await.1, before);
}

/// Makes the set `s`; returns the path of sets.
async fn replica_set(server: &ApiServer) -> &'static str {
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    assert_eq!(post(server, sets, json!({"metadata": {"name": "s"}, "spec": spec})).await.0, 201);
    sets
}

#[tokio::test]
async fn slip_27_a_scale_is_read_by_its_type() {
    let server = server();
    let sets = replica_set(&server).await;
    let scale = json!({"metadata": {"name": "s"}, "spec": {"replicas": 3, "foo": 1}});
    let (status, answer) =
        put(&server, &format!("{sets}/s/scale?fieldValidation=Strict"), scale.clone()).await;
    let why = "Scale in version \"v1\" cannot be handled as a Scale: strict decoding error: unknown field \"spec.foo\"";
    assert_eq!((status, answer["message"].as_str()), (400, Some(why)));
    let (status, answer) = put(&server, &format!("{sets}/s/scale"), scale).await;
    assert_eq!((status, &answer["spec"]), (200, &json!({"replicas": 3})));
}

#[tokio::test]
async fn slip_27_a_patch_of_a_scale_is_read_by_its_type() {
    let server = server();
    let sets = replica_set(&server).await;
    let scale = format!("{sets}/s/scale");
    let unknown = json!({"spec": {"replicas": 3}, "foo": 1});
    let replicas = async || get(&server, &scale).await.1["spec"]["replicas"].clone();
    for (media_type, body) in [
        ("application/merge-patch+json", unknown.clone()),
        ("application/strategic-merge-patch+json", unknown),
        (
            "application/json-patch+json",
            json!([
                {"op": "replace", "path": "/spec/replicas", "value": 3},
                {"op": "add", "path": "/foo", "value": 1}
            ]),
        ),
    ] {
        let patch =
            async |query: &str| patched(&server, &format!("{scale}?{query}"), media_type, &body).await;
        let (status, message, told) = patch("fieldValidation=Strict").await;
        assert!(
            status == 422 && message.ends_with("strict decoding error: unknown field \"foo\""),
            "{message}"
        );
        assert_eq!((told, replicas().await), (Vec::new(), json!(1)), "{media_type}");
        let warned = vec!["299 - \"unknown field \\\"foo\\\"\"".to_owned()];
        assert_eq!(patch("dryRun=All").await, (200, String::new(), warned), "{media_type}");
        let silent = patch("dryRun=All&fieldValidation=Ignore").await;
        assert_eq!(silent, (200, String::new(), Vec::new()), "{media_type}");
    }
    let twice = r#"{"spec":{"replicas":3,"replicas":4}}"#;
    let path = format!("{scale}?fieldValidation=Strict");
    let (status, answer) =
        send(server.service(), Method::PATCH, &path, "application/merge-patch+json", twice).await;
    assert!(status == 422 && answer["message"].as_str().unwrap().contains("duplicate field"), "{answer}");
    assert_eq!(replicas().await, json!(1));
}

#[tokio::test]
async fn slip_33_a_scale_has_metadata_that_can_be() {
    let server = server();
    let sets = replica_set(&server).await;
    let scale = format!("{sets}/s/scale");
    for (metadata, status, message) in [
        (json!({"labels": {"A B": "x"}}), 422, "Scale.autoscaling \"s\" is invalid: metadata.labels: "),
        (json!({"annotations": {"a/b/c": "x"}}), 422, "metadata.annotations: Invalid value: \"a/b/c\""),
        (json!({"finalizers": ["noslash"]}), 422, "metadata.finalizers[0]: Invalid value: \"noslash\""),
        (json!({"ownerReferences": [null]}), 422, "metadata.ownerReferences.apiVersion: Invalid value: \"\""),
        (
            json!({"uid": "x"}),
            409,
            "replicasets/scale.apps \"s\": Precondition failed: UID in precondition: x",
        ),
        (json!({"name": "x"}), 400, "the name of the object (x) does not match the name on the URL (s)"),
        (json!({"namespace": "x"}), 400, "does not match the namespace sent on the request"),
        (json!({"labels": {"a": "b"}}), 200, ""),
    ] {
        let body = json!({"metadata": metadata, "spec": {"replicas": 3}});
        let (code, answer) = merge(&server, &format!("{scale}?dryRun=All"), body).await;
        let told = answer["message"].as_str().unwrap_or_default();
        assert!(code == status && told.contains(message), "{metadata}: {answer}");
    }
    let (status, answer) = merge(&server, &scale, json!({"spec": {"replicas": -1}})).await;
    let why = "Scale.autoscaling \"s\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0";
    assert_eq!((status, answer["message"].as_str()), (422, Some(why)));
}

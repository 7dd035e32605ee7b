//! Requests in the name of others, whose rights are those of their roles.

use apiserver::ApiServer;
use axum::body::Body;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::post;

const USER: &str = "system:serviceaccount:a:robot";

async fn acting(server: &ApiServer, method: Method, path: &str, body: Value) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("impersonate-user", USER);
    let request = request.header("content-type", "application/json");
    let answer = server.service().oneshot(request.body(Body::from(body.to_string())).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Returns a server with the namespaces `a` and `b`, in which `robot` of `a` may handle `ConfigMaps` of `a`, and see one Secret.
async fn world() -> ApiServer {
    let server = ApiServer::builder().seed(1).impersonation().build().unwrap();
    for name in ["a", "b"] {
        assert_eq!(post(&server, "/api/v1/namespaces", json!({"metadata": {"name": name}})).await.0, 201);
    }
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/a";
    let role = json!({"metadata": {"name": "maps"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get", "watch"]},
    ]});
    assert_eq!(post(&server, &format!("{rbac}/roles"), role).await.0, 201);
    let binding = json!({
        "metadata": {"name": "maps"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "maps"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "a"}],
    });
    assert_eq!(post(&server, &format!("{rbac}/rolebindings"), binding).await.0, 201);
    server
}

#[tokio::test]
async fn who_is_impersonated_may_do_what_its_roles_say() {
    let server = world().await;
    let map = json!({"metadata": {"name": "m"}});
    for (method, path, body, expected) in [
        (Method::POST, "/api/v1/namespaces/a/configmaps", map.clone(), 201),
        (Method::GET, "/api/v1/namespaces/a/configmaps/m", Value::Null, 200),
        (Method::DELETE, "/api/v1/namespaces/a/configmaps/m", Value::Null, 200),
        (Method::POST, "/api/v1/namespaces/b/configmaps", map, 403),
        (Method::GET, "/api/v1/configmaps", Value::Null, 403),
        (Method::GET, "/api/v1/namespaces/a/secrets", Value::Null, 403),
        (Method::GET, "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Done", Value::Null, 403),
        (Method::GET, "/api/v1/namespaces/a/secrets/one", Value::Null, 404),
        (Method::GET, "/api/v1/namespaces/a/secrets/two", Value::Null, 403),
        (Method::GET, "/api/v1/namespaces/a", Value::Null, 403),
        (Method::GET, "/version", Value::Null, 200),
        (Method::GET, "/apis", Value::Null, 200),
        (Method::GET, "/metrics", Value::Null, 403),
    ] {
        let (status, answer) = acting(&server, method.clone(), path, body).await;
        assert_eq!(status, expected, "{method} {path}: {answer}");
    }
}

#[tokio::test]
async fn a_refusal_says_who_may_not_do_what_and_where() {
    let server = world().await;
    let (_, answer) = acting(&server, Method::GET, "/api/v1/namespaces/a/secrets", Value::Null).await;
    let expected = r#"secrets is forbidden: User "system:serviceaccount:a:robot" cannot list resource "secrets" in API group "" in the namespace "a""#;
    assert_eq!((&answer["message"], &answer["reason"]), (&json!(expected), &json!("Forbidden")));
    let path = "/apis/apps/v1/namespaces/a/deployments/web/scale";
    let (_, answer) = acting(&server, Method::GET, path, Value::Null).await;
    let expected = r#"deployments.apps "web" is forbidden: User "system:serviceaccount:a:robot" cannot get resource "deployments/scale" in API group "apps" in the namespace "a""#;
    assert_eq!(answer["message"], expected);
    let (_, answer) = acting(&server, Method::GET, "/api/v1/nodes", Value::Null).await;
    assert!(answer["message"].as_str().unwrap().ends_with("at the cluster scope"), "{answer}");
}

#[tokio::test]
async fn reviews_answer_for_who_is_impersonated() {
    let server = world().await;
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    for (resource, namespace, expected) in
        [("configmaps", "a", true), ("configmaps", "b", false), ("secrets", "a", false)]
    {
        let spec =
            json!({"resourceAttributes": {"verb": "list", "resource": resource, "namespace": namespace}});
        let (_, answer) = acting(&server, Method::POST, reviews, json!({ "spec": spec })).await;
        assert_eq!(answer["status"]["allowed"], expected, "{answer}");
    }
}

//! Requests in the name of others, whose rights are those of their roles.

use apiserver::ApiServer;
use axum::body::Body;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::{get, merge, post};

const USER: &str = "system:serviceaccount:a:robot";

async fn acting(server: &ApiServer, method: Method, path: &str, body: Value) -> (u16, Value) {
    let headers = [("impersonate-user", USER), ("content-type", "application/json")];
    sent(server, method, path, &headers, body).await
}

async fn sent(
    server: &ApiServer,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Value,
) -> (u16, Value) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
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

#[tokio::test]
async fn a_change_that_makes_an_object_needs_the_right_to_create_it() {
    let server = world().await;
    let rules = json!([
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "patch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"]},
    ]);
    let role = "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles/maps";
    assert_eq!(merge(&server, role, json!({ "rules": rules })).await.0, 200);
    let secrets = "/api/v1/namespaces/a/secrets";
    let apply = async |name: &str| {
        let headers = [("impersonate-user", USER), ("content-type", "application/apply-patch+yaml")];
        let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        let path = format!("{secrets}/{name}?fieldManager=m");
        sent(&server, Method::PATCH, &path, &headers, body).await
    };
    let (status, answer) = apply("new").await;
    let expected = r#"secrets "new" is forbidden: User "system:serviceaccount:a:robot" cannot create resource "secrets" in API group "" in the namespace "a""#;
    assert_eq!((status, answer["message"].as_str()), (403, Some(expected)));
    assert_eq!(get(&server, &format!("{secrets}/new")).await.0, 404);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/a/leases";
    let lease = json!({"metadata": {"name": "l"}, "spec": {}});
    let (status, answer) = acting(&server, Method::PUT, &format!("{leases}/l"), lease.clone()).await;
    assert_eq!(status, 403, "{answer}");
    // What is there may be changed.
    assert_eq!(post(&server, secrets, json!({"metadata": {"name": "old"}})).await.0, 201);
    assert_eq!(apply("old").await.0, 200);
    let (_, lease) = post(&server, leases, lease).await;
    assert_eq!(acting(&server, Method::PUT, &format!("{leases}/l"), lease).await.0, 200);
}

#[tokio::test]
async fn a_review_of_a_user_answers_as_its_requests_are() {
    let server = world().await;
    let ask = async |user: Value, asked: Value| {
        let mut spec = json!({ "resourceAttributes": asked });
        spec.as_object_mut().unwrap().extend(user.as_object().unwrap().clone());
        let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let (status, answer) = post(&server, reviews, json!({ "spec": spec })).await;
        assert_eq!(status, 201, "{answer}");
        answer["status"]["allowed"].as_bool().unwrap()
    };
    let secret = |name: &str| json!({"verb": "get", "resource": "secrets", "namespace": "a", "name": name});
    assert!(ask(json!({ "user": USER }), secret("one")).await);
    assert!(!ask(json!({ "user": USER }), secret("two")).await);
    assert!(!ask(json!({"user": "bob"}), secret("one")).await);
    assert!(ask(json!({"user": "bob", "groups": ["system:masters"]}), secret("one")).await);
    let maps = json!({"verb": "list", "resource": "configmaps", "namespace": "a"});
    let local = "/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews";
    for (user, expected) in [(USER, true), ("bob", false)] {
        let spec = json!({"user": user, "resourceAttributes": maps});
        let (_, answer) = post(&server, local, json!({"metadata": {"namespace": "a"}, "spec": spec})).await;
        assert_eq!(answer["status"]["allowed"], expected, "{answer}");
    }
}

#[tokio::test]
async fn whoever_is_not_known_sees_how_the_server_is_and_nothing_else() {
    let server = world().await;
    let anonymous = [("impersonate-user", "system:anonymous")];
    for (path, expected) in [("/healthz", 200), ("/version", 200), ("/apis", 403), ("/api/v1/nodes", 403)] {
        let (status, answer) = sent(&server, Method::GET, path, &anonymous, Value::Null).await;
        assert_eq!(status, expected, "{path}: {answer}");
    }
}

#[tokio::test]
async fn what_else_is_said_of_a_user_is_known_of_it() {
    let server = world().await;
    let headers = [
        ("impersonate-user", "jane"),
        ("impersonate-extra-Scopes", "view"),
        ("impersonate-extra-scopes", "edit"),
        ("impersonate-extra-acme.com%2fproject", "x"),
        ("content-type", "application/json"),
    ];
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (_, answer) = sent(&server, Method::POST, reviews, &headers, json!({})).await;
    let expected = json!({"scopes": ["view", "edit"], "acme.com/project": ["x"]});
    assert_eq!(answer["status"]["userInfo"]["extra"], expected, "{answer}");
    let headers = [("impersonate-extra-scopes", "view")];
    assert_eq!(sent(&server, Method::GET, "/version", &headers, Value::Null).await.0, 500);
}

//! What every cluster holds and serves before anything runs in it.

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use serde_json::json;
use tower::ServiceExt;

use crate::{get, merge, post, server};

const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";

async fn fetch(server: &apiserver::ApiServer, path: &str, accept: &str) -> (u16, String, Vec<u8>) {
    let request = Request::builder().uri(path).header("accept", accept).body(Body::empty()).unwrap();
    let answer = server.service().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let kind = answer.headers().get("content-type").map_or("", |value| value.to_str().unwrap()).to_owned();
    (status, kind, answer.into_body().collect().await.unwrap().to_bytes().to_vec())
}

#[tokio::test]
async fn the_older_document_of_types_comes_as_json_and_as_protobuf() {
    let server = server();
    let (status, document) = get(&server, "/openapi/v2").await;
    assert_eq!((status, &document["swagger"]), (200, &json!("2.0")));
    let deployment = &document["definitions"]["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(deployment["properties"]["spec"]["$ref"], "#/definitions/io.k8s.api.apps.v1.DeploymentSpec");
    assert!(!document.to_string().contains("#/components"));
    let alias = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let (status, kind, body) = fetch(&server, "/openapi/v2", alias).await;
    assert_eq!((status, kind.as_str()), (200, apiserver::openapi::v2::PROTOBUF));
    assert!(body.starts_with(b"\x0a\x032.0"));
    assert_eq!(fetch(&server, "/openapi/v2", "text/html").await.0, 406);
}

#[tokio::test]
async fn a_new_cluster_has_the_roles_and_services_of_a_server() {
    let server = server();
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let (_, view) = get(&server, &format!("{roles}/view")).await;
    assert_eq!(view["metadata"]["labels"]["kubernetes.io/bootstrapping"], "rbac-defaults");
    assert!(view["metadata"]["uid"].as_str().is_some_and(|uid| uid.len() == 36));
    let (_, service) = get(&server, "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps").await;
    assert_eq!(service["status"]["conditions"][0]["type"], "Available");
    let (_, range) = get(&server, "/apis/networking.k8s.io/v1/servicecidrs/kubernetes").await;
    assert_eq!(range["spec"]["cidrs"], json!(["10.0.0.0/16"]));
    let (status, _) =
        merge(&server, &format!("{roles}/view"), json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn pods_without_a_node_have_no_logs_and_no_shell() {
    let server = server();
    let containers = json!([{"name": "one", "image": "i"}, {"name": "two", "image": "i"}]);
    post(&server, PODS, json!({"metadata": {"name": "a"}, "spec": {"containers": containers}})).await;
    let (status, _, body) = fetch(&server, &format!("{PODS}/a/log?container=two"), "*/*").await;
    assert_eq!((status, body.len()), (204, 0));
    for (part, expected) in [
        ("log", "a container name must be specified for pod a, choose one of: [one two]"),
        ("log?container=x", "container x is not valid for pod a"),
        ("exec?container=one", "pod a does not have a host assigned"),
        ("portforward", "pod a does not have a host assigned"),
    ] {
        let (status, answer) = get(&server, &format!("{PODS}/a/{part}")).await;
        assert_eq!((status, answer["message"].as_str().unwrap()), (400, expected), "{part}");
    }
}

#[tokio::test]
async fn node_ports_are_given_once_and_in_their_range() {
    let server = server();
    let service = |name: &str, port: u16| {
        let ports = json!([{"port": 80, "nodePort": port}]);
        json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": ports}})
    };
    assert_eq!(post(&server, SERVICES, service("a", 31_999)).await.0, 201);
    let (status, answer) = post(&server, SERVICES, service("b", 31_999)).await;
    assert_eq!(status, 422);
    assert_eq!(
        answer["message"],
        "Service \"b\" is invalid: spec.ports[0].nodePort: Invalid value: 31999: provided port is already allocated"
    );
    let (_, answer) = post(&server, SERVICES, service("c", 99)).await;
    assert!(answer["message"].as_str().unwrap().contains("The range of valid ports is 30000-32767"));
    // Its own port is no obstacle to a change.
    let (status, _) =
        merge(&server, &format!("{SERVICES}/a"), json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn ephemeral_containers_are_added_through_their_own_part() {
    let server = server();
    let containers = json!([{"name": "one", "image": "i"}]);
    post(&server, PODS, json!({"metadata": {"name": "a"}, "spec": {"containers": containers}})).await;
    let added =
        json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "d:1"}], "hostname": "other"}});
    let (status, pod) = merge(&server, &format!("{PODS}/a/ephemeralcontainers"), added).await;
    assert_eq!(status, 200, "{pod}");
    assert_eq!(pod["spec"]["ephemeralContainers"][0]["imagePullPolicy"], "IfNotPresent");
    assert_eq!(pod["spec"]["hostname"], json!(null));
}

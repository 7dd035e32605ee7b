//! Requests as they are on the wire: selectors, representations, bad input.

use apiserver::ApiServer;
use axum::body::Body;
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{delete, get, merge, post, put, send, server, watch};

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn selectors_choose_what_is_listed_and_watched() {
    let server = server();
    for (name, labels) in [("a", json!({"app": "web"})), ("b", json!({"app": "db"}))] {
        post(&server, MAPS, json!({"metadata": {"name": name, "labels": labels}})).await;
    }
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    for (query, expected) in [
        ("labelSelector=app%3Dweb", vec!["a"]),
        ("labelSelector=app%20in%20(web,db),app!%3Dweb", vec!["b"]),
        ("fieldSelector=metadata.name%3Db", vec!["b"]),
        ("labelSelector=!app", vec![]),
    ] {
        let (_, list) = get(&server, &format!("{MAPS}?{query}")).await;
        assert_eq!(names(&list), expected, "{query}");
    }
    let (_, list) = get(&server, MAPS).await;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    merge(&server, &format!("{MAPS}/a"), json!({"metadata": {"labels": {"app": "db"}}})).await;
    merge(&server, &format!("{MAPS}/b"), json!({"metadata": {"labels": {"app": "web"}}})).await;
    delete(&server, &format!("{MAPS}/b"), json!({})).await;
    let path = format!("{MAPS}?watch=1&labelSelector=app%3Dweb&resourceVersion={revision}");
    let lines = watch(&server, &path, 3).await;
    let seen: Vec<String> =
        lines.iter().map(|line| format!("{} {}", line["type"], line["object"]["metadata"]["name"])).collect();
    assert_eq!(seen, ["\"DELETED\" \"a\"", "\"ADDED\" \"b\"", "\"DELETED\" \"b\""]);
}

#[tokio::test]
async fn events_are_selected_by_the_component_they_come_from() {
    let server = server();
    let events = "/api/v1/namespaces/default/events";
    for (name, from) in [
        ("old", json!({"source": {"component": "kubelet", "host": "n"}})),
        ("new", json!({"reportingComponent": "kubelet", "reportingInstance": "k-1", "action": "Pull"})),
        ("both", json!({"source": {"component": "other"}, "reportingComponent": "kubelet"})),
        ("none", json!({})),
    ] {
        let mut event = json!({"metadata": {"name": name}, "reason": "R", "type": "Normal", "message": "m",
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}});
        event.as_object_mut().unwrap().extend(from.as_object().unwrap().clone());
        post(&server, events, event).await;
    }
    for (selector, expected) in [
        ("source%3Dkubelet", vec!["new", "old"]),
        ("source%3Dother", vec!["both"]),
        ("source%3D", vec!["none"]),
        ("reportingComponent%3Dkubelet", vec!["both", "new"]),
    ] {
        let (_, list) = get(&server, &format!("{events}?fieldSelector={selector}")).await;
        let items = list["items"].as_array().unwrap().iter();
        let names: Vec<&str> = items.map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected, "{selector}");
    }
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let server = server();
    post(&server, MAPS, json!({"metadata": {"name": "a"}})).await;
    let path = format!(
        "{MAPS}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    );
    let lines = watch(&server, &path, 2).await;
    assert_eq!(lines[0]["type"], "ADDED");
    assert_eq!(lines[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    // Who wants no bookmarks gets none.
    let path = path.replace("allowWatchBookmarks=true", "allowWatchBookmarks=false&timeoutSeconds=1");
    let lines = watch(&server, &path, 2).await;
    assert_eq!(lines.iter().map(|line| &line["type"]).collect::<Vec<_>>(), ["ADDED"]);
}

#[tokio::test]
async fn initial_events_of_a_revision_to_come_are_refused() {
    let server = server();
    post(&server, MAPS, json!({"metadata": {"name": "a"}})).await;
    let path = format!(
        "{MAPS}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&resourceVersion=99999999&timeoutSeconds=1"
    );
    let lines = watch(&server, &path, 2).await;
    assert_eq!((lines.len(), &lines[0]["type"]), (1, &json!("ERROR")));
    let status = &lines[0]["object"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(504), &json!("Timeout")));
    assert!(status["message"].as_str().unwrap().contains("Too large resource version: 99999999"), "{status}");
}

pub(crate) async fn with_accept(server: &apiserver::ApiServer, path: &str, accept: &str) -> (u16, String) {
    let request = Request::builder().uri(path).header("accept", accept).body(Body::empty()).unwrap();
    let answer = server.service().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn answers_come_in_the_form_that_is_asked_for() {
    let server = server();
    post(&server, MAPS, json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await;
    let (_, yaml) = with_accept(&server, &format!("{MAPS}/a"), "application/yaml").await;
    assert!(yaml.contains("data:\n  k: v\n"), "{yaml}");
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let (_, list) = with_accept(&server, MAPS, metadata).await;
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(
        (&list["kind"], &list["items"][0]["data"]),
        (&json!("PartialObjectMetadataList"), &Value::Null)
    );
    let (_, table) = with_accept(&server, MAPS, "application/json;as=Table;g=meta.k8s.io;v=v1").await;
    let table: Value = serde_json::from_str(&table).unwrap();
    assert_eq!((&table["kind"], &table["rows"][0]["cells"][0]), (&json!("Table"), &json!("a")));
    assert_eq!(with_accept(&server, MAPS, "application/vnd.kubernetes.protobuf").await.0, 406);
}

#[tokio::test]
async fn bad_requests_get_a_status_with_a_reason() {
    let server = server();
    let deep = "[".repeat(100_000);
    let large = format!("{{\"data\":{{\"a\":\"{}\"}}}}", "x".repeat(4_000_000));
    let rule = json!({"apiGroups": ["x".repeat(2_000_000)], "resources": ["a"], "verbs": ["get"]});
    let object = json!({"metadata": {"name": "x"}, "rules": [rule]}).to_string();
    for (method, path, body, status, reason) in [
        (Method::GET, "/api/v1/nope", "", 404, "NotFound"),
        (Method::GET, "/api/v1/pods?labelSelector=a%20b", "", 400, "BadRequest"),
        (Method::GET, "/api/v1/pods?fieldSelector=spec.x%3D1", "", 400, "BadRequest"),
        (Method::GET, "/api/v1/pods?continue=%00", "", 400, "BadRequest"),
        (Method::GET, "/api/v1/pods?limit=x", "", 400, "BadRequest"),
        (Method::GET, "/api/v1/pods?resourceVersion=x", "", 400, "BadRequest"),
        (Method::GET, "/api/v1/pods?resourceVersion=99999999", "", 504, "Timeout"),
        (Method::GET, "/api/v1/pods?resourceVersionMatch=Exact", "", 422, "Invalid"),
        (Method::POST, MAPS, "{", 400, "BadRequest"),
        (Method::POST, MAPS, "[]", 400, "BadRequest"),
        (Method::POST, MAPS, "{}", 422, "Invalid"),
        (Method::POST, MAPS, &deep, 400, "BadRequest"),
        (Method::POST, MAPS, &large, 413, "RequestEntityTooLarge"),
        (
            Method::POST,
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
            &object,
            413,
            "RequestEntityTooLarge",
        ),
        (
            Method::POST,
            MAPS,
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"}}"#,
            400,
            "BadRequest",
        ),
        (Method::POST, MAPS, r#"{"metadata":{"name":"x","namespace":"y"}}"#, 400, "BadRequest"),
        (Method::POST, "/api/v1/namespaces/nope/configmaps", r#"{"metadata":{"name":"x"}}"#, 404, "NotFound"),
        (Method::PUT, MAPS, "{}", 405, "MethodNotAllowed"),
        (Method::DELETE, "/api/v1/namespaces/default", "", 403, "Forbidden"),
    ] {
        let (code, answer) = send(server.service(), method.clone(), path, "application/json", body).await;
        let shown = body.get(..60).unwrap_or(body);
        assert_eq!((code, &answer["reason"]), (status, &json!(reason)), "{method} {path} {shown}: {answer}");
    }
}

#[tokio::test]
async fn a_patch_of_too_many_operations_is_refused() {
    let server = server();
    post(&server, MAPS, json!({"metadata": {"name": "a"}})).await;
    let patch = json!(vec![json!({"op": "test", "path": "/kind", "value": "ConfigMap"}); 10_001]).to_string();
    let map = format!("{MAPS}/a");
    let (status, answer) =
        send(server.service(), Method::PATCH, &map, "application/json-patch+json", &patch).await;
    let why = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!((status, answer["message"].as_str()), (413, Some(why)));
}

#[tokio::test]
async fn a_put_must_name_the_version_it_saw() {
    let server = server();
    let (_, created) = post(&server, MAPS, json!({"metadata": {"name": "a"}})).await;
    let path = format!("{MAPS}/a");
    let mut changed = created.clone();
    changed["data"] = json!({"k": "1"});
    assert_eq!(put(&server, &path, changed.clone()).await.0, 200);
    let (status, conflict) = put(&server, &path, changed).await;
    assert_eq!((status, &conflict["reason"]), (409, &json!("Conflict")));
    let (status, _) = delete(&server, &path, json!({"preconditions": {"uid": "other"}})).await;
    assert_eq!(status, 409);
}

#[tokio::test]
async fn slip_36_a_request_in_the_name_of_another_user_is_refused() {
    let server = server();
    for (name, value) in [
        ("impersonate-user", "jane"),
        ("Impersonate-User", ""),
        ("Impersonate-Group", "x"),
        ("IMPERSONATE-UID", "u"),
        ("impersonate-extra-scopes", "y"),
        ("Impersonate-Extra-Example.com%2Fa", "y"),
    ] {
        let request = Request::builder().uri(MAPS).header(name, value).body(Body::empty()).unwrap();
        let answer = server.service().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), 403, "{name}");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(body["message"].as_str().unwrap().contains("leave out --as"), "{body}");
    }
}

#[tokio::test]
async fn slip_37_switches_and_numbers_of_a_query_are_read_as_go_reads_them() {
    let server = server();
    for query in ["watch=FALSE", "watch=0", "limit=-1", "limit=0"] {
        assert_eq!(get(&server, &format!("{MAPS}?{query}")).await.1["kind"], "ConfigMapList", "{query}");
    }
    for (query, why) in [
        ("limit=", "strconv.ParseInt: parsing \"\": invalid syntax"),
        ("limit=1.5", "strconv.ParseInt: parsing \"1.5\": invalid syntax"),
        (
            "limit=99999999999999999999",
            "strconv.ParseInt: parsing \"99999999999999999999\": value out of range",
        ),
    ] {
        let (status, answer) = get(&server, &format!("{MAPS}?{query}")).await;
        assert_eq!((status, answer["message"].as_str()), (400, Some(why)), "{query}");
    }
}

#[tokio::test]
async fn slip_37_a_path_that_watches_changes_nothing() {
    let server = server();
    post(&server, MAPS, json!({"metadata": {"name": "a"}})).await;
    let watched = "/api/v1/watch/namespaces/default/configmaps";
    for (method, path, status) in [
        (Method::DELETE, format!("{watched}/a"), 405),
        (Method::DELETE, watched.to_owned(), 405),
        (Method::POST, watched.to_owned(), 405),
        (Method::PUT, format!("{watched}/a"), 405),
        (Method::PATCH, format!("{watched}/a"), 405),
        (Method::GET, "/api/v1/watch/namespaces/default/pods/a/status".to_owned(), 404),
        (Method::POST, "/api/v1/watch/namespaces/default/bindings".to_owned(), 404),
        (Method::DELETE, "/api/v1/watch/componentstatuses".to_owned(), 404),
    ] {
        let body = r#"{"metadata":{"name":"b"}}"#;
        let (code, answer) = send(server.service(), method.clone(), &path, "application/json", body).await;
        assert_eq!(code, status, "{method} {path}: {answer}");
    }
    let (_, list) = get(&server, MAPS).await;
    let names: Vec<&Value> =
        list["items"].as_array().unwrap().iter().map(|map| &map["metadata"]["name"]).collect();
    assert_eq!(names, ["a"]);
}

#[tokio::test]
async fn slip_37_an_empty_element_of_a_path_stands_for_nothing_else() {
    let server = server();
    for name in ["pods", "other"] {
        post(&server, "/api/v1/namespaces", json!({"metadata": {"name": name}})).await;
    }
    let map = json!({"metadata": {"name": "a"}});
    post(&server, MAPS, map.clone()).await;
    post(&server, "/api/v1/namespaces/other/configmaps", map).await;
    for (method, path, status, message) in [
        (Method::DELETE, "/api/v1/namespaces//pods", 400, "Namespace parameter required."),
        (Method::DELETE, "/api/v1/namespaces//configmaps/a", 400, "Namespace parameter required."),
        (Method::GET, "/api/v1/namespaces//pods/a/log", 400, "Namespace parameter required."),
        (Method::GET, "/api/v1/namespaces/default/pods//status", 400, "name must be provided"),
        (Method::DELETE, "/api/v1//nodes", 404, "the server could not find the requested resource"),
        (
            Method::DELETE,
            "/api/v1/namespaces/default/configmaps//a",
            404,
            "the server could not find the requested resource",
        ),
        (
            Method::DELETE,
            "/api/v1/namespaces/default//configmaps/a",
            404,
            "the server could not find the requested resource",
        ),
        (Method::GET, "/api//v1", 404, "the server could not find the requested resource"),
    ] {
        let (code, answer) = send(server.service(), method.clone(), path, "application/json", "").await;
        assert_eq!((code, answer["message"].as_str()), (status, Some(message)), "{method} {path}: {answer}");
    }
    for path in ["//api/v1", "//version", "//", "/apis//apps"] {
        assert_eq!(get(&server, path).await, (404, json!("404 page not found\n")), "{path}");
    }
    assert_eq!(get(&server, "/api/v1/namespaces/pods").await.0, 200);
    let (_, all) = get(&server, "/api/v1/namespaces//configmaps").await;
    let named_a = all["items"].as_array().unwrap().iter().filter(|map| map["metadata"]["name"] == "a");
    assert_eq!(named_a.count(), 2);
    assert_eq!(get(&server, &format!("{MAPS}/a//")).await.0, 200);
}

#[tokio::test]
async fn slip_37_health_and_the_list_of_groups_are_told_to_all_methods() {
    let server = server();
    for (path, status) in [
        ("/healthz", 200),
        ("/livez/ping", 200),
        ("/apis", 200),
        ("/apis/apps", 200),
        ("/apis/nope", 404),
        ("/", 200),
        ("/metrics", 200),
        ("/nope", 404),
        ("/api", 405),
        ("/api/v1", 405),
        ("/api/v2", 404),
        ("/version", 405),
    ] {
        assert_eq!(post(&server, path, json!({})).await.0, status, "{path}");
    }
}

/// Returns the status, the media type and the text of what is answered to a GET with this `Accept`.
async fn fetched(server: &ApiServer, path: &str, accept: &str) -> (u16, String, String) {
    let request = Request::builder().uri(path).header("accept", accept).body(Body::empty()).unwrap();
    let answer = server.service().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let media_type = answer.headers()["content-type"].to_str().unwrap().to_owned();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, media_type, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn slip_37_discovery_is_answered_in_yaml_or_not_at_all() {
    let server = server();
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let known = "only the following media types are accepted";
    let listed = "406: Not Acceptable";
    for (path, line, refusal) in [
        ("/api", "kind: APIVersions", listed),
        ("/apis", "kind: APIGroupList", known),
        ("/apis/apps", "kind: APIGroup", known),
        ("/apis/apps/v1", "kind: APIResourceList", listed),
    ] {
        let (status, media_type, text) = fetched(&server, path, "application/yaml").await;
        assert_eq!((status, &*media_type), (200, "application/yaml"), "{path}");
        assert!(text.lines().any(|found| found == line), "{path}: {text}");
        for (accept, refusal) in [("text/plain", refusal), (table, known)] {
            let (status, _, text) = fetched(&server, path, accept).await;
            let answer: Value = serde_json::from_str(&text).unwrap();
            assert_eq!((status, &answer["reason"]), (406, &json!("NotAcceptable")), "{path} {accept}");
            assert!(answer["message"].as_str().unwrap().starts_with(refusal), "{path} {accept}: {text}");
        }
        assert_eq!(fetched(&server, path, "text/html, */*").await.0, 200);
    }
    assert_eq!(fetched(&server, "/version", "application/yaml").await.0, 406);
    assert_eq!(fetched(&server, "/version", table).await.0, 200);
    let (status, media_type, text) = fetched(&server, "/metrics/slis", "*/*").await;
    assert_eq!((status, &media_type[..10]), (200, "text/plain"));
    assert!(text.contains("\nkubernetes_healthcheck{name=\"etcd\",type=\"readyz\"} 1\n"), "{text}");
}

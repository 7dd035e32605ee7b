//! Custom kinds in several versions.

use std::time::Duration;

use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::strain::open_watch;
use crate::{delete, get, merge, post, put, server, watch};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(stored: &str) -> Value {
    let version = |name: &str| {
        json!({
            "name": name, "served": true, "storage": name == stored,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [version("v1"), version("v2")],
        },
    })
}

#[tokio::test]
async fn slip_28_objects_are_shown_in_the_version_of_the_path() {
    let server = server();
    assert_eq!(post(&server, DEFINITIONS, definition("v1")).await.0, 201);
    let path = |version: &str| format!("/apis/example.com/{version}/namespaces/default/things");
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "x": 1});
    let (status, created) = post(&server, &path("v1"), thing).await;
    assert_eq!(status, 201);
    let stored = json!({"spec": {"versions": definition("v2")["spec"]["versions"]}});
    assert_eq!(merge(&server, &format!("{DEFINITIONS}/things.example.com"), stored).await.0, 200);
    for version in ["v1", "v2"] {
        let expected = json!(format!("example.com/{version}"));
        let (_, object) = get(&server, &format!("{}/a", path(version))).await;
        assert_eq!(object["apiVersion"], expected);
        let (_, list) = get(&server, &path(version)).await;
        assert_eq!(list["items"][0]["apiVersion"], expected);
        for query in ["", "&resourceVersion=1"] {
            let lines =
                watch(&server, &format!("{}?watch=1&timeoutSeconds=1{query}", path(version)), 1).await;
            assert_eq!(lines[0]["object"]["apiVersion"], expected, "{query}");
        }
    }
    // A write that changes nothing brings the object into the version that is stored now, once.
    let (_, same) = get(&server, &format!("{}/a", path("v2"))).await;
    let (status, moved) = put(&server, &format!("{}/a", path("v2")), same).await;
    assert_eq!(status, 200);
    assert_ne!(moved["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
    let (_, again) = put(&server, &format!("{}/a", path("v2")), moved.clone()).await;
    assert_eq!(moved, again);
}

#[tokio::test]
async fn a_watch_ends_when_its_definition_changes_and_the_next_one_follows_the_new_one() {
    let server = server();
    assert_eq!(post(&server, DEFINITIONS, definition("v1")).await.0, 201);
    let path = |version: &str| format!("/apis/example.com/{version}/namespaces/default/things");
    let mut watches = Vec::new();
    for version in ["v1", "v2"] {
        watches.push(open_watch(&server, &format!("{}?watch=1&resourceVersion=1", path(version))).await);
    }
    let ends = async |watch: &mut axum::body::Body| {
        tokio::time::timeout(Duration::from_secs(10), watch.frame()).await.expect("it goes on").is_none()
    };
    // The version that is stored is another one, and then the first is not served any more.
    let name = format!("{DEFINITIONS}/things.example.com");
    let mut versions = definition("v2")["spec"]["versions"].clone();
    for (is_served, expected) in [(true, 200), (false, 404)] {
        versions[0]["served"] = json!(is_served);
        assert_eq!(merge(&server, &name, json!({"spec": {"versions": versions}})).await.0, 200);
        for watch in &mut watches {
            assert!(ends(watch).await, "{is_served}");
        }
        assert_eq!(get(&server, &path("v1")).await.0, expected);
        watches = vec![open_watch(&server, &format!("{}?watch=1&resourceVersion=1", path("v2"))).await];
    }
    // A change of a label is none of the definition, and a deletion of it tells of the end of each object.
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(merge(&server, &name, labels).await.0, 200);
    let thing = json!({"apiVersion": "example.com/v2", "kind": "Thing", "metadata": {"name": "a", "finalizers": ["a.b/c"]}});
    assert_eq!(post(&server, &path("v2"), thing).await.0, 201);
    assert_eq!(delete(&server, &name, json!({})).await.0, 200);
    while get(&server, &format!("{}/a", path("v2"))).await.1["metadata"]["deletionTimestamp"].is_null() {
        tokio::task::yield_now().await;
    }
    let none = json!({"metadata": {"finalizers": null}});
    assert_eq!(merge(&server, &format!("{}/a", path("v2")), none).await.0, 200);
    let mut told = String::new();
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(Duration::from_secs(10), watches[0].frame()).await {
        told.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
    assert!(told.contains(r#"{"type":"ADDED""#) && told.contains(r#"{"type":"DELETED""#), "{told}");
}

#[tokio::test]
async fn a_definition_that_goes_at_once_takes_leave_of_its_objects_first() {
    let server = server();
    assert_eq!(post(&server, DEFINITIONS, definition("v1")).await.0, 201);
    let path = "/apis/example.com/v1/namespaces/default/things";
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}});
    assert_eq!(post(&server, path, thing).await.0, 201);
    let mut watch = open_watch(&server, &format!("{path}?watch=1&resourceVersion=1")).await;
    let name = format!("{DEFINITIONS}/things.example.com");
    assert_eq!(delete(&server, &name, json!({})).await.0, 200);
    // Both are gone before anybody reads.
    while get(&server, &name).await.0 != 404 {
        tokio::task::yield_now().await;
    }
    let mut told = String::new();
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(Duration::from_secs(10), watch.frame()).await {
        told.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
    assert!(told.contains(r#"{"type":"ADDED""#) && told.contains(r#"{"type":"DELETED""#), "{told}");
}

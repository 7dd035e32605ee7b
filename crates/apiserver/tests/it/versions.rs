//! Custom kinds in several versions.

use serde_json::{Value, json};

use crate::{get, merge, post, put, server, watch};

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

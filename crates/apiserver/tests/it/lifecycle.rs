//! What follows from deletions: owners and dependents, finalizers, definitions.

use serde_json::{Value, json};

use crate::{delete, get, merge, post, server, watch};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn create_owned(server: &apiserver::ApiServer, blocks: bool) -> Value {
    let (_, owner) = post(server, MAPS, json!({"metadata": {"name": "owner"}})).await;
    let reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    });
    let (status, _) =
        post(server, MAPS, json!({"metadata": {"name": "owned", "ownerReferences": [reference]}})).await;
    assert_eq!(status, 201);
    owner
}

#[tokio::test]
async fn dependents_go_after_their_owner() {
    let server = server();
    create_owned(&server, false).await;
    delete(&server, &format!("{MAPS}/owner"), json!({})).await;
    server.settled().await;
    assert_eq!(get(&server, &format!("{MAPS}/owned")).await.0, 404);
}

#[tokio::test]
async fn dependents_go_before_their_owner_when_asked() {
    let server = server();
    create_owned(&server, true).await;
    let (_, list) = get(&server, MAPS).await;
    let (status, owner) =
        delete(&server, &format!("{MAPS}/owner"), json!({"propagationPolicy": "Foreground"})).await;
    assert_eq!((status, &owner["metadata"]["finalizers"]), (200, &json!(["foregroundDeletion"])));
    server.settled().await;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{MAPS}?watch=1&resourceVersion={revision}&timeoutSeconds=1");
    let lines = watch(&server, &path, 4).await;
    let gone = lines.iter().filter(|line| line["type"] == "DELETED");
    let names: Vec<&Value> = gone.map(|line| &line["object"]["metadata"]["name"]).collect();
    assert_eq!(names, ["owned", "owner"]);
}

#[tokio::test]
async fn dependents_stay_without_their_owner_when_asked() {
    let server = server();
    create_owned(&server, true).await;
    delete(&server, &format!("{MAPS}/owner"), json!({"propagationPolicy": "Orphan"})).await;
    server.settled().await;
    let (status, owned) = get(&server, &format!("{MAPS}/owned")).await;
    assert_eq!((status, &owned["metadata"]["ownerReferences"]), (200, &Value::Null));
    assert_eq!(get(&server, &format!("{MAPS}/owner")).await.0, 404);
}

#[tokio::test]
async fn an_object_waits_for_its_finalizers() {
    let server = server();
    let path = format!("{MAPS}/x");
    post(&server, MAPS, json!({"metadata": {"name": "x", "finalizers": ["example.com/a"]}})).await;
    let (status, waiting) = delete(&server, &path, json!({})).await;
    assert_eq!(status, 200);
    assert!(waiting["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(get(&server, &path).await.0, 200);
    let (status, _) = merge(&server, &path, json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(status, 200);
    assert_eq!(get(&server, &path).await.0, 404);
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "shortNames": ["th"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                    "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
                }}},
                "subresources": {"status": {}},
            }],
        },
    })
}

#[tokio::test]
async fn custom_kinds_come_and_go() {
    let server = server();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let things = "/apis/example.com/v1/namespaces/default/things";
    assert_eq!(post(&server, definitions, definition()).await.0, 201);
    let (_, kept) = get(&server, &format!("{definitions}/things.example.com")).await;
    let conditions = kept["status"]["conditions"].as_array().unwrap();
    assert_eq!(
        conditions.iter().map(|c| c["type"].as_str().unwrap()).collect::<Vec<_>>(),
        ["NamesAccepted", "Established"]
    );
    let (_, resources) = get(&server, "/apis/example.com/v1").await;
    assert_eq!(resources["resources"][0]["shortNames"], json!(["th"]));
    let thing = json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"},
        "spec": {"size": 1}, "status": {"ready": true},
    });
    let (status, created) = post(&server, things, thing).await;
    assert_eq!(
        (status, &created["status"], &created["metadata"]["generation"]),
        (201, &Value::Null, &json!(1))
    );
    let path = format!("{things}/a");
    let (_, changed) = merge(&server, &path, json!({"spec": {"size": 2}})).await;
    assert_eq!(changed["metadata"]["generation"], json!(2));
    let (_, changed) =
        merge(&server, &format!("{path}/status"), json!({"spec": {"size": 9}, "status": {"ready": true}}))
            .await;
    assert_eq!((&changed["spec"]["size"], &changed["status"]["ready"]), (&json!(2), &json!(true)));
    assert_eq!(changed["metadata"]["generation"], json!(2));
    delete(&server, &format!("{definitions}/things.example.com"), json!({})).await;
    server.settled().await;
    assert_eq!(get(&server, &format!("{definitions}/things.example.com")).await.0, 404);
    assert_eq!(get(&server, &path).await.0, 404);
    assert_eq!(get(&server, "/apis/example.com/v1").await.0, 404);
}

fn named(plural: &str, kind: &str, short: &[&str]) -> Value {
    let mut definition = definition();
    definition["metadata"]["name"] = json!(format!("{plural}.example.com"));
    definition["spec"]["names"] = json!({"plural": plural, "kind": kind, "shortNames": short});
    definition
}

#[tokio::test]
async fn a_definition_gets_its_names_when_the_one_that_has_them_is_gone() {
    let server = server();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let status = async |name: &str| {
        let (_, kept) = get(&server, &format!("{definitions}/{name}.example.com")).await;
        let conditions = kept["status"]["conditions"].as_array().unwrap();
        let condition = |kind: &str| {
            let found = conditions.iter().find(|condition| condition["type"] == kind).unwrap();
            ["status", "reason", "message"].map(|field| found[field].as_str().unwrap()).join(" ")
        };
        (kept["status"]["acceptedNames"].clone(), condition("NamesAccepted"), condition("Established"))
    };
    assert_eq!(post(&server, definitions, named("gammas", "Gamma", &["ga", "g"])).await.0, 201);
    assert_eq!(post(&server, definitions, named("deltas", "Gamma", &["d"])).await.0, 201);
    assert_eq!(post(&server, definitions, named("etas", "Eta", &["ga", "gammas"])).await.0, 201);
    // What is free is given, and the last conflict is told.
    let (accepted, names, established) = status("deltas").await;
    assert_eq!(accepted, json!({"plural": "deltas", "shortNames": ["d"], "kind": ""}));
    assert_eq!(names, r#"False ListKindConflict "GammaList" is already in use"#);
    assert_eq!(established, "False NotAccepted not all names are accepted");
    let (_, names, _) = status("etas").await;
    let both = r#"["ga" is already in use, "gammas" is already in use]"#;
    assert_eq!(names, format!("False ShortNamesConflict {both}"));
    let deltas = "/apis/example.com/v1/namespaces/default/deltas";
    assert_eq!(get(&server, deltas).await.0, 404);
    delete(&server, &format!("{definitions}/gammas.example.com"), json!({})).await;
    server.settled().await;
    for name in ["deltas", "etas"] {
        let (_, names, established) = status(name).await;
        assert_eq!(names, "True NoConflicts no conflicts found");
        assert_eq!(established, "True InitialNamesAccepted the initial names have been accepted");
    }
    assert_eq!(get(&server, deltas).await.0, 200);
}

#[tokio::test]
async fn a_definition_gets_names_that_another_one_gives_up() {
    let server = server();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(post(&server, definitions, named("gammas", "Gamma", &["g"])).await.0, 201);
    assert_eq!(post(&server, definitions, named("deltas", "Delta", &["g"])).await.0, 201);
    let deltas = "/apis/example.com/v1/namespaces/default/deltas";
    assert_eq!(get(&server, deltas).await.0, 404);
    let names = json!({"spec": {"names": {"shortNames": ["x"]}}});
    assert_eq!(merge(&server, &format!("{definitions}/gammas.example.com"), names).await.0, 200);
    assert_eq!(get(&server, deltas).await.0, 200);
    let (_, resources) = get(&server, "/apis/example.com/v1").await;
    let short: Vec<&Value> = resources["resources"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|found| found.get("shortNames"))
        .collect();
    assert_eq!(short, [&json!(["g"]), &json!(["x"])]);
}

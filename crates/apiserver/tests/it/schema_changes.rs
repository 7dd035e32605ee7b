//! Objects that were made before the schema of their kind became stricter.

use apiserver::ApiServer;
use http::Method;
use serde_json::{Value, json};

use crate::{delete, get, merge, post, put, send, server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
const THING: &str = "/apis/example.com/v1/namespaces/default/things/a";

fn definition(schema: &Value) -> Value {
    let version = json!({
        "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    });
    json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [version],
        },
    })
}

/// Returns a schema in which `rules` are added to the fields of the specification.
fn schema(rules: &Value) -> Value {
    let mut schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "n": {"type": "integer"},
            "s": {"type": "string"},
            "e": {"type": "string"},
            "p": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
            "l": {"type": "array", "items": {"type": "string"}},
            "lm": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}},
            },
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "alt": {"type": "object", "properties": {"n": {"type": "integer"}, "o": {"type": "integer"}}},
        }},
        "status": {"type": "object", "properties": {"n": {"type": "integer"}, "o": {"type": "integer"}}},
    }});
    json_patch(&mut schema, rules);
    schema
}

/// Adds keywords at the ends of paths like `/properties/spec`.
fn json_patch(schema: &mut Value, rules: &Value) {
    for (path, keywords) in rules.as_object().unwrap() {
        let level = schema.pointer_mut(path).unwrap().as_object_mut().unwrap();
        level.extend(keywords.as_object().unwrap().clone());
    }
}

/// Returns a server with a thing that is made before its schema has `rules`.
async fn tightened(spec: Value, rules: Value) -> ApiServer {
    let server = server();
    assert_eq!(post(&server, DEFINITIONS, definition(&schema(&json!({})))).await.0, 201);
    let thing =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec});
    assert_eq!(post(&server, THINGS, thing).await.0, 201);
    assert_eq!(merge(&server, &format!("{THING}/status"), json!({"status": {"n": 3}})).await.0, 200);
    let stricter = json!({"spec": {"versions": definition(&schema(&rules))["spec"]["versions"]}});
    let (status, answer) = merge(&server, &format!("{DEFINITIONS}/things.example.com"), stricter).await;
    assert_eq!(status, 200, "{answer}");
    server
}

fn fields(answer: &Value) -> Vec<&str> {
    let causes = answer["details"]["causes"].as_array();
    causes.into_iter().flatten().map(|cause| cause["field"].as_str().unwrap()).collect()
}

/// Sends a merge patch; returns its status and the fields that are wrong.
async fn patched(server: &ApiServer, change: &Value) -> (u16, String) {
    let (status, answer) = merge(server, &format!("{THING}?dryRun=All"), change.clone()).await;
    (status, fields(&answer).join(" "))
}

/// Returns the same with the fields in alphabetical order.
async fn patched_in_order(server: &ApiServer, change: &Value) -> (u16, String) {
    let (status, wrong) = patched(server, change).await;
    let mut wrong: Vec<&str> = wrong.split(' ').collect();
    wrong.sort_unstable();
    (status, wrong.join(" "))
}

const N: &str = "/properties/spec/properties/n";

#[tokio::test]
async fn what_has_not_changed_may_break_a_schema_that_became_stricter() {
    let spec = json!({
        "n": 3, "s": "x", "e": "x", "p": {"a": "1"}, "l": ["a", "b"], "m": {"x": 1, "y": 1},
        "lm": [{"k": "a", "v": 1}, {"k": "b", "v": 1}],
    });
    let at = |path: &str| format!("/properties/spec/properties/{path}");
    let rules = json!({
        (at("n")): {"minimum": 5},
        (at("s")): {"pattern": "^a"},
        (at("e")): {"enum": ["y"]},
        (at("p")): {"required": ["b"]},
        (at("l")): {"maxItems": 1, "items": {"type": "string", "minLength": 2}},
        (at("m/additionalProperties")): {"minimum": 5},
        (at("lm/items/properties/v")): {"minimum": 5},
    });
    let server = tightened(spec, rules).await;
    for (change, expected) in [
        (json!({"metadata": {"labels": {"a": "b"}}}), (200, "")),
        (json!({"metadata": {"finalizers": ["x.io/y"]}}), (200, "")),
        (json!({"spec": {"n": 4}}), (422, "spec.n")),
        (json!({"spec": {"n": 6, "s": "x"}}), (200, "")),
        (json!({"spec": {"s": "y"}}), (422, "spec.s")),
        (json!({"spec": {"p": {"a": "2"}}}), (422, "spec.p.b")),
        (json!({"spec": {"l": ["a", "c"]}}), (422, "spec.l spec.l[0] spec.l[1]")),
        (json!({"spec": {"l": ["b", "a"]}}), (422, "spec.l spec.l[0] spec.l[1]")),
        (json!({"spec": {"m": {"y": 2, "z": 6}}}), (422, "spec.m.y")),
        (json!({"spec": {"lm": [{"k": "c", "v": 5}, {"k": "b", "v": 1}]}}), (200, "")),
        (
            json!({"spec": {"lm": [{"k": "c", "v": 1}, {"k": "b", "v": 2}]}}),
            (422, "spec.lm[0].v spec.lm[1].v"),
        ),
    ] {
        assert_eq!(patched_in_order(&server, &change).await, (expected.0, expected.1.to_owned()), "{change}");
    }
}

#[tokio::test]
async fn types_and_missing_fields_are_no_exception() {
    let rules = json!({
        N: {"type": "string"},
        "/properties/spec": {"required": ["need"]},
        "/properties/spec/properties": {"need": {"type": "integer"}},
        "/properties/spec/properties/any": {"required": ["need"]},
    });
    let server = tightened(json!({"n": 3, "any": {"x": 1}}), rules).await;
    for (change, expected) in [
        // What the schema does not know cannot be compared, and neither what it is in.
        (json!({"metadata": {"labels": {"a": "b"}}}), (422, "spec.any.need spec.need")),
        (json!({"spec": {"any": {"x": null}}}), (422, "spec.any.need spec.need")),
        (json!({"spec": {"any": {"x": 2, "need": 1}, "need": 1}}), (200, "")),
    ] {
        assert_eq!(patched_in_order(&server, &change).await, (expected.0, expected.1.to_owned()), "{change}");
    }
}

#[tokio::test]
async fn alternatives_hold_for_what_has_changed_in_whole() {
    let alternatives = json!({"anyOf": [{"properties": {"n": {"minimum": 5}}}]});
    let rules = json!({"/properties/spec/properties/alt": alternatives});
    let server = tightened(json!({"n": 1, "alt": {"n": 1}}), rules).await;
    assert_eq!(patched(&server, &json!({"spec": {"n": 2}})).await, (200, String::new()));
    let (status, wrong) = patched(&server, &json!({"spec": {"alt": {"o": 2}}})).await;
    assert!(status == 422 && wrong.contains("spec.alt.n"), "{wrong}");
}

#[tokio::test]
async fn every_way_to_change_an_object_takes_what_has_not_changed() {
    let rules = json!({N: {"minimum": 5}, "/properties/status/properties/n": {"minimum": 5}});
    let server = tightened(json!({"n": 3}), rules).await;
    let (_, mut thing) = get(&server, THING).await;
    thing["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(put(&server, THING, thing.clone()).await.0, 200);
    let operations = r#"[{"op": "add", "path": "/spec/s", "value": "y"}]"#;
    let (status, _) =
        send(server.service(), Method::PATCH, THING, "application/json-patch+json", operations).await;
    assert_eq!(status, 200);
    let applied = r#"{"apiVersion": "example.com/v1", "kind": "Thing", "spec": {"e": "z"}}"#;
    let path = format!("{THING}?fieldManager=m");
    let (status, answer) =
        send(server.service(), Method::PATCH, &path, "application/apply-patch+yaml", applied).await;
    assert_eq!(status, 200, "{answer}");
    // A status is held against its own schema, and texts begin in it.
    let status = format!("{THING}/status");
    assert_eq!(merge(&server, &status, json!({"status": {"o": 1}})).await.0, 200);
    let (code, answer) = merge(&server, &status, json!({"status": {"n": 4}})).await;
    let cause = &answer["details"]["causes"][0];
    assert_eq!((code, &cause["field"]), (422, &json!("status.n")), "{answer}");
    let text = "Invalid value: 4: n in body should be greater than or equal to 5";
    assert_eq!(cause["message"], text);
    // A new object gets nothing for free.
    thing["metadata"] = json!({"name": "b"});
    assert_eq!(post(&server, THINGS, thing).await.0, 422);
}

#[tokio::test]
async fn an_object_of_before_can_lose_its_finalizer_and_go() {
    let server = tightened(json!({"n": 3}), json!({N: {"minimum": 5}})).await;
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    assert_eq!(merge(&server, THING, finalizers(json!(["example.com/x"]))).await.0, 200);
    assert_eq!(delete(&server, THING, Value::Null).await.0, 200);
    assert_eq!(merge(&server, THING, finalizers(Value::Null)).await.0, 200);
    assert_eq!(get(&server, THING).await.0, 404);
}

#[tokio::test]
async fn items_that_come_again_are_told_if_none_did_before() {
    let rules = json!({"/properties/spec/properties/l": {"x-kubernetes-list-type": "set"}});
    let server = tightened(json!({"l": ["a", "a"]}), rules.clone()).await;
    assert_eq!(patched(&server, &json!({"spec": {"l": ["b", "b"]}})).await, (200, String::new()));
    let server = tightened(json!({"l": ["a"]}), rules).await;
    assert_eq!(patched(&server, &json!({"spec": {"l": ["b", "b"]}})).await, (422, "spec.l[1]".to_owned()));
}

//! Definitions of custom kinds that are refused.

use serde_json::{Value, json};

use crate::{merge, post, server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(group: &str, schema: &Value) -> Value {
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({
        "metadata": {"name": format!("foos.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "versions": [version],
            "names": {"plural": "foos", "kind": "Foo"},
        },
    })
}

/// Returns what is wrong with a definition, without the beginning of paths that all have.
async fn wrong(definition: Value) -> Vec<String> {
    let server = server();
    let (status, answer) = post(&server, &format!("{DEFINITIONS}?dryRun=All"), definition).await;
    let causes = answer["details"]["causes"].as_array();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let cause = |cause: &Value| format!("{}: {}", text(&cause["field"]), text(&cause["message"]));
    let found: Vec<String> = causes.into_iter().flatten().map(cause).collect();
    assert_eq!(status == 201, found.is_empty(), "{answer}");
    found.into_iter().map(|text| text.replacen("spec.validation.openAPIV3Schema", "", 1)).collect()
}

/// Returns what is wrong with a schema in which there is a field like this.
async fn wrong_with(field: Value) -> Vec<String> {
    let found = wrong(definition("x.io", &json!({"type": "object", "properties": {"a": field}}))).await;
    found.into_iter().map(|text| text.replacen(".properties[a].", "", 1)).collect()
}

#[tokio::test]
async fn alternatives_say_only_what_values_may_be() {
    let empty = "Forbidden: must be empty to be structural";
    let undefined = "Forbidden: must be undefined to be structural";
    let is_false = "Forbidden: must be false to be structural";
    for (field, expected) in [
        (json!({"type": "string", "anyOf": [{"default": "x"}]}), format!("anyOf[0].default: {undefined}")),
        (json!({"type": "string", "anyOf": [{"type": "string"}]}), format!("anyOf[0].type: {empty}")),
        (
            json!({"type": "string", "allOf": [{}, {"description": "x"}]}),
            format!("allOf[1].description: {empty}"),
        ),
        (json!({"type": "string", "not": {"nullable": true}}), format!("not.nullable: {is_false}")),
        (
            json!({"type": "object", "oneOf": [{"additionalProperties": {"minLength": 1}}]}),
            format!("oneOf[0].additionalProperties: {undefined}"),
        ),
        (
            json!({"type": "object", "properties": {"b": {"type": "array", "items": {"type": "integer"}}},
                "allOf": [{"properties": {"b": {"items": {"x-kubernetes-int-or-string": true}}}}]}),
            format!("allOf[0].properties[b].items.x-kubernetes-int-or-string: {is_false}"),
        ),
    ] {
        assert_eq!(wrong_with(field.clone()).await, [expected], "{field}");
    }
    let number_or_text = json!([{"type": "integer"}, {"type": "string"}]);
    for field in [
        json!({"x-kubernetes-int-or-string": true, "anyOf": number_or_text}),
        json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": number_or_text}, {"pattern": "x"}]}),
        json!({"type": "object", "properties": {"b": {"type": "string"}}, "anyOf": [{"required": ["b"]}, {"properties": {"b": {"minLength": 1}}}]}),
    ] {
        assert_eq!(wrong_with(field.clone()).await, Vec::<String>::new(), "{field}");
    }
    let schema = json!({"type": "object", "anyOf": [{"properties": {"q": {"minLength": 1}}}]});
    let expected = ".properties[q]: Required value: because it is defined in spec.validation.openAPIV3Schema.anyOf[0].properties[q]";
    assert_eq!(wrong(definition("x.io", &schema)).await, [expected]);
}

#[tokio::test]
async fn keywords_fit_the_level_where_they_stand() {
    let keyed = |keys: Value, key: Value| {
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
            "items": {"type": "object", "required": ["k"], "properties": {"k": key}}})
    };
    let set_of_objects =
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}});
    for (field, expected) in [
        (
            json!({"type": "object", "properties": {"b": {"type": "string"}}, "default": {"c": 1}}),
            r#"default: Invalid value: {"c":1}: must not have unknown fields"#,
        ),
        (
            json!({"type": "object", "properties": {"b": {"type": "string"}}, "default": {"b": 1}}),
            r#"default.b: Invalid value: "integer": b in body must be of type string: "integer""#,
        ),
        (
            set_of_objects,
            "items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
        ),
        (
            keyed(json!(["k", "k"]), json!({"type": "string"})),
            r#"x-kubernetes-list-map-keys: Invalid value: ["k","k"]: must not contain duplicate entries"#,
        ),
        (
            keyed(json!(["k"]), json!({"type": "object"})),
            r#"items.properties[k].type: Invalid value: "object": must be a scalar type if parent array's x-kubernetes-list-type is map"#,
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}]}),
            "items: Forbidden: items must be a schema object and not an array",
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true}),
            "properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
            "x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
        ),
        (
            json!({"type": "string", "x-kubernetes-map-type": "atomic"}),
            r#"type: Invalid value: "string": must be object if x-kubernetes-map-type is specified"#,
        ),
        (
            json!({"type": "object", "x-kubernetes-list-type": "set"}),
            r#"type: Invalid value: "object": must be array if x-kubernetes-list-type is specified"#,
        ),
        (
            json!({"x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true}),
            "x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true",
        ),
    ] {
        assert_eq!(wrong_with(field.clone()).await, [expected], "{field}");
    }
    let free =
        json!({"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": true});
    assert_eq!(wrong_with(free).await, Vec::<String>::new());
}

#[tokio::test]
async fn the_root_of_a_schema_has_what_objects_have() {
    for (schema, expected) in [
        (
            json!({"type": "object", "nullable": true}),
            ".nullable: Forbidden: nullable cannot be true at the root",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            ".additionalProperties: Forbidden: must not be used at the root",
        ),
        (
            json!({"type": "object", "properties": {"kind": {"type": "integer"}}}),
            r#".properties[kind].type: Invalid value: "integer": must be string"#,
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "description": "x"}}}),
            ".properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ),
    ] {
        assert_eq!(wrong(definition("x.io", &schema)).await, [expected], "{schema}");
    }
    let mut separate = definition("x.io", &json!({"type": "object", "anyOf": [{"required": ["spec"]}]}));
    separate["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    let found = wrong(separate).await;
    assert!(found.len() == 1 && found[0].contains("if the status subresource is enabled"), "{found:?}");
}

#[tokio::test]
async fn paths_of_columns_begin_with_a_dot() {
    let mut columns = definition("x.io", &json!({"type": "object"}));
    columns["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "a", "type": "string", "jsonPath": "[", "format": "odd"}]);
    let mut found = wrong(columns).await;
    found.sort();
    let path = "spec.additionalPrinterColumns[0]";
    assert_eq!(
        found,
        [
            format!(r#"{path}.JSONPath: Invalid value: "[": must be a simple json path starting with ."#),
            format!(
                r#"{path}.format: Invalid value: "odd": must be one of byte,date,date-time,double,float,int32,int64,password"#
            ),
        ]
    );
}

#[tokio::test]
async fn a_definition_in_a_group_of_kubernetes_is_approved() {
    const APPROVED: &str = "api-approved.kubernetes.io";
    let schema = json!({"type": "object"});
    let with = |text: &str| {
        let mut definition = definition("foo.k8s.io", &schema);
        definition["metadata"]["annotations"] = json!({ APPROVED: text });
        definition
    };
    // One without is taken with a warning.
    assert_eq!(wrong(definition("foo.k8s.io", &schema)).await, Vec::<String>::new());
    let found = wrong(with("yes")).await;
    assert!(found.len() == 1 && found[0].contains("with either a URL or a reason"), "{found:?}");
    let url = "https://github.com/kubernetes/enhancements/pull/1";
    for text in [url, "unapproved, an experiment"] {
        assert_eq!(wrong(with(text)).await, Vec::<String>::new(), "{text}");
    }
    assert_eq!(wrong(definition("foo-k8s.io", &schema)).await, Vec::<String>::new());
    let server = server();
    assert_eq!(post(&server, DEFINITIONS, with(url)).await.0, 201);
    let path = format!("{DEFINITIONS}/foos.foo.k8s.io");
    assert_eq!(merge(&server, &path, json!({"metadata": {"labels": {"a": "b"}}})).await.0, 200);
    let taken = json!({"metadata": {"annotations": {APPROVED: null}}});
    assert_eq!(merge(&server, &path, taken).await.0, 200);
}

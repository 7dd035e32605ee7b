//! Tests of object patches.

use serde_json::json;

use super::*;

fn parsed(text: &str) -> Vec<ObjectPatch> {
    parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn one(document: &Value) -> ObjectPatch {
    let mut patches = parsed(&document.to_string());
    assert_eq!(patches.len(), 1);
    patches.remove(0)
}

fn refused(text: &str) -> String {
    parse(text.as_bytes()).unwrap_err().to_string()
}

fn cm() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm", "namespace": "ns"}})
}

#[test]
fn objects_are_created_in_three_ways_or_applied() {
    for (name, expected) in [
        ("Create", Operation::Create { object: cm(), existing: Existing::Fail }),
        ("CreateIfNotExists", Operation::Create { object: cm(), existing: Existing::Keep }),
        ("CreateOrUpdate", Operation::Create { object: cm(), existing: Existing::Update }),
        ("Apply", Operation::Apply { object: cm(), force: true }),
    ] {
        let as_mapping = one(&json!({"operation": name, "object": cm()}));
        assert!(as_mapping.operation == expected, "{name}");
        assert_eq!(as_mapping.target.to_string(), "v1/ConfigMap/ns/cm");
        let as_json = one(&json!({"operation": name, "object": cm().to_string()}));
        let as_yaml = one(&json!({"operation": name, "object": values::yaml::emit(&cm())}));
        assert!(as_mapping == as_json && as_mapping == as_yaml, "{name}");
    }
    let apply = one(&json!({"operation": "Apply", "object": cm(), "force": false, "subresource": "/status"}));
    assert!(apply.operation == Operation::Apply { object: cm(), force: false });
    assert_eq!(apply.target.subresource.as_deref(), Some("status"));
}

#[test]
fn objects_are_deleted_in_three_ways() {
    for (name, expected) in [
        ("Delete", Propagation::Foreground),
        ("DeleteInBackground", Propagation::Background),
        ("DeleteNonCascading", Propagation::Orphan),
    ] {
        let patch = one(
            &json!({"operation": name, "kind": "Pod", "namespace": "ns", "name": "p", "subresource": "/status"}),
        );
        assert!(patch.operation == Operation::Delete(expected), "{name}");
        assert_eq!(patch.to_string(), "Delete object /Pod/ns/p");
        assert_eq!(patch.target.subresource, None, "it means nothing here");
    }
}

#[test]
fn objects_are_patched_in_three_ways() {
    let on = |extra: Value| {
        let mut document =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "ns", "name": "d"});
        document.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        one(&document)
    };
    let steps = json!([{"op": "remove", "path": "/a"}, {"op": "add", "path": "/b", "value": null},
                       {"op": "move", "path": "/c", "from": "/d"}]);
    for (document, expected) in [
        (
            json!({"operation": "MergePatch", "mergePatch": {"a": null}}),
            Operation::MergePatch { patch: json!({"a": null}) },
        ),
        (
            json!({"operation": "MergePatch", "mergePatch": "a: yes\n"}),
            Operation::MergePatch { patch: json!({"a": true}) },
        ),
        (
            json!({"operation": "JSONPatch", "jsonPatch": steps}),
            Operation::JsonPatch { patch: steps.clone() },
        ),
        (
            json!({"operation": "JSONPatch", "jsonPatch": steps.to_string()}),
            Operation::JsonPatch { patch: steps.clone() },
        ),
        (json!({"operation": "JQPatch", "jqFilter": ".a = 1"}), Operation::Jq { filter: ".a = 1".into() }),
    ] {
        let patch = on(document.clone());
        assert!(patch.operation == expected, "{document}");
        assert_eq!(patch.to_string(), "Filter object apps/v1/Deployment/ns/d");
    }
}

#[test]
fn switches_of_patches_are_read() {
    let patch = |extra: &str| {
        parsed(&format!("{{operation: MergePatch, kind: P, name: one, mergePatch: {{a: 1}}, {extra}}}"))
    };
    assert!(patch("ignoreMissingObject: true")[0].ignore_missing_object);
    assert!(!patch("ignoreMissingObject: null")[0].ignore_missing_object);
    for (extra, survives) in [
        ("ignoreHookError: true, subresource: /status", true),
        ("ignoreHookError: true, subresource: status", true),
        ("ignoreHookError: true", false),
        ("ignoreHookError: true, subresource: scale", false),
        ("subresource: status", false),
    ] {
        assert_eq!(patch(extra)[0].survives_hook_error(), survives, "{extra}");
    }
}

#[test]
fn a_file_is_a_stream_of_json_or_of_yaml() {
    assert!(parsed("").is_empty());
    assert!(parsed("---\n---\n").is_empty());
    let json = r#"{"OPERATION":"delete","Operation":"Delete","KIND":"Pod","name":"a"} {"operation":"Delete","kind":"Pod","name":"b","extra":1}"#;
    let names = |text: &str| parsed(text).into_iter().map(|patch| patch.target.name).collect::<Vec<_>>();
    assert_eq!(names(json), ["a", "b"]);
    let yaml = "---\noperation: Delete\nkind: Pod\nname: a\n---\n{\"operation\": \"Delete\", \"kind\": \"Pod\", \"name\": \"b\"}\n---\n# nothing\n---\n";
    assert_eq!(names(yaml), ["a", "b"]);
}

#[test]
fn numbers_stay_what_they_are() {
    let text = "operation: Create\nobject:\n  kind: X\n  metadata: {name: x}\n  spec: {replicas: 3, big: 9007199254740993, ratio: 0.5}\n";
    let Operation::Create { object, .. } = &parsed(text)[0].operation else { panic!("a creation") };
    assert_eq!(object["spec"], json!({"replicas": 3, "big": 9_007_199_254_740_993_i64, "ratio": 0.5}));
}

#[test]
fn words_of_yaml_documents_are_texts_and_texts_inside_are_read_as_manifests() {
    let text = "operation: Create\nobject:\n  kind: X\n  metadata: {name: x}\n  data: {a: yes, b: on, on: off, t: true, y: n}\n  merged:\n    own: here\n    <<: {own: there, more: no}\n";
    let Operation::Create { object, .. } = &parsed(text)[0].operation else { panic!("a creation") };
    assert_eq!(object["data"], json!({"a": "yes", "b": "on", "on": "off", "t": true, "y": "n"}));
    assert_eq!(object["merged"], json!({"own": "here", "more": "no"}));
    let text = "operation: MergePatch\nkind: X\nname: x\nmergePatch: |\n  a: yes\n";
    assert!(parsed(text)[0].operation == Operation::MergePatch { patch: json!({"a": true}) });
}

#[test]
fn names_that_look_like_numbers_are_taken_as_they_are_written() {
    let text =
        "operation: Delete\nkind: yes\nnamespace: 0x10\nname: 1.10\nignoreMissingObject: on\nsubresource:\n";
    let patch = &parsed(text)[0];
    assert_eq!(patch.target.to_string(), "/yes/0x10/1.10");
    assert!(patch.ignore_missing_object);
    let aliased = "operation: Delete\nextra: &n 007\nkind: Pod\nname: *n\n";
    assert_eq!(parsed(aliased)[0].target.name, "7");
    for (word, flag) in [("yes", true), ("'y'", true), ("No", false), ("off", false), ("~", false)] {
        let text = format!("{{operation: Delete, kind: A, name: .inf, ignoreHookError: {word}}}");
        assert_eq!(parsed(&text)[0].ignore_hook_error, flag, "{word}");
    }
}

/// Documents, and what their errors contain.
const WRONG: &[(&str, &str)] = &[
    ("operation: Create", "object is required"),
    ("{operation: Create, object: {}}", "object should have at least 1 properties"),
    ("{operation: Create, object: []}", "object must be a mapping"),
    ("{operation: Create, object: 5}", "object must be a mapping"),
    ("{operation: Create, object: 'a: ['}", "object is neither JSON nor YAML: line "),
    ("{operation: Create, object: {kind: A}}", "object.metadata.name is required"),
    ("{operation: Create, object: {metadata: {name: a}}}", "object.kind is required"),
    (
        "{operation: Create, object: {kind: A, metadata: {name: 5}}}",
        "object.metadata.name must be of type string",
    ),
    ("{operation: Create, object: {kind: A, metadata: x}}", "object.metadata.name is required"),
    ("{operation: Create, object: {kind: A, apiVersion: a/b/c, metadata: {name: a}}}", "apiVersion must be"),
    (
        "{operation: Apply, object: {kind: A, metadata: {generateName: a}}}",
        "object.metadata.name is required",
    ),
    ("{operation: Delete, kind: A}", "name is required"),
    ("{operation: Delete, name: a}", "kind is required"),
    ("{operation: Delete, kind: [A], name: a}", "kind must be of type string"),
    (r#"{"operation": "Delete", "kind": "A", "name": 5}"#, "name must be of type string"),
    (
        r#"{"operation": "Delete", "kind": "A", "name": "a", "ignoreMissingObject": "yes"}"#,
        "ignoreMissingObject must be of type boolean",
    ),
    ("{operation: MergePatch, kind: A, name: a}", "mergePatch is required"),
    (
        "{operation: MergePatch, kind: A, name: a, mergePatch: {}}",
        "mergePatch should have at least 1 properties",
    ),
    ("{operation: JQPatch, kind: A, name: a}", "jqFilter is required"),
    ("{operation: JQPatch, kind: A, name: a, jqFilter: ''}", "jqFilter must be a non-empty string"),
    ("{operation: JQPatch, kind: A, name: a, jqFilter: [x]}", "jqFilter must be a non-empty string"),
    ("{operation: JSONPatch, kind: A, name: a, jsonPatch: []}", "jsonPatch should have at least 1 items"),
    ("{operation: JSONPatch, kind: A, name: a, jsonPatch: {}}", "jsonPatch must be a list"),
    ("{operation: JSONPatch, kind: A, name: a, jsonPatch: [x]}", "jsonPatch item 1: it must be a mapping"),
    ("{operation: JSONPatch, kind: A, name: a, jsonPatch: [{path: /a}]}", "jsonPatch item 1: op is required"),
    (
        "{operation: JSONPatch, kind: A, name: a, jsonPatch: [{op: remove, path: /a}, {op: add, path: /a}]}",
        "jsonPatch item 2: value is required for 'add'",
    ),
    (
        "{operation: JSONPatch, kind: A, name: a, jsonPatch: [{op: copy, path: /a}]}",
        "jsonPatch item 1: from is required for 'copy'",
    ),
    (
        "{operation: JSONPatch, kind: A, name: a, jsonPatch: [{op: remove, path: a}]}",
        "jsonPatch item 1: path must begin with '/'",
    ),
    (
        "{operation: JSONPatch, kind: A, name: a, jsonPatch: [{op: Remove, path: /a}]}",
        "jsonPatch item 1: op 'Remove' should be one of",
    ),
    (
        "{operation: jsonPatch, kind: A, name: a, jsonPatch: [{op: remove, path: /a}]}",
        "operation should be one of",
    ),
    (
        "{operation: Delete, kind: A, name: a, ignoreMissingObject: maybe}",
        "ignoreMissingObject must be of type boolean",
    ),
    ("{operation: Delete, kind: A, name: ../a}", "name is part of a path"),
    ("{operation: Delete, kind: A, name: '..'}", "name is part of a path"),
    ("{operation: Delete, kind: A, name: a%2fb}", "name is part of a path"),
    ("{operation: Delete, kind: A, name: a, namespace: a/b}", "namespace is part of a path"),
    ("{operation: Create, object: {kind: A, metadata: {name: a/b}}}", "name is part of a path"),
    (
        "{operation: MergePatch, kind: A, name: a, subresource: status/../b, mergePatch: {a: 1}}",
        "subresource is part of a path",
    ),
    ("{kind: A, name: a}", "operation is required"),
    ("[]", "it must be a mapping"),
    ("hello", "it must be a mapping"),
];

#[test]
fn what_is_wrong_is_told_with_the_document() {
    for (text, expected) in WRONG {
        let message = refused(text);
        assert!(
            message.starts_with("can't validate document 1:\n") && message.contains(expected),
            "{text}: {message}"
        );
    }
}

#[test]
fn one_bad_document_among_many_spoils_all_and_is_named() {
    let good = "{\"operation\":\"Delete\",\"kind\":\"Pod\",\"name\":\"p\"}\n";
    let text = format!(
        "{}{}{}",
        good.repeat(41),
        "{\"operation\":\"Conjure\",\"kind\":\"Pod\",\"name\":\"p\"}\n",
        good.repeat(58)
    );
    assert_eq!(
        refused(&text),
        "can't validate document 42:\noperation: Conjure\nkind: Pod\nname: p\n\n1 error occurred:\n\
         \t* operation should be one of [Apply Create CreateIfNotExists CreateOrUpdate Delete DeleteInBackground \
         DeleteNonCascading JQPatch JSONPatch MergePatch]\n\n"
    );
}

#[test]
fn text_that_is_nothing_at_all_is_refused_with_both_reasons() {
    let message = refused("{\"operation\": \"Delete\"");
    assert!(message.contains("neither JSON (EOF") && message.contains("nor YAML (line 2"), "{message}");
    assert!(refused("a: [").contains("neither"));
    assert_eq!(parse(&[b'a', 0xff]), Err(ObjectPatchError::NotText(1)));
    assert_eq!(parse(&vec![b' '; MAX_BYTES + 1]), Err(ObjectPatchError::TooLong(MAX_BYTES + 1)));
}

#[test]
fn what_would_need_too_much_memory_is_refused_before_it_is_read() {
    let good = "{\"operation\":\"Delete\",\"kind\":\"Pod\",\"name\":\"p\"}\n";
    let list = format!("{good}[{}0]", "0,".repeat(MAX_VALUES));
    assert_eq!(parse(list.as_bytes()), Err(ObjectPatchError::TooLarge));
    let object =
        json!({"kind": "A", "metadata": {"name": "a"}, "data": {"csv": "\\\",[{".repeat(MAX_VALUES / 2)}});
    let long = json!({"operation": "Create", "object": object}).to_string();
    assert_eq!(parsed(&long).len(), 1, "what stands in a text is not counted");
    let yaml = "- a\n".repeat(MAX_YAML_BYTES / 4 + 1);
    let message = refused(&yaml);
    assert!(message.contains("nor YAML (of which 16777216 bytes are read"), "{message}");
}

#[test]
fn nothing_that_is_printed_shows_content() {
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"p": "hunter22"}});
    let patch = one(&json!({"operation": "Create", "object": secret}));
    assert_eq!(format!("{patch:?}"), "ObjectPatch(Create object v1/Secret/s)");
    let broken = json!({"operation": "Make", "object": secret, "mergePatch": {"data": "hunter22"}});
    assert!(!refused(&broken.to_string()).contains("hunter22"));
}

proptest::proptest! {
    #[test]
    fn any_text_gets_an_answer(text in "[-{}\\[\\]\":,a-z0-9.!&*| \n]{0,80}") {
        drop(parse(text.as_bytes()));
    }

    #[test]
    fn any_values_get_an_answer(
        operation in proptest::sample::select(vec!["Create", "Apply", "Delete", "JQPatch", "MergePatch", "JSONPatch", ""]),
        key in proptest::sample::select(vec!["object", "kind", "name", "jqFilter", "mergePatch", "jsonPatch", "subresource", "force"]),
        value in "[-{}\\[\\]\":,a-z/]{0,20}",
    ) {
        for value in [json!(value), serde_json::from_str(&value).unwrap_or_default(), json!([value]), json!({key: value})] {
            let document = json!({"operation": operation, "kind": "A", "name": "a", key: value});
            drop(parse(document.to_string().as_bytes()));
        }
    }
}

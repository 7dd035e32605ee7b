//! What is read of `bind.yaml`, and what becomes of it.

use serde_json::json;

use super::*;

fn objects() -> BTreeMap<Reference, Value> {
    let object = |kind, name: &str, value| (Reference { kind, name: name.to_owned() }, value);
    BTreeMap::from([
        object(
            Kind::ConfigMap,
            "one",
            json!({"data": {"HOST": "one", "PORT": "1"}, "binaryData": {"RAW": "AAE="}}),
        ),
        object(Kind::Secret, "two", json!({"data": {"HOST": "dHdv", "BAD": "no base64"}})),
        object(Kind::Secret, "three", json!({"data": {"HOST": "dGhyZWU="}})),
        object(Kind::Service, "web", json!({"spec": {"clusterIP": "10.0.0.7"}})),
    ])
}

fn resolved(text: &str) -> Result<BTreeMap<String, String>, String> {
    let credentials = Credentials::read(text, "ops").map_err(|error| error.to_string())?;
    let found = credentials.resolve(&objects()).map_err(|error| error.to_string())?;
    Ok(found.into_iter().map(|(name, value)| (name, String::from_utf8(value).unwrap())).collect())
}

#[test]
fn credentials_come_from_values_keys_paths_and_whole_objects() {
    let text = "
credential:
- {name: PLAIN, value: hunter2}
- {name: NUMBER, value: 6379}
- {name: EMPTY, value: ''}
- {name: FROM_MAP, valueFrom: {configMapKeyRef: {name: one, key: PORT}}}
- {name: FROM_SECRET, valueFrom: {secretKeyRef: {name: two, namespace: ops, key: HOST}}}
- {name: ADDRESS, valueFrom: {serviceRef: {name: web, jsonpath: '{.spec.clusterIP}'}}}
credentialFrom:
- configMapRef: {name: one}
";
    let found = resolved(text).unwrap();
    let pairs: Vec<String> = found.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        pairs,
        [
            "ADDRESS=10.0.0.7",
            "EMPTY=",
            "FROM_MAP=1",
            "FROM_SECRET=two",
            "HOST=one",
            "NUMBER=6379",
            "PLAIN=hunter2",
            "PORT=1",
            "RAW=\u{0}\u{1}"
        ]
    );
    let credentials = Credentials::read(text, "ops").unwrap();
    let names: Vec<String> = credentials.references().into_iter().map(ToString::to_string).collect();
    assert_eq!(names, ["ConfigMap one", "Secret two", "Service web"]);
    assert!(!format!("{credentials:?}").contains("hunter2"));
    assert_eq!(resolved(""), Ok(BTreeMap::new()));
}

#[test]
fn what_is_listed_later_or_by_name_counts() {
    let from = "credentialFrom:\n- configMapRef: {name: one}\n- secretRef: {name: three}\n";
    assert_eq!(resolved(from).unwrap()["HOST"], "three");
    let named = format!("{from}credential:\n- {{name: HOST, value: own}}\n");
    assert_eq!(resolved(&named).unwrap()["HOST"], "own");
    let twice = "credential: [{name: A, value: a}, {name: B, value: b}, {name: A, value: hunter2}]";
    assert_eq!(resolved(twice), Err("credential[2]: A is the name of another credential, too".to_owned()));
}

#[test]
fn what_is_wrong_names_its_place_and_no_value() {
    for (text, problem) in [
        ("- a", "the text should be a mapping"),
        ("credential: a", "credential should be a list of at most 500 entries"),
        ("credential: [hunter2]", "credential[0] should be a mapping"),
        ("credential: [{value: hunter2}]", "credential[0].name should be a text"),
        (
            "credential: [{name: a b, value: x}]",
            "credential[0].name should be a key of a Secret: letters, digits, -, _ and .",
        ),
        ("credential: [{name: A}]", "credential[0] should be a name with one of value and valueFrom"),
        (
            "credential: [{name: A, value: x, valueFrom: {}}]",
            "credential[0] should be a name with one of value and valueFrom",
        ),
        ("credential: [{name: A, value: [hunter2]}]", "credential[0].value should be a text"),
        (
            "credential: [{name: A, valueFrom: {}}]",
            "credential[0].valueFrom should be one of configMapKeyRef, secretKeyRef and serviceRef",
        ),
        (
            "credential: [{name: A, valueFrom: {secretKeyRef: {name: ../x, key: k}}}]",
            "credential[0].valueFrom.secretKeyRef.name should be the name of an object",
        ),
        (
            "credential: [{name: A, valueFrom: {secretKeyRef: {name: two, namespace: hunter2, key: HOST}}}]",
            "credential[0].valueFrom.secretKeyRef.namespace: objects are looked up in the namespace of the release only: remove it",
        ),
        (
            "credentialFrom: [{configMapRef: {name: one, namespace: [ops]}}]",
            "credentialFrom[0].configMapRef.namespace: objects are looked up in the namespace of the release only: remove it",
        ),
        (
            "credential: [{name: A, valueFrom: {secretKeyRef: {name: two}}}]",
            "credential[0].valueFrom.secretKeyRef.key should be a text",
        ),
        (
            "credential: [{name: A, valueFrom: {secretKeyRef: {name: two, key: k}}}]",
            "Secret two has no key k",
        ),
        (
            "credential: [{name: A, valueFrom: {secretKeyRef: {name: two, key: BAD}}}]",
            "Secret two: key BAD is no base64",
        ),
        (
            "credential: [{name: A, valueFrom: {serviceRef: {name: none, jsonpath: .a}}}]",
            "there is no Service none in the namespace of the release",
        ),
        (
            "credential: [{name: A, valueFrom: {serviceRef: {name: web, jsonpath: .a}}}]",
            "credential[0]: nothing is at \".a\"",
        ),
        (
            "credentialFrom: [{secretRef: {name: two}, configMapRef: {name: one}}]",
            "credentialFrom[0] should be one of configMapRef and secretRef",
        ),
    ] {
        assert_eq!(resolved(text), Err(problem.to_owned()), "{text}");
    }
    for text in [
        "a: [hunter2",
        "credential: []\ncredential: [{name: A, value: hunter2}]",
        "credential: []\n---\ncredential: [{name: A, value: hunter2}]",
    ] {
        let broken = resolved(text).unwrap_err();
        assert!(
            broken.starts_with("the rendered text is no YAML: line ") && !broken.contains("hunter2"),
            "{broken}"
        );
    }
}

#[test]
fn there_is_a_limit_for_text_entries_and_bytes() {
    let entries = |count: usize| {
        let list: Vec<String> = (0..count).map(|n| format!("{{name: a{n}, value: x}}")).collect();
        format!("credential: [{}]", list.join(", "))
    };
    assert_eq!(resolved(&entries(MAX_ENTRIES)).unwrap().len(), MAX_ENTRIES);
    assert!(resolved(&entries(MAX_ENTRIES + 1)).unwrap_err().contains("at most 500"));
    let long = "x".repeat(MAX_BYTES);
    let error = resolved(&format!("credential: [{{name: a, value: {long}}}]")).unwrap_err();
    assert!(error.ends_with("and a Secret takes 921600"), "{error}");
    assert!(resolved(&format!("# {}", "x".repeat(MAX_TEXT))).unwrap_err().contains("1048576 are read"));
}

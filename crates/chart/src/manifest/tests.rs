//! Tests of manifests.

use super::*;

fn sorted(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>, Vec<String>) {
    let files =
        files.iter().map(|(name, text)| ((*name).to_owned(), Text::Readable((*text).to_owned()))).collect();
    let mut warnings = Warnings::default();
    let sorted = sort(&files, &mut Heads::default(), &mut warnings).unwrap();
    (
        sorted.manifests.iter().map(|manifest| format!("{} {}", manifest.head.kind, manifest.path)).collect(),
        sorted.hooks.iter().map(|hook| format!("{} {:?} {}", hook.name, hook.events, hook.weight)).collect(),
        warnings.texts().to_vec(),
    )
}

#[test]
fn documents_are_sorted_by_kind_then_by_place() {
    let (manifests, hooks, warnings) = sorted(&[
        ("b.yaml", "kind: Zoo\n---\nkind: Secret\n---\nkind: Ant"),
        ("a.yaml", "kind: Service\n---\n# nothing"),
        ("_p.yaml", "kind: Partial"),
        ("e.yaml", " \n"),
    ]);
    assert_eq!(manifests, ["Secret b.yaml", "Service a.yaml", " a.yaml", "Ant b.yaml", "Zoo b.yaml"]);
    assert!(hooks.is_empty() && warnings.is_empty());
}

#[test]
fn hooks_are_taken_out_and_unknown_moments_dropped() {
    let hook = |name: &str, events: &str, weight: &str| {
        format!(
            "kind: Job\nmetadata:\n  name: {name}\n  annotations: {{helm.sh/hook: '{events}', helm.sh/hook-weight: '{weight}'}}"
        )
    };
    let (manifests, hooks, warnings) = sorted(&[
        ("a", &hook("one", "pre-install, POST-UPGRADE", "5")),
        ("b", &hook("two", "test-success", "x")),
        ("c", &hook("three", "crd-install", "1")),
    ]);
    assert!(manifests.is_empty());
    assert_eq!(hooks, ["one [PreInstall, PostUpgrade] 5", "two [Test] 0"]);
    assert_eq!(warnings, ["info: skipping unknown hook: \"crd-install\""]);
}

#[test]
fn a_document_that_is_no_map_is_refused() {
    let files = [("t".to_owned(), Text::Readable("- 1".to_owned()))].into();
    let error = sort(&files, &mut Heads::default(), &mut Warnings::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "YAML parse error on t: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type releaseutil.SimpleHead"
    );
}

#[test]
fn uninstalling_goes_the_other_way_round() {
    let mut install: Vec<&str> = order::INSTALL.to_vec();
    let mut uninstall: Vec<&str> = order::UNINSTALL.to_vec();
    install.sort_unstable();
    uninstall.sort_unstable();
    assert_eq!(install, uninstall);
}

#[test]
fn bytes_that_are_no_text_are_refused_where_they_stand() {
    for (bytes, expected) in [
        (b"a: 1\n---\nb: \xff".to_vec(), "yaml: invalid leading UTF-8 octet"),
        (b"b: \xc3".to_vec(), "yaml: incomplete UTF-8 octet sequence"),
        (b"b: \xc3.".to_vec(), "yaml: invalid trailing UTF-8 octet"),
        (b"b: \xe0\x80\x80".to_vec(), "yaml: invalid length of a UTF-8 sequence"),
        (b"b: \xed\xa0\x80".to_vec(), "yaml: invalid Unicode character"),
        (b"b: [\n---\nb: \xff".to_vec(), "yaml: line 1: did not find expected node content"),
    ] {
        let files = [("t".to_owned(), Text::from(bytes))].into();
        let error = sort(&files, &mut Heads::default(), &mut Warnings::default()).unwrap_err();
        let expected = format!("YAML parse error on t: error converting YAML to JSON: {expected}");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn plain_documents_need_no_parser_and_others_are_left_to_it() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";
    for (rest, is_plain) in [
        (
            "  annotations:\n    helm.sh/hook: pre-install\n    helm.sh/hook-weight: \"5\"\ndata:\n  k: v\n",
            true,
        ),
        ("spec:\n  ports:\n  - port: 80\n    name: http\n  - port: 81\n  x: {}\n", true),
        ("spec:\n  - a\n  -\n    b: 1\n  - - c\n", true),
        ("data:\n  text: |\n    a: b\n     c\n\n    d\n  other: 'x'\n", true),
        ("spec: { a: b, c-d: {e/f.g: [x, \"y: # z\", 'w', 5]}, n: null }\n", true),
        ("spec:\n- {a: b}\n- [  ]\n- [a, 1.5, ]\n", false),
        ("spec:\n- { a: b }\n- [  ]\n- { a: {} }\n", true),
        ("spec: {a: b\n", false),
        ("spec: {a: b} c\n", false),
        ("spec: {a:b}\n", false),
        ("spec: {a: b:c}\n", false),
        ("spec: {a}\n", false),
        ("spec: {null: a}\n", false),
        ("spec: {1: a}\n", false),
        ("spec: {a: 'it''s'}\n", false),
        ("spec: {a: \"b\\n\"}\n", true),
        ("spec: {a: .inf, b: 1}\n", false),
        ("spec: {a: 1e999}\n", false),
        ("spec: [a,b]\n", true),
        ("spec: [-1]\n", false),
        ("spec: [*a]\n", false),
        ("spec: [!!int a]\n", false),
        ("metadata: {name: x}\n", false),
        ("# comment\nspec:\n  # another\n  a:\nb: -5\n", true),
        ("  annotations:\n    a: 5\n", false),
        ("  annotations:\n    a: true\n", false),
        ("  annotations:\n    a: {b: c}\n", false),
        ("  annotations:\n  - a\n", false),
        ("kind: Secret\n", false),
        ("Kind: Secret\n", false),
        ("spec: a: b\n", false),
        ("spec: a\n  b: c\n", false),
        ("spec:\n  a: b\n c: d\n", false),
        ("spec:\n  a: b\n   c: d\n", false),
        ("spec:\n  - a\n  b: c\n", false),
        ("spec: &x a\n", false),
        ("spec: 'a\n  b'\n", false),
        ("spec: .inf\n", false),
        ("spec: |\n    a\n   b\n", false),
        ("spec: 49bdda6e00802efeb2fec44d\n", true),
        ("spec: {a: 49bdda6e00802efeb2fec44d, b: c}\n", true),
        ("spec: 49000000000000000000e6\n", false),
        ("spec: 0x49bdda6e00802efeb2fec44d\n", false),
        ("spec: 0b1111111111111111111111\n", false),
        ("null: a\n", false),
        ("spec:\n\ta: b\n", false),
    ] {
        let text = format!("{map}{rest}");
        let head = head_scanner::scan(&text);
        assert_eq!(head.is_some(), is_plain, "{text}");
        if let Some(head) = head {
            assert_eq!(head, Head::read(text.as_bytes()).unwrap(), "{text}");
        }
    }
    for text in [
        "- a",
        "kind: A\nmetadata:\n- name: x\n",
        "kind: A\nmetadata:\n- x\n",
        "kind: A\nmetadata: x\n",
        "kind:\n- x\nmetadata:\n  name: a",
    ] {
        assert_eq!(head_scanner::scan(text), None, "{text}");
    }
}

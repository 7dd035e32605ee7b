//! The YAML reader and writer against answers of Go.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::fmt::Write as _;

use serde_json::Value;
use values::yaml::{self, YamlProblem};

/// Returns the cases of a kind and Go's answer to each.
fn vectors(cases: &str, truth: &str, kind: &str, prefix: char) -> Vec<(Value, String)> {
    let cases: Value = serde_json::from_str(cases).unwrap();
    let truth: Value = serde_json::from_str(truth).unwrap();
    cases[kind]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(index, case)| {
            let answer = truth[format!("{prefix}{index:03}")].as_str().unwrap();
            (case.clone(), answer.to_owned())
        })
        .collect()
}

fn all(kind: &str, prefix: char) -> Vec<(Value, String)> {
    let mut all = vectors(
        include_str!("../data/yaml_cases.json"),
        include_str!("../data/yaml_truth.json"),
        kind,
        prefix,
    );
    all.extend(vectors(
        include_str!("../data/yaml_fuzz_cases.json"),
        include_str!("../data/yaml_fuzz_truth.json"),
        kind,
        prefix,
    ));
    all
}

/// Compares two values; the answers were made by a program that holds every
/// number as 64 bits of floating point.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(a, b)| same(a, b))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|((k, a), (l, b))| k == l && same(a, b))
        }
        (left, right) => left == right,
    }
}

#[test]
fn documents_are_read_as_go_reads_them() {
    let mut wrong = Vec::new();
    for (case, answer) in all("parse", 'P') {
        let text = case[1].as_str().unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let refused = answer.get("Error").is_some();
        match yaml::parse(text) {
            // The answers come from a reader of mappings: it made an empty
            // document an empty mapping and refused a document that is a text.
            Ok(Value::Null) if text.is_empty() => {}
            Ok(Value::String(_)) | Err(_) if refused => {}
            Ok(value) if !refused && same(&value, &answer) => {}
            result => wrong.push(format!("{text:?}: {result:?} instead of {answer}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn strings_are_written_as_go_writes_them() {
    let mut wrong = Vec::new();
    for (case, answer) in all("ser", 'S') {
        let text = case.as_str().unwrap();
        let value = serde_json::json!({ "k": text });
        let written = yaml::emit(&value);
        // Go loses this character on the way to its writer; we do not.
        if text != "\u{85}" && written.strip_suffix('\n') != Some(&answer) {
            wrong.push(format!("{text:?}: {written:?} instead of {answer:?}"));
        }
        if yaml::parse(&written) != Ok(value) {
            wrong.push(format!("{text:?}: {written:?} is not read back"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn numbers_are_written_as_go_writes_them() {
    let mut wrong = Vec::new();
    for (case, answer) in all("num", 'N') {
        let written = yaml::emit(&serde_json::json!({ "k": case }));
        let expected = match case.as_i64() {
            // The answers lost the last digits of large integers; we do not.
            Some(number) if number.unsigned_abs() > 1 << 53 => format!("k: {number}"),
            _ => answer,
        };
        if written.strip_suffix('\n') != Some(&expected) {
            wrong.push(format!("{case}: {written:?} instead of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Values and what both of Go's writers make of them; made by random.
fn trees() -> Vec<Value> {
    serde_json::from_str(include_str!("../data/go_emit.json")).unwrap()
}

#[test]
fn trees_are_written_as_go_writes_them() {
    let mut wrong = Vec::new();
    for case in trees() {
        for (written, answer) in
            [(yaml::emit(&case["value"]), &case["v2"]), (yaml::emit_v3(&case["value"]), &case["v3"])]
        {
            // Where Go loses a line break of a text, we do not.
            let answer_is_read_back = yaml::parse(answer.as_str().unwrap()).as_ref() == Ok(&case["value"]);
            if answer_is_read_back && written != answer.as_str().unwrap() {
                let mut lines = written.lines().zip(answer.as_str().unwrap().lines());
                wrong.push(format!("{:?}", lines.find(|(ours, theirs)| ours != theirs)));
            }
            match yaml::parse(&written) {
                Ok(again) if again == case["value"] => {}
                Ok(again) => wrong.push(format!("{}\nis read back as\n{again}", case["value"])),
                Err(error) => wrong.push(format!("{error}: {written}")),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong.iter().take(8).cloned().collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn integers_keep_their_size() {
    for text in ["9007199254740993", "9223372036854775807", "18446744073709551615", "-9223372036854775808"] {
        let document = format!("k: {text}\n");
        let value = yaml::parse(&document).unwrap();
        assert_eq!(value["k"].to_string(), text);
        assert_eq!(yaml::emit(&value), document);
    }
    assert_eq!(yaml::parse("k: 1000000.0").unwrap().to_string(), r#"{"k":1000000}"#);
    assert_eq!(yaml::emit(&serde_json::json!({"k": 1e6})), "k: 1000000\n");
}

#[test]
fn streams_hold_several_documents() {
    let documents = yaml::parse_all("a: 1\n---\n---\n- b\n...\n---\nc\n").unwrap();
    assert_eq!(Value::from(documents).to_string(), r#"[{"a":1},null,["b"],"c"]"#);
    assert_eq!(yaml::parse_all("").unwrap(), Vec::<Value>::new());
    assert_eq!(yaml::parse_all("# nothing\n").unwrap(), Vec::<Value>::new());
    // An anchor ends with its document.
    assert!(yaml::parse_all("a: &x 1\n---\nb: *x\n").is_err());
}

#[test]
fn the_third_version_knows_two_words_for_booleans_and_keeps_what_stands_before_a_merge() {
    let text = "a: yes\nb: Off\nc: True\nd: 'true'\non: 1\ne: !!str 1\n---\nk: &m {x: no, y: 2}\nl:\n  x: own\n  <<: *m\np:\n  x: own\n  <<: [{x: a, z: b}, {z: c, v: d}]\n";
    let read = |documents: Result<Vec<Value>, _>| Value::from(documents.unwrap()).to_string();
    assert_eq!(
        read(yaml::parse_all_v3(text, &[])),
        r#"[{"a":"yes","b":"Off","c":true,"d":"true","e":"1","on":1},{"k":{"x":"no","y":2},"l":{"x":"own","y":2},"p":{"v":"d","x":"own","z":"b"}}]"#
    );
    assert_eq!(
        read(yaml::parse_all(text)),
        r#"[{"a":true,"b":false,"c":true,"d":"true","e":"1","true":1},{"k":{"true":2,"x":false},"l":{"true":2,"x":false},"p":{"v":"d","x":"a","z":"b"}}]"#
    );
    let message = yaml::parse_all_v3("a: !!bool yes", &[]).unwrap_err().to_string();
    assert!(message.contains("a value of type !!str cannot be read as !!bool"), "{message}");
    let text = "name: 0x1F\nother: 0x1F\ninner: {name: 010}\nempty:\nlist: 1\n---\nname: [1]\nempty: ~\n";
    assert_eq!(
        read(yaml::parse_all_v3(text, &["name", "empty"])),
        r#"[{"empty":null,"inner":{"name":8},"list":1,"name":"0x1F","other":31},{"empty":null,"name":[1]}]"#
    );
}

#[test]
fn errors_name_line_and_column() {
    for (text, expected) in [
        ("a: 1\n b: 2\n", "line 2, column 3: mapping values are not allowed in this context"),
        (
            "a:\n\tb: 1\n",
            "line 2, column 1: found character that cannot start any token while scanning for the next token",
        ),
        ("a: 1\nb: \u{7}\n", "line 2, column 4: control characters are not allowed"),
        (
            "a: *x\n",
            "line 1, column 4: an alias (*…) names no anchor before it; quote a text that begins with *",
        ),
        ("a: &x [*x]\n", "line 1, column 8: an alias (*…) stands inside the anchor that it names"),
        ("a: 1\n~: 2\n", "line 2, column 1: null cannot be a key, write a string"),
        ("? [a]\n: 2\n", "line 1, column 3: a list cannot be a key, write a string"),
        ("a: 1\nb: .inf\n", "line 2, column 4: a number that JSON cannot hold, quote it or write another"),
        ("a: !!int x\n", "line 1, column 4: a value of type !!str cannot be read as !!int"),
        ("a: {<<: 5}\n", "line 1, column 9: map merge requires a map or a list of maps as the value"),
        (
            "%YAML 1.2\n---\na: 1\n",
            "line 1, column 1: found incompatible YAML document, only version 1.1 is read",
        ),
    ] {
        assert_eq!(yaml::parse(text).unwrap_err().to_string(), expected, "{text:?}");
    }
}

#[test]
fn errors_quote_no_value() {
    for text in [
        "password: *s3cr3t-Pa55\n",
        "password: &s3cr3t-Pa55 [*s3cr3t-Pa55]\n",
        "password: !!int s3cr3t-Pa55\n",
        "password: !!binary s3cr3t-Pa55\n",
        "password: !!s3cr3t-Pa55\n  : - x\n",
        "password: !s3cr3t-Pa55%zz\n",
        "password: %s3cr3t-Pa55\n",
        "password: @s3cr3t-Pa55\n",
        "password: `s3cr3t-Pa55\n",
        "password: |s3cr3t-Pa55\n",
        "password: \"s3cr3t-Pa55\\q\"\n",
        "password: {s3cr3t-Pa55: }}\n",
        "password: s3cr3t-Pa55: x\n",
        "%s3cr3t-Pa55\n---\npassword: 1\n",
        "password: 1\n? {s3cr3t-Pa55: 1}\n",
    ] {
        let error = yaml::parse(text).map(|_| ()).expect_err(text).to_string();
        assert!(!error.contains("s3cr3t"), "{text:?}: {error}");
    }
}

#[test]
fn the_strict_reader_refuses_duplicate_keys_and_names_both_lines() {
    let text = "a: 1\nb:\n  c: 1\n  'c': 2\n";
    assert_eq!(
        yaml::parse_strict(text).unwrap_err().to_string(),
        "line 4, column 3: key \"c\" is already set at line 3, remove one of them"
    );
    assert!(yaml::parse(text).is_ok());
    assert!(yaml::parse_strict("a: &x {k: 1}\nb: {<<: *x, k: 2}\n").is_ok());
    // Of two merges it would depend on their order which one counts.
    let text = "a: &x {k: 1}\nb:\n  <<: *x\n  <<: {k: 2}\n";
    assert_eq!(
        yaml::parse_strict(text).unwrap_err().to_string(),
        "line 4, column 3: key \"<<\" is already set at line 3, remove one of them"
    );
    assert!(yaml::parse(text).is_ok());
}

#[test]
fn nesting_and_aliases_without_end_are_errors() {
    for text in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000), "? ".repeat(5_000)] {
        let error = yaml::parse(&text).unwrap_err();
        assert!(matches!(error.problem, YamlProblem::TooDeep { .. } | YamlProblem::Key { .. }), "{error}");
    }
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let alias = format!("*a{}", level - 1);
        writeln!(bomb, "a{level}: &a{level} [{}]", vec![alias; 10].join(", ")).unwrap();
    }
    assert_eq!(yaml::parse(&bomb).unwrap_err().problem, YamlProblem::ExcessiveAliasing);
    let large = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 100].join(", "));
    assert_eq!(yaml::parse(&large).unwrap_err().problem, YamlProblem::ExcessiveAliasing);
    let honest = format!("a: &a {{x: 1}}\nb: [{}]\n", vec!["*a"; 2_000].join(", "));
    assert_eq!(yaml::parse(&honest).unwrap()["b"].as_array().unwrap().len(), 2_000);
}

#[test]
fn slip_05_anchors_inside_of_anchors_are_charged_like_aliases() {
    let depth = 200;
    let mut open = String::new();
    for level in 0..depth {
        write!(open, "&a{level} [").unwrap();
    }
    let nested = |items: usize| format!("{open}{}1{}", "x, ".repeat(items), "]".repeat(depth));
    assert_eq!(yaml::parse(&nested(100_000)).unwrap_err().problem, YamlProblem::ExcessiveAliasing);
    // A few are as good as any.
    assert!(yaml::parse(&nested(100)).is_ok());
    // What documents before hold is still held.
    let documents = format!("{}\n---\n", nested(300)).repeat(100);
    assert_eq!(yaml::parse_all(&documents).unwrap_err().problem, YamlProblem::ExcessiveAliasing);
}

#[test]
fn slip_05_a_text_of_a_user_may_take_so_much_memory_and_no_more() {
    let small_maps = format!("a: [{}]", "{a}, ".repeat(10_000));
    let error = yaml::parse_within(&small_maps, 1 << 20).unwrap_err();
    assert_eq!(error.problem, YamlProblem::TooLarge { limit: 1 << 20 });
    assert!(error.to_string().contains("takes more than 1 MiB of memory when it is read"), "{error}");
    assert!(yaml::parse_within(&small_maps, 16 << 20).is_ok());
    // A long text takes what it has.
    assert!(yaml::parse_within(&format!("a: {}", "x".repeat(900_000)), 1 << 20).is_ok());
}

#[test]
fn slip_05_an_item_of_a_list_is_charged_for_the_copies_that_are_made_of_it() {
    // With more of them `dev`, which has its cluster in the same process, holds 100 MiB more than at rest.
    let lists = |count: usize| format!("a: [{}]", "[],".repeat(count));
    let error = yaml::parse_within(&lists(180_000), 16 << 20).unwrap_err();
    assert_eq!(error.problem, YamlProblem::TooLarge { limit: 16 << 20 });
    assert!(yaml::parse_within(&lists(170_000), 16 << 20).is_ok());
}

#[test]
fn a_value_is_located_by_its_json_pointer() {
    let text = "# comment\na:\n  b:\n  - x\n  - {c: 1}\n  d/e: 2\non: 3\nx: &x {k: 1}\nz: *x\n";
    for (pointer, line, column) in [
        ("", 2, 1),
        ("/a", 2, 1),
        ("/a/b", 3, 3),
        ("/a/b/0", 4, 5),
        ("/a/b/1/c", 5, 6),
        ("/a/d~1e", 6, 3),
        ("/true", 7, 1),
        ("/x/k", 8, 8),
        // What is not written in the text lies in what is.
        ("/z/k", 9, 1),
        ("/a/missing/deeper", 2, 1),
        ("/a/b/7", 3, 3),
    ] {
        let position = yaml::locate(text, pointer).unwrap();
        assert_eq!((position.line, position.column), (line, column), "{pointer}");
    }
    assert_eq!(yaml::locate("", "/a"), None);
    assert_eq!(yaml::locate("a: 1\nb: [", "/a").unwrap().line, 1);
}

#[test]
fn a_block_scalar_may_end_with_the_text() {
    for (text, expected) in [
        ("a: |\n  x", "x"),
        ("a: |\n  x\n  ", "x\n"),
        ("a: |\n   ", ""),
        ("a: |+\n  x", "x"),
        ("a: |+\n  x\n  ", "x\n"),
        ("a: |-\n  x", "x"),
        ("a: >\n  x", "x"),
        ("a: >\n  x\n  y", "x y"),
        ("a: |", ""),
        ("a: |+", ""),
        ("a: |1", ""),
        ("é: |\n  é", "é"),
        ("a: |\n  x\n# c", "x\n"),
    ] {
        let value = yaml::parse(text).unwrap();
        assert_eq!(value.as_object().unwrap().values().next().unwrap(), expected, "{text:?}");
    }
}

#[test]
fn a_text_may_begin_with_any_character() {
    for text in ["\u{ff21}: 1\n", "\u{fffd}: 1\n", "é: 1\n", "\u{feff}é: 1\n"] {
        assert!(yaml::parse(text).unwrap().is_object(), "{text:?}");
    }
}

#[test]
fn a_merge_key_that_is_text_stays_text() {
    let value = serde_json::json!({"<<": {"a": 1}, "b": 2});
    assert_eq!(yaml::emit(&value), "\"<<\":\n  a: 1\nb: 2\n");
    assert_eq!(yaml::parse(&yaml::emit(&value)).unwrap(), value);
}

//! The YAML reader and writer against answers of Go.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::Value;
use values::yaml;

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
    let mut all =
        vectors(include_str!("data/yaml_cases.json"), include_str!("data/yaml_truth.json"), kind, prefix);
    all.extend(vectors(
        include_str!("data/yaml_fuzz_cases.json"),
        include_str!("data/yaml_fuzz_truth.json"),
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

//! The conformance tests of the CEL specification, as far as they concern what Kubernetes has of it.
//!
//! `known.tsv` lists what differs, and why.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use expressions::{Environment, Key, Program, Type, Value};
use serde_json::Value as Json;

const CASES: &str = include_str!("cases.jsonl");
const KNOWN: &str = include_str!("known.tsv");

/// Reads a value of a case: its type is the name of its only field.
fn value(json: &Json) -> Value {
    let (of, inner) = json.as_object().unwrap().iter().next().unwrap();
    let text = || inner.as_str().unwrap();
    match of.as_str() {
        "i" => Value::Int(text().parse().unwrap()),
        "u" => Value::Uint(text().parse().unwrap()),
        "d" => Value::Double(text().parse().unwrap()),
        "s" => Value::text(text()),
        "y" => {
            let digit = |at: usize| u8::from_str_radix(&text()[at..at + 2], 16).unwrap();
            Value::Bytes((0..text().len()).step_by(2).map(digit).collect::<Vec<u8>>().into())
        }
        "b" => Value::Bool(inner.as_bool().unwrap()),
        "n" => Value::Null,
        "t" => Value::Type(text().into()),
        "l" => Value::list(inner.as_array().unwrap().iter().map(value).collect()),
        "m" => Value::map(
            inner
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| (Key::of(&value(&entry[0])).unwrap(), value(&entry[1]))),
        ),
        "at" => Value::Timestamp(text().parse().unwrap()),
        "for" => Value::Duration(text().parse().unwrap()),
        other => panic!("{other}"),
    }
}

/// Returns how a case differs; nothing if it does not.
fn difference(case: &Json) -> Option<String> {
    let text = case["e"].as_str().unwrap();
    let mut environment = Environment::default();
    let mut given: BTreeMap<&str, Value> = BTreeMap::new();
    for (name, json) in case["b"].as_object().into_iter().flatten() {
        environment = environment.with(name, Type::Dyn);
        given.insert(name, value(json));
    }
    let program = if case["c"] == true { Program::compile(text, &environment) } else { Program::parse(text) };
    let fails = case["x"] == true;
    let outcome = match program {
        Ok(program) => program.run(&given, 10_000_000).value.map_err(|failure| failure.text),
        Err(problem) => Err(problem),
    };
    match outcome {
        Err(_) if fails => None,
        Err(problem) => Some(problem.lines().next().unwrap_or_default().to_owned()),
        Ok(found) if fails => Some(format!("{found:?} instead of an error")),
        Ok(found) => {
            let expected = value(&case["v"]);
            let is_nan = |value: &Value| matches!(value, Value::Double(number) if number.is_nan());
            let is_same = (found.equals(&expected) && found.type_name() == expected.type_name())
                || (is_nan(&found) && is_nan(&expected));
            (!is_same).then(|| format!("{found:?} instead of {expected:?}"))
        }
    }
}

#[test]
fn the_specification_is_kept_but_for_what_is_known() {
    let known: BTreeSet<&str> = KNOWN
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split('\t').next())
        .filter(|name| !name.is_empty())
        .collect();
    let (mut count, mut report, mut used) = (0, String::new(), BTreeSet::new());
    for line in CASES.lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let name = case["n"].as_str().unwrap().to_owned();
        count += 1;
        if let Some(difference) = difference(&case) {
            if known.contains(name.as_str()) {
                used.insert(name);
            } else {
                writeln!(report, "{name}\t{difference}\t{}", case["e"]).unwrap();
            }
        }
    }
    for name in known.iter().filter(|name| !used.contains(**name)) {
        writeln!(report, "no longer needed in known.tsv: {name}").unwrap();
    }
    assert!(count >= 700, "only {count} cases");
    assert!(report.is_empty(), "{} of {count} cases differ\n{report}", report.lines().count());
}

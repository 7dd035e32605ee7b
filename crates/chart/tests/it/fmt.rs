//! Formats answered by Go's `fmt`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use chart::value::{IntType, List, ListType, Map, MapType, UintType, Value};
use golang::fmt::{sprint, sprintf, sprintln};
use serde_json::Value as Json;

const CASES: &str = include_str!("../golden/fmt/cases.json");

fn hex(json: &Json) -> Vec<u8> {
    let text = json.as_str().unwrap();
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn number<N: std::str::FromStr>(json: &Json) -> N
where
    N::Err: std::fmt::Debug,
{
    json.as_str().unwrap().parse().unwrap()
}

fn float(json: &Json) -> f64 {
    f64::from_bits(number(json))
}

fn list(class: &'static ListType, json: &Json) -> Value {
    Value::List(List::of(class, json.as_array().unwrap().iter().map(value).collect()))
}

fn map(class: &'static MapType, json: &Json) -> Value {
    let entries = json.as_object().unwrap().iter().map(|(key, item)| (key.as_str().into(), value(item)));
    Value::Map(Map::of(class, entries.collect()))
}

fn value(json: &Json) -> Value {
    let (kind, json) = json.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "nil" => Value::Nil,
        "bool" => Value::Bool(json.as_bool().unwrap()),
        "int" => Value::Int(number(json)),
        "int64" => Value::Int64(number(json)),
        "int32" => Value::Small(IntType::Int32, number(json)),
        "uint8" => Value::Uint(UintType::Uint8, number(json)),
        "uint64" => Value::Uint(UintType::Uint64, number(json)),
        "float" => Value::Float(float(json)),
        "complex" => Value::Complex(float(&json[0]), float(&json[1])),
        "str" => Value::text(hex(json)),
        "bytes" => Value::Bytes(Arc::from(hex(json))),
        "list" => list(&ListType::ANY, json),
        "strs" => list(&ListType::STRINGS, json),
        "ints" => list(&ListType::INTS, json),
        "map" => map(&MapType::ANY, json),
        "strmap" => map(&MapType::STRINGS, json),
        other => unreachable!("{other}"),
    }
}

#[test]
fn formats_print_what_go_prints() {
    let cases: Json = serde_json::from_str(CASES).unwrap();
    let mut wrong = Vec::new();
    for case in cases.as_array().unwrap() {
        let values: Vec<Value> = case[1].as_array().unwrap().iter().map(value).collect();
        let (format, got) = match case[0].as_str().unwrap() {
            "print" => ("print".into(), sprint(&values)),
            "println" => ("println".into(), sprintln(&values)),
            _ => {
                let format = hex(&case[0]);
                (String::from_utf8_lossy(&format).into_owned(), sprintf(&format, &values))
            }
        };
        let (got, expected) = (got.unwrap(), hex(&case[2]));
        if got != expected {
            let (got, expected) = (String::from_utf8_lossy(&got), String::from_utf8_lossy(&expected));
            wrong.push(format!("{format:?} {}\n  expected {expected:?}\n  got      {got:?}", case[1]));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

//! Replaces what differs from run to run, and compares answers. `record.py` does the same.

use std::fmt;

use regex::Regex;
use serde_json::{Map, Value};
use std::sync::LazyLock;

static UUID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").unwrap());
static TIME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"20(2[5-9]|3\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").unwrap());
static AGE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^(\d+[ywdhms])+$").unwrap());
static NODE_PORT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r":3\d{4}/").unwrap());
static CLUSTER_IP: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^10\.\d+\.\d+\.\d+$").unwrap());

static REVISION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(resourceVersion\\*":\\*"|ResourceVersion in record \(|ResourceVersion in object meta: |Too large resource version: \d+, current: )\d+"#)
        .unwrap()
});

/// Returns an answer without what differs from run to run.
pub(crate) fn normalised(value: &Value) -> Value {
    clean(value, "")
}

fn clean(value: &Value, key: &str) -> Value {
    match value {
        Value::Object(map) => object(map),
        Value::Array(items) => list(items, key),
        Value::String(text) => Value::from(string(text, key)),
        Value::Number(number) => {
            let port = matches!(key, "nodePort" | "healthCheckNodePort")
                && number.as_i64().is_some_and(|n| n >= 30000);
            if port { Value::from("NODEPORT") } else { value.clone() }
        }
        Value::Null | Value::Bool(_) => value.clone(),
    }
}

fn object(map: &Map<String, Value>) -> Value {
    let kept = map.iter().filter(|(key, _)| !(*key == "description" && map.contains_key("priority")));
    let mut out: Map<String, Value> = kept.map(|(key, item)| (key.clone(), clean(item, key))).collect();
    let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
    let prefix = text("generateName");
    if map.contains_key("generateName") && text("name").starts_with(prefix) {
        out.insert("name".to_owned(), Value::from(format!("{prefix}*")));
    }
    if text("kind") == "Status" {
        sort_causes(&mut out);
    }
    Value::Object(out)
}

/// Several causes come in any order; the text that lists them is cut.
fn sort_causes(status: &mut Map<String, Value>) {
    let causes = status.get_mut("details").and_then(|details| details.get_mut("causes"));
    let Some(causes) = causes.and_then(Value::as_array_mut).filter(|causes| causes.len() > 1) else {
        return;
    };
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
    causes.sort_by_key(|cause| (text(cause, "field"), text(cause, "message")));
    let message = status.get("message").and_then(Value::as_str).unwrap_or_default();
    let message = message.split(": ").next().unwrap_or_default().to_owned();
    status.insert("message".to_owned(), Value::from(message));
}

fn list(items: &[Value], key: &str) -> Value {
    if key == "cells" {
        let cell = |item: &Value| {
            let age = item.as_str().is_some_and(|text| AGE.is_match(text));
            if age { Value::from("AGE") } else { clean(item, "") }
        };
        return Value::Array(items.iter().map(cell).collect());
    }
    let mut out: Vec<Value> = items.iter().map(|item| clean(item, "")).collect();
    if key == "managedFields" {
        let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        out.sort_by_key(|entry| {
            ["operation", "manager", "apiVersion", "subresource"].map(|key| text(entry, key))
        });
    }
    Value::Array(out)
}

fn string(text: &str, key: &str) -> String {
    if key == "resourceVersion" && text != "0" && !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
    {
        return "RV".to_owned();
    }
    if key == "serverAddress" {
        return "ADDRESS".to_owned();
    }
    if key == "continue" && !text.is_empty() {
        return "CONTINUE".to_owned();
    }
    if CLUSTER_IP.is_match(text) {
        return "CLUSTERIP".to_owned();
    }
    let text = UUID.replace_all(text, "UUID");
    let text = TIME.replace_all(&text, "TIME");
    let text = REVISION.replace_all(&text, "${1}RV");
    NODE_PORT.replace_all(&text, ":NODEPORT/").into_owned()
}

/// One difference between an answer and what it should be.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) path: String,
    expected: String,
    found: String,
    /// What the answer says there, as `known.tsv` has it.
    pub(crate) pinned: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {}", self.path, self.expected, self.found)
    }
}

fn shown(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "nothing".to_owned(), Value::to_string);
    text.chars().take(300).collect()
}

/// The longest text that `known.tsv` has as it is.
const LONGEST: usize = 160;

/// Returns a part of an answer as one line. Of a long one that is its beginning, its length and its FNV-1a hash.
fn pinned(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "nothing".to_owned(), Value::to_string);
    if text.len() <= LONGEST {
        return text;
    }
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let begin: String = text.chars().take(LONGEST / 2).collect();
    format!("{begin}… ({} bytes, {hash:016x})", text.len())
}

/// Adds what differs; the path is the number of the step and the keys that lead there.
pub(crate) fn compare(expected: &Value, found: &Value, path: &str, out: &mut Vec<Difference>) {
    compare_parts(Some(expected), Some(found), path, out);
}

fn compare_parts(expected: Option<&Value>, found: Option<&Value>, path: &str, out: &mut Vec<Difference>) {
    match (expected, found) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                compare_parts(a.get(key), b.get(key), &format!("{path}.{key}"), out);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare_parts(Some(a), Some(b), &format!("{path}[{index}]"), out);
            }
        }
        (a, b) if a == b => {}
        (a, b) => out.push(Difference {
            path: path.to_owned(),
            expected: shown(a),
            found: shown(b),
            pinned: pinned(b),
        }),
    }
}

//! What must hold for every text that the YAML reader gets.

use serde_json::Value;
use values::yaml;

/// Reads `bytes`; whatever was read must survive being written and read again.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let _ = yaml::parse_all(text);
    let _ = yaml::parse_strict(text);
    let _ = yaml::locate(text, "/a/0/b");
    let Ok(mut value) = yaml::parse(text) else {
        return;
    };
    // Go writes zero without its sign.
    positive(&mut value);
    for written in [yaml::emit(&value), yaml::emit_v3(&value)] {
        match yaml::parse(&written) {
            Ok(again) => assert_eq!(again, value, "{written:?}"),
            Err(error) => panic!("{error}: {written:?}"),
        }
    }
}

fn positive(value: &mut Value) {
    match value {
        Value::Number(number) if number.as_f64() == Some(0.0) => *value = 0.into(),
        Value::Array(items) => items.iter_mut().for_each(positive),
        Value::Object(entries) => entries.values_mut().for_each(positive),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

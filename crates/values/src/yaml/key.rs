//! Keys of mappings, which JSON has as texts only.

use serde_json::Value;

use super::error::{Position, YamlError, YamlProblem};
use super::scalar::Scalar;

/// Returns a scalar as a key.
pub(super) fn scalar_key(scalar: &Scalar, text: String, position: Position) -> Result<String, YamlError> {
    match scalar {
        Scalar::Text | Scalar::Timestamp => Ok(text),
        Scalar::Bool(flag) => Ok(flag.to_string()),
        Scalar::Int(number) => Ok(number.to_string()),
        Scalar::Float(number) => Ok(float_key(*number)),
        Scalar::Null => Err(YamlProblem::Key { found: "null".to_owned(), go: None }.at(position)),
        Scalar::Uint(number) => Err(YamlProblem::Key { found: number.to_string(), go: None }.at(position)),
    }
}

/// Returns a floating-point number as a key; Go keeps 32 bits of it.
fn float_key(number: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "the reference truncates, too")]
    let number = number as f32;
    if number.is_nan() {
        ".nan".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { ".inf" } else { "-.inf" }.to_owned()
    } else {
        golang::strconv::format_float32(number)
    }
}

/// Returns an aliased node as a key.
pub(super) fn value_key(value: &Value, position: Position) -> Result<String, YamlError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Number(number) => Ok(match number.as_f64() {
            Some(float) if number.is_f64() => float_key(float),
            _ => number.to_string(),
        }),
        Value::Null | Value::Array(_) | Value::Object(_) => Err(key_error(value, position)),
    }
}

pub(super) fn key_error(value: &Value, position: Position) -> YamlError {
    let found = match value {
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
        Value::Null => "null",
        Value::Bool(_) | Value::Number(_) | Value::String(_) => "this scalar",
    };
    let go = matches!(value, Value::Array(_) | Value::Object(_)).then(|| go_syntax(value));
    YamlProblem::Key { found: found.to_owned(), go }.at(position)
}

/// Returns a value as Go's syntax writes it.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => format!("{text:?}"),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let mut entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{key:?}:{}", go_syntax(value))).collect();
            entries.sort();
            format!("map[interface {{}}]interface {{}}{{{}}}", entries.join(", "))
        }
    }
}

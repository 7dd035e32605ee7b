//! The words for the types of JSON.

use serde_json::Value;

/// Returns the word that JSON Schema has for the type of a value: `null`, `boolean`, `number`, `string`, `array` or
/// `object`. Messages of schemas, and those of the reference operator about configurations of hooks, have the same.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

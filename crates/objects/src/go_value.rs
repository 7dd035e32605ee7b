//! JSON values as Go's decoder, its printer and its source name them in messages.

use serde_json::Value;

/// Returns what Go's decoder calls the value.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns what Go calls the type of a value.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Returns a value as Go source would have it.
pub fn source(value: &Value) -> String {
    let parts = match value {
        Value::Null => return "interface {}(nil)".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => return value.to_string(),
        Value::Array(items) => items.iter().map(source).collect::<Vec<_>>(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name:?}:{}", source(value))).collect()
        }
    };
    format!("{}{{{}}}", type_name(value), parts.join(", "))
}

/// Returns a value as Go prints it: `map[a:1 b:[x y]]`.
pub fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(printed).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}:{}", printed(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_printed_as_maps_and_slices() {
        let value = json!({"spec": {"b": [1, "x y", null, true], "a": {}}});
        assert_eq!(printed(&value), "map[spec:map[a:map[] b:[1 x y <nil> true]]]");
    }
}

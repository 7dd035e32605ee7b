//! Tests of schemas, most of them with what Helm says of a chart.

use serde_json::{Map, json};

use super::*;

/// Returns the lines that Helm would print, in a fixed order: blocks are sorted,
/// and the lines in them, since Helm's come in random order.
///
/// A second finding is asked for and left out, since a group alone would not be shown as one.
fn check(schema: &Value, values: &Value) -> Vec<String> {
    let mut schema = schema.clone();
    schema["required"] = json!(["second"]);
    let Err(found) =
        validate("file:///values.schema.json", schema.to_string().as_bytes(), values, Limits::WIDE)
    else {
        return Vec::new();
    };
    let others = found.lines().filter(|line| *line != "- at '': missing property 'second'");
    let mut lines: Vec<String> = others.map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Returns a value with its numbers as charts have them.
fn floats(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().unwrap()),
        Value::Array(items) => items.into_iter().map(floats).collect(),
        Value::Object(entries) => entries.into_iter().map(|(key, value)| (key, floats(value))).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::String(_)) => other,
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one long table")]
fn findings_read_as_helms() {
    let property = |schema: Value, value: Value| {
        let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"r": {"type": "object", "required": ["x", "y"], "properties": {"a": {"type": "string"}}}},
            "properties": {"k": schema}});
        check(&schema, &floats(json!({ "k": value }))).join("\n")
    };
    for (schema, value, expected) in [
        (json!({"maximum": 65535}), json!(70000), "- at '/k': maximum: got 70,000, want 65,535"),
        (
            json!({"maximum": 65535, "multipleOf": 11}),
            json!(70000),
            "  - at '/k': maximum: got 70,000, want 65,535\n  - at '/k': multipleOf: got 70,000, want 11\n- at '/k': validation failed",
        ),
        (json!({"exclusiveMaximum": 1.5}), json!(1.5), "- at '/k': exclusiveMaximum: got 1.5, want 1.5"),
        (
            json!({"exclusiveMinimum": 99_999_999}),
            json!(12_345_678),
            "- at '/k': exclusiveMinimum: got 1.2345678×10⁰⁷, want 9.9999999×10⁰⁷",
        ),
        (json!({"minimum": 0.0001}), json!(0.00001), "- at '/k': minimum: got 1×10⁻⁰⁵, want 0.0001"),
        (json!({"maxItems": 2}), json!([1, 2, 3]), "- at '/k': maxItems: got 3, want 2"),
        (
            json!({"pattern": "^'x\"\\d$"}),
            json!("it's \"q\""),
            r#"- at '/k': 'it\'s "q"' does not match pattern '^\'x"\\d$'"#,
        ),
        (
            json!({"allOf": [{"type": "string"}, {"minimum": 6}]}),
            json!(5),
            "  - at '/k': got number, want string\n  - at '/k': minimum: got 5, want 6\n- at '/k': 'allOf' failed",
        ),
        (
            json!({"$ref": "#/definitions/r"}),
            json!({"a": 1, "b": 2}),
            "  - at '/k': missing properties 'x', 'y'\n  - at '/k/a': got number, want string\n- at '/k': validation failed",
        ),
        (json!({"$ref": "#/definitions/r"}), json!({}), "- at '/k': missing properties 'x', 'y'"),
        (json!({"properties": {"x": false}}), json!({"x": 1}), "- at '/k/x': false schema"),
        (json!({"not": {"type": "string"}}), json!("x"), "- at '/k': 'not' failed"),
        (
            json!({"oneOf": [{"type": "number"}, {"minimum": 1}, {"type": "integer"}]}),
            json!(5),
            "- at '/k': 'oneOf' failed, subschemas 0, 1 matched",
        ),
        (json!({"format": "email"}), json!("nope"), "- at '/k': 'nope' is not valid email: missing @"),
        (
            json!({"dependencies": {"a": ["b", "c"]}}),
            json!({"a": 1}),
            "- at '/k': properties 'b', 'c' required, if 'a' exists",
        ),
        (
            json!({"dependencies": {"a": {"required": ["q"]}}}),
            json!({"a": 1}),
            "- at '/k': missing property 'q'",
        ),
        (
            json!({"additionalProperties": {"type": "string"}}),
            json!({"z": 1}),
            "- at '/k/z': got number, want string",
        ),
        (
            json!({"type": ["string", "object", "null"], "enum": ["x"]}),
            json!([]),
            "- at '/k': got array, want null or string or object",
        ),
        (
            json!({"enum": [1, "two", null, true, 1_000_000, 1.5]}),
            json!(5),
            "- at '/k': value must be one of 1, 'two', <nil>, true, 1000000, 1.5",
        ),
        (json!({"const": {"a": 1}}), json!(3), "- at '/k': 'const' failed"),
        (
            json!({"items": [{"type": "string"}, {"type": "string"}]}),
            json!(["a", 1]),
            "- at '/k/1': got number, want string",
        ),
        (
            json!({"items": [{}], "additionalItems": false}),
            json!([1, 2, 3]),
            "- at '/k': last 2 additionalItem(s) not allowed",
        ),
    ] {
        assert_eq!(property(schema.clone(), value), expected, "{schema}");
    }
}

#[test]
fn newer_drafts_read_as_helms() {
    let property = |schema: Value, value: Value| {
        let schema =
            json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "properties": {"k": schema}});
        check(&schema, &floats(json!({ "k": value }))).join("\n")
    };
    for (schema, value, expected) in [
        (
            json!({"anyOf": [{"minimum": 1e9, "maximum": 2}, {"allOf": [{"type": "string"}]}]}),
            json!(12_345_678),
            "    - at '/k': got number, want string\n    - at '/k': maximum: got 1.2345678×10⁰⁷, want 2\n    - at '/k': minimum: got 1.2345678×10⁰⁷, want 1×10⁰⁹\n  - at '/k': 'allOf' failed\n  - at '/k': validation failed\n- at '/k': 'anyOf' failed",
        ),
        (
            json!({"dependentSchemas": {"a": {"required": ["k", "l"], "maxProperties": 0}}}),
            json!({"a": 1}),
            "  - at '/k': maxProperties: got 1, want 0\n  - at '/k': missing properties 'k', 'l'\n- at '/k': validation failed",
        ),
        (
            json!({"if": {"minimum": 1}, "then": {"maximum": 2, "type": "string"}}),
            json!(70000),
            "- at '/k': got number, want string",
        ),
        (json!({"unevaluatedProperties": false}), json!({"z": 1}), "- at '/k/z': false schema"),
        (
            json!({"unevaluatedItems": false, "items": [{}]}),
            json!([1, 2, 3]),
            "  - at '/k/1': false schema\n  - at '/k/2': false schema\n- at '/k': validation failed",
        ),
        (
            json!({"dependentRequired": {"a": ["b"]}}),
            json!({"a": 1}),
            "- at '/k': properties 'b' required, if 'a' exists",
        ),
    ] {
        assert_eq!(property(schema.clone(), value), expected, "{schema}");
    }
}

#[test]
fn a_schema_that_is_no_json_is_told_as_helm_does() {
    assert_eq!(
        validate("file:///a.json", b"{\"type\": ", &json!({}), Limits::WIDE),
        Err("unexpected EOF".to_owned())
    );
}

/// Checks what nobody may wait for long.
fn narrow(schema: &Value, values: &Value) -> Result<(), String> {
    validate("file:///a.json", schema.to_string().as_bytes(), values, Limits::NARROW)
}

#[test]
fn references_that_multiply_without_end_are_given_up() {
    let level = |n: usize| {
        let next = json!({"$ref": format!("#/definitions/d{}", n + 1)});
        (format!("d{n}"), json!({"allOf": [next, next], "not": {"not": next}}))
    };
    let mut definitions: Map<String, Value> = (0..40).map(level).collect();
    definitions.insert("d40".to_owned(), json!({}));
    let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": definitions,
        "allOf": [{"$ref": "#/definitions/d0"}]});
    let found = narrow(&schema, &json!({})).unwrap_err();
    assert!(found.contains("too many steps") && found.len() < 10_000, "{found}");
    let turned = json!({"not": schema["allOf"][0], "definitions": schema["definitions"],
        "$schema": schema["$schema"]});
    assert!(narrow(&turned, &json!({})).is_err(), "what was not looked at may not count as wrong");
}

#[test]
fn deep_schemas_and_values_take_little_of_the_stack() {
    let nested = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({"items": inner}));
    let deep = (0..500).fold(json!(1), |inner, _| json!([inner]));
    let found = narrow(&json!({"items": {"$ref": "#"}}), &deep).unwrap_err();
    assert!(found.contains("refers to itself too often"), "{found}");
    assert_eq!(narrow(&nested(60), &json!([[[]]])), Ok(()));
    assert!(narrow(&nested(2_000), &json!([])).is_err(), "no JSON is as deep");
}

//! Schemas that can be seen to fit the schema of schemas, as almost all of them in charts do.

use serde_json::{Map, Value};

use super::draft::Draft;

/// How deeply schemas lie in one another that are looked at here.
const MAX_DEPTH: usize = 64;

/// How many names or texts are compared with each other.
const MAX_DISTINCT: usize = 64;

/// The types of JSON by their names in schemas.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Reports whether a schema surely fits the schema of schemas of every draft. It does if all its keywords are known here and
/// have values of the usual kind; of any other, the check says what it is.
///
/// To make the schema of schemas ready and to check against it takes longer than to render a small chart.
pub(super) fn is_ordinary(schema: &Value) -> bool {
    let Value::Object(keywords) = schema else { return false };
    match keywords.get("$schema") {
        None => is_within(keywords, 0),
        Some(Value::String(draft)) => {
            draft.starts_with("http") && Draft::named(draft).is_some() && is_within(keywords, 0)
        }
        Some(_) => false,
    }
}

fn is_within(keywords: &Map<String, Value>, depth: usize) -> bool {
    depth <= MAX_DEPTH
        && keywords.iter().all(|(keyword, value)| match keyword.as_str() {
            // It names a draft, and only that of all.
            "$schema" => depth == 0,
            "title" | "description" | "format" => value.is_string(),
            "type" => {
                is_type(value)
                    || value.as_array().is_some_and(|types| are_distinct(types) && types.iter().all(is_type))
            }
            "properties" | "definitions" | "$defs" => {
                value.as_object().is_some_and(|below| below.values().all(|schema| is_below(schema, depth)))
            }
            "allOf" | "anyOf" | "oneOf" => value
                .as_array()
                .is_some_and(|below| !below.is_empty() && below.iter().all(|schema| is_below(schema, depth))),
            "items" | "not" | "if" | "then" | "else" => is_below(value, depth),
            "$ref" => value.as_str().is_some_and(is_plain_pointer),
            "additionalProperties" => value.is_boolean() || is_below(value, depth),
            "required" | "enum" => value.as_array().is_some_and(|items| are_distinct(items)),
            "minimum" | "maximum" => value.is_number(),
            "minLength" | "maxLength" | "minItems" | "maxItems" => value.is_u64(),
            "uniqueItems" => value.is_boolean(),
            "examples" => value.is_array(),
            // A value to compare with. The others say something to people and programs that show forms. All may be anything.
            "const" | "default" | "example" | "form" | "hidden" | "render" | "sliderMax" | "sliderMin"
            | "sliderUnit" => true,
            _ => false,
        })
}

fn is_below(schema: &Value, depth: usize) -> bool {
    schema.as_object().is_some_and(|keywords| is_within(keywords, depth + 1))
}

fn is_type(name: &Value) -> bool {
    name.as_str().is_some_and(|name| TYPES.contains(&name))
}

/// Reports whether a reference leads to a place in the same document, in letters that need no escapes.
fn is_plain_pointer(reference: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-' | b'.' | b'$');
    reference.strip_prefix("#/").is_some_and(|pointer| pointer.bytes().all(is_plain))
}

/// Reports whether these are texts, at least one and none twice.
fn are_distinct(items: &[Value]) -> bool {
    !items.is_empty()
        && items.len() <= MAX_DISTINCT
        && items
            .iter()
            .enumerate()
            .all(|(index, item)| item.is_string() && !items.iter().take(index).any(|before| before == item))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::super::draft::Draft;
    use super::super::evaluate::Evaluation;
    use super::super::metaschema;
    use super::is_ordinary;

    #[test]
    fn what_is_ordinary_fits_the_schema_of_schemas_of_each_draft() {
        let all = [
            json!({}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "title": "t", "description": "d", "default": [1]}),
            json!({"type": "object", "required": ["a", "b"], "additionalProperties": false, "form": true, "hidden": {"value": 1},
                "properties": {"a": {"type": "string", "enum": ["x", "y"], "minLength": 1, "maxLength": 9, "format": "uri"},
                    "b": {"type": "array", "items": {"type": "integer", "minimum": -1, "maximum": 2.5}, "minItems": 0, "maxItems": 3,
                        "uniqueItems": true}, "c": {"additionalProperties": {"render": "slider", "sliderMin": 1, "sliderMax": 9, "sliderUnit": "Gi"}}}}),
            json!({"definitions": {"a": {"type": ["string", "null"], "examples": [1]}}, "$defs": {"b": {"$ref": "#/definitions/a"}},
                "allOf": [{"not": {"const": {}}}], "anyOf": [{"$ref": "#/$defs/b-1.x_y", "example": 1}, {}],
                "oneOf": [{"if": {"type": ["array"]}, "then": {"items": {}}, "else": {"const": null}}]}),
        ];
        let resources = BTreeMap::new();
        for schema in all {
            assert!(is_ordinary(&schema), "{schema}");
            for draft in [Draft::Four, Draft::Six, Draft::Seven, Draft::Nineteen, Draft::Twenty] {
                let compiled = metaschema::of(draft).unwrap();
                assert!(
                    Evaluation::of_schema(compiled, &resources).run(&schema).is_ok(),
                    "{draft:?}: {schema}"
                );
            }
        }
    }

    #[test]
    fn whatever_may_be_wrong_is_checked() {
        for schema in [
            json!(true),
            json!({"$schema": "http://example.com/"}),
            json!({"$schema": "json-schema.org/schema"}),
            json!({"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}),
            json!({"properties": {"a": true}}),
            json!({"properties": []}),
            json!({"type": "objekt"}),
            json!({"type": ["object", "object"]}),
            json!({"type": ["objekt"]}),
            json!({"type": []}),
            json!({"allOf": []}),
            json!({"anyOf": [true]}),
            json!({"oneOf": {}}),
            json!({"not": true}),
            json!({"if": 1}),
            json!({"definitions": []}),
            json!({"$defs": {"a": 1}}),
            json!({"examples": 1}),
            json!({"title": 1}),
            json!({"items": [{}]}),
            json!({"items": {"type": 1}}),
            json!({"additionalProperties": {"type": 1}}),
            json!({"required": []}),
            json!({"required": ["a", "a"]}),
            json!({"required": true}),
            json!({"enum": [1]}),
            json!({"minimum": "1"}),
            json!({"minLength": -1}),
            json!({"minItems": 1.5}),
            json!({"uniqueItems": "yes"}),
            json!({"pattern": "("}),
            json!({"$ref": "a"}),
            json!({"$ref": "#/a b"}),
            json!({"$ref": 1}),
            json!({"$id": "a b"}),
            json!({"whatever": 1}),
        ] {
            assert!(!is_ordinary(&schema), "{schema}");
        }
    }
}

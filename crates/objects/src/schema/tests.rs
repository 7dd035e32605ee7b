//! Tests of structural schemas.
#![expect(clippy::needless_pass_by_value, reason = "tests read better so")]

use serde_json::json;

use super::*;

fn schema() -> Structural {
    Structural::of(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "required": ["need"], "properties": {
            "need": {"type": "string"},
            "s": {"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^a+$"},
            "lm": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer", "default": 7}}}},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "nul": {"type": "string", "nullable": true},
            "d": {"type": "string", "default": "def"},
            "dd": {"type": "object", "default": {}, "properties": {"x": {"type": "integer", "default": 5}}},
        }}}}),
    )
}

fn stored(spec: Value) -> (Value, Vec<String>) {
    let mut object = json!({"apiVersion": "x/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": spec});
    let schema = schema();
    let unknown = schema.prune(&mut object);
    schema.complete(&mut object);
    (object["spec"].clone(), unknown)
}

#[test]
fn unknown_fields_go_and_defaults_come() {
    let (spec, unknown) = stored(
        json!({"need": "x", "zz": 1, "any": {"a": {"b": 1}}, "lm": [{"k": "a", "q": 1}], "d": null, "nul": null, "s": null}),
    );
    assert_eq!(
        spec,
        json!({"need": "x", "any": {"a": {"b": 1}}, "lm": [{"k": "a", "v": 7}], "d": "def", "dd": {"x": 5}, "nul": null})
    );
    assert_eq!(unknown, ["spec.lm[0].q", "spec.zz"]);
}

#[test]
fn nesting_without_end_is_no_problem() {
    let mut value = json!({"need": "x"});
    for _ in 0..300 {
        value = json!({"any": value});
    }
    let _ = stored(value);
}

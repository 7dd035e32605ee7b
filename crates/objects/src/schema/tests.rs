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
    assert!(schema.complete(&mut object));
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

#[test]
fn defaults_of_custom_resources_that_multiply_end() {
    let large = json!({"type": "string", "default": "x".repeat(100_000)});
    let item = json!({"type": "object", "properties": {"text": large}});
    let with = |item: &Value| {
        let list = json!({"type": "array", "items": item});
        Structural::of(&json!({"type": "object", "properties": {"list": list}}))
    };
    // Of each item, and in place of it.
    let mut inside = json!({"list": vec![json!({}); 10_000]});
    assert!(!with(&item).complete(&mut inside));
    let mut instead = json!({"list": vec![Value::Null; 10_000]});
    assert!(!with(&large).complete(&mut instead));
    for object in [&inside, &instead] {
        assert!(crate::memory::estimate(object) < 20 << 20);
    }
    let mut few = json!({"list": vec![json!({}); 100]});
    assert!(with(&item).complete(&mut few));
    assert_eq!(few["list"][99]["text"].as_str().unwrap().len(), 100_000);
}

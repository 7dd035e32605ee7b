//! Structural schemas of custom resources: what is kept, what is filled in, and what is wrong.

mod format;
mod lists;
mod node;
mod prune;
mod shape;
mod validate;

use std::sync::Arc;

use crate::types::Shape;
use serde_json::{Map, Value};

use node::Node;

/// One thing that is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The machine-readable reason, for example `FieldValueRequired`.
    pub reason: &'static str,
    /// The path of the field, for example `spec.containers[0].name`.
    pub field: String,
    /// The text for people, for example `Required value`.
    pub message: String,
}

/// The schema of one version of a custom resource, read once.
#[derive(Clone, Debug)]
pub struct Structural {
    root: Arc<Node>,
}

impl Structural {
    /// Reads `openAPIV3Schema`.
    pub fn of(schema: &Value) -> Structural {
        Structural { root: Arc::new(Node::parse(schema)) }
    }

    /// Takes out what the schema does not know; returns the paths of it, sorted.
    ///
    /// `apiVersion`, `kind` and `metadata` of the object stay.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = Vec::new();
        prune::object(object, &self.root, &mut unknown);
        unknown
    }

    /// Fills in defaults, also in place of nulls that may not be.
    pub fn complete(&self, object: &mut Value) {
        prune::complete(object, &self.root);
    }

    /// Returns what is wrong with a value at `path`; the empty path is the object itself.
    pub fn validate(&self, value: &Value, path: &str) -> Vec<FieldError> {
        let mut errors = validate::validate(value, &self.root, path);
        if value.is_object() {
            lists::duplicates(value, &self.root, path, &mut errors);
        }
        errors
    }

    /// Returns the type of the whole object, for managed fields.
    pub fn shape(&self) -> Shape {
        shape::of_root(&self.root)
    }

    /// Returns the schema as published: with what every object has.
    pub fn published(schema: &Value) -> Value {
        shape::published(schema)
    }
}

/// Returns the fields of an object, none for other values.
fn fields(value: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&EMPTY)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::needless_pass_by_value, reason = "tests read better so")]
    use super::*;
    use serde_json::json;

    fn schema() -> Structural {
        Structural::of(
            &json!({"type": "object", "properties": {"spec": {"type": "object", "required": ["need"], "properties": {
                "need": {"type": "string"},
                "s": {"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^a+$"},
                "i": {"type": "integer", "minimum": 1, "maximum": 3},
                "e": {"type": "string", "enum": ["x", "y"]},
                "l": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
                "m": {"type": "object", "additionalProperties": {"type": "string"}},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "lm": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer", "default": 7}}}},
                "ios": {"x-kubernetes-int-or-string": true},
                "any": {"x-kubernetes-preserve-unknown-fields": true},
                "nul": {"type": "string", "nullable": true},
                "d": {"type": "string", "default": "def"},
                "dd": {"type": "object", "default": {}, "properties": {"x": {"type": "integer", "default": 5}}},
                "dt": {"type": "string", "format": "date-time"},
                "one": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                "emb": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
            }}}}),
        )
    }

    fn stored(spec: Value) -> (Value, Vec<String>) {
        let mut object =
            json!({"apiVersion": "x/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": spec});
        let schema = schema();
        let unknown = schema.prune(&mut object);
        schema.complete(&mut object);
        (object["spec"].clone(), unknown)
    }

    fn wrong(key: &str, value: Value) -> Vec<String> {
        let mut spec = json!({"need": "x"});
        spec.as_object_mut().unwrap().insert(key.to_owned(), value);
        let object = json!({"apiVersion": "x/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": spec});
        let errors = schema().validate(&object, "");
        errors.into_iter().map(|error| format!("{}: {}", error.field, error.message)).collect()
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
    fn values_that_do_not_fit_are_told() {
        for (key, value, expected) in [
            (
                "s",
                json!(1),
                "spec.s: Invalid value: \"integer\": spec.s in body must be of type string: \"integer\"",
            ),
            ("s", json!("b"), "spec.s: Invalid value: \"b\": spec.s in body should be at least 2 chars long"),
            ("s", json!("aaaa"), "spec.s: Too long: may not be more than 3 bytes"),
            ("i", json!(0), "spec.i: Invalid value: 0: spec.i in body should be greater than or equal to 1"),
            (
                "i",
                json!(1.5),
                "spec.i: Invalid value: \"number\": spec.i in body must be of type integer: \"number\"",
            ),
            ("e", json!("z"), "spec.e: Unsupported value: \"z\": supported values: \"x\", \"y\""),
            ("l", json!([]), "spec.l: Invalid value: 0: spec.l in body should have at least 1 items"),
            ("l", json!(["a", "b", "c"]), "spec.l: Too many: 3: must have at most 2 items"),
            (
                "m",
                json!({"a": 1}),
                "spec.m.a: Invalid value: \"integer\": spec.m.a in body must be of type string: \"integer\"",
            ),
            ("set", json!(["a", "a"]), "spec.set[1]: Duplicate value: \"a\""),
            ("lm", json!([{"k": "a"}, {"k": "a"}]), "spec.lm[1]: Duplicate value: {\"k\":\"a\"}"),
            ("lm", json!([{}]), "spec.lm[0].k: Required value"),
            (
                "ios",
                json!(true),
                "spec.ios: Invalid value: \"boolean\": spec.ios in body must be of type integer,string: \"boolean\"",
            ),
            (
                "dt",
                json!("x"),
                "spec.dt: Invalid value: \"x\": spec.dt in body must be of type date-time: \"x\"",
            ),
            (
                "need",
                json!(null),
                "spec.need: Invalid value: \"null\": spec.need in body must be of type string: \"null\"",
            ),
        ] {
            assert_eq!(wrong(key, value.clone()), [expected], "{key} {value}");
        }
        assert_eq!(
            wrong("one", json!({})),
            [
                "<nil>: Invalid value: \"\": \"spec.one\" must validate one and only one schema (oneOf). Found none valid",
                "spec.one.a: Required value"
            ]
        );
        assert_eq!(
            wrong("emb", json!({})),
            ["spec.emb.apiVersion: Required value", "spec.emb.kind: Required value"]
        );
        assert_eq!(wrong("ios", json!("5")), Vec::<String>::new());
    }

    #[test]
    fn nesting_without_end_is_no_problem() {
        let mut value = json!({"need": "x"});
        for _ in 0..300 {
            value = json!({"any": value});
        }
        let _ = stored(value);
    }
}

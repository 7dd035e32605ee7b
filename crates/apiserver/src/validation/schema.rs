//! Validation of custom objects with their schema, in the words of the real server.

use objects::schema::{Finding, Limit, Step, Structural, Words};
use serde_json::Value;

use super::errors::{FieldError, at, item};

/// Returns what is wrong with a value; `field` is where it is in its object, empty for the object itself.
pub fn validate(schema: &Structural, value: &Value, field: &str) -> Vec<FieldError> {
    schema.validate(value, &FieldErrors { within: field })
}

/// Returns what is wrong with a new version of an object. What has not changed may be wrong.
pub fn validate_change(schema: &Structural, change: (&Value, &Value), only_status: bool) -> Vec<FieldError> {
    let mut errors = if only_status {
        schema.validate_status_change(change, &FieldErrors { within: "status" })
    } else {
        schema.validate_change(change, &FieldErrors { within: "" })
    };
    errors.extend(schema.new_duplicates(change, &FieldErrors { within: "" }));
    errors
}

struct FieldErrors<'a> {
    /// Where the value is in its object. Texts do not tell it.
    within: &'a str,
}

impl Words for FieldErrors<'_> {
    type Message = FieldError;

    fn report(&self, errors: &mut Vec<FieldError>, path: &[Step<'_>], value: &Value, finding: &Finding<'_>) {
        let path = path.iter().fold(String::new(), |path, step| match step {
            Step::Property(name) => at(&path, name),
            Step::Item(index) | Step::Position(index) => item(&path, *index),
        });
        let mut error = worded(path, value, finding);
        error.field = match (self.within, &*error.field) {
            ("", "" | UNPLACED) => UNPLACED.to_owned(),
            (within, "" | UNPLACED) => within.to_owned(),
            (within, field) => at(within, field),
        };
        errors.push(error);
    }
}

/// What stands for the field of an error that is about the whole value.
const UNPLACED: &str = "<nil>";

fn worded(path: String, value: &Value, finding: &Finding<'_>) -> FieldError {
    let invalid = |shown: &str, text: &str| format!("Invalid value: {shown}: {path} in body {text}");
    let shown = || value.to_string();
    let (reason, message) = match finding {
        Finding::Type(expected) => ("FieldValueTypeInvalid", wrong_type(&path, type_of(value), expected)),
        Finding::Format(format) => {
            let text = value.as_str().unwrap_or_default();
            ("FieldValueTypeInvalid", wrong_type(&path, text, format))
        }
        Finding::Enum(choices) => {
            let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let supported: Vec<String> = choices.iter().map(|value| format!("{:?}", plain(value))).collect();
            let supported = supported.join(", ");
            ("FieldValueNotSupported", format!("Unsupported value: {value}: supported values: {supported}"))
        }
        Finding::AnyOf => return unplaced(&path, "must validate at least one schema (anyOf)"),
        Finding::OneOf(0) => {
            return unplaced(&path, "must validate one and only one schema (oneOf). Found none valid");
        }
        Finding::OneOf(count) => {
            let text =
                format!("must validate one and only one schema (oneOf). Found {count} valid alternatives");
            return unplaced(&path, &text);
        }
        Finding::AllOf { none_fits } => {
            let none = if *none_fits { ". None validated" } else { "" };
            return unplaced(&path, &format!("must validate all the schemas (allOf){none}"));
        }
        Finding::Not => return unplaced(&path, "must not validate the schema (not)"),
        Finding::MinLength(least) => {
            let shown = golang::strconv::quote(value.as_str().unwrap_or_default().as_bytes());
            ("FieldValueInvalid", invalid(&shown, &format!("should be at least {least} chars long")))
        }
        Finding::MaxLength(most) => {
            let bytes = if *most == 1 { "byte" } else { "bytes" };
            ("FieldValueTooLong", format!("Too long: may not be more than {most} {bytes}"))
        }
        Finding::Pattern(pattern) => {
            let shown = golang::strconv::quote(value.as_str().unwrap_or_default().as_bytes());
            ("FieldValueInvalid", invalid(&shown, &format!("should match '{pattern}'")))
        }
        Finding::MultipleOf(factor) => {
            ("FieldValueInvalid", invalid(&shown(), &format!("should be a multiple of {factor}")))
        }
        Finding::Minimum(limit) => ("FieldValueInvalid", invalid(&shown(), &bound("greater than", *limit))),
        Finding::Maximum(limit) => ("FieldValueInvalid", invalid(&shown(), &bound("less than", *limit))),
        Finding::MinItems(least) | Finding::MinProperties(least) => {
            let (count, what) = size(value);
            let text = format!("should have at least {least} {what}");
            ("FieldValueInvalid", invalid(&count.to_string(), &text))
        }
        Finding::MaxItems(most) | Finding::MaxProperties(most) => {
            let (count, _) = size(value);
            let items = if *most == 1 { "item" } else { "items" };
            ("FieldValueTooMany", format!("Too many: {count}: must have at most {most} {items}"))
        }
        Finding::Required => ("FieldValueRequired", "Required value".to_owned()),
        Finding::Duplicate(identity) => {
            let shown = identity.as_str().map_or_else(|| identity.to_string(), |text| format!("{text:?}"));
            ("FieldValueDuplicate", format!("Duplicate value: {shown}"))
        }
        // Structural schemas do not have the keywords that these break.
        Finding::UniqueItems
        | Finding::AdditionalItems
        | Finding::Forbidden
        | Finding::Dependency(_)
        | Finding::TooDeep
        | Finding::TooManySteps => ("FieldValueInvalid", invalid(&shown(), "breaks its schema")),
    };
    FieldError { reason, field: path, message }
}

fn wrong_type(path: &str, shown: &str, expected: &str) -> String {
    format!("Invalid value: {shown:?}: {path} in body must be of type {expected}: {shown:?}")
}

/// Returns an error that names the place in its text only.
fn unplaced(path: &str, text: &str) -> FieldError {
    FieldError {
        reason: "FieldValueInvalid",
        field: UNPLACED.to_owned(),
        message: format!("Invalid value: \"\": \"{path}\" {text}"),
    }
}

fn bound(relation: &str, limit: Limit) -> String {
    let or_equal = if limit.exclusive { "" } else { " or equal to" };
    format!("should be {relation}{or_equal} {}", limit.value)
}

/// Returns how many parts a value has, and what they are called.
fn size(value: &Value) -> (usize, &'static str) {
    match value {
        Value::Array(items) => (items.len(), "items"),
        value => (value.as_object().map_or(0, serde_json::Map::len), "properties"),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
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
                "choice": {"type": "string", "nullable": true, "enum": ["x"]},
                "d": {"type": "string", "default": "def"},
                "dd": {"type": "object", "default": {}, "properties": {"x": {"type": "integer", "default": 5}}},
                "dt": {"type": "string", "format": "date-time"},
                "one": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                "emb": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
            }}}}),
        )
    }

    fn wrong(key: &str, value: Value) -> Vec<String> {
        let mut spec = json!({"need": "x"});
        spec.as_object_mut().unwrap().insert(key.to_owned(), value);
        let object = json!({"apiVersion": "x/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": spec});
        let errors = validate(&schema(), &object, "");
        errors.into_iter().map(|error| format!("{}: {}", error.field, error.message)).collect()
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
            // What may be null has to be among the choices all the same.
            ("choice", json!(null), "spec.choice: Unsupported value: null: supported values: \"x\""),
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
}

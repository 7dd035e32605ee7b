//! Tests of schemas, against answers of go-openapi among others.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::json;

use super::*;

/// Returns the message without what go-openapi does not say, or we do not.
fn comparable(message: &str) -> String {
    let message = message.split(" (item ").next().unwrap_or_default();
    let types = ["null", "boolean", "number", "string", "array", "object"];
    match message.rsplit_once(": \"") {
        // The value of a text with a wrong format is not repeated by us.
        Some((head, found)) if !types.contains(&found.trim_end_matches('"')) => head.to_owned(),
        _ => message.to_owned(),
    }
}

#[test]
fn messages_are_those_of_go_openapi() {
    let cases: Value = serde_json::from_str(include_str!("../../tests/data/schema_truth.json")).unwrap();
    let mut wrong = Vec::new();
    for case in cases.as_array().unwrap() {
        let mut schema = case["schema"].clone();
        golang::json::normalize(&mut schema);
        let compiled = Schema::compile(&schema);
        if case["error"] == json!(true) {
            assert!(compiled.is_err(), "{schema}");
            continue;
        }
        let mut data = case["data"].clone();
        golang::json::normalize(&mut data);
        let found = messages::violations(&compiled.unwrap(), "global", &data);
        let found: BTreeSet<String> = found.iter().map(|message| comparable(message)).collect();
        let expected = case["errors"].as_array().unwrap().iter();
        let expected: BTreeSet<String> =
            expected.map(|message| comparable(message.as_str().unwrap())).collect();
        if found != expected {
            wrong.push(format!("{schema} {data}\n  found {found:?}\n  instead of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn schemas(config: &str, values: &str) -> Schemas {
    Schemas::compile(Some(("openapi/config-values.yaml", config)), Some(("openapi/values.yaml", values)))
        .unwrap()
}

fn messages(result: Result<(), Violations>) -> Vec<String> {
    result.err().map(|violations| violations.messages).unwrap_or_default()
}

#[test]
fn several_violations_are_listed_like_a_multierror() {
    let schemas = schemas(
        "{type: object, required: [project], properties: {project: {type: string}, x: {type: string}}}",
        "",
    );
    let error = schemas.validate_config("global", &json!({"x": 1}), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "2 errors occurred:\n\t* global.x in body must be of type string: \"number\"\n\t* global.project in body is required\n\n"
    );
    assert_eq!(error.messages().len(), 2);
}

#[test]
fn a_missing_or_empty_schema_accepts_everything() {
    for schemas in [Schemas::default(), schemas("", "---\n")] {
        assert_eq!(schemas.validate_config("m", &json!({"a": 1}), None), Ok(()));
        assert_eq!(schemas.validate_values("m", &json!([]), None), Ok(()));
        assert!(!schemas.has_config() && !schemas.has_values());
    }
}

#[test]
fn a_section_that_is_not_a_map_breaks_every_schema() {
    let schemas = schemas("{}", "{}");
    let found = messages(schemas.validate_config("m", &json!([1]), None));
    assert_eq!(found, ["m in body must be of type object: \"array\""]);
}

#[test]
fn unknown_properties_are_forbidden_unless_the_schema_speaks_about_them() {
    let config = "
type: object
properties:
  closed: {type: object, properties: {a: {type: object, properties: {b: {}}}}}
  open: {type: object, additionalProperties: true, properties: {a: {type: object, properties: {b: {}}}}}
  list: {type: array, items: {type: object, properties: {b: {}}}}
  combined: {allOf: [{type: object, properties: {b: {}}}], additionalProperties: true}
";
    let schemas = schemas(config, "");
    for (section, expected) in [
        (json!({"x": 1}), vec!["m.x in body is a forbidden property"]),
        (json!({"closed": {"x": 1}}), vec!["m.closed.x in body is a forbidden property"]),
        (json!({"closed": {"a": {"x": 1}}}), vec!["m.closed.a.x in body is a forbidden property"]),
        (json!({"open": {"x": 1, "a": {"x": 1}}}), vec![]),
        (json!({"list": [{"x": 1}]}), vec!["m.list.x in body is a forbidden property (item 0)"]),
        (json!({"combined": {"x": 1}}), vec![]),
    ] {
        assert_eq!(messages(schemas.validate_config("m", &section, None)), expected, "{section}");
    }
}

#[test]
fn an_open_root_leaves_silent_properties_closed() {
    let schemas = schemas("{type: object, additionalProperties: true, properties: {a: {type: object}}}", "");
    let found = messages(schemas.validate_config("m", &json!({"x": 1, "a": {"y": 1}}), None));
    assert_eq!(found, ["m.a.y in body is a forbidden property"]);
}

#[test]
fn the_values_schema_extends_the_config_schema() {
    let config =
        "{type: object, required: [a], properties: {a: {type: string}, b: {type: string, default: x}}}";
    let values = "
x-extend: {schema: config-values.yaml}
type: object
required: [c]
properties:
  b: {type: integer}
  c: {type: string}
";
    let schemas_extended = schemas(config, values);
    let found = messages(schemas_extended.validate_values("m", &json!({"a": 1, "b": 1}), None));
    assert_eq!(found, ["m.a in body must be of type string: \"number\"", "m.c in body is required"]);
    let apart = schemas(config, "{type: object, properties: {c: {type: string}}}");
    let found = messages(apart.validate_values("m", &json!({"a": "x"}), None));
    assert_eq!(found, ["m.a in body is a forbidden property"]);
}

#[test]
fn what_is_required_for_helm_is_required_for_helm_only() {
    let values = "
type: object
x-required-for-helm: [internal]
properties:
  internal:
    type: object
    x-required-for-helm: cert
    properties: {cert: {type: string}}
";
    let schemas = schemas("", values);
    assert_eq!(schemas.validate_values("m", &json!({}), None), Ok(()));
    assert_eq!(messages(schemas.validate_helm("m", &json!({}))), ["m.internal in body is required"]);
    let found = messages(schemas.validate_helm("m", &json!({"internal": {}})));
    assert_eq!(found, ["m.internal.cert in body is required"]);
    assert_eq!(schemas.validate_helm("m", &json!({"internal": {"cert": "x"}})), Ok(()));
}

#[test]
fn defaults_fill_missing_properties_and_items_of_lists() {
    let config = "
type: object
properties:
  whole: {type: object, default: {a: 1}, properties: {a: {type: integer}, b: {type: integer, default: 2}}}
  parent: {type: object, properties: {child: {type: string, default: x}}}
  list: {type: array, items: {type: object, properties: {count: {type: number, default: 1.0}}}}
  other: {allOf: [{properties: {y: {default: 1}}}]}
";
    let schemas = schemas(config, "");
    for (before, after) in [
        (json!({}), json!({"whole": {"a": 1, "b": 2}})),
        (json!({"whole": {}}), json!({"whole": {"b": 2}})),
        (json!({"whole": null}), json!({"whole": null})),
        (json!({"parent": {}}), json!({"parent": {"child": "x"}, "whole": {"a": 1, "b": 2}})),
        (
            json!({"list": [{}, {"count": 5}], "whole": 1}),
            json!({"list": [{"count": 1}, {"count": 5}], "whole": 1}),
        ),
        (json!({"other": {}, "whole": 1}), json!({"other": {}, "whole": 1})),
    ] {
        let mut section = before.clone();
        assert!(schemas.complete_config(&mut section));
        assert_eq!(section, after, "{before}");
    }
}

#[test]
fn references_and_merge_keys_are_followed() {
    let config = "
definitions:
  name: {type: string, minLength: 2}
  alias: {$ref: '#/definitions/name'}
  tree: {type: object, additionalProperties: false, properties: {left: {$ref: '#/definitions/tree'}, name: {$ref: '#/definitions/alias'}}}
x-base: &base {type: integer}
type: object
properties:
  tree: {$ref: '#/definitions/tree'}
  count: {<<: *base, minimum: 1}
";
    let schemas = schemas(config, "");
    let section = json!({"tree": {"left": {"left": {"left": {"name": "x", "z": 1}}}}, "count": 0});
    assert_eq!(
        messages(schemas.validate_config("m", &section, None)),
        [
            "m.count in body should be greater than or equal to 1",
            "m.tree.left.left.left.name in body should be at least 2 chars long",
            "m.tree.left.left.left.z in body is a forbidden property",
        ]
    );
}

#[test]
fn a_bad_schema_names_file_line_and_place() {
    for (text, expected) in [
        ("a: [", "line 2, column 1: did not find expected node content while parsing a flow node"),
        ("[]", "line 1, at \"\": a schema must be a map"),
        ("type: object\nproperties:\n  a: 5\n", "line 3, at \"/properties/a\": a schema must be a map"),
        (
            "properties:\n  a:\n    minimum: x\n",
            "line 3, at \"/properties/a/minimum\": minimum must be a number",
        ),
        (
            "properties:\n  a/b:\n    pattern: '('\n",
            "line 3, at \"/properties/a~1b/pattern\": pattern '(' is not a regular expression",
        ),
        (
            "properties:\n  a: {required: x}\n",
            "line 2, at \"/properties/a/required\": required must be a list",
        ),
        (
            "properties:\n  a: {$ref: '#/definitions/x'}\n",
            "line 2, at \"/properties/a\": reference \"#/definitions/x\" leads nowhere in this file",
        ),
        (
            "properties:\n  a: {$ref: 'other.yaml#/x'}\n",
            "line 2, at \"/properties/a\": reference \"other.yaml#/x\" leads nowhere in this file",
        ),
        ("multipleOf: 0", "line 1, at \"/multipleOf\": multipleOf must be positive"),
        ("minLength: -1", "line 1, at \"/minLength\": minLength must be a whole number, not below zero"),
    ] {
        let error = Schemas::compile(None, Some(("openapi/values.yaml", text))).unwrap_err();
        assert_eq!(error.to_string(), format!("openapi/values.yaml: {expected}"), "{text}");
    }
}

#[test]
fn references_that_multiply_or_circle_are_refused_or_end() {
    let mut bomb = String::from("definitions:\n  a0: {type: string}\n");
    for level in 1..40 {
        let before = level - 1;
        let reference = format!("{{$ref: '#/definitions/a{before}'}}");
        writeln!(bomb, "  a{level}: {{properties: {{x: {reference}, y: {reference}}}}}").unwrap();
    }
    bomb.push_str("properties: {a: {$ref: '#/definitions/a39'}}\n");
    let error = Schemas::compile(None, Some(("v", &bomb))).unwrap_err();
    assert!(error.to_string().contains("too large with its references"), "{error}");

    let circle = "definitions: {a: {$ref: '#/definitions/b'}, b: {$ref: '#/definitions/a'}}\nproperties: {a: {$ref: '#/definitions/a'}}";
    assert!(Schemas::compile(None, Some(("v", circle))).is_err());

    let endless =
        "definitions: {a: {allOf: [{$ref: '#/definitions/a'}]}}\nproperties: {a: {$ref: '#/definitions/a'}}";
    let schemas = Schemas::compile(None, Some(("v", endless))).unwrap();
    let found = messages(schemas.validate_values("m", &json!({"a": 1}), None));
    assert!(found[0].contains("nested too deeply"), "{found:?}");
}

#[test]
fn alternatives_and_defaults_that_multiply_end() {
    let alternatives = "
definitions: {a: {anyOf: [{$ref: '#/definitions/a'}, {not: {$ref: '#/definitions/a'}}, {$ref: '#/definitions/a'}]}}
properties: {a: {$ref: '#/definitions/a'}}
";
    let found = messages(schemas("", alternatives).validate_values("m", &json!({"a": 1}), None));
    assert!(found.iter().any(|message| message.contains("too many alternatives")), "{found:?}");

    let defaults = "
definitions:
  tree: {type: object, default: {}, properties: {left: {$ref: '#/definitions/tree'}, right: {$ref: '#/definitions/tree'}}}
properties: {a: {$ref: '#/definitions/tree'}}
";
    let schemas = schemas(defaults, "");
    let mut section = json!({});
    assert!(!schemas.complete_config(&mut section), "a tree of 2^16 maps has no room");
    assert!(section.pointer("/a/left/right").is_none() || objects::memory::estimate(&section) < 20 << 20);
}

#[test]
fn slip_05_messages_are_bounded_whatever_names_and_lists_users_write() {
    let config = "additionalProperties: {type: array, items: {anyOf: [{type: string}, {type: object}]}}";
    let long = "k".repeat(400_000);
    let found = messages(schemas(config, "").validate_config("m", &json!({ long: vec![1; 5_000] }), None));
    assert_eq!(found.len(), 1_000);
    assert!(
        found.iter().all(|message| message.len() < 1_000 && message.contains('\u{2026}')),
        "{}",
        found[0]
    );
}

#[test]
fn slip_25_multiples_are_those_of_the_reference() {
    for (factor, number, is_multiple) in [
        ("0.1", json!(0.3), true),
        ("0.01", json!(1.15), false),
        ("0.01", json!(4.35), false),
        ("3", json!(9), true),
        ("3", json!(10), false),
        ("1", json!(1.5), false),
        ("1", json!(100_000_000.5), false),
        // From half a billion on it does not look that far behind the point.
        ("1", json!(1_000_000_000.5), true),
        ("1", json!(-1.000_000_000_1), false),
        ("1", json!(1.000_000_000_1), true),
        ("1", json!(0.999_999_999_9), false),
        ("1", json!(-3), true),
        ("1", json!(9_007_199_254_740_993_u64), false),
        ("0.5", json!(0), true),
    ] {
        let schemas = schemas(&format!("properties: {{a: {{multipleOf: {factor}}}}}"), "");
        let valid = schemas.validate_config("m", &json!({ "a": number }), None).is_ok();
        assert_eq!(valid, is_multiple, "{number} of {factor}");
    }
}

#[test]
fn rules_come_before_the_schema_and_are_told_with_their_level() {
    let config = "
type: object
properties: {a: {type: integer}, b: {type: string}}
x-deckhouse-validations:
- {expression: self.a > 1, message: a is too small}
- {expression: self.a < 0, message: a is not negative}
";
    let all = schemas(config, "x-extend: {schema: config-values.yaml}");
    assert!(all.rule_problems().is_empty());
    let broken = json!({"a": 1, "b": 7});
    let said = |checked: Result<(), Violations>| checked.unwrap_err().to_string();
    for checked in [
        all.validate_config("m", &broken, None),
        all.validate_values("m", &broken, None),
        all.validate_helm("m", &broken),
    ] {
        assert_eq!(said(checked), "m: a is too small\nm: a is not negative");
    }
    let rest = said(schemas("properties: {b: {type: string}}", "").validate_config("m", &broken, None));
    assert!(rest.contains("error") && rest.contains("m.b in body"), "{rest}");
    let wrong = schemas("properties: {a: {x-deckhouse-validations: [{expression: self., message: m}]}}", "");
    let problem = wrong.rule_problems().join("");
    assert!(problem.contains("at \"/properties/a/x-deckhouse-validations\": rule 0"), "{problem}");
}

#[test]
fn values_are_not_part_of_messages() {
    let config = "properties: {a: {type: string, format: date, pattern: ^x$, enum: [q], maxLength: 1}}";
    let found = messages(schemas(config, "").validate_config("m", &json!({"a": "hunter2"}), None));
    assert!(!found.is_empty() && !found.join("").contains("hunter2"), "{found:?}");
}

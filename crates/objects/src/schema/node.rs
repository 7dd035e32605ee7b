//! A schema as a tree of rules.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

/// One schema.
#[expect(clippy::struct_excessive_bools, reason = "schemas have independent switches")]
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// `object`, `array`, …; empty for any.
    pub(super) kind: String,
    pub(super) properties: BTreeMap<String, Node>,
    pub(super) additional: Option<Box<Node>>,
    /// Whether keys without a property are allowed although nothing is known of them.
    pub(super) any_additional: bool,
    pub(super) items: Option<Box<Node>>,
    pub(super) nullable: bool,
    pub(super) preserves: bool,
    pub(super) int_or_string: bool,
    pub(super) embedded: bool,
    pub(super) default: Option<Value>,
    pub(super) list_type: String,
    pub(super) list_keys: Vec<String>,
    pub(super) atomic_map: bool,
    pub(super) rules: Rules,
}

/// What values must fulfil besides their type.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    pub(super) required: Vec<String>,
    pub(super) values: Option<Vec<Value>>,
    pub(super) format: String,
    pub(super) pattern: Option<(String, Regex)>,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) exclusive_minimum: bool,
    pub(super) exclusive_maximum: bool,
    pub(super) multiple_of: Option<f64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) all_of: Vec<Node>,
    pub(super) any_of: Vec<Node>,
    pub(super) one_of: Vec<Node>,
    pub(super) not: Option<Box<Node>>,
}

impl Node {
    pub(super) fn parse(schema: &Value) -> Node {
        let flag = |key: &str| schema.get(key) == Some(&Value::Bool(true));
        let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let node = |key: &str| schema.get(key).filter(|v| v.is_object()).map(|v| Box::new(Node::parse(v)));
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        Node {
            kind: text("type"),
            properties: properties.map(|(name, part)| (name.clone(), Node::parse(part))).collect(),
            additional: node("additionalProperties"),
            any_additional: flag("additionalProperties"),
            items: node("items"),
            nullable: flag("nullable"),
            preserves: flag("x-kubernetes-preserve-unknown-fields"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            embedded: flag("x-kubernetes-embedded-resource"),
            default: schema.get("default").filter(|value| !value.is_null()).cloned(),
            list_type: text("x-kubernetes-list-type"),
            list_keys: texts(schema, "x-kubernetes-list-map-keys"),
            atomic_map: text("x-kubernetes-map-type") == "atomic",
            rules: Rules::parse(schema),
        }
    }

    /// Tells whether nothing is known about the value.
    pub(super) fn is_any(&self) -> bool {
        self.kind.is_empty() && !self.int_or_string
    }

    /// Returns the schema of a key.
    pub(super) fn child(&self, key: &str) -> Option<&Node> {
        self.properties.get(key).or(self.additional.as_deref())
    }
}

fn texts(schema: &Value, key: &str) -> Vec<String> {
    let items = schema.get(key).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

impl Rules {
    fn parse(schema: &Value) -> Rules {
        let number = |key: &str| schema.get(key).and_then(Value::as_f64);
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        let flag = |key: &str| schema.get(key) == Some(&Value::Bool(true));
        let nodes = |key: &str| {
            let items = schema.get(key).and_then(Value::as_array).into_iter().flatten();
            items.map(Node::parse).collect::<Vec<_>>()
        };
        let pattern = schema.get("pattern").and_then(Value::as_str).filter(|text| !text.is_empty());
        Rules {
            required: texts(schema, "required"),
            values: schema.get("enum").and_then(Value::as_array).cloned(),
            format: schema.get("format").and_then(Value::as_str).unwrap_or_default().to_owned(),
            pattern: pattern.and_then(|text| Some((text.to_owned(), Regex::new(text).ok()?))),
            minimum: number("minimum"),
            maximum: number("maximum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            all_of: nodes("allOf"),
            any_of: nodes("anyOf"),
            one_of: nodes("oneOf"),
            not: schema.get("not").map(|schema| Box::new(Node::parse(schema))),
        }
    }
}

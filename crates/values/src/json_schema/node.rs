//! One schema, ready to be checked against.

use std::collections::BTreeMap;

use golang::regexp::Regexp;
use serde_json::{Map, Number, Value};

use super::decimal::Decimal;
use super::draft::Draft;
use super::format::Format;

/// The number of a schema.
pub(super) type Id = usize;

/// One schema. Other schemas are referred to by number.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The whole address.
    pub(super) location: String,
    pub(super) draft: Draft,
    /// The schema around this one that has an address of its own.
    pub(super) resource: Id,
    /// `true`, `false` and `{}` are schemas too.
    pub(super) always: Option<bool>,
    pub(super) types: Vec<&'static str>,
    pub(super) constant: Option<Value>,
    pub(super) options: Option<Vec<Value>>,
    pub(super) format: Option<Format>,
    pub(super) references: References,
    pub(super) conditions: Conditions,
    pub(super) objects: Objects,
    pub(super) arrays: Arrays,
    pub(super) texts: Texts,
    pub(super) numbers: Numbers,
}

/// `$ref` and its kin.
#[derive(Debug, Default)]
pub(super) struct References {
    pub(super) plain: Option<Id>,
    pub(super) recursive: Option<Id>,
    pub(super) is_recursive_anchor: bool,
    pub(super) dynamic: Option<Id>,
    /// The name that `$dynamicRef` ends with.
    pub(super) dynamic_name: Option<String>,
    pub(super) dynamic_anchor: Option<String>,
    /// Of a resource: the schemas in it that have dynamic names.
    pub(super) dynamic_anchors: BTreeMap<String, Id>,
}

/// Schemas for the same value.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    pub(super) not: Option<Id>,
    pub(super) all: Vec<Id>,
    pub(super) any: Vec<Id>,
    pub(super) one: Vec<Id>,
    pub(super) when: Option<Id>,
    pub(super) then: Option<Id>,
    pub(super) otherwise: Option<Id>,
}

/// What is asked of objects.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) least: Option<i64>,
    pub(super) most: Option<i64>,
    pub(super) required: Vec<String>,
    pub(super) properties: BTreeMap<String, Id>,
    pub(super) patterns: Vec<(Regexp, Id)>,
    pub(super) additional: Option<Rest>,
    pub(super) dependencies: Vec<(String, Needs)>,
    pub(super) dependent_schemas: Vec<(String, Id)>,
    pub(super) dependent_names: Vec<(String, Vec<String>)>,
    pub(super) names: Option<Id>,
    pub(super) unevaluated: Option<Id>,
}

/// What is asked of arrays.
#[derive(Debug, Default)]
pub(super) struct Arrays {
    pub(super) least: Option<i64>,
    pub(super) most: Option<i64>,
    pub(super) unique: bool,
    /// Schemas of the first items.
    pub(super) first: Vec<Id>,
    /// The schema of the items behind those.
    pub(super) rest: Option<Rest>,
    pub(super) contains: Option<Id>,
    pub(super) contains_least: Option<i64>,
    pub(super) contains_most: Option<i64>,
    pub(super) unevaluated: Option<Id>,
}

/// What is asked of texts.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) least: Option<i64>,
    pub(super) most: Option<i64>,
    /// The expression, and how it was written.
    pub(super) pattern: Option<(Regexp, String)>,
}

/// What is asked of numbers.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub(super) least: Option<Decimal>,
    pub(super) most: Option<Decimal>,
    pub(super) above: Option<Decimal>,
    pub(super) below: Option<Decimal>,
    pub(super) multiple: Option<Decimal>,
}

/// What is asked of the members or items that nothing else is asked of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rest {
    /// `true` or `false`, which Helm reports in words of its own.
    Plain(bool),
    Schema(Id),
}

/// What is asked of an object that has a property.
#[derive(Debug)]
pub(super) enum Needs {
    Names(Vec<String>),
    Schema(Id),
}

impl Node {
    /// Reads the keywords that refer to no other schemas and need no expressions.
    pub(super) fn read_plain(&mut self, schema: &Map<String, Value>) {
        self.types = types(schema.get("type"));
        self.options = schema.get("enum").and_then(Value::as_array).cloned();
        if self.draft >= Draft::Six {
            self.constant = schema.get("const").cloned();
        }
        let whole = |keyword: &str| whole(schema.get(keyword));
        self.texts.least = whole("minLength");
        self.texts.most = whole("maxLength");
        self.arrays.least = whole("minItems");
        self.arrays.most = whole("maxItems");
        self.arrays.unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        self.objects.least = whole("minProperties");
        self.objects.most = whole("maxProperties");
        self.objects.required = names(schema.get("required"));
        if self.draft >= Draft::Nineteen {
            self.arrays.contains_least = whole("minContains");
            self.arrays.contains_most = whole("maxContains");
            self.objects.dependent_names = members(schema, "dependentRequired")
                .filter(|(_, needs)| needs.is_array())
                .map(|(name, needs)| (name.clone(), names(Some(needs))))
                .collect();
            self.references.is_recursive_anchor = schema.get("$recursiveAnchor") == Some(&Value::Bool(true));
        }
        if self.draft >= Draft::Twenty {
            self.references.dynamic_anchor =
                schema.get("$dynamicAnchor").and_then(Value::as_str).map(str::to_owned);
        }
        self.numbers = Numbers::read(schema);
    }
}

impl Numbers {
    fn read(schema: &Map<String, Value>) -> Self {
        let number = |keyword: &str| schema.get(keyword).and_then(Value::as_number).map(Decimal::of);
        let flag = |keyword: &str| schema.get(keyword) == Some(&Value::Bool(true));
        let mut numbers = Self {
            least: number("minimum"),
            most: number("maximum"),
            above: number("exclusiveMinimum"),
            below: number("exclusiveMaximum"),
            multiple: number("multipleOf"),
        };
        // In draft 4 the limits themselves are excluded by a flag.
        if flag("exclusiveMinimum") {
            numbers.above = numbers.least.take();
        }
        if flag("exclusiveMaximum") {
            numbers.below = numbers.most.take();
        }
        numbers
    }
}

/// Returns the members of the object under a keyword.
pub(super) fn members<'s>(
    schema: &'s Map<String, Value>,
    keyword: &str,
) -> impl Iterator<Item = (&'s String, &'s Value)> {
    schema.get(keyword).and_then(Value::as_object).into_iter().flatten()
}

/// Returns the texts in a list.
pub(super) fn names(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The types, in the order in which findings name them.
const TYPES: [&str; 7] = ["null", "boolean", "number", "integer", "string", "array", "object"];

fn types(value: Option<&Value>) -> Vec<&'static str> {
    let named = match value {
        Some(Value::String(one)) => vec![one.clone()],
        several => names(several),
    };
    TYPES.into_iter().filter(|known| named.iter().any(|name| name == known)).collect()
}

/// Returns a whole number, also if it is written as 3.0.
fn whole(value: Option<&Value>) -> Option<i64> {
    let number: &Number = value?.as_number()?;
    number.as_i64().or_else(|| {
        let decimal = Decimal::of(number);
        decimal.is_whole().then(|| format!("{:.0}", decimal.float()).parse().ok())?
    })
}

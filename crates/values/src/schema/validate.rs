//! Holding a value against a schema, in the words of go-openapi.

use std::collections::BTreeSet;

use golang::strconv::format_float;
use serde_json::{Map, Value};

use super::format::fits;
use super::node::{Dependency, Id, Items, Node, Others, Schema};

/// How deeply schema and value are followed into one another.
const MAX_DEPTH: usize = 256;

/// How many levels of the schema are held against a value: alternatives that
/// lead into themselves multiply.
const MAX_STEPS: usize = 500_000;

/// How many violations are looked for.
const MAX_FOUND: usize = 1_000;

/// Returns how `value` breaks `schema`; `key` is the root of the paths.
///
/// Values are not part of the messages, they may be secrets.
pub(super) fn violations(schema: &Schema, key: &str, value: &Value) -> Vec<String> {
    let path = Path { name: key.to_owned(), items: String::new() };
    let mut check = Check { schema, depth: 0, steps: 0, found: Vec::new() };
    if value.is_object() {
        if let Some(root) = schema.root() {
            check.node(root, &path, value);
        }
    } else {
        check.wrong_type(&path, "object", value);
    }
    if check.steps > MAX_STEPS {
        check.in_body(&path, "has too many alternatives to be validated");
    }
    check.found
}

/// Where a value is: the names on the way, and the indexes of items, which
/// are told at the end of a message.
#[derive(Clone)]
struct Path {
    name: String,
    items: String,
}

impl Path {
    fn property(&self, name: &str) -> Self {
        Self { name: format!("{}.{name}", self.name), items: self.items.clone() }
    }

    fn item(&self, index: usize) -> Self {
        let separator = if self.items.is_empty() { "" } else { "." };
        Self { name: self.name.clone(), items: format!("{}{separator}{index}", self.items) }
    }
}

struct Check<'s> {
    schema: &'s Schema,
    depth: usize,
    steps: usize,
    found: Vec<String>,
}

impl<'s> Check<'s> {
    fn report(&mut self, path: &Path, message: &str) {
        let message = if path.items.is_empty() {
            message.to_owned()
        } else {
            format!("{message} (item {})", path.items)
        };
        if self.found.len() < MAX_FOUND && !self.found.contains(&message) {
            self.found.push(message);
        }
    }

    fn in_body(&mut self, path: &Path, message: &str) {
        self.report(path, &format!("{} in body {message}", path.name));
    }

    fn wrong_type(&mut self, path: &Path, expected: &str, value: &Value) {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        self.in_body(path, &format!("must be of type {expected}: \"{found}\""));
    }

    /// Holds `value` against another level.
    fn at(&mut self, id: Id, path: &Path, value: &Value) {
        if self.depth >= MAX_DEPTH {
            self.in_body(path, "is nested too deeply to be validated");
            return;
        }
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return;
        }
        if let Some(node) = self.schema.node(id) {
            self.depth += 1;
            self.node(node, path, value);
            self.depth -= 1;
        }
    }

    /// Returns how `value` breaks another level, apart from what was found.
    fn apart(&mut self, id: Id, path: &Path, value: &Value) -> Vec<String> {
        let mut check =
            Check { schema: self.schema, depth: self.depth, steps: self.steps, found: Vec::new() };
        check.at(id, path, value);
        self.steps = check.steps;
        check.found
    }

    fn node(&mut self, node: &'s Node, path: &Path, value: &Value) {
        if !has_type(node, value) {
            self.wrong_type(path, &node.types.join(","), value);
        }
        if value.is_null() {
            self.choices(node, path, value);
            return;
        }
        self.combinations(node, path, value);
        match value {
            Value::String(text) => self.text(node, path, text),
            Value::Number(number) => self.number(node, path, number.as_f64().unwrap_or(0.0)),
            Value::Array(items) => self.list(node, path, items),
            Value::Object(_) | Value::Bool(_) | Value::Null => {}
        }
        self.choices(node, path, value);
        if let Value::Object(map) = value {
            self.map(node, path, map);
        }
    }

    fn choices(&mut self, node: &Node, path: &Path, value: &Value) {
        if let Some(choices) = &node.choices
            && !choices.contains(value)
        {
            let choices: Vec<String> = choices.iter().map(in_go).collect();
            self.in_body(path, &format!("should be one of [{}]", choices.join(" ")));
        }
    }

    fn combinations(&mut self, node: &Node, path: &Path, value: &Value) {
        if !node.any_of.is_empty() {
            let (valid, best) = self.alternatives(&node.any_of, path, value);
            if valid == 0 {
                let message = format!("\"{}\" must validate at least one schema (anyOf)", path.name);
                self.report(path, &message);
                self.found.extend(best);
            }
        }
        if !node.one_of.is_empty() {
            let (valid, best) = self.alternatives(&node.one_of, path, value);
            if valid != 1 {
                let count = match valid {
                    0 => "Found none valid".to_owned(),
                    _ => format!("Found {valid} valid alternatives"),
                };
                let message =
                    format!("\"{}\" must validate one and only one schema (oneOf). {count}", path.name);
                self.report(path, &message);
                if valid == 0 {
                    self.found.extend(best);
                }
            }
        }
        let before = self.found.len();
        for id in &node.all_of {
            self.at(*id, path, value);
        }
        if self.found.len() > before {
            let message = format!("\"{}\" must validate all the schemas (allOf)", path.name);
            self.report(path, &message);
        }
        if let Some(not) = node.not
            && self.apart(not, path, value).is_empty()
        {
            let message = format!("\"{}\" must not validate the schema (not)", path.name);
            self.report(path, &message);
        }
    }

    /// Returns how many of the schemas `value` fits, and how it breaks the one
    /// that comes closest: of the right type, and first.
    fn alternatives(&mut self, ids: &[Id], path: &Path, value: &Value) -> (usize, Vec<String>) {
        let mut valid = 0;
        let mut best: Option<(bool, Vec<String>)> = None;
        for id in ids {
            let found = self.apart(*id, path, value);
            if found.is_empty() {
                valid += 1;
                continue;
            }
            let fits = self.schema.node(*id).is_some_and(|node| has_type(node, value));
            if best.as_ref().is_none_or(|(best_fits, _)| fits && !best_fits) {
                best = Some((fits, found));
            }
        }
        (valid, best.map(|(_, found)| found).unwrap_or_default())
    }

    fn text(&mut self, node: &Node, path: &Path, text: &str) {
        let length = text.chars().count() as u64;
        if let Some(most) = node.max_length.filter(|most| length > *most) {
            self.in_body(path, &format!("should be at most {most} chars long"));
        } else if let Some(least) = node.min_length.filter(|least| length < *least) {
            self.in_body(path, &format!("should be at least {least} chars long"));
        } else if let Some(pattern) = &node.pattern
            && !pattern.regex.is_match(text)
        {
            self.in_body(path, &format!("should match '{}'", pattern.text));
        }
        if let Some(format) = &node.format
            && !fits(format, text)
        {
            self.in_body(path, &format!("must be of type {format}"));
        }
    }

    fn number(&mut self, node: &Node, path: &Path, number: f64) {
        if let Some(factor) = node.multiple_of
            && !is_multiple(number, factor)
        {
            let factor = format_float(factor, 'g', None);
            self.in_body(path, &format!("should be a multiple of {factor}"));
        }
        if let Some(limit) = node.maximum {
            let value = format_float(limit.value, 'g', None);
            if limit.exclusive && number >= limit.value {
                self.in_body(path, &format!("should be less than {value}"));
            } else if number > limit.value {
                self.in_body(path, &format!("should be less than or equal to {value}"));
            }
        }
        if let Some(limit) = node.minimum {
            let value = format_float(limit.value, 'g', None);
            if limit.exclusive && number <= limit.value {
                self.in_body(path, &format!("should be greater than {value}"));
            } else if number < limit.value {
                self.in_body(path, &format!("should be greater than or equal to {value}"));
            }
        }
    }

    fn list(&mut self, node: &Node, path: &Path, items: &[Value]) {
        match &node.items {
            Items::Free => {}
            Items::All(id) => {
                for (index, item) in items.iter().enumerate() {
                    self.at(*id, &path.item(index), item);
                }
            }
            Items::Each(ids) => {
                for (index, (id, item)) in ids.iter().zip(items).enumerate() {
                    self.at(*id, &path.property(&index.to_string()), item);
                }
                let others = items.iter().enumerate().skip(ids.len());
                match node.other_items {
                    Others::Forbidden if items.len() > ids.len() => {
                        self.report(path, "array doesn't allow for additional items");
                    }
                    Others::Allowed | Others::Forbidden => {}
                    Others::Schema(id) => {
                        for (index, item) in others {
                            self.at(id, &path.property(&index.to_string()), item);
                        }
                    }
                }
            }
        }
        let count = items.len() as u64;
        if let Some(least) = node.min_items.filter(|least| count < *least) {
            self.in_body(path, &format!("should have at least {least} items"));
        }
        if let Some(most) = node.max_items.filter(|most| count > *most) {
            self.in_body(path, &format!("should have at most {most} items"));
        }
        if node.unique_items {
            let distinct: BTreeSet<String> = items.iter().map(Value::to_string).collect();
            if distinct.len() < items.len() {
                self.in_body(path, "shouldn't contain duplicates");
            }
        }
    }

    fn map(&mut self, node: &'s Node, path: &Path, map: &Map<String, Value>) {
        let count = map.len() as u64;
        if let Some(least) = node.min_properties.filter(|least| count < *least) {
            self.in_body(path, &format!("should have at least {least} properties"));
        }
        if let Some(most) = node.max_properties.filter(|most| count > *most) {
            self.in_body(path, &format!("should have at most {most} properties"));
        }
        for (name, value) in map {
            self.entry(node, path, name, value);
        }
        for name in &node.required {
            if !map.contains_key(name) {
                self.in_body(&path.property(name), "is required");
            }
        }
        for (name, dependency) in &node.dependencies {
            if !map.contains_key(name) {
                continue;
            }
            match dependency {
                Dependency::Properties(names) => {
                    for name in names.iter().filter(|name| !map.contains_key(*name)) {
                        let message = format!("\"{}\" has a dependency on {name}", path.name);
                        self.report(path, &message);
                    }
                }
                Dependency::Schema(id) => self.at(*id, path, &Value::Object(map.clone())),
            }
        }
    }

    /// Holds one entry of a map against everything that speaks of it.
    fn entry(&mut self, node: &'s Node, path: &Path, name: &str, value: &Value) {
        let below = path.property(name);
        let mut is_known = false;
        if let Some(id) = node.properties.get(name) {
            is_known = true;
            self.at(*id, &below, value);
        }
        for (pattern, id) in &node.pattern_properties {
            if pattern.regex.is_match(name) {
                is_known = true;
                self.at(*id, &below, value);
            }
        }
        match node.other_properties {
            _ if is_known => {}
            Others::Allowed => {}
            Others::Forbidden => self.in_body(&below, "is a forbidden property"),
            Others::Schema(id) => self.at(id, &below, value),
        }
    }
}

/// Returns whether `value` has one of the types that `node` asks for.
fn has_type(node: &Node, value: &Value) -> bool {
    node.types.is_empty()
        || (value.is_null() && node.nullable)
        || node.types.iter().any(|name| match (name.as_str(), value) {
            ("null", Value::Null)
            | ("boolean", Value::Bool(_))
            | ("number", Value::Number(_))
            | ("string", Value::String(_))
            | ("array", Value::Array(_))
            | ("object", Value::Object(_)) => true,
            ("integer", Value::Number(number)) => {
                !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            _ => false,
        })
}

/// Returns whether `number` is a multiple of `factor`, up to rounding.
fn is_multiple(number: f64, factor: f64) -> bool {
    let quotient = number / factor;
    (quotient - quotient.round()).abs() <= 1e-9 * quotient.abs().max(1.0)
}

/// Returns a value of the schema as Go prints it.
fn in_go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format_float(number.as_f64().unwrap_or(0.0), 'g', None),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(in_go).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| format!("{key}:{}", in_go(value));
            let entries: Vec<String> = map.iter().map(entry).collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

//! What breaks a schema, in the words of go-openapi.

use std::borrow::Cow;

use golang::strconv::format_float;
use objects::schema::{Finding, Limit, Schema, Step, Words};
use serde_json::Value;

use crate::json_type;

/// How many violations are looked for.
const MAX_FOUND: usize = 1_000;

/// How long the name of a property may be in a message, and the whole path to it, in bytes. Both come from users.
const MAX_NAME: usize = 256;
const MAX_PATH: usize = 1_024;

/// Returns how `value` breaks `schema`; `key` is the root of the paths.
///
/// Values are not part of the messages, they may be secrets.
pub(super) fn violations(schema: &Schema, key: &str, value: &Value) -> Vec<String> {
    let messages = Messages { key };
    if value.is_object() {
        return schema.validate(value, &messages);
    }
    let mut found = Vec::new();
    messages.report(&mut found, &[], value, &Finding::Type("object".to_owned()));
    found
}

struct Messages<'a> {
    /// The key of the section.
    key: &'a str,
}

impl Words for Messages<'_> {
    type Message = String;

    const MOST: usize = MAX_FOUND;

    fn report(&self, messages: &mut Vec<String>, path: &[Step<'_>], value: &Value, finding: &Finding<'_>) {
        // The indexes of items stand at the end of a message.
        let (mut name, mut items) = (self.key.to_owned(), Vec::new());
        for step in path {
            match step {
                Step::Property(property) => name.extend([".", &*shortened(property, MAX_NAME)]),
                Step::Position(index) => name.extend([".", &index.to_string()]),
                Step::Item(index) => items.push(index.to_string()),
            }
        }
        let mut message = worded(&shortened(&name, MAX_PATH), value, finding);
        if !items.is_empty() {
            message.extend([" (item ", &items.join("."), ")"]);
        }
        if !messages.contains(&message) {
            messages.push(message);
        }
    }
}

/// Returns the beginning and the end of a text that has more than `most` bytes.
fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let (head, tail) = (text.floor_char_boundary(most / 2), text.ceil_char_boundary(text.len() - most / 2));
    let parts = [text.get(..head), Some("\u{2026}"), text.get(tail..)];
    parts.into_iter().flatten().collect()
}

fn worded(name: &str, value: &Value, finding: &Finding<'_>) -> String {
    let in_body = |text: String| format!("{name} in body {text}");
    match finding {
        Finding::Type(expected) => in_body(format!("must be of type {expected}: \"{}\"", json_type(value))),
        Finding::Enum(choices) => {
            let choices: Vec<String> = choices.iter().map(in_go).collect();
            in_body(format!("should be one of [{}]", choices.join(" ")))
        }
        Finding::AnyOf => format!("\"{name}\" must validate at least one schema (anyOf)"),
        Finding::OneOf(valid) => {
            let count = match valid {
                0 => "Found none valid".to_owned(),
                _ => format!("Found {valid} valid alternatives"),
            };
            format!("\"{name}\" must validate one and only one schema (oneOf). {count}")
        }
        Finding::AllOf { .. } => format!("\"{name}\" must validate all the schemas (allOf)"),
        Finding::Not => format!("\"{name}\" must not validate the schema (not)"),
        Finding::MinLength(least) => in_body(format!("should be at least {least} chars long")),
        Finding::MaxLength(most) => in_body(format!("should be at most {most} chars long")),
        Finding::Pattern(pattern) => in_body(format!("should match '{pattern}'")),
        Finding::Format(format) => in_body(format!("must be of type {format}")),
        Finding::MultipleOf(factor) => {
            in_body(format!("should be a multiple of {}", format_float(*factor, 'g', None)))
        }
        Finding::Minimum(limit) => in_body(bound("greater than", *limit)),
        Finding::Maximum(limit) => in_body(bound("less than", *limit)),
        Finding::MinItems(least) => in_body(format!("should have at least {least} items")),
        Finding::MaxItems(most) => in_body(format!("should have at most {most} items")),
        Finding::UniqueItems | Finding::Duplicate(_) => in_body("shouldn't contain duplicates".to_owned()),
        Finding::AdditionalItems => "array doesn't allow for additional items".to_owned(),
        Finding::MinProperties(least) => in_body(format!("should have at least {least} properties")),
        Finding::MaxProperties(most) => in_body(format!("should have at most {most} properties")),
        Finding::Required => in_body("is required".to_owned()),
        Finding::Forbidden => in_body("is a forbidden property".to_owned()),
        Finding::Dependency(required) => format!("\"{name}\" has a dependency on {required}"),
        Finding::TooDeep => in_body("is nested too deeply to be validated".to_owned()),
        Finding::TooManySteps => in_body("has too many alternatives to be validated".to_owned()),
    }
}

fn bound(relation: &str, limit: Limit) -> String {
    let or_equal = if limit.exclusive { "" } else { " or equal to" };
    format!("should be {relation}{or_equal} {}", format_float(limit.value, 'g', None))
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

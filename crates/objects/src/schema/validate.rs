//! Validation of values with a schema, in the words of the real server.

use serde_json::Value;

use super::node::{Node, Rules};
use super::{FieldError, format};

/// Returns what is wrong with a value.
pub(super) fn validate(value: &Value, node: &Node, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check(value, node, path, &mut errors);
    errors
}

fn invalid(path: &str, value: &str, text: &str) -> FieldError {
    FieldError {
        reason: "FieldValueInvalid",
        field: path.to_owned(),
        message: format!("Invalid value: {value}: {path} in body {text}"),
    }
}

fn wrong_type(path: &str, shown: &str, wanted: &str) -> FieldError {
    FieldError {
        reason: "FieldValueTypeInvalid",
        field: path.to_owned(),
        message: format!("Invalid value: {shown:?}: {path} in body must be of type {wanted}: {shown:?}"),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if is_whole(number.as_f64()) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_whole(number: Option<f64>) -> bool {
    number.is_some_and(|number| number.fract() == 0.0)
}

fn at(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn check(value: &Value, node: &Node, path: &str, errors: &mut Vec<FieldError>) {
    if value.is_null() && (node.nullable || node.is_any()) {
        return;
    }
    let found = type_of(value);
    if node.int_or_string {
        if !matches!(found, "integer" | "string") {
            errors.push(wrong_type(path, found, "integer,string"));
            return;
        }
    } else if !node.kind.is_empty() && node.kind != found && !(node.kind == "number" && found == "integer") {
        errors.push(wrong_type(path, found, &node.kind));
        return;
    }
    // Parts first, then the alternatives, then the rules of the value itself.
    match value {
        Value::Object(_) => object(value, node, path, errors),
        Value::Array(items) => {
            if let Some(inner) = node.items.as_deref() {
                for (index, item) in items.iter().enumerate() {
                    check(item, inner, &format!("{path}[{index}]"), errors);
                }
            }
            size(items.len(), (node.rules.min_items, node.rules.max_items), "items", path, errors);
        }
        Value::String(text) => string(text, &node.rules, path, errors),
        Value::Number(number) => range(number.as_f64().unwrap_or_default(), &node.rules, value, path, errors),
        Value::Null | Value::Bool(_) => {}
    }
    one_of_values(value, &node.rules, path, errors);
    alternatives(value, &node.rules, path, errors);
}

fn object(value: &Value, node: &Node, path: &str, errors: &mut Vec<FieldError>) {
    let fields = super::fields(value);
    let mut required: Vec<&str> = node.rules.required.iter().map(String::as_str).collect();
    if node.embedded {
        required.extend(
            ["apiVersion", "kind"].iter().filter(|key| !node.rules.required.iter().any(|r| r == **key)),
        );
    }
    for name in required {
        if !fields.contains_key(name) {
            errors.push(FieldError {
                reason: "FieldValueRequired",
                field: at(path, name),
                message: "Required value".to_owned(),
            });
        }
    }
    for (key, part) in fields {
        if let Some(inner) = node.child(key) {
            check(part, inner, &at(path, key), errors);
        }
    }
    let bounds = (node.rules.min_properties, node.rules.max_properties);
    size(fields.len(), bounds, "properties", path, errors);
}

fn size(
    count: usize,
    (least, most): (Option<u64>, Option<u64>),
    what: &str,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let number = count as u64;
    if let Some(least) = least.filter(|least| number < *least) {
        let text = format!("should have at least {least} {what}");
        errors.push(invalid(path, &count.to_string(), &text));
    }
    if let Some(most) = most.filter(|most| number > *most) {
        errors.push(FieldError {
            reason: "FieldValueTooMany",
            field: path.to_owned(),
            message: format!("Too many: {count}: must have at most {most} items"),
        });
    }
}

fn string(text: &str, rules: &Rules, path: &str, errors: &mut Vec<FieldError>) {
    let length = text.chars().count() as u64;
    if let Some(most) = rules.max_length.filter(|most| length > *most) {
        errors.push(FieldError {
            reason: "FieldValueTooLong",
            field: path.to_owned(),
            message: format!("Too long: may not be more than {most} bytes"),
        });
        return;
    }
    let shown = format!("{text:?}");
    if let Some(least) = rules.min_length.filter(|least| length < *least) {
        let why = format!("should be at least {least} chars long");
        errors.push(invalid(path, &shown, &why));
        return;
    }
    if let Some((pattern, regex)) = &rules.pattern
        && !regex.is_match(text)
    {
        errors.push(invalid(path, &shown, &format!("should match '{pattern}'")));
    }
    if format::is_known(&rules.format) && !format::fits(&rules.format, text) {
        errors.push(wrong_type(path, text, &rules.format));
    }
}

fn range(number: f64, rules: &Rules, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut tell = |text: String| errors.push(invalid(path, &value.to_string(), &text));
    if let Some(step) = rules.multiple_of {
        let times = number / step;
        if step > 0.0 && (times - times.round()).abs() > 1e-9 {
            tell(format!("should be a multiple of {step}"));
        }
    }
    if let Some(least) = rules.minimum {
        if rules.exclusive_minimum && number <= least {
            tell(format!("should be greater than {least}"));
        } else if number < least {
            tell(format!("should be greater than or equal to {least}"));
        }
    }
    if let Some(most) = rules.maximum {
        if rules.exclusive_maximum && number >= most {
            tell(format!("should be less than {most}"));
        } else if number > most {
            tell(format!("should be less than or equal to {most}"));
        }
    }
}

fn one_of_values(value: &Value, rules: &Rules, path: &str, errors: &mut Vec<FieldError>) {
    let Some(values) = &rules.values else {
        return;
    };
    let same = |known: &Value| known == value || (known.is_number() && known.as_f64() == value.as_f64());
    if values.iter().any(same) {
        return;
    }
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let supported: Vec<String> = values.iter().map(|value| format!("{:?}", plain(value))).collect();
    errors.push(FieldError {
        reason: "FieldValueNotSupported",
        field: path.to_owned(),
        message: format!("Unsupported value: {value}: supported values: {}", supported.join(", ")),
    });
}

/// An error that names the place in its text only.
fn unplaced(path: &str, text: &str) -> FieldError {
    FieldError {
        reason: "FieldValueInvalid",
        field: "<nil>".to_owned(),
        message: format!("Invalid value: \"\": \"{path}\" {text}"),
    }
}

fn alternatives(value: &Value, rules: &Rules, path: &str, errors: &mut Vec<FieldError>) {
    let outcomes = |nodes: &[Node]| -> Vec<Vec<FieldError>> {
        nodes.iter().map(|node| validate(value, node, path)).collect()
    };
    // Of alternatives that all fail, the best one is told as well: the first with the fewest errors.
    let best = |outcomes: Vec<Vec<FieldError>>| outcomes.into_iter().min_by_key(Vec::len).unwrap_or_default();
    if !rules.any_of.is_empty() {
        let outcomes = outcomes(&rules.any_of);
        if outcomes.iter().all(|errors| !errors.is_empty()) {
            errors.push(unplaced(path, "must validate at least one schema (anyOf)"));
            errors.extend(best(outcomes));
        }
    }
    if !rules.one_of.is_empty() {
        let outcomes = outcomes(&rules.one_of);
        match outcomes.iter().filter(|errors| errors.is_empty()).count() {
            1 => {}
            0 => {
                errors
                    .push(unplaced(path, "must validate one and only one schema (oneOf). Found none valid"));
                errors.extend(best(outcomes));
            }
            count => {
                let text = format!(
                    "must validate one and only one schema (oneOf). Found {count} valid alternatives"
                );
                errors.push(unplaced(path, &text));
            }
        }
    }
    if !rules.all_of.is_empty() {
        let outcomes = outcomes(&rules.all_of);
        let failed = outcomes.iter().filter(|errors| !errors.is_empty()).count();
        if failed > 0 {
            let none = if failed == rules.all_of.len() { ". None validated" } else { "" };
            errors.extend(outcomes.into_iter().flatten());
            errors.push(unplaced(path, &format!("must validate all the schemas (allOf){none}")));
        }
    }
    if let Some(not) = &rules.not
        && validate(value, not, path).is_empty()
    {
        errors.push(unplaced(path, "must not validate the schema (not)"));
    }
}

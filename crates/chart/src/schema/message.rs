//! The words for one finding.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

/// Returns what is wrong, without the place.
#[expect(clippy::wildcard_enum_match_arm, reason = "kinds that Helm's library lacks keep their own words")]
pub(super) fn of(error: &ValidationError<'_>) -> String {
    let instance = error.instance();
    let items = || count(instance.as_array().map_or(0, Vec::len));
    let members = || count(instance.as_object().map_or(0, serde_json::Map::len));
    let characters = || count(instance.as_str().map_or(0, |text| text.chars().count()));
    let compared =
        |keyword: &str, limit: &Value| format!("{keyword}: got {}, want {}", number(instance), number(limit));
    match error.kind() {
        Kind::AdditionalItems { limit } => {
            let extra = instance.as_array().map_or(0, Vec::len).saturating_sub(*limit);
            format!("last {extra} additionalItem(s) not allowed")
        }
        Kind::AdditionalProperties { unexpected } => {
            format!("additional properties {} not allowed", quoted(unexpected))
        }
        Kind::AnyOf { .. } => "'anyOf' failed".to_owned(),
        Kind::Constant { expected_value } => match &**expected_value {
            Value::Array(_) | Value::Object(_) => "'const' failed".to_owned(),
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                format!("value must be {}", display(plain))
            }
        },
        Kind::Contains => contains(error),
        Kind::Enum { options } => enumeration(options),
        Kind::ExclusiveMaximum { limit } => compared("exclusiveMaximum", limit),
        Kind::ExclusiveMinimum { limit } => compared("exclusiveMinimum", limit),
        Kind::FalseSchema => "false schema".to_owned(),
        Kind::Format { format } => {
            format!("{} is not valid {format}{}", display(instance), format_problem(format, instance))
        }
        Kind::MaxItems { limit } => {
            format!("maxItems: got {}, want {}", items(), grouped(&limit.to_string()))
        }
        Kind::MaxLength { limit } => {
            format!("maxLength: got {}, want {}", characters(), grouped(&limit.to_string()))
        }
        Kind::MaxProperties { limit } => {
            format!("maxProperties: got {}, want {}", members(), grouped(&limit.to_string()))
        }
        Kind::Maximum { limit } => compared("maximum", limit),
        Kind::MinItems { limit } => {
            format!("minItems: got {}, want {}", items(), grouped(&limit.to_string()))
        }
        Kind::MinLength { limit } => {
            format!("minLength: got {}, want {}", characters(), grouped(&limit.to_string()))
        }
        Kind::MinProperties { limit } => {
            format!("minProperties: got {}, want {}", members(), grouped(&limit.to_string()))
        }
        Kind::Minimum { limit } => compared("minimum", limit),
        Kind::MultipleOf { multiple_of } => {
            format!("multipleOf: got {}, want {}", number(instance), float(*multiple_of))
        }
        Kind::Not { .. } => "'not' failed".to_owned(),
        Kind::OneOfMultipleValid { context } => multiple(context),
        Kind::OneOfNotValid { .. } => "'oneOf' failed, none matched".to_owned(),
        Kind::Pattern { pattern } => {
            format!("{} does not match pattern {}", display(instance), quote(pattern))
        }
        Kind::PropertyNames { error } => format!("invalid propertyName {}", display(error.instance())),
        Kind::Type { kind } => format!("got {}, want {}", type_of(instance), wanted(kind)),
        Kind::UniqueItems => match equal_items(instance) {
            Some((first, second)) => format!("items at {first} and {second} are equal"),
            None => "items are equal".to_owned(),
        },
        _ => error.to_string(),
    }
}

/// Returns the words for missing properties.
pub(super) fn required(names: &[String]) -> String {
    let properties = if names.len() == 1 { "property" } else { "properties" };
    format!("missing {properties} {}", quoted(names))
}

/// Returns the words for properties that are missing because there is another.
pub(super) fn dependent(property: &str, names: &[String]) -> String {
    format!("properties {} required, if {} exists", quoted(names), quote(property))
}

/// Returns `text` between single quotes.
pub(super) fn quote(text: &str) -> String {
    let quoted = format!("{text:?}");
    let inner = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&quoted);
    format!("'{}'", inner.replace("\\\"", "\"").replace('\'', "\\'"))
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| quote(name)).collect();
    names.join(", ")
}

fn display(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 1e15 => format!("{float}"),
            Some(_) | None => number.to_string(),
        },
        Value::String(text) => quote(text),
        Value::Array(_) | Value::Object(_) => "value".to_owned(),
    }
}

fn enumeration(options: &Value) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    if options.iter().any(|option| option.is_array() || option.is_object()) {
        return "'enum' failed".to_owned();
    }
    let shown: Vec<String> = options.iter().map(display).collect();
    if shown.len() == 1 {
        format!("value must be {}", shown.concat())
    } else {
        format!("value must be one of {}", shown.join(", "))
    }
}

fn multiple(context: &[Vec<ValidationError<'static>>]) -> String {
    let mut matched =
        context.iter().enumerate().filter(|(_, errors)| errors.is_empty()).map(|(index, _)| index);
    match (matched.next(), matched.next()) {
        (Some(first), Some(second)) => format!("'oneOf' failed, subschemas {first}, {second} matched"),
        _ => "'oneOf' failed, several matched".to_owned(),
    }
}

fn contains(error: &ValidationError<'_>) -> String {
    let path = error.schema_path().as_str();
    match path.rsplit('/').next() {
        Some("maxContains") => "more items than allowed match contains schema".to_owned(),
        Some("minContains") => "fewer items than required match contains schema".to_owned(),
        Some(_) | None => "no items match contains schema".to_owned(),
    }
}

fn format_problem(format: &str, instance: &Value) -> String {
    let text = instance.as_str().unwrap_or_default();
    match format {
        "email" | "idn-email" if !text.contains('@') => ": missing @".to_owned(),
        "ipv4" if text.split('.').count() != 4 => ": expected four decimals".to_owned(),
        _ => String::new(),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn wanted(kind: &TypeKind) -> String {
    let names: Vec<String> = match kind {
        TypeKind::Single(single) => vec![single.to_string()],
        TypeKind::Multiple(several) => several.iter().map(|single| single.to_string()).collect(),
    };
    let order = ["null", "boolean", "number", "integer", "string", "array", "object"];
    let ordered: Vec<&str> =
        order.into_iter().filter(|name| names.iter().any(|found| found == name)).collect();
    ordered.join(" or ")
}

fn equal_items(instance: &Value) -> Option<(usize, usize)> {
    let items = instance.as_array()?;
    items.iter().enumerate().find_map(|(later, item)| {
        let earlier = items.iter().take(later).position(|other| other == item)?;
        Some((earlier, later))
    })
}

fn count(number: usize) -> String {
    grouped(&number.to_string())
}

fn number(value: &Value) -> String {
    value.as_f64().map_or_else(|| value.to_string(), float)
}

/// Returns a number as English readers are shown it: `70,000`, `1.5×10⁰⁷`.
fn float(number: f64) -> String {
    let text = crate::json::format_general(number);
    let Some((mantissa, exponent)) = text.split_once('e') else { return grouped(&text) };
    let exponent: String = exponent
        .chars()
        .filter_map(|c| match c {
            '-' => Some('⁻'),
            '1' => Some('¹'),
            '2' => Some('²'),
            '3' => Some('³'),
            '0' => Some('⁰'),
            c => char::from_u32(0x2070 + c.to_digit(10)?),
        })
        .collect();
    format!("{mantissa}×10{exponent}")
}

/// Puts a comma before every three digits of the whole part.
fn grouped(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let (whole, fraction) =
        digits.split_once('.').map_or((digits, None), |(whole, rest)| (whole, Some(rest)));
    let mut text = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

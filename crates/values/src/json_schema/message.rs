//! The words for findings.

use serde_json::Value;

use super::decimal::Decimal;
use crate::json_type;

/// Returns `text` between single quotes.
pub(super) fn quote(text: &str) -> String {
    let quoted = golang::strconv::quote(text.as_bytes());
    let inner = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&quoted);
    format!("'{}'", inner.replace("\\\"", "\"").replace('\'', "\\'"))
}

fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| quote(name)).collect();
    names.join(", ")
}

/// Returns the words for missing properties.
pub(super) fn required(names: &[&str]) -> String {
    let properties = if names.len() == 1 { "property" } else { "properties" };
    format!("missing {properties} {}", quoted(names))
}

/// Returns the words for properties that are missing because there is another.
pub(super) fn dependent(property: &str, names: &[&str]) -> String {
    format!("properties {} required, if {} exists", quoted(names), quote(property))
}

/// Returns the words for properties that may not be there.
pub(super) fn additional(names: &[&str]) -> String {
    format!("additional properties {} not allowed", quoted(names))
}

/// Returns the words for items that may not be there.
pub(super) fn additional_items(number: usize) -> String {
    format!("last {} additionalItem(s) not allowed", grouped(&number.to_string()))
}

/// Returns the words for a name that does not fit.
pub(super) fn property_name(name: &str) -> String {
    format!("invalid propertyName {}", quote(name))
}

/// Returns the words for a length or number of parts.
pub(super) fn count(keyword: &str, got: usize, want: i64) -> String {
    format!("{keyword}: got {}, want {}", grouped(&got.to_string()), grouped(&want.to_string()))
}

/// Returns the words for a number.
pub(super) fn limit(keyword: &str, got: Decimal, want: Decimal) -> String {
    format!("{keyword}: got {}, want {}", float(got.float()), float(want.float()))
}

/// Returns the words for a text.
pub(super) fn pattern(text: &str, pattern: &str) -> String {
    format!("{} does not match pattern {}", quote(text), quote(pattern))
}

/// Returns the words for a text that is not of a format.
pub(super) fn format(text: &str, name: &str, problem: &str) -> String {
    format!("{} is not valid {name}: {problem}", quote(text))
}

/// Returns the words for two items that are the same.
pub(super) fn twins(first: usize, second: usize) -> String {
    format!("items at {} and {} are equal", grouped(&first.to_string()), grouped(&second.to_string()))
}

/// Returns the words for two schemas that fit where one should.
pub(super) fn both(first: usize, second: usize) -> String {
    format!("'oneOf' failed, subschemas {first}, {second} matched")
}

/// Returns the words for too few items of a kind.
pub(super) fn too_few(least: i64, matched: &[usize]) -> String {
    let least = grouped(&least.to_string());
    if matched.is_empty() {
        return format!("min {least} items required to match contains schema, but none matched");
    }
    format!("min {least} items required to match contains schema, but {}", matched_items(matched))
}

/// Returns the words for too many items of a kind.
pub(super) fn too_many(most: i64, matched: &[usize]) -> String {
    let most = grouped(&most.to_string());
    format!("max {most} items required to match contains schema, but {}", matched_items(matched))
}

fn matched_items(matched: &[usize]) -> String {
    let places: Vec<String> = matched.iter().map(usize::to_string).collect();
    format!("matched {} items at {}", grouped(&matched.len().to_string()), places.join(" "))
}

/// Returns the words for schemas that refer to each other.
pub(super) fn cycle(first: &str, second: &str, location: &str) -> String {
    let location = golang::strconv::quote(location.as_bytes());
    format!("both {first} and {second} resolve to {location} causing reference cycle")
}

/// Returns the words for a value that has to be one.
pub(super) fn constant(constant: &Value) -> String {
    match constant {
        Value::Array(_) | Value::Object(_) => "'const' failed".to_owned(),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            format!("value must be {}", display(plain))
        }
    }
}

/// Returns the words for a value that has to be one of several.
pub(super) fn enumeration(options: &[Value]) -> String {
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

fn display(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quote(text),
        Value::Array(_) | Value::Object(_) => "value".to_owned(),
    }
}

/// Is the value of one of these types?
pub(super) fn is_one_of(value: &Value, types: &[&str]) -> bool {
    let is_whole = || value.as_number().is_some_and(|number| Decimal::of(number).is_whole());
    types.contains(&json_type(value)) || (types.contains(&"integer") && is_whole())
}

/// Returns the words for a value of a type that does not fit.
pub(super) fn wrong_type(value: &Value, types: &[&str]) -> String {
    format!("got {}, want {}", json_type(value), types.join(" or "))
}

/// Is `number` below `least`?
pub(super) fn is_less(number: usize, least: i64) -> bool {
    i64::try_from(number).unwrap_or(i64::MAX) < least
}

/// Is `number` above `most`?
pub(super) fn is_more(number: usize, most: i64) -> bool {
    i64::try_from(number).unwrap_or(i64::MAX) > most
}

/// Returns a number as English readers are shown it: `70,000`, `1.5×10⁰⁷`.
fn float(number: f64) -> String {
    let text = golang::strconv::format_float(number, 'g', None);
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

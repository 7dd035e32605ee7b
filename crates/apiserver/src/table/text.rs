//! The small texts that many columns share.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::fields::{int, list, map, text};

pub(super) type Cell = fn(&Value, Timestamp) -> Value;

/// Returns the number at a path, 0 when there is none.
pub(super) fn number(object: &Value, path: &str) -> i64 {
    int(object, path).unwrap_or_default()
}

/// Returns the texts joined; `absent` when there are none.
pub(super) fn joined<'a>(texts: impl IntoIterator<Item = &'a str>, by: &str, absent: &str) -> String {
    let texts: Vec<&str> = texts.into_iter().collect();
    if texts.is_empty() { absent.to_owned() } else { texts.join(by) }
}

pub(super) fn joined_list(object: &Value, path: &str, absent: &str) -> String {
    joined(list(object, path).iter().filter_map(Value::as_str), ",", absent)
}

/// Returns `a=1,b=2`, or `<none>`.
pub(super) fn labels(map: &Map<String, Value>) -> String {
    let pairs: Vec<String> =
        map.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// Returns a label selector as one line, empty for one that selects everything or nothing.
pub(super) fn selector(selector: &Value) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in map(selector, "matchLabels") {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in list(selector, "matchExpressions") {
        let key = text(expression, "key");
        let mut values: Vec<&str> = list(expression, "values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let part = match text(expression, "operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return "<error>".to_owned(),
        };
        parts.push((key.to_owned(), part));
    }
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    joined(parts.iter().map(|(_, part)| part.as_str()), ",", "")
}

/// Returns the first texts and how many more there are.
pub(super) fn first_of(texts: &[String], most: usize, absent: &str) -> String {
    let shown = texts.iter().take(most).map(String::as_str);
    let shown = joined(shown, ",", absent);
    match texts.len().checked_sub(most) {
        Some(more @ 1..) => format!("{shown} + {more} more..."),
        Some(0) | None => shown,
    }
}

pub(super) fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = list(object, "status.conditions");
    let condition = conditions.iter().find(|condition| text(condition, "type") == kind);
    condition.is_some_and(|condition| text(condition, "status") == "True")
}

pub(super) fn labels_at(object: &Value, path: &str) -> Value {
    Value::from(labels(map(object, path)))
}

/// Returns the first three texts and how many more there are.
pub(super) fn three_of(texts: &[String]) -> Value {
    Value::from(first_of(texts, 3, "<unset>"))
}

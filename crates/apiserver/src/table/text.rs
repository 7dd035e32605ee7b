//! Looking into objects, and the small texts that many columns share.

use serde_json::{Map, Value};

/// Returns the value at a path of keys with dots.
pub(super) fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    let mut place = object;
    for key in path.split('.') {
        place = place.get(key).unwrap_or(&Value::Null);
    }
    place
}

/// Returns the text at a path, empty when there is none.
pub(super) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    at(object, path).as_str().unwrap_or_default()
}

/// Returns the number at a path, 0 when there is none.
pub(super) fn int(object: &Value, path: &str) -> i64 {
    at(object, path).as_i64().unwrap_or_default()
}

/// Returns the items of the list at a path.
pub(super) fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    at(object, path).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the map at a path.
pub(super) fn map<'a>(object: &'a Value, path: &str) -> Option<&'a Map<String, Value>> {
    at(object, path).as_object()
}

/// Returns the texts joined; `absent` when there are none.
pub(super) fn joined<'a>(texts: impl IntoIterator<Item = &'a str>, by: &str, absent: &str) -> String {
    let texts: Vec<&str> = texts.into_iter().collect();
    if texts.is_empty() { absent.to_owned() } else { texts.join(by) }
}

/// Returns the texts of a list joined.
pub(super) fn joined_list(object: &Value, path: &str, absent: &str) -> String {
    joined(list(object, path).iter().filter_map(Value::as_str), ",", absent)
}

/// Returns `a=1,b=2`, or `<none>`.
pub(super) fn labels(map: Option<&Map<String, Value>>) -> String {
    let pairs = map.into_iter().flatten();
    let pairs: Vec<String> =
        pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// Returns a label selector as one line, empty for one that selects everything or nothing.
pub(super) fn selector(selector: &Value) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in map(selector, "matchLabels").into_iter().flatten() {
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

/// Tells whether the condition `kind` is `True`.
pub(super) fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = list(object, "status.conditions");
    let condition = conditions.iter().find(|condition| text(condition, "type") == kind);
    condition.is_some_and(|condition| text(condition, "status") == "True")
}

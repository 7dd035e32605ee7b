//! Label and field selectors: their shape and their meaning.

use super::fields::Fields;
use crate::hook::domain::is_domain;
use crate::hook::selection::{
    FieldRequirement, FieldSelector, LabelOperator, LabelRequirement, LabelSelector, Namespaces, Selection,
};

/// Reads which objects a binding is about, but for their fields.
pub(super) fn selection(item: &mut Fields<'_>) -> Selection {
    Selection {
        api_version: item.string("apiVersion").unwrap_or_default(),
        kind: item.string("kind").unwrap_or_default(),
        names: names(item, "nameSelector").into_iter().collect(),
        namespaces: namespaces(item, "namespace"),
        labels: labels(item, "labelSelector").unwrap_or_default(),
        ..Selection::default()
    }
}

/// Reads `{matchNames: [...]}`.
pub(super) fn names(fields: &mut Fields<'_>, key: &'static str) -> Vec<String> {
    let Some(mut selector) = fields.object(key) else { return Vec::new() };
    selector.require(&["matchNames"]);
    let names = selector.strings("matchNames", 0);
    selector.finish();
    names.unwrap_or_default()
}

/// Reads a label selector.
pub(super) fn labels(fields: &mut Fields<'_>, key: &'static str) -> Option<LabelSelector> {
    let mut selector = fields.object(key)?;
    selector.require_some(1);
    let match_labels = selector.texts("matchLabels").unwrap_or_default().into_iter().collect();
    let mut match_expressions = Vec::new();
    for mut item in selector.objects("matchExpressions", 0).unwrap_or_default() {
        item.require(&["key", "operator"]);
        let key = item.string("key").unwrap_or_default();
        let operator = item.word("operator", &["In", "NotIn", "Exists", "DoesNotExist"]);
        let values = item.strings("values", 0).unwrap_or_default().into_iter().collect();
        item.finish();
        if let Some(operator) = operator.and_then(|word| word.parse().ok()) {
            match_expressions.push(LabelRequirement { key, operator, values });
        }
    }
    selector.finish();
    Some(LabelSelector { match_labels, match_expressions })
}

/// Reads a field selector.
pub(super) fn fields(fields: &mut Fields<'_>, key: &'static str) -> FieldSelector {
    let Some(mut selector) = fields.object(key) else { return FieldSelector::default() };
    selector.require(&["matchExpressions"]);
    let mut match_expressions = Vec::new();
    for mut item in selector.objects("matchExpressions", 0).unwrap_or_default() {
        item.require(&["field", "operator", "value"]);
        let field = item.string("field").unwrap_or_default();
        let operator = item.word("operator", &["=", "==", "Equals", "!=", "NotEquals"]);
        let value = item.string("value").unwrap_or_default();
        item.finish();
        let is_equal = matches!(operator, Some("=" | "==" | "Equals"));
        match_expressions.push(FieldRequirement { field, is_equal, value });
    }
    selector.finish();
    FieldSelector { match_expressions }
}

/// Reads the selector of namespaces. Labels win over names.
pub(super) fn namespaces(fields: &mut Fields<'_>, key: &'static str) -> Namespaces {
    let Some(mut selector) = fields.object(key) else { return Namespaces::All };
    selector.require_some(1);
    let names = names(&mut selector, "nameSelector");
    let labels = labels(&mut selector, "labelSelector");
    selector.finish();
    match labels {
        Some(labels) => Namespaces::Labelled(labels),
        None if names.is_empty() => Namespaces::All,
        None => Namespaces::Named(names.into_iter().collect()),
    }
}

/// Returns why the API server would refuse this selector.
pub(super) fn problem_of_labels(selector: &LabelSelector) -> Option<String> {
    for (key, value) in &selector.match_labels {
        if let Some(problem) = problem_of_key(key).or_else(|| problem_of_value(value)) {
            return Some(problem);
        }
    }
    selector.match_expressions.iter().find_map(|requirement| {
        let LabelRequirement { key, operator, values } = requirement;
        if let Some(problem) = problem_of_key(key) {
            return Some(problem);
        }
        match operator {
            LabelOperator::In | LabelOperator::NotIn if values.is_empty() => {
                Some(format!("for 'In', 'NotIn' operators, values set can't be empty (key '{key}')"))
            }
            LabelOperator::Exists | LabelOperator::DoesNotExist if !values.is_empty() => {
                Some(format!("values set must be empty for 'Exists' and 'DoesNotExist' (key '{key}')"))
            }
            LabelOperator::In
            | LabelOperator::NotIn
            | LabelOperator::Exists
            | LabelOperator::DoesNotExist => values.iter().find_map(|value| problem_of_value(value)),
        }
    })
}

/// Returns why the API server would refuse this selector.
pub(super) fn problem_of_fields(selector: &FieldSelector) -> Option<String> {
    let nameless = selector.match_expressions.iter().any(|requirement| requirement.field.is_empty());
    nameless.then(|| "a field has no name; write one, as 'status.phase'".to_owned())
}

/// Returns why this is no key of a label or annotation.
pub(super) fn problem_of_key(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix.is_some_and(|prefix| !is_domain(prefix)) {
        return Some(format!("'{key}' is not a label key: what stands before the '/' must be a DNS name"));
    }
    (!is_label_text(name)).then(|| {
        format!("'{key}' is not a label key: its name must have 1 to 63 letters, digits, '-', '_' or '.', and begin and end with a letter or digit")
    })
}

fn problem_of_value(value: &str) -> Option<String> {
    (!value.is_empty() && !is_label_text(value)).then(|| {
        format!("'{value}' is not a label value: it must be empty or have up to 63 letters, digits, '-', '_' or '.', and begin and end with a letter or digit")
    })
}

fn is_label_text(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    (1..=63).contains(&bytes.len())
        && is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

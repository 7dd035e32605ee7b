//! Fields that stay as they were made.

use serde_json::Value;

use super::errors::Report;
use crate::fields::{get, has};

/// Checks that a field is as it was.
pub(super) fn immutable(field: &str, new: &Value, old: &Value, report: &mut Report) {
    let (is, was) = (get(new, field), get(old, field));
    if is != was {
        // A text that is no longer there is shown as empty.
        let shown = if is.is_null() && was.is_string() { &Value::String(String::new()) } else { is };
        report.invalid(field, shown.clone(), "field is immutable");
    }
}

/// Like [`immutable`], for values whose fields have an order in the text; an object that is gone is `null` there.
pub(super) fn immutable_shown(field: &str, shown: &str, new: &Value, old: &Value, report: &mut Report) {
    if get(new, field) != get(old, field) {
        let shown = if has(new, field) { shown } else { "null" };
        report.invalid_shown(field, shown, "field is immutable");
    }
}

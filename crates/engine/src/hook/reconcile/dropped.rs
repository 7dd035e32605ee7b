//! What the API server drops of a status: a schema prunes fields that it does not name, and says nothing.

use serde_json::{Map, Value};

/// How many fields are named.
const NAMED: usize = 10;

/// Returns the first fields of the status in a merge patch that are not in the object that was answered.
///
/// `observedGeneration` is the operator's own, and a kind need not have it.
pub fn dropped_fields(patch: &Value, answer: &Value) -> Vec<String> {
    let status = |value: &Value| value.get("status").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut asked = status(patch);
    asked.remove("observedGeneration");
    let mut dropped = Vec::new();
    collect(&asked, &status(answer), "status", &mut dropped);
    dropped.truncate(NAMED);
    dropped
}

fn collect(asked: &Map<String, Value>, written: &Map<String, Value>, place: &str, dropped: &mut Vec<String>) {
    for (field, value) in asked {
        let place = format!("{place}.{field}");
        match (value, written.get(field)) {
            (Value::Object(asked), Some(Value::Object(written))) => collect(asked, written, &place, dropped),
            (Value::Null, _) | (_, Some(_)) => {}
            (Value::Object(fields), None) if fields.is_empty() => {}
            (Value::Array(items), None) if items.is_empty() => {}
            (_, None) => dropped.push(place),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_answered_is_dropped_but_for_what_says_nothing() {
        let patch = json!({"metadata": {"resourceVersion": "1"}, "status": {
            "phase": "A", "old": null, "none": [], "deep": {"a": 1, "b": {"c": 2}}, "observedGeneration": 3, "list": [{"a": 1}]}});
        let kept = json!({"status": {"phase": "B", "deep": {"a": 1, "b": {"c": 2}}, "list": [{}]}});
        assert_eq!(dropped_fields(&patch, &kept), [""; 0], "another value is not looked at");
        let pruned = json!({"status": {"deep": {"a": 1}}});
        assert_eq!(dropped_fields(&patch, &pruned), ["status.deep.b", "status.list", "status.phase"]);
        assert_eq!(dropped_fields(&patch, &json!({})).len(), 3);
        let many: Map<String, Value> = (0..50).map(|number| (format!("f{number}"), 1.into())).collect();
        assert_eq!(dropped_fields(&json!({"status": many}), &json!({})).len(), NAMED);
    }
}

//! Config values in two layers, of which the upper one is secret. See docs/modules.md#secret-values.

use serde_json::{Map, Value};

/// What stands for a value that is not shown.
const MASK: &str = "******";

/// Returns config values as two layers, so that the second laid over the first gives `after`.
///
/// `lower` and `upper` are the layers before. What is new goes to the lower layer, unless the map it is in comes from the
/// upper one alone. What the upper layer holds stays there with its new value, and is taken out of it when it is gone.
pub fn split(after: &Value, lower: Option<&Value>, upper: &Value) -> (Option<Value>, Value) {
    match (after, upper) {
        (Value::Object(after), Value::Object(upper)) => {
            let empty = Map::new();
            let below = lower.map_or(Some(&empty), Value::as_object);
            // A map of the upper layer has nothing to lie over.
            let Some(below) = below else { return (lower.cloned(), Value::Object(after.clone())) };
            let (below, above) = split_map(after, below, upper, true);
            let is_needed = lower.is_some() || !below.is_empty();
            (is_needed.then_some(Value::Object(below)), Value::Object(above))
        }
        (after, Value::Object(upper)) if upper.is_empty() => (Some(after.clone()), Value::Object(Map::new())),
        // The layer above covers what is not a map.
        _ => (lower.filter(|lower| !lower.is_object() || !after.is_object()).cloned(), after.clone()),
    }
}

/// Splits a map. `is_open` says whether what is new goes to the lower layer.
fn split_map(
    after: &Map<String, Value>,
    lower: &Map<String, Value>,
    upper: &Map<String, Value>,
    is_open: bool,
) -> (Map<String, Value>, Map<String, Value>) {
    let (mut below, mut above) = (Map::new(), Map::new());
    for (key, value) in after {
        let was_below = lower.get(key);
        match (value, upper.get(key)) {
            (Value::Object(value), Some(Value::Object(was_above))) => {
                let map_below = was_below.and_then(Value::as_object);
                let empty = Map::new();
                let (low, high) =
                    split_map(value, map_below.unwrap_or(&empty), was_above, map_below.is_some());
                match (map_below, was_below) {
                    (Some(_), _) => drop(below.insert(key.clone(), Value::Object(low))),
                    // It is covered by the map above.
                    (None, Some(covered)) => drop(below.insert(key.clone(), covered.clone())),
                    (None, None) => {}
                }
                above.insert(key.clone(), Value::Object(high));
            }
            (value, Some(_)) => {
                // A map below would be merged into one above.
                let covered = was_below.filter(|below| !(below.is_object() && value.is_object()));
                below.extend(covered.map(|covered| (key.clone(), covered.clone())));
                above.insert(key.clone(), value.clone());
            }
            (value, None) if is_open || was_below.is_some() => drop(below.insert(key.clone(), value.clone())),
            (value, None) => drop(above.insert(key.clone(), value.clone())),
        }
    }
    (below, above)
}

/// Returns `values` with what `upper` holds masked. Lists of it are masked as one.
pub fn masked(values: &Value, upper: &Value) -> Value {
    match (values, upper) {
        (Value::Object(values), Value::Object(upper)) => {
            let item = |(key, value): (&String, &Value)| {
                let shown = upper.get(key).map_or_else(|| value.clone(), |upper| masked(value, upper));
                (key.clone(), shown)
            };
            Value::Object(values.iter().map(item).collect())
        }
        (values, Value::Object(upper)) if upper.is_empty() => values.clone(),
        (Value::Null, _) => Value::Null,
        _ => Value::from(MASK),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::merge::merged as laid_over;

    /// What changed, the two layers before, and the two after it.
    type Case = (Value, Option<Value>, Value, Option<Value>, Value);

    #[test]
    fn what_a_hook_changed_goes_to_the_layer_it_comes_from() {
        let cases: [Case; 10] = [
            // What is new, beside secret keys.
            (json!({"a": 1, "p": "s"}), None, json!({"p": "s"}), Some(json!({"a": 1})), json!({"p": "s"})),
            // A secret value is another one.
            (
                json!({"a": 1, "p": "t"}),
                Some(json!({"a": 1})),
                json!({"p": "s"}),
                Some(json!({"a": 1})),
                json!({"p": "t"}),
            ),
            // A map that comes from the upper layer alone takes what is new in it.
            (
                json!({"db": {"user": "u", "pw": "s"}}),
                None,
                json!({"db": {"pw": "s"}}),
                None,
                json!({"db": {"pw": "s", "user": "u"}}),
            ),
            // One that both have does not.
            (
                json!({"db": {"host": "h", "user": "u", "pw": "s"}}),
                Some(json!({"db": {"host": "h"}})),
                json!({"db": {"pw": "s"}}),
                Some(json!({"db": {"host": "h", "user": "u"}})),
                json!({"db": {"pw": "s"}}),
            ),
            // What is gone is gone from both.
            (json!({}), Some(json!({"p": "old"})), json!({"p": "s"}), Some(json!({})), json!({})),
            // A value that is covered stays covered.
            (
                json!({"p": "t"}),
                Some(json!({"p": "default"})),
                json!({"p": "s"}),
                Some(json!({"p": "default"})),
                json!({"p": "t"}),
            ),
            // A map below does not come back through one above.
            (
                json!({"p": {"x": 1}}),
                Some(json!({"p": {"y": 2}})),
                json!({"p": "s"}),
                Some(json!({})),
                json!({"p": {"x": 1}}),
            ),
            (json!([1]), Some(json!([2])), json!({}), Some(json!([1])), json!({})),
            (json!([1]), Some(json!([2])), json!([3]), Some(json!([2])), json!([1])),
            (json!({"a": 1}), Some(json!([2])), json!({"a": 2}), Some(json!([2])), json!({"a": 1})),
        ];
        for (after, lower, upper, below, above) in cases {
            assert_eq!(split(&after, lower.as_ref(), &upper), (below, above), "{after} {lower:?} {upper}");
        }
    }

    #[test]
    fn whatever_changes_the_layers_give_it_again() {
        let values: Vec<Value> = [
            "{}",
            "[1]",
            r#"{"a":1}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":{"b":{"c":1}}}"#,
            r#"{"a":{"c":[2]},"d":null}"#,
            r#"{"a":null,"d":{"e":1}}"#,
            r#"{"d":{"e":{"f":1},"g":2}}"#,
        ]
        .map(|text| serde_json::from_str(text).unwrap())
        .to_vec();
        let lowers = values.iter().map(Some).chain([None]);
        for lower in lowers {
            for upper in &values {
                for after in &values {
                    let (below, above) = split(after, lower, upper);
                    let again = laid_over(&below.unwrap_or(json!({})), &above).unwrap();
                    let is_open_list = after.is_array() && *upper == json!({});
                    let again = if is_open_list { json!([1]) } else { again };
                    assert_eq!(again, *after, "{lower:?} {upper}");
                }
            }
        }
    }

    #[test]
    fn what_the_upper_layer_holds_is_masked() {
        let values = json!({"a": 1, "db": {"pw": "s", "host": "h", "no": null}, "l": [1], "url": "pw@h"});
        let upper = json!({"db": {"pw": "x", "no": 1}, "l": [2], "gone": 3, "url": {"pw": "x"}});
        let db = json!({"pw": "******", "host": "h", "no": null});
        // A text that a hook made of a secret map may quote it.
        let shown = json!({"a": 1, "db": db, "l": "******", "url": "******"});
        assert_eq!(masked(&values, &upper), shown);
        assert_eq!(masked(&values, &json!({})), values);
    }
}

//! How large a JSON value is, in values and in levels.

use serde_json::Value;

/// How large a value is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// How many values there are, itself included.
    pub values: usize,
    /// How deep lists and objects are nested in it; 0 if it is neither.
    pub depth: usize,
}

impl Extent {
    /// Measures a value.
    pub fn of(value: &Value) -> Extent {
        match value {
            Value::Object(fields) => Extent::around(fields.values()),
            Value::Array(items) => Extent::around(items.iter()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Extent { values: 1, depth: 0 }
            }
        }
    }

    fn around<'v>(items: impl Iterator<Item = &'v Value>) -> Extent {
        items.map(Extent::of).fold(Extent { values: 1, depth: 1 }, |all, one| Extent {
            values: all.values + one.values,
            depth: all.depth.max(one.depth + 1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_and_levels_are_counted() {
        for (value, values, depth) in
            [(json!(1), 1, 0), (json!([]), 1, 1), (json!({"a": [1, {"b": null}], "c": ""}), 6, 3)]
        {
            assert_eq!(Extent::of(&value), Extent { values, depth }, "{value}");
        }
    }
}

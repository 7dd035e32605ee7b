//! Merges one tree of values over another. See docs/modules.md#values.

use serde_json::Value;
use thiserror::Error;

/// How deeply maps may be merged into one another.
pub const MAX_DEPTH: usize = 32;

/// Why two trees cannot be merged.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("cannot merge values nested deeper than {MAX_DEPTH} levels, at \"{path}\"")]
pub struct MergeError {
    /// The JSON pointer of the map that is too deep.
    pub path: String,
}

/// Lays `over` over `base`.
///
/// Maps are merged key by key; everything else in `over` replaces what stands in
/// `base`, `null` too. When it fails, `base` may be merged in part.
pub fn merge(base: &mut Value, over: &Value) -> Result<(), MergeError> {
    merge_at(base, over, &mut Vec::new())
}

/// Returns `over` laid over `base`.
pub fn merged(base: &Value, over: &Value) -> Result<Value, MergeError> {
    let mut result = base.clone();
    merge(&mut result, over)?;
    Ok(result)
}

fn merge_at<'v>(base: &mut Value, over: &'v Value, path: &mut Vec<&'v str>) -> Result<(), MergeError> {
    let (Value::Object(base), Value::Object(over)) = (&mut *base, over) else {
        *base = over.clone();
        return Ok(());
    };
    if path.len() >= MAX_DEPTH {
        let path = format!("/{}", path.join("/"));
        return Err(MergeError { path });
    }
    for (key, value) in over {
        match base.get_mut(key) {
            Some(target) => {
                path.push(key);
                merge_at(target, value, path)?;
                path.pop();
            }
            None => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_merge_and_everything_else_is_replaced() {
        for (base, over, result) in [
            (json!({}), json!({"a": 1}), json!({"a": 1})),
            (json!({"a": 1}), json!({}), json!({"a": 1})),
            (
                json!({"a": {"b": 1, "c": 2}}),
                json!({"a": {"c": 3, "d": 4}}),
                json!({"a": {"b": 1, "c": 3, "d": 4}}),
            ),
            (json!({"a": [1, 2, 3]}), json!({"a": [4]}), json!({"a": [4]})),
            (json!({"a": {"b": 1}}), json!({"a": null}), json!({"a": null})),
            (json!({"a": null}), json!({"a": {"b": 1}}), json!({"a": {"b": 1}})),
            (json!({"a": {"b": 1}}), json!({"a": "x"}), json!({"a": "x"})),
            (json!([1]), json!({"a": 1}), json!({"a": 1})),
        ] {
            assert_eq!(merged(&base, &over), Ok(result), "{base} {over}");
        }
    }

    #[test]
    fn maps_nested_too_deeply_are_an_error() {
        let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }));
        assert!(merged(&nested(MAX_DEPTH), &nested(MAX_DEPTH)).is_ok());
        let error = merged(&nested(40), &nested(40)).unwrap_err();
        assert_eq!(error.path, "/a".repeat(MAX_DEPTH));
    }
}

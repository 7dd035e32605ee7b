//! What the key `<<` does: other mappings are merged into the one that has it.

use serde_json::{Map, Value};

use super::error::{Position, YamlError, YamlProblem};
use super::scalar::Dialect;

/// Merges `value`, a mapping or a list of them, into `map`.
///
/// What stands in `map` so far is overridden, or stays in version 3; of a list, the first mapping wins.
pub(super) fn merge(
    map: &mut Map<String, Value>,
    value: Value,
    dialect: Dialect,
    position: Position,
) -> Result<(), YamlError> {
    let mappings = match value {
        mapping @ Value::Object(_) => vec![mapping],
        Value::Array(items) => items,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(YamlProblem::Merge.at(position));
        }
    };
    let mut merged = Map::new();
    for mapping in mappings.into_iter().rev() {
        let Value::Object(mapping) = mapping else { return Err(YamlProblem::Merge.at(position)) };
        merged.extend(mapping);
    }
    for (key, value) in merged {
        if dialect == Dialect::V2 || !map.contains_key(&key) {
            map.insert(key, value);
        }
    }
    Ok(())
}

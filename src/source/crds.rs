//! The kinds of module sources, as they are installed.

use serde_json::Value;

/// The CRDs as YAML, for `addon-operator crds` and `examples/install`.
pub const CRDS: &str = include_str!("crds.yaml");

/// Returns the CRDs as objects.
///
/// # Errors
///
/// None that a test would let pass: the text is part of the program.
pub fn crds() -> Result<Vec<Value>, values::yaml::YamlError> {
    Ok(values::yaml::parse_all(CRDS)?.into_iter().filter(|document| !document.is_null()).collect())
}

//! The kinds of module sources, as they are installed.

use engine::SourceKind;
use objects::schema::Structural;
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

/// Returns the paths of what an object has that its kind does not know. The API server drops that, or refuses the object.
pub fn unknown_fields(kind: SourceKind, object: &Value) -> Vec<String> {
    let definitions = crds().unwrap_or_default();
    let is_its =
        |crd: &&Value| crd.pointer("/spec/names/kind").and_then(Value::as_str) == Some(kind.as_str());
    let schema = definitions.iter().find(is_its);
    let schema = schema.and_then(|crd| crd.pointer("/spec/versions/0/schema/openAPIV3Schema"));
    schema.map(|schema| Structural::of(schema).prune(&mut object.clone())).unwrap_or_default()
}

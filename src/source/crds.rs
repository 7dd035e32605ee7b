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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_kinds_have_short_names_and_columns_for_the_phase_and_the_modules() {
        let all = crds().unwrap();
        for (kind, short, scope) in
            [(SourceKind::Cluster, "cac", "Cluster"), (SourceKind::Namespaced, "ac", "Namespaced")]
        {
            let crd = all.iter().find(|crd| crd["spec"]["names"]["kind"] == kind.as_str()).unwrap();
            let (spec, version) = (&crd["spec"], &crd["spec"]["versions"][0]);
            assert_eq!([&spec["group"], &version["name"]], ["addons.kyma-project.io", "v1alpha1"]);
            assert_eq!((&spec["scope"], &spec["names"]["shortNames"]), (&json!(scope), &json!([short])));
            assert!(spec["names"]["categories"].as_array().unwrap().contains(&json!("addons")));
            let columns = version["additionalPrinterColumns"].as_array().unwrap();
            let columns: Vec<_> =
                columns.iter().map(|column| [&column["name"], &column["jsonPath"]]).collect();
            let expected = [
                ["Phase", ".status.phase"],
                ["Modules", ".status.modules"],
                ["Age", ".metadata.creationTimestamp"],
            ];
            assert_eq!(json!(columns), json!(expected));
            assert_eq!(version["subresources"], json!({"status": {}}));
        }
    }
}

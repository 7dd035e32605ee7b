//! The files of CRDs, below `crds/` of modules and charts. What is read here is what can be written.

use serde_json::Value;
use values::yaml;

const VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "CustomResourceDefinition";

/// Returns the CRDs of a text with their names. Documents may be empty; each may take `most` bytes of memory.
///
/// # Errors
///
/// What is no YAML, no CRD, or has no name, with its line or the number of its document.
pub fn read(text: &str, most: usize) -> Result<Vec<(String, Value)>, String> {
    let mut definitions = Vec::new();
    each(text, most, |name, definition| definitions.push((name, definition)))?;
    Ok(definitions)
}

/// Checks that a text can be [`read`], and holds one document of it at a time.
///
/// # Errors
///
/// The same.
pub fn check(text: &str, most: usize) -> Result<(), String> {
    each(text, most, |_, _| {})
}

fn each(text: &str, most: usize, mut take: impl FnMut(String, Value)) -> Result<(), String> {
    let mut number = 0;
    yaml::parse_each(text, most, |document| {
        number += 1;
        if document.is_null() {
            return Ok(());
        }
        let name = name_of(&document).map_err(|problem| format!("document {number}: {problem}"))?;
        take(name, document);
        Ok(())
    })
}

/// Returns the name of a CRD.
fn name_of(definition: &Value) -> Result<String, String> {
    let only = |found: &str| format!("only CRDs of {VERSION} belong here, not {found}: remove it");
    if !definition.is_object() {
        return Err(only("what is no mapping"));
    }
    let text =
        |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    match (text("/apiVersion"), text("/kind")) {
        (Some(VERSION), Some(KIND)) => {}
        (Some(version), Some(kind)) => return Err(only(&format!("{version} {kind}"))),
        (Some(_), None) => return Err(only("what has no kind")),
        (None, _) => return Err(only("what has no apiVersion")),
    }
    let name = text("/metadata/name").ok_or("the CRD has no metadata.name: write one")?;
    if definition.get("spec").is_some_and(Value::is_object) {
        Ok(name.to_owned())
    } else {
        Err(format!("the CRD {name} has no spec: write one"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRD: &str =
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n";

    #[test]
    fn only_definitions_with_a_name_are_read_and_what_else_there_is_is_told() {
        let whole = format!("{CRD}spec: {{}}\n");
        let two = format!("---\n# first\n---\n{whole}--- # second\n{whole}");
        assert_eq!(read(&two, usize::MAX).unwrap().len(), 2);
        // A text may hold what looks like the beginning of a document.
        let held = format!("{CRD}spec:\n  a: |2\n    x\n\n    ---\n  b: \"x\n    --- y\"\n");
        let definitions = read(&held, usize::MAX).unwrap();
        let (name, crd) = definitions.first().unwrap();
        assert_eq!((name.as_str(), crd.pointer("/spec/b")), ("a", Some(&Value::from("x --- y"))));
        let only = "only CRDs of apiextensions.k8s.io/v1 belong here, not";
        for (text, expected) in [
            ("hello", format!("document 1: {only} what is no mapping: remove it")),
            ("- a", format!("document 1: {only} what is no mapping: remove it")),
            ("{}", format!("document 1: {only} what has no apiVersion: remove it")),
            ("kind: A", format!("document 1: {only} what has no apiVersion: remove it")),
            ("apiVersion: v1", format!("document 1: {only} what has no kind: remove it")),
            ("{apiVersion: v1, kind: ConfigMap}", format!("document 1: {only} v1 ConfigMap: remove it")),
            (&format!("{whole}kind: A"), format!("document 1: {only} apiextensions.k8s.io/v1 A: remove it")),
            (CRD, "document 1: the CRD a has no spec: write one".to_owned()),
            (
                &whole.replace("name: a", "name: ''"),
                "document 1: the CRD has no metadata.name: write one".to_owned(),
            ),
            (&format!("{whole}---\n- a"), format!("document 2: {only} what is no mapping: remove it")),
        ] {
            assert_eq!(read(text, usize::MAX).unwrap_err(), expected, "{text}");
            assert_eq!(check(text, usize::MAX).unwrap_err(), expected, "{text}");
        }
        assert!(check("[x", usize::MAX).unwrap_err().starts_with("line "));
        // The limit is that of one document.
        assert!(check(&whole, 100).is_err());
        let (one, many) = (format!("---\n{whole}"), format!("---\n{whole}").repeat(100));
        assert_eq!((check(&one, 4096), check(&many, 4096)), (Ok(()), Ok(())));
    }
}

//! A document of values: several sections by key.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::checksum::Checksum;
use crate::yaml;

/// What a hook or a template sees: the global section and that of one module,
/// each behind its key.
///
/// A copy shares the sections.
#[derive(Clone, Default, PartialEq)]
pub struct Values {
    sections: BTreeMap<String, Arc<Value>>,
}

impl Values {
    /// Returns a document without sections.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the document with the section `key`.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, section: Arc<Value>) -> Self {
        self.sections.insert(key.into(), section);
        self
    }

    /// Returns the document with `key` set in the map that the section
    /// `section` is; other sections are shared.
    ///
    /// Nothing changes when there is no such section, or it is not a map.
    #[must_use]
    pub fn with_entry(mut self, section: &str, key: &str, value: Value) -> Self {
        if let Some(Value::Object(map)) = self.sections.get_mut(section).map(Arc::make_mut) {
            map.insert(key.to_owned(), value);
        }
        self
    }

    /// Returns the section `key`.
    pub fn get(&self, key: &str) -> Option<&Arc<Value>> {
        self.sections.get(key)
    }

    /// Returns all sections, sorted by key.
    pub fn sections(&self) -> impl Iterator<Item = (&str, &Arc<Value>)> {
        self.sections.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns the checksum of the document.
    pub fn checksum(&self) -> Checksum {
        Checksum::of(self)
    }

    /// Returns the document as one tree, a copy.
    pub fn to_value(&self) -> Value {
        let entry = |(key, value): (&String, &Arc<Value>)| (key.clone(), Value::clone(value));
        Value::Object(self.sections.iter().map(entry).collect())
    }

    /// Returns the document as JSON, in one line.
    pub fn to_json(&self) -> String {
        // A tree whose keys are strings cannot fail to be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the document as YAML, as `toYaml` writes it.
    pub fn to_yaml(&self) -> String {
        yaml::emit(&self.to_value())
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.sections.iter().map(|(key, value)| (key, &**value)))
    }
}

/// Values may be secrets: only the keys of the sections are printed.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sections = self.sections.iter();
        f.debug_map().entries(sections.map(|(key, value)| (key, Keys(value)))).finish()
    }
}

/// Prints the keys of a map, or the kind of another value.
pub(crate) struct Keys<'v>(pub(crate) &'v Value);

impl fmt::Debug for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Object(map) => f.debug_list().entries(map.keys()).finish(),
            Value::Array(items) => write!(f, "list of {}", items.len()),
            Value::Null => f.write_str("null"),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => f.write_str("scalar"),
        }
    }
}

/// Returns what kind of value `value` is, as messages call it.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Values {
        Values::new()
            .with("webApp", Arc::new(json!({"password": "hunter2", "replicas": 1})))
            .with("global", Arc::new(json!({"project": "x"})))
    }

    #[test]
    fn a_document_is_written_as_json_and_yaml() {
        assert_eq!(
            document().to_json(),
            r#"{"global":{"project":"x"},"webApp":{"password":"hunter2","replicas":1}}"#
        );
        assert_eq!(
            document().to_yaml(),
            "global:\n  project: x\nwebApp:\n  password: hunter2\n  replicas: 1\n"
        );
        assert_eq!(document().checksum(), Checksum::of(&document().to_value()));
    }

    #[test]
    fn debug_prints_keys_only() {
        let printed = format!("{:?}", document());
        assert_eq!(printed, r#"{"global": ["project"], "webApp": ["password", "replicas"]}"#);
    }

    #[test]
    fn an_entry_changes_one_section_and_only_in_the_copy() {
        let before = document();
        let after = before.clone().with_entry("global", "enabledModules", json!(["a"]));
        assert_eq!(after.get("global").unwrap()["enabledModules"], json!(["a"]));
        assert!(before.get("global").unwrap().get("enabledModules").is_none());
        assert!(Arc::ptr_eq(before.get("webApp").unwrap(), after.get("webApp").unwrap()));
        assert_eq!(before.clone().with_entry("missing", "a", json!(1)), before);
    }
}

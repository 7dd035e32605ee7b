//! Changes of values by a hook: operations for the operator, and the file that the hook goes on reading.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::path::{HookPath, Part, lookup, pointer};

/// How far beyond its end a list may grow.
const LONGEST_GAP: usize = 1000;

/// The values of a hook.
#[derive(Debug)]
pub(super) struct Values(Value);

/// What shall become of a value.
#[derive(Debug)]
pub(super) enum Change {
    Set(Value),
    Unset,
}

impl Values {
    pub(super) fn new(root: Value) -> Self {
        Self(root)
    }

    /// Changes a value and returns the operations of JSON Patch that do the same.
    ///
    /// Mappings on the way are made. An item of a list is changed by writing the whole list:
    /// operations on one place would pile up from run to run.
    pub(super) fn change(&mut self, path: &HookPath, change: Change) -> anyhow::Result<Vec<Value>> {
        let parts = path.parts();
        let Some((key, parents)) = parts.split_last() else { bail!("a path is required") };
        let list = (1..parts.len()).find_map(|length| {
            let parents = parts.get(..length)?;
            lookup(&self.0, parents).filter(|value| value.is_array()).map(|_| parents)
        });
        let mut operations = Vec::new();
        match change {
            Change::Unset => {
                if lookup(&self.0, parts).is_none() {
                    return Ok(operations);
                }
                match reach(&mut self.0, parents, path)? {
                    Value::Object(object) => drop(object.remove(&key.text)),
                    Value::Array(items) => drop(key.place.map(|place| items.remove(place))),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
                }
                if list.is_none() {
                    operations.push(json!({"op": "remove", "path": pointer(parts)}));
                }
            }
            Change::Set(value) => {
                if list.is_none() {
                    let missing = (1..parts.len()).filter_map(|length| parts.get(..length));
                    let missing =
                        missing.filter(|parents| lookup(&self.0, parents).is_none_or(Value::is_null));
                    operations.extend(
                        missing.map(|parents| json!({"op": "add", "path": pointer(parents), "value": {}})),
                    );
                    operations.push(json!({"op": "add", "path": pointer(parts), "value": value.clone()}));
                }
                put(reach(&mut self.0, parents, path)?, key, value, path)?;
            }
        }
        if let Some(list) = list {
            let value = lookup(&self.0, list).cloned().unwrap_or_default();
            operations.push(json!({"op": "add", "path": pointer(list), "value": value}));
        }
        Ok(operations)
    }

    /// Appends the operations to the patch file and replaces the file of the values.
    pub(super) fn write(
        &self,
        file: &Path,
        patch: Option<&Path>,
        operations: &[Value],
    ) -> anyhow::Result<()> {
        if let Some(patch) = patch.filter(|_| !operations.is_empty()) {
            let lines: Vec<String> = operations.iter().map(ToString::to_string).collect();
            let text = lines.join("\n") + "\n";
            let written = OpenOptions::new().append(true).create(true).open(patch);
            let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
            written.with_context(|| format!("can't write {}", patch.display()))?;
        }
        let replaced = || -> std::io::Result<()> {
            let draft = tempfile::NamedTempFile::new_in(file.parent().unwrap_or(Path::new(".")))?;
            fs::write(draft.path(), format!("{}\n", self.0))?;
            fs::set_permissions(draft.path(), fs::metadata(file)?.permissions())?;
            draft.persist(file)?;
            Ok(())
        };
        replaced().with_context(|| format!("can't write {}", file.display()))
    }
}

/// Returns what the parts lead to; what is missing becomes a mapping.
fn reach<'a>(root: &'a mut Value, parts: &[Part], path: &HookPath) -> anyhow::Result<&'a mut Value> {
    parts.iter().try_fold(root, |value, part| {
        if value.is_null() {
            *value = json!({});
        }
        match value {
            Value::Object(object) => Ok(object.entry(&part.text).or_insert(Value::Null)),
            Value::Array(items) => slot(items, part, path),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => wrong(part, path),
        }
    })
}

fn put(parent: &mut Value, part: &Part, value: Value, path: &HookPath) -> anyhow::Result<()> {
    *reach(parent, std::slice::from_ref(part), path)? = value;
    Ok(())
}

/// Returns a place in a list, which grows with nulls.
fn slot<'a>(items: &'a mut Vec<Value>, part: &Part, path: &HookPath) -> anyhow::Result<&'a mut Value> {
    let Some(place) = part.place else { return wrong(part, path) };
    if place > items.len() + LONGEST_GAP {
        bail!("{path}: the list has {} items; {place} is too far behind its end", items.len());
    }
    if place >= items.len() {
        items.resize(place + 1, Value::Null);
    }
    items.get_mut(place).context("a place that was just made")
}

fn wrong<T>(part: &Part, path: &HookPath) -> anyhow::Result<T> {
    bail!("{path}: what should hold {:?} is no mapping and, for a number, no list", part.text)
}

/// Returns a text as JSON if it is a number, a mapping, a list, a quoted string or a word of JSON, otherwise as a string.
pub(super) fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(root: &Value, path: &str, change: Change) -> (String, String) {
        let mut values = Values::new(root.clone());
        let operations = values.change(&HookPath::parse(path), change).unwrap();
        let text: Vec<String> = operations.iter().map(ToString::to_string).collect();
        (text.join("\n"), values.0.to_string())
    }

    #[test]
    fn changes_are_those_of_the_shell_framework() {
        let root = json!({"app": {"size": 1, "list": ["a", "b"], "n": null}});
        let set = |path: &str, text: &str| changed(&root, path, Change::Set(json_or_text(text)));
        assert_eq!(set("app.size", "3").0, r#"{"op":"add","path":"/app/size","value":3}"#);
        assert_eq!(set("app.name", "007").0, r#"{"op":"add","path":"/app/name","value":"007"}"#);
        assert_eq!(
            set("app.n.'x/y'", "{not json").0,
            "{\"op\":\"add\",\"path\":\"/app/n\",\"value\":{}}\n{\"op\":\"add\",\"path\":\"/app/n/x~1y\",\"value\":\"{not json\"}"
        );
        let (operations, values) = set("app.list.1", "c");
        assert_eq!(operations, r#"{"op":"add","path":"/app/list","value":["a","c"]}"#);
        assert_eq!(values, r#"{"app":{"list":["a","c"],"n":null,"size":1}}"#);
        let unset = |path: &str| changed(&root, path, Change::Unset);
        assert_eq!(unset("app.nothing").0, "");
        assert_eq!(unset("app.n").0, r#"{"op":"remove","path":"/app/n"}"#);
        assert_eq!(unset("app.list.0").0, r#"{"op":"add","path":"/app/list","value":["b"]}"#);
        let mut values = Values::new(root.clone());
        assert!(values.change(&HookPath::parse("app.size.x"), Change::Set(json!(1))).is_err());
        assert!(values.change(&HookPath::parse("app.list.99999999999"), Change::Set(json!(1))).is_err());
        assert!(values.change(&HookPath::parse(""), Change::Unset).is_err());
    }
}

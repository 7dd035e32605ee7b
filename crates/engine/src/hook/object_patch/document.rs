//! From one document to an operation.

use serde_json::{Map, Value};

use super::error::Problem;
use super::{Existing, ObjectPatch, Operation, Propagation, Purpose, Target};

const KEYS: [&str; 13] = [
    "operation",
    "apiVersion",
    "kind",
    "namespace",
    "name",
    "subresource",
    "object",
    "jqFilter",
    "mergePatch",
    "jsonPatch",
    "ignoreMissingObject",
    "ignoreHookError",
    "force",
];

/// Properties that are texts, however they are written in YAML.
pub(super) const TEXTS: [&str; 7] =
    ["operation", "apiVersion", "kind", "namespace", "name", "subresource", "jqFilter"];

/// Properties that say yes or no.
const FLAGS: [&str; 3] = ["ignoreMissingObject", "ignoreHookError", "force"];

const OPERATIONS: &str = "Apply Create CreateIfNotExists CreateOrUpdate Delete DeleteInBackground DeleteNonCascading JQPatch JSONPatch MergePatch";

/// Returns a JSON document whose known properties have their usual names; their case does not matter.
pub(super) fn with_known_keys(document: Value) -> Value {
    let Value::Object(map) = document else { return document };
    let known = |key: String| match KEYS.iter().find(|known| known.eq_ignore_ascii_case(&key)) {
        Some(known) => (*known).to_owned(),
        None => key,
    };
    Value::Object(map.into_iter().map(|(key, value)| (known(key), value)).collect())
}

/// Returns a YAML document whose properties have the types that they should have, as far as their text allows it.
pub(super) fn with_known_types(mut document: Value) -> Value {
    let Value::Object(map) = &mut document else { return document };
    for key in TEXTS {
        // What comes through an alias or a merge was not read as a text.
        if let Some(value @ (Value::Bool(_) | Value::Number(_))) = map.get_mut(key) {
            *value = Value::String(value.to_string());
        }
    }
    for key in FLAGS {
        let Some(value) = map.get_mut(key) else { continue };
        match value.as_str() {
            Some("y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON") => *value = Value::Bool(true),
            Some("n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF") => *value = Value::Bool(false),
            Some(_) | None => {}
        }
    }
    document
}

/// Returns what the document asks for.
pub(super) fn read(document: Value) -> Result<ObjectPatch, Problem> {
    let Value::Object(map) = document else {
        let reasons = vec![
            "it must be a mapping; operations are written one after the other, not in a list".to_owned(),
        ];
        return Err(Problem { said: Vec::new(), reasons });
    };
    let mut reader = Reader { map, problem: Problem::default() };
    match reader.patch() {
        Some(patch) if reader.problem.reasons.is_empty() => Ok(patch),
        Some(_) | None => Err(reader.problem),
    }
}

/// Returns whether a text stays one part of the path of a request: otherwise another object would be meant.
pub(crate) fn is_path_part(text: &str) -> bool {
    !matches!(text, "." | "..") && !text.contains(['/', '%'])
}

struct Reader {
    map: Map<String, Value>,
    problem: Problem,
}

impl Reader {
    fn patch(&mut self) -> Option<ObjectPatch> {
        let name = self.said("operation");
        let mut target = Target {
            api_version: self.said("apiVersion"),
            kind: self.said("kind"),
            namespace: self.said("namespace"),
            name: self.said("name"),
            subresource: None,
        };
        let subresource = self.said("subresource");
        let ignore_missing_object = self.flag("ignoreMissingObject", false);
        let ignore_hook_error = self.flag("ignoreHookError", false);
        let operation = match name.as_str() {
            "Create" => self.create(Existing::Fail),
            "CreateIfNotExists" => self.create(Existing::Keep),
            "CreateOrUpdate" => self.create(Existing::Update),
            "Apply" => {
                let force = self.flag("force", true);
                self.content("object").map(|object| Operation::Apply { object, force })
            }
            "Delete" => Some(Operation::Delete(Propagation::Foreground)),
            "DeleteInBackground" => Some(Operation::Delete(Propagation::Background)),
            "DeleteNonCascading" => Some(Operation::Delete(Propagation::Orphan)),
            "JQPatch" => self.jq(),
            "MergePatch" => self.content("mergePatch").map(|patch| Operation::MergePatch { patch }),
            "JSONPatch" => self.json_patch(),
            "" => {
                self.wrong(format!("operation is required, one of [{OPERATIONS}]"));
                None
            }
            _ => {
                self.wrong(format!("operation should be one of [{OPERATIONS}]"));
                None
            }
        }?;
        match &operation {
            Operation::Create { object, .. } => self.check_object(object, &mut target, true),
            Operation::Apply { object, .. }
            | Operation::ApplyChild { object }
            | Operation::TryCreate { object } => {
                target.subresource = without_slash(&subresource);
                self.check_object(object, &mut target, false);
            }
            Operation::Delete(_) => self.check_target(&target),
            Operation::Jq { .. } | Operation::JsonPatch { .. } | Operation::MergePatch { .. } => {
                target.subresource = without_slash(&subresource);
                self.check_target(&target);
            }
        }
        for (field, text) in [("namespace", &target.namespace), ("name", &target.name)] {
            if !is_path_part(text) {
                self.wrong(format!(
                    "{field} is part of a path: it can't be '.' or '..', nor have '/' or '%'"
                ));
            }
        }
        if target.subresource.as_deref().is_some_and(|text| !is_path_part(text)) {
            self.wrong(
                "subresource is part of a path: it can't be '.' or '..', nor have '/' or '%'".to_owned(),
            );
        }
        Some(ObjectPatch {
            target,
            operation,
            ignore_missing_object,
            ignore_hook_error,
            purpose: Purpose::Asked,
        })
    }

    fn create(&mut self, existing: Existing) -> Option<Operation> {
        self.content("object").map(|object| Operation::Create { object, existing })
    }

    fn jq(&mut self) -> Option<Operation> {
        match self.map.remove("jqFilter") {
            Some(Value::String(filter)) if !filter.is_empty() => Some(Operation::Jq { filter }),
            None | Some(Value::Null) => self.give_up("jqFilter is required".to_owned()),
            Some(_) => self.give_up("jqFilter must be a non-empty string".to_owned()),
        }
    }

    fn json_patch(&mut self) -> Option<Operation> {
        let patch = self.parsed("jsonPatch")?;
        let Value::Array(operations) = &patch else {
            return self.give_up("jsonPatch must be a list of operations, or a text with one".to_owned());
        };
        if operations.is_empty() {
            return self.give_up("jsonPatch should have at least 1 items".to_owned());
        }
        for (index, operation) in operations.iter().enumerate() {
            if let Some(reason) = problem_of_step(operation) {
                self.wrong(format!("jsonPatch item {}: {reason}", index + 1));
            }
        }
        Some(Operation::JsonPatch { patch })
    }

    /// Returns a mapping with content, written as such or as a text.
    fn content(&mut self, key: &str) -> Option<Value> {
        let value = self.parsed(key)?;
        match &value {
            Value::Object(map) if map.is_empty() => {
                self.give_up(format!("{key} should have at least 1 properties"))
            }
            Value::Object(_) => Some(value),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.give_up(format!("{key} must be a mapping, or a text with one"))
            }
        }
    }

    /// Returns the value of a property; a text is read as YAML, of which JSON is a part.
    fn parsed(&mut self, key: &str) -> Option<Value> {
        match self.map.remove(key) {
            None | Some(Value::Null) => self.give_up(format!("{key} is required")),
            Some(Value::String(text)) => match serde_json::from_str(&text) {
                Ok(value) => Some(value),
                Err(_) => match values::yaml::parse(&text) {
                    Ok(value) => Some(value),
                    Err(error) => self.give_up(format!("{key} is neither JSON nor YAML: {error}")),
                },
            },
            Some(value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => {
                Some(value)
            }
        }
    }

    /// Returns a text that says which operation or object is meant.
    fn said(&mut self, key: &'static str) -> String {
        match self.map.get(key) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => {
                self.problem.said.push((key, text.clone()));
                text.clone()
            }
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                self.wrong(format!("{key} must be of type string"));
                String::new()
            }
        }
    }

    fn flag(&mut self, key: &str, default: bool) -> bool {
        match self.map.get(key) {
            None | Some(Value::Null) => default,
            Some(Value::Bool(flag)) => *flag,
            Some(Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) => {
                self.wrong(format!("{key} must be of type boolean"));
                default
            }
        }
    }

    fn check_target(&mut self, target: &Target) {
        let required = [("kind", &target.kind), ("name", &target.name)];
        for (key, value) in required {
            if value.is_empty() {
                self.wrong(format!("{key} is required"));
            }
        }
        self.check_version(&target.api_version);
    }

    /// Takes the address of an object from the object itself.
    fn check_object(&mut self, object: &Value, target: &mut Target, may_be_nameless: bool) {
        let mut text = |place: &str, value: Option<&Value>| match value {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                self.wrong(format!("object.{place} must be of type string"));
                String::new()
            }
        };
        let metadata = |key| object.get("metadata").and_then(|metadata| metadata.get(key));
        target.api_version = text("apiVersion", object.get("apiVersion"));
        target.kind = text("kind", object.get("kind"));
        target.namespace = text("metadata.namespace", metadata("namespace"));
        target.name = text("metadata.name", metadata("name"));
        let is_named = !target.name.is_empty()
            || (may_be_nameless && !text("metadata.generateName", metadata("generateName")).is_empty());
        if target.kind.is_empty() {
            self.wrong("object.kind is required".to_owned());
        }
        if !is_named {
            self.wrong("object.metadata.name is required".to_owned());
        }
        self.check_version(&target.api_version);
    }

    fn check_version(&mut self, api_version: &str) {
        if api_version.matches('/').count() > 1 {
            self.wrong("apiVersion must be 'version' or 'group/version'".to_owned());
        }
    }

    fn wrong(&mut self, reason: String) {
        self.problem.reasons.push(reason);
    }

    fn give_up<T>(&mut self, reason: String) -> Option<T> {
        self.wrong(reason);
        None
    }
}

fn without_slash(subresource: &str) -> Option<String> {
    let name = subresource.trim_start_matches('/');
    (!name.is_empty()).then(|| name.to_owned())
}

/// Returns why an operation of a JSON Patch can't be carried out on any object.
fn problem_of_step(step: &Value) -> Option<String> {
    let Value::Object(step) = step else { return Some("it must be a mapping".to_owned()) };
    let text = |key: &str| step.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let Some(op) = text("op") else { return Some("op is required".to_owned()) };
    let missing = |key: &str| Some(format!("{key} is required for '{op}'"));
    let is_pointer = |key: &str| text(key).is_some_and(|path| path.starts_with('/'));
    match op {
        "add" | "replace" | "test" if !step.contains_key("value") => return missing("value"),
        "move" | "copy" if text("from").is_none() => return missing("from"),
        "move" | "copy" if !is_pointer("from") => return Some("from must begin with '/'".to_owned()),
        "add" | "replace" | "test" | "remove" | "move" | "copy" => {}
        _ => return Some(format!("op '{op}' should be one of [add copy move remove replace test]")),
    }
    match text("path") {
        None => missing("path"),
        Some(_) if !is_pointer("path") => Some("path must begin with '/'".to_owned()),
        Some(_) => None,
    }
}

//! Reads what a hook writes into `RECONCILE_RESULT_PATH`: what should be.

use std::fmt;
use std::time::Duration;

use serde_json::error::Category;
use serde_json::{Map, Value};
use values::json_type;

use crate::duration;

/// How many bytes a result may have.
pub const MAX_BYTES: usize = 16 << 20;

/// How many children an object may have.
pub const MAX_CHILDREN: usize = 5_000;

/// How many conditions a result may have.
pub const MAX_CONDITIONS: usize = 100;

/// The shortest and the longest time until a key comes back by itself.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_hours(24);

/// What should be, as a hook says. What it does not say stays as it is.
#[derive(Clone, Default, PartialEq)]
pub struct ReconcileResult {
    /// All children there should be, in the order in which they are made; an empty list leaves none.
    pub children: Option<Vec<Value>>,
    /// The status of the object, without its conditions.
    pub status: Option<Map<String, Value>>,
    /// Conditions of the object. Those of other types stay.
    pub conditions: Option<Vec<Condition>>,
    /// When the key comes back by itself.
    pub requeue_after: Option<Duration>,
    /// Whether nothing is left to do for an object that is being deleted.
    pub finalized: bool,
}

impl ReconcileResult {
    /// Returns whether the hook says something of the status.
    pub(crate) fn says_status(&self) -> bool {
        self.status.is_some() || self.conditions.is_some()
    }
}

/// A condition of an object, as a hook says it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Condition {
    /// Its type: `Ready`.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word for machines.
    pub reason: Option<String>,
    /// One line for people.
    pub message: Option<String>,
}

/// Why a result can't be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ResultError {
    /// This place holds something else than expected.
    #[error("{place}: expected {expected}, found {found}")]
    Shape {
        /// The JSON path.
        place: String,
        /// What belongs there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// It is not JSON.
    #[error("it is no JSON: {0}; write one object, such as {{\"children\": []}}")]
    Syntax(String),
    /// It has this many bytes.
    #[error("it has {0} bytes, more than the {MAX_BYTES} that are read")]
    TooLong(usize),
    /// There are too many of something.
    #[error("{place}: {count} are more than the {most} that there may be")]
    TooMany {
        /// The JSON path.
        place: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// A key occurs more than once.
    #[error("{0}; write each key once")]
    Repeated(String),
    /// It has a key that nobody knows.
    #[error("{0}: unknown key; known are children, status, conditions, requeueAfter and finalized")]
    Unknown(String),
    /// The text of a duration can't be used.
    #[error("requeueAfter: {0}")]
    Wait(String),
}

impl fmt::Debug for ReconcileResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let children = self.children.as_ref().map(Vec::len);
        f.debug_struct("ReconcileResult")
            .field("children", &children)
            .field("finalized", &self.finalized)
            .finish_non_exhaustive()
    }
}

/// Returns what a hook wrote. Nothing at all says nothing.
///
/// # Errors
///
/// If it can't be used as a whole, nothing of it may be used.
pub fn parse(text: &[u8]) -> Result<ReconcileResult, ResultError> {
    if text.len() > MAX_BYTES {
        return Err(ResultError::TooLong(text.len()));
    }
    if text.iter().all(u8::is_ascii_whitespace) {
        return Ok(ReconcileResult::default());
    }
    let value = values::unique::from_json(text).map_err(|error| match error.classify() {
        Category::Data => ResultError::Repeated(error.to_string()),
        Category::Eof | Category::Io | Category::Syntax => ResultError::Syntax(error.to_string()),
    })?;
    let Value::Object(fields) = value else { return Err(shape("the result", "an object", &value)) };
    let mut result = ReconcileResult::default();
    for (key, value) in fields {
        match (key.as_str(), value) {
            (_, Value::Null) => {}
            ("children", value) => result.children = Some(children(value)?),
            ("status", Value::Object(status)) => result.status = Some(status),
            ("conditions", value) => result.conditions = Some(conditions("conditions", &value)?),
            ("requeueAfter", Value::String(text)) => result.requeue_after = Some(wait(&text)?),
            ("finalized", Value::Bool(is_finalized)) => result.finalized = is_finalized,
            ("status", value) => return Err(shape("status", "an object", &value)),
            ("requeueAfter", value) => return Err(shape("requeueAfter", "a text such as \"30s\"", &value)),
            ("finalized", value) => return Err(shape("finalized", "a boolean", &value)),
            _ => return Err(ResultError::Unknown(key)),
        }
    }
    // Conditions are merged by their type wherever they are written.
    if let Some(written) = result.status.as_mut().and_then(|status| status.remove("conditions")) {
        if result.conditions.is_some() {
            return Err(shape("status.conditions", "nothing beside conditions", &written));
        }
        result.conditions = Some(conditions("status.conditions", &written)?);
    }
    Ok(result)
}

fn shape(place: &str, expected: &'static str, found: &Value) -> ResultError {
    let found = if found == "" { "an empty text" } else { json_type(found) };
    ResultError::Shape { place: place.to_owned(), expected, found: found.to_owned() }
}

fn children(value: Value) -> Result<Vec<Value>, ResultError> {
    let Value::Array(children) = value else { return Err(shape("children", "a list of objects", &value)) };
    let (place, count, most) = ("children", children.len(), MAX_CHILDREN);
    if count > most {
        return Err(ResultError::TooMany { place, count, most });
    }
    for (place, child) in children.iter().enumerate() {
        for (pointer, field) in
            [("/apiVersion", "apiVersion"), ("/kind", "kind"), ("/metadata/name", "metadata.name")]
        {
            let found = child.pointer(pointer).unwrap_or(&Value::Null);
            if found.as_str().is_none_or(str::is_empty) {
                return Err(shape(&format!("children[{place}].{field}"), "a text that is not empty", found));
            }
        }
        let namespace = child.pointer("/metadata/namespace");
        if let Some(found) = namespace.filter(|namespace| !namespace.is_string()) {
            return Err(shape(&format!("children[{place}].metadata.namespace"), "a text", found));
        }
        for (pointer, field) in [("/metadata/labels", "labels"), ("/metadata/annotations", "annotations")] {
            if let Some(found) = child.pointer(pointer).filter(|found| !found.is_object() && !found.is_null())
            {
                return Err(shape(&format!("children[{place}].metadata.{field}"), "an object", found));
            }
        }
    }
    Ok(children)
}

fn conditions(place: &'static str, value: &Value) -> Result<Vec<Condition>, ResultError> {
    let Value::Array(conditions) = value else { return Err(shape(place, "a list of objects", value)) };
    let (count, most) = (conditions.len(), MAX_CONDITIONS);
    if count > most {
        return Err(ResultError::TooMany { place, count, most });
    }
    let mut read: Vec<Condition> = Vec::with_capacity(count);
    for (index, value) in conditions.iter().enumerate() {
        let text = |field: &str| {
            let found = value.get(field).filter(|found| !found.is_null());
            let wrong = |found| shape(&format!("{place}[{index}].{field}"), "a text", found);
            found.map(|found| found.as_str().map(str::to_owned).ok_or_else(|| wrong(found))).transpose()
        };
        let needed = |field: &str, expected| {
            text(field)?.ok_or_else(|| shape(&format!("{place}[{index}].{field}"), expected, &Value::Null))
        };
        let kind = needed("type", "a text")?;
        if kind.is_empty() {
            let place = format!("{place}[{index}].type");
            return Err(ResultError::Shape { place, expected: "a name", found: "an empty text".to_owned() });
        }
        let condition = Condition {
            kind,
            status: needed("status", "True, False or Unknown")?,
            reason: text("reason")?,
            message: text("message")?,
        };
        if !["True", "False", "Unknown"].contains(&condition.status.as_str()) {
            let place = format!("{place}[{index}].status");
            return Err(ResultError::Shape {
                place,
                expected: "True, False or Unknown",
                found: condition.status,
            });
        }
        if read.iter().any(|known| known.kind == condition.kind) {
            let place = format!("{place}[{index}].type");
            return Err(ResultError::Shape { place, expected: "each type once", found: condition.kind });
        }
        read.push(condition);
    }
    Ok(read)
}

fn wait(text: &str) -> Result<Duration, ResultError> {
    let wait = duration::parse(text).map_err(|error| ResultError::Wait(error.to_string()))?;
    if !(SHORTEST..=LONGEST).contains(&wait) {
        return Err(ResultError::Wait(format!("\"{text}\" is not between 1s and 24h")));
    }
    Ok(wait)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(value: &Value) -> String {
        parse(value.to_string().as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_said_stays_as_it_is() {
        assert_eq!(parse(b" \n").unwrap(), ReconcileResult::default());
        assert_eq!(parse(b"{}").unwrap(), ReconcileResult::default());
        assert_eq!(parse(br#"{"children": null}"#).unwrap().children, None);
        assert_eq!(parse(br#"{"children": []}"#).unwrap().children, Some(Vec::new()));
    }

    #[test]
    fn conditions_are_found_wherever_they_are_written() {
        let written = json!([{"type": "Ready", "status": "True", "reason": "AsExpected"}]);
        let beside = parse(json!({"conditions": written}).to_string().as_bytes()).unwrap();
        let inside =
            parse(json!({"status": {"a": 1, "conditions": written}}).to_string().as_bytes()).unwrap();
        assert_eq!(beside.conditions, inside.conditions);
        assert_eq!(beside.conditions.unwrap()[0].reason.as_deref(), Some("AsExpected"));
        assert_eq!(inside.status.unwrap().len(), 1);
        assert!(
            refused(&json!({"conditions": [], "status": {"conditions": []}}))
                .starts_with("status.conditions: ")
        );
    }

    #[test]
    fn what_can_not_be_used_names_its_place() {
        let child = |child: Value| json!({"children": [child]});
        let cases = [
            (json!([]), "the result: expected an object"),
            (json!({"children": {}}), "children: expected a list"),
            (
                child(json!({"kind": "A", "metadata": {"name": "a"}})),
                "children[0].apiVersion: expected a text",
            ),
            (
                child(json!({"apiVersion": "v1", "kind": "A"})),
                "children[0].metadata.name: expected a text that is not empty, found ",
            ),
            (
                child(json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": ""}})),
                "children[0].metadata.name: expected a text that is not empty, found an empty text",
            ),
            (
                child(json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "namespace": 1}})),
                "children[0].metadata.namespace: ",
            ),
            (
                child(json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "labels": 1}})),
                "children[0].metadata.labels: ",
            ),
            (json!({"conditions": [{"type": "", "status": "True"}]}), "conditions[0].type: expected a name"),
            (json!({"conditions": [{"type": "A", "status": true}]}), "conditions[0].status: expected a text"),
            (
                json!({"conditions": [{"type": "A", "status": "true"}]}),
                "conditions[0].status: expected True, ",
            ),
            (
                json!({"conditions": [{"type": "A", "status": "True"}, {"type": "A", "status": "True"}]}),
                "conditions[1].type: expected each type once",
            ),
            (json!({"requeueAfter": 5}), "requeueAfter: expected a text"),
            (json!({"requeueAfter": "soon"}), "requeueAfter: invalid duration"),
            (json!({"requeueAfter": "10ms"}), "requeueAfter: \"10ms\" is not between 1s and 24h"),
            (json!({"requeueAfter": "25h"}), "requeueAfter: \"25h\" is not between 1s and 24h"),
            (json!({"finalised": true}), "finalised: unknown key"),
        ];
        for (value, expected) in cases {
            let text = refused(&value);
            assert!(text.starts_with(expected), "{text}");
        }
        assert!(parse(b"{").unwrap_err().to_string().starts_with("it is no JSON"));
        assert!(parse(b"{} {}").unwrap_err().to_string().starts_with("it is no JSON"));
        let twice = br#"{"status": {"a": 1}, "status": {"b": 2}}"#;
        assert_eq!(
            parse(twice).unwrap_err().to_string(),
            "key \"status\" occurs twice at line 1 column 29; write each key once"
        );
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let long = vec![b' '; MAX_BYTES + 1];
        assert_eq!(parse(&long), Err(ResultError::TooLong(MAX_BYTES + 1)));
        let children = vec![json!({}); MAX_CHILDREN + 1];
        assert_eq!(
            refused(&json!({"children": children})),
            "children: 5001 are more than the 5000 that there may be"
        );
        let conditions = vec![json!({}); MAX_CONDITIONS + 1];
        assert!(refused(&json!({"conditions": conditions})).starts_with("conditions: 101 are more than"));
    }
}

//! Reads what a hook writes into `METRICS_PATH`. See docs/hooks.md#metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::error_list;

/// How long the file may be.
pub const MAX_BYTES: usize = 32 << 20;

/// How long one operation may be.
pub const MAX_OPERATION_BYTES: usize = 1 << 20;

/// How many operations the file may hold.
pub const MAX_OPERATIONS: usize = 100_000;

/// One change of the metrics that a hook exports.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricOperation {
    /// The name of the metric, without a prefix. Empty for [`MetricAction::Expire`].
    pub name: String,
    /// What happens to it.
    pub action: MetricAction,
    /// The labels of the series. Those that say whose it is are added where metrics are exported.
    pub labels: BTreeMap<String, String>,
    /// The group whose metrics are replaced as a whole. Metrics without one stay and accumulate.
    pub group: Option<String>,
}

/// What happens to a metric.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricAction {
    /// A counter grows.
    Add(f64),
    /// All metrics of the group go; without a group, those of the hook that have none.
    Expire,
    /// A histogram sees a value.
    Observe {
        /// The value.
        value: f64,
        /// The upper bounds of the buckets, growing; empty for the defaults.
        buckets: Vec<f64>,
    },
    /// A gauge gets a value.
    Set(f64),
    /// What the hook wrote is none of the actions. Nothing happens, except that it is told.
    Unknown(String),
}

/// Why the metrics of a hook were refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum MetricError {
    /// Operations can't be carried out.
    #[error("{}", Problems(.0))]
    Invalid(Vec<MetricProblem>),
    /// An operation is not JSON.
    #[error("operation {number}: {reason}")]
    Syntax {
        /// Which operation, counted from one.
        number: usize,
        /// What is wrong with the text, with line and column.
        reason: String,
    },
    /// The file has this many bytes, more than [`MAX_BYTES`].
    #[error("the file has {0} bytes, more than {MAX_BYTES}; export fewer metrics")]
    TooLong(usize),
    /// There are more than [`MAX_OPERATIONS`].
    #[error("the file has more than {MAX_OPERATIONS} operations; export fewer metrics")]
    TooMany,
}

/// What is wrong with one operation.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("operation {number}: {reason}")]
pub struct MetricProblem {
    /// Which operation, counted from one.
    pub number: usize,
    /// What is wrong.
    pub reason: String,
}

struct Problems<'a>(&'a [MetricProblem]);

impl fmt::Display for Problems<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        error_list::write(f, self.0)
    }
}

/// Returns the operations of `text`: JSON objects, one after the other.
///
/// # Errors
///
/// If there is one, no operation may be carried out. What is wrong with
/// operations that can be read is told together.
pub fn parse(text: &[u8]) -> Result<Vec<MetricOperation>, MetricError> {
    if text.len() > MAX_BYTES {
        return Err(MetricError::TooLong(text.len()));
    }
    let mut operations = Vec::new();
    let mut problems = Vec::new();
    // One operation at a time becomes values, which need much more memory than text.
    let documents = serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>();
    for (index, document) in documents.enumerate() {
        if index >= MAX_OPERATIONS {
            return Err(MetricError::TooMany);
        }
        let number = index + 1;
        let wrong = |error: serde_json::Error| MetricError::Syntax { number, reason: error.to_string() };
        let document = document.map_err(wrong)?.get();
        if document.len() > MAX_OPERATION_BYTES {
            let reason = format!("it has {} bytes, more than {MAX_OPERATION_BYTES}", document.len());
            return Err(MetricError::Syntax { number, reason });
        }
        let document = serde_json::from_str(document).map_err(wrong)?;
        match read(document) {
            Ok(operation) => operations.push(operation),
            Err(reasons) => {
                problems.extend(reasons.into_iter().map(|reason| MetricProblem { number, reason }));
            }
        }
    }
    if problems.is_empty() { Ok(operations) } else { Err(MetricError::Invalid(problems)) }
}

/// The properties as they are written.
#[derive(Debug, Default)]
struct Written {
    name: String,
    action: String,
    value: Option<f64>,
    buckets: Option<Vec<f64>>,
    labels: BTreeMap<String, String>,
    group: String,
    add: Option<f64>,
    set: Option<f64>,
}

fn read(document: Value) -> Result<MetricOperation, Vec<String>> {
    let Value::Object(map) = document else {
        return Err(vec!["it must be a JSON object, one after the other and not in a list".to_owned()]);
    };
    let mut written = written(map)?;
    match (written.add.take(), written.set.take()) {
        (Some(value), None) => written.shorten("add", value),
        (None, Some(value)) => written.shorten("set", value),
        (None, None) | (Some(_), Some(_)) => {}
    }
    written.checked()
}

/// Reads the properties; the case of their names does not matter, and unknown ones are passed over.
fn written(map: Map<String, Value>) -> Result<Written, Vec<String>> {
    let mut written = Written::default();
    let mut problems = Vec::new();
    for (key, value) in map {
        // As if it was not there.
        if value.is_null() {
            continue;
        }
        if let Err(wanted) = written.take(&key.to_ascii_lowercase(), value) {
            problems.push(format!("'{key}' must be {wanted}"));
        }
    }
    if problems.is_empty() { Ok(written) } else { Err(problems) }
}

impl Written {
    fn take(&mut self, key: &str, value: Value) -> Result<(), &'static str> {
        match key {
            "name" => self.name = string(value)?,
            "action" => self.action = string(value)?,
            "group" => self.group = string(value)?,
            "value" => self.value = Some(number(&value)?),
            "add" => self.add = Some(number(&value)?),
            "set" => self.set = Some(number(&value)?),
            "buckets" => {
                let Value::Array(items) = value else { return Err("a list of numbers") };
                let buckets = items.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>();
                self.buckets = Some(buckets.ok_or("a list of numbers")?);
            }
            "labels" => {
                let wanted = "an object whose values are strings";
                let Value::Object(labels) = value else { return Err(wanted) };
                for (name, value) in labels {
                    self.labels.insert(name, string(value).map_err(|_| wanted)?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn shorten(&mut self, action: &str, value: f64) {
        action.clone_into(&mut self.action);
        self.value = Some(value);
    }

    fn checked(self) -> Result<MetricOperation, Vec<String>> {
        let mut problems = Vec::new();
        let action = match self.action.as_str() {
            "add" => self.value.map(MetricAction::Add),
            "set" => self.value.map(MetricAction::Set),
            "observe" => {
                if self.buckets.is_none() {
                    problems.push("'buckets' is required when action is 'observe'".to_owned());
                }
                let buckets = self.buckets.clone().unwrap_or_default();
                self.value.map(|value| MetricAction::Observe { value, buckets })
            }
            "expire" => Some(MetricAction::Expire),
            _ => {
                let action = MetricAction::Unknown(self.action.clone());
                return Ok(self.into_operation(action));
            }
        };
        if action.is_none() {
            problems.push(format!("'value' is required when action is '{}'", self.action));
        }
        if action != Some(MetricAction::Expire) {
            problems.extend(self.problem_of_name());
        }
        problems.extend(action.as_ref().and_then(problem_of_action));
        problems.extend(self.problem_of_labels());
        match action {
            Some(action) if problems.is_empty() => Ok(self.into_operation(action)),
            Some(_) | None => Err(problems),
        }
    }

    fn into_operation(self, action: MetricAction) -> MetricOperation {
        let group = (!self.group.is_empty()).then_some(self.group);
        MetricOperation { name: self.name, action, labels: self.labels, group }
    }

    fn problem_of_name(&self) -> Option<String> {
        if self.name.is_empty() {
            return Some("'name' is required".to_owned());
        }
        (!is_name(&self.name, true))
            .then(|| format!("'{}' is not a name of a metric: use letters, digits, '_' and ':'", self.name))
    }

    fn problem_of_labels(&self) -> Option<String> {
        let is_bad = |name: &&String| !is_name(name, false) || name.starts_with("__");
        if let Some(name) = self.labels.keys().find(is_bad) {
            return Some(format!("'{name}' is not a name of a label: use letters, digits and '_'"));
        }
        (self.action == "observe" && self.labels.contains_key("le"))
            .then(|| "the label 'le' of a histogram says the bound of a bucket: use another name".to_owned())
    }
}

fn problem_of_action(action: &MetricAction) -> Option<String> {
    match action {
        MetricAction::Add(value) if *value < 0.0 => Some("a counter can't go down: use 'set'".to_owned()),
        MetricAction::Observe { buckets, .. } if !buckets.is_sorted_by(|a, b| a < b) => {
            Some("'buckets' must grow from one to the next".to_owned())
        }
        MetricAction::Add(_)
        | MetricAction::Expire
        | MetricAction::Observe { .. }
        | MetricAction::Set(_)
        | MetricAction::Unknown(_) => None,
    }
}

fn is_name(name: &str, with_colons: bool) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || (with_colons && c == ':');
    name.chars().all(is_fine) && name.chars().next().is_some_and(|c| !c.is_ascii_digit())
}

fn string(value: Value) -> Result<String, &'static str> {
    if let Value::String(text) = value { Ok(text) } else { Err("a string") }
}

fn number(value: &Value) -> Result<f64, &'static str> {
    value.as_f64().ok_or("a number")
}

/// Returns the groups that these operations replace.
pub fn groups(operations: &[MetricOperation]) -> BTreeSet<&str> {
    let known = operations.iter().filter(|operation| !matches!(operation.action, MetricAction::Unknown(_)));
    known.filter_map(|operation| operation.group.as_deref()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(name: &str, action: MetricAction) -> MetricOperation {
        MetricOperation { name: name.into(), action, labels: BTreeMap::new(), group: None }
    }

    fn one(text: &str) -> MetricOperation {
        let parsed = parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(parsed.len(), 1, "{text}");
        parsed.into_iter().next().unwrap()
    }

    #[test]
    fn every_form_of_an_operation_is_read() {
        for (text, expected) in [
            (r#"{"name":"a","action":"add","value":2}"#, operation("a", MetricAction::Add(2.0))),
            (r#"{"name":"a","add":2.5}"#, operation("a", MetricAction::Add(2.5))),
            (r#"{"name":"a","set":-1}"#, operation("a", MetricAction::Set(-1.0))),
            (
                r#"{"NAME":"a","Action":"set","VALUE":1e3,"other":[]}"#,
                operation("a", MetricAction::Set(1000.0)),
            ),
            (r#"{"name":"a","action":"add","value":9,"set":1}"#, operation("a", MetricAction::Set(1.0))),
            (
                r#"{"name":"a","action":"add","value":9,"set":1,"add":2}"#,
                operation("a", MetricAction::Add(9.0)),
            ),
            (
                r#"{"name":"a","set":1,"add":null,"labels":null,"group":""}"#,
                operation("a", MetricAction::Set(1.0)),
            ),
            (
                r#"{"name":"a","action":"observe","value":0.7,"buckets":[0.5,1]}"#,
                operation("a", MetricAction::Observe { value: 0.7, buckets: vec![0.5, 1.0] }),
            ),
            (
                r#"{"name":"a","action":"observe","value":0.7,"buckets":[]}"#,
                operation("a", MetricAction::Observe { value: 0.7, buckets: vec![] }),
            ),
            (r#"{"action":"expire"}"#, operation("", MetricAction::Expire)),
        ] {
            assert_eq!(one(text), expected, "{text}");
        }
        let full = one(r#"{"name":"a:b","set":1,"labels":{"zone":"a b","_x":""},"group":"g"}"#);
        assert_eq!(full.labels, [("zone".into(), "a b".into()), ("_x".into(), String::new())].into());
        assert_eq!(full.group.as_deref(), Some("g"));
    }

    #[test]
    fn operations_follow_each_other_with_or_without_lines() {
        let text = "{\"name\":\"a\",\"set\":1}{\"name\":\"b\",\"set\":2}\n\n {\"group\":\"g\",\"action\":\"expire\"}\n";
        let parsed = parse(text.as_bytes()).unwrap();
        assert_eq!(parsed.iter().map(|o| o.name.as_str()).collect::<Vec<_>>(), ["a", "b", ""]);
        assert_eq!(groups(&parsed).into_iter().collect::<Vec<_>>(), ["g"]);
        assert_eq!(parse(b""), Ok(Vec::new()));
    }

    #[test]
    fn an_unknown_action_is_passed_on_as_such() {
        for (text, action) in [
            (r#"{"name":"a","action":"multiply","group":"g"}"#, "multiply"),
            (r#"{"name":"a","value":1}"#, ""),
            (r#"{"name":"a","add":1,"set":1,"group":"g"}"#, ""),
            ("{}", ""),
        ] {
            let parsed = parse(text.as_bytes()).unwrap();
            assert_eq!(parsed[0].action, MetricAction::Unknown(action.into()), "{text}");
            assert!(groups(&parsed).is_empty(), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_the_operation() {
        for (text, expected) in [
            (r#"{"name": "#, "operation 1: EOF while parsing"),
            (r#"{"name":"a","set":1} x"#, "operation 2: expected value at line 1 column 22"),
            (r#"[{"name":"a","set":1}]"#, "operation 1: it must be a JSON object"),
            ("5", "operation 1: it must be a JSON object"),
            (r#"{"set":1}"#, "operation 1: 'name' is required"),
            (r#"{"name":"a","action":"set"}"#, "operation 1: 'value' is required when action is 'set'"),
            (r#"{"name":"a","action":"observe","value":1}"#, "operation 1: 'buckets' is required"),
            (r#"{"name":"a","set":"1"}"#, "operation 1: 'set' must be a number"),
            (
                r#"{"name":"a","set":1,"labels":{"a":1}}"#,
                "operation 1: 'labels' must be an object whose values are strings",
            ),
            (r#"{"name":"a","set":1,"labels":["a"]}"#, "operation 1: 'labels' must be"),
            (r#"{"name":"a","set":1,"labels":{"a-b":"x"}}"#, "operation 1: 'a-b' is not a name of a label"),
            (
                r#"{"name":"a","set":1,"labels":{"__name__":"x"}}"#,
                "operation 1: '__name__' is not a name of a label",
            ),
            (
                r#"{"name":"a","action":"observe","value":1,"buckets":[],"labels":{"le":"x"}}"#,
                "operation 1: the label 'le' of a histogram says the bound of a bucket",
            ),
            (r#"{"name":"1a","set":1}"#, "operation 1: '1a' is not a name of a metric"),
            (r#"{"name":"a","add":-1}"#, "operation 1: a counter can't go down"),
            (
                r#"{"name":"a","action":"observe","value":1,"buckets":[2,1]}"#,
                "operation 1: 'buckets' must grow",
            ),
            (
                r#"{"name":"a","action":"observe","value":1,"buckets":["x"]}"#,
                "operation 1: 'buckets' must be a list of numbers",
            ),
            (r#"{"name":5,"set":1}"#, "operation 1: 'name' must be a string"),
        ] {
            let message = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn all_operations_that_are_wrong_are_told_together() {
        let text = r#"{"set":1} {"name":"a","set":1} {"name":"b","action":"add"} {"action":"observe"}"#;
        let message = parse(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            message,
            "5 errors occurred:\n\t* operation 1: 'name' is required\n\t* operation 3: 'value' is required when action is 'add'\n\
             \t* operation 4: 'buckets' is required when action is 'observe'\n\t* operation 4: 'value' is required when action is 'observe'\n\
             \t* operation 4: 'name' is required\n\n"
        );
    }

    #[test]
    fn a_file_that_is_too_long_is_refused() {
        let long = vec![b' '; MAX_BYTES + 1];
        assert_eq!(parse(&long), Err(MetricError::TooLong(MAX_BYTES + 1)));
        let list = format!("{{\"name\":\"a\",\"set\":1}} [{}0]", "0,".repeat(MAX_OPERATION_BYTES / 2));
        let message = parse(list.as_bytes()).unwrap_err().to_string();
        assert!(message.starts_with("operation 2: it has 10485"), "{message}");
        let many = b"{}".repeat(MAX_OPERATIONS + 1);
        assert_eq!(parse(&many), Err(MetricError::TooMany));
    }

    proptest::proptest! {
        #[test]
        fn any_text_gets_an_answer(text in "[{}\\[\\]\":,a-z0-9.\\- ]{0,80}") {
            drop(parse(text.as_bytes()));
        }

        #[test]
        fn any_bytes_get_an_answer(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..60)) {
            drop(parse(&bytes));
        }
    }
}

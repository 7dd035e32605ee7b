//! Compares what happened in a step with what is expected.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use engine::hook::reconcile::Condition;
use engine::{Failure, FailureKind};
use serde_json::{Map, Value, json};

use super::recorder::{Run, StepRecord};
use super::render::{
    expected_metrics, expected_object_patches, metric, object_patch, projected, values_patch,
};
use super::test_file::{Step, pattern};
use crate::line_diff;

/// The state after a step.
#[derive(Debug, Default)]
pub(super) struct Observation {
    pub(super) record: StepRecord,
    /// Why objects were refused.
    pub(super) refused: Vec<String>,
    /// What `convert` returned.
    pub(super) converted: Vec<Value>,
    /// What hooks printed.
    pub(super) lines: Vec<String>,
    /// All values by section, and what the ConfigMap says.
    pub(super) values: Value,
    pub(super) config: Value,
    /// The modules that are on, by key.
    pub(super) enabled: Value,
    /// The objects that are expected, as they are; null where there is none.
    pub(super) objects: Vec<Value>,
    /// The objects that are expected to be absent, but are there.
    pub(super) present: Vec<Value>,
    /// The rendered objects of charts. They are collected only for an empty `expect`.
    pub(super) rendered: Vec<Value>,
    /// Whether descriptions of runs contain the name of the hook.
    pub(super) names_hooks: bool,
}

/// A difference between what is expected and what happened.
#[derive(Clone, Debug)]
pub(super) struct Mismatch {
    /// The step, as a JSON pointer.
    pub(super) pointer: String,
    /// The key below `expect`.
    pub(super) key: &'static str,
    pub(super) message: String,
    /// The value that would be right; `None` if there is none.
    pub(super) actual: Option<Value>,
}

/// Returns all differences from the expectations of a step.
pub(super) fn mismatches(step: &Step, observation: &Observation) -> Vec<Mismatch> {
    let mut check = Check { step, observation, found: Vec::new() };
    check.failures();
    check.refusals();
    check.written();
    check.said();
    check.state();
    check.log();
    if step.is_open {
        check.fill();
    }
    check.found
}

struct Check<'a> {
    step: &'a Step,
    observation: &'a Observation,
    found: Vec<Mismatch>,
}

impl Check<'_> {
    fn expected(&self, key: &str) -> Option<&Value> {
        self.step.expect.get(key).filter(|value| !value.is_null())
    }

    fn wrong(&mut self, key: &'static str, message: String, actual: Option<Value>) {
        self.found.push(Mismatch { pointer: self.step.pointer.clone(), key, message, actual });
    }

    fn compare(&mut self, key: &'static str, expected: &Value, actual: Value) {
        if *expected != actual {
            let message = format!("{key} differs:\n{}", diff(expected, &actual));
            self.wrong(key, message, Some(actual));
        }
    }

    /// Nothing fails unless it is expected.
    fn failures(&mut self) {
        let last = self.observation.record.runs.last().and_then(exit_code);
        if let Some(expected) = self.expected("exit").cloned() {
            match last {
                Some(code) => self.compare("exit", &expected, code.into()),
                None => self.wrong("exit", "exit differs: no hook ran to its end".to_owned(), None),
            }
        }
        let failures = &self.observation.record.failures;
        if let Some(expected) = self.expected("error").cloned() {
            let wanted = text(&expected);
            if !failures.iter().any(|failure| matches(&wanted, &failure.to_string())) {
                let shown: Vec<String> = failures.iter().map(ToString::to_string).collect();
                let shown = if shown.is_empty() { "nothing failed".to_owned() } else { shown.join("\n") };
                let actual = failures.first().map(|failure| failure.message.clone().into());
                self.wrong("error", format!("no failure says {wanted:?}; {shown}"), actual);
            }
            return;
        }
        let is_exit_expected = self.expected("exit").is_some_and(|code| *code != 0);
        let unexpected: Vec<&Failure> = failures
            .iter()
            .filter(|failure| !(is_exit_expected && failure.kind == FailureKind::HookExit))
            .collect();
        let mut shown = BTreeSet::new();
        for failure in unexpected {
            let mut message = format!("it failed: {failure}");
            if !shown.insert(message.clone()) {
                continue;
            }
            if let Some(advice) = &failure.advice {
                message.push_str("\n  ");
                message.push_str(advice);
            }
            match last.filter(|code| *code != 0) {
                Some(code) if failure.kind == FailureKind::HookExit => {
                    self.wrong("exit", message, Some(code.into()));
                }
                _ => self.wrong("error", message, Some(failure.message.clone().into())),
            }
        }
    }

    /// Nothing is refused unless that is expected.
    fn refusals(&mut self) {
        let refused = &self.observation.refused;
        let first = refused.first().map(|message| Value::from(message.as_str()));
        match self.expected("refused").map(text) {
            None if refused.is_empty() => {}
            None => self.wrong("refused", format!("it is refused: {}", refused.join("\n")), first),
            Some(wanted) if refused.iter().any(|message| matches(&wanted, message)) => {}
            Some(wanted) => {
                let shown =
                    if refused.is_empty() { "nothing was refused".to_owned() } else { refused.join("\n") };
                self.wrong("refused", format!("no refusal says {wanted:?}; {shown}"), first);
            }
        }
    }

    /// Compares what the last runs of a controller said, and converted objects.
    fn said(&mut self) {
        let runs = self.observation.record.runs.iter().rev();
        let outputs =
            runs.filter(|run| run.is_reconciliation).filter_map(|run| run.outcome.as_ref()?.as_ref().ok());
        // What a run leaves out stays as the run before has said it.
        let results: Vec<_> = outputs.map(|output| &output.reconcile).collect();
        let children = results.iter().find_map(|result| result.children.as_deref()).unwrap_or_default();
        self.each_of("children", children);
        self.each_of("converted", &self.observation.converted);
        if let Some(expected) = self.expected("status").cloned() {
            let mut status = results.iter().find_map(|result| result.status.clone()).unwrap_or_default();
            if let Some(conditions) = results.iter().find_map(|result| result.conditions.as_ref()) {
                status.insert("conditions".to_owned(), conditions.iter().map(condition).collect());
            }
            self.compare("status", &expected, projected(&expected, &Value::Object(status)));
        }
    }

    /// Compares a list: as many objects, with the keys that are expected.
    fn each_of(&mut self, key: &'static str, said: &[Value]) {
        let Some(Value::Array(expected)) = self.expected(key).cloned() else { return };
        // One that is too many is told by its name.
        let unexpected = json!({"apiVersion": "", "kind": "", "metadata": {"namespace": "", "name": ""}});
        let shown =
            |(place, object): (usize, &Value)| projected(expected.get(place).unwrap_or(&unexpected), object);
        let actual: Vec<Value> = said.iter().enumerate().map(shown).collect();
        self.compare(key, &Value::Array(expected), actual.into());
    }

    /// Compares the outputs of hooks.
    fn written(&mut self) {
        for (key, actual) in self.all_written() {
            let Some(expected) = self.expected(key).cloned() else { continue };
            let expected = match key {
                "objectPatches" => expected_object_patches(&expected),
                "metrics" => expected_metrics(&expected),
                _ => Ok(expected),
            };
            match expected {
                Ok(expected) => self.compare(key, &expected, actual),
                Err(error) => {
                    self.wrong(key, format!("{key}: a hook could not write this: {error}"), Some(actual));
                }
            }
        }
        if let Some(expected) = self.expected("runs").cloned() {
            self.compare("runs", &expected, self.runs());
        }
    }

    fn all_written(&self) -> [(&'static str, Value); 4] {
        let runs = self.observation.record.runs.iter();
        let outputs: Vec<_> = runs.filter_map(|run| run.outcome.as_ref()?.as_ref().ok()).collect();
        let patches = |pick: fn(&engine::HookOutput) -> &values::patch::Patch| -> Value {
            outputs.iter().flat_map(|output| values_patch(pick(output))).collect()
        };
        [
            ("valuesPatch", patches(|output| &output.values_patch)),
            ("configPatch", patches(|output| &output.config_patch)),
            (
                "objectPatches",
                outputs.iter().flat_map(|output| output.object_patches.iter().map(object_patch)).collect(),
            ),
            ("metrics", self.observation.record.metrics.iter().map(metric).collect()),
        ]
    }

    fn runs(&self) -> Value {
        let name = |run: &Run| {
            if self.observation.names_hooks {
                format!("{}: {}", run.hook.id.name, run.contexts)
            } else {
                run.contexts.clone()
            }
        };
        self.observation.record.runs.iter().map(name).collect()
    }

    /// Compares values, ConfigMap and cluster.
    fn state(&mut self) {
        let all = [
            ("values", &self.observation.values),
            ("config", &self.observation.config),
            ("enabled", &self.observation.enabled),
        ];
        for (key, actual) in all {
            if let Some(expected) = self.expected(key).cloned() {
                self.compare(key, &expected, projected(&expected, actual));
            }
        }
        if let Some(Value::Array(expected)) = self.expected("objects").cloned() {
            let actual = expected.iter().zip(&self.observation.objects).map(|(expected, actual)| {
                if actual.is_null() { Value::Null } else { projected(expected, actual) }
            });
            let actual: Vec<Value> = actual.filter(|actual| !actual.is_null()).collect();
            self.compare("objects", &Value::Array(expected), actual.into());
        }
        if let Some(Value::Array(expected)) = self.expected("absent").cloned() {
            let absent = expected.iter().filter(|reference| !self.observation.present.contains(reference));
            let absent: Vec<Value> = absent.cloned().collect();
            self.compare("absent", &Value::Array(expected), absent.into());
        }
    }

    /// Looks for the expected lines, in this order; there may be others.
    fn log(&mut self) {
        let Some(Value::Array(expected)) = self.expected("log").cloned() else { return };
        let mut lines = self.observation.lines.iter();
        let is_missing = |wanted: &Value| !lines.by_ref().any(|line| matches(&text(wanted), line));
        if expected.iter().any(is_missing) {
            let actual: Value = self.observation.lines.iter().map(String::as_str).collect();
            let message = format!("log lines are missing:\n{}", diff(&Value::Array(expected), &actual));
            self.wrong("log", message, Some(actual));
        }
    }

    /// Adds what could be expected where `expect` is empty.
    fn fill(&mut self) {
        for (key, actual) in self.all_written() {
            if actual.as_array().is_some_and(|list| !list.is_empty()) {
                let message = format!("{key} is not expected yet:\n{}", diff(&Value::Null, &actual));
                self.wrong(key, message, Some(actual));
            }
        }
        if !self.observation.converted.is_empty() {
            let converted = Value::Array(self.observation.converted.clone());
            let message = format!("converted is not expected yet:\n{}", diff(&Value::Null, &converted));
            self.wrong("converted", message, Some(converted));
        }
        if !self.observation.rendered.is_empty() {
            let rendered = Value::Array(self.observation.rendered.clone());
            let message = format!("objects are not expected yet:\n{}", diff(&Value::Null, &rendered));
            self.wrong("objects", message, Some(rendered));
        }
        if self.found.is_empty() {
            let runs = self.runs();
            self.wrong(
                "runs",
                format!("nothing is expected yet; what ran:\n{}", diff(&Value::Null, &runs)),
                Some(runs),
            );
        }
    }
}

/// Returns a condition as hooks write it.
fn condition(condition: &Condition) -> Value {
    let Condition { kind, status, reason, message } = condition;
    let mut fields = Map::from_iter([
        ("type".to_owned(), kind.as_str().into()),
        ("status".to_owned(), status.as_str().into()),
    ]);
    for (field, text) in [("reason", reason), ("message", message)] {
        if let Some(text) = text {
            fields.insert(field.to_owned(), text.as_str().into());
        }
    }
    Value::Object(fields)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// Returns whether `line` contains the text, or fits if that is `/a pattern/`.
fn matches(wanted: &str, line: &str) -> bool {
    match pattern(wanted) {
        Some(Ok(pattern)) => pattern.is_match(line),
        Some(Err(_)) | None => line.contains(wanted),
    }
}

/// Returns the exit code of a run that has ended by itself.
fn exit_code(run: &Run) -> Option<u64> {
    let failure = match run.outcome.as_ref()? {
        Ok(output) => output.failed.as_ref(),
        Err(failure) => Some(failure),
    };
    let Some(failure) = failure else { return Some(0) };
    match failure.kind {
        FailureKind::HookExit => {
            let texts = std::iter::once(&failure.message).chain(&failure.chain);
            texts.filter_map(|text| text.rsplit_once("exit status ")?.1.trim().parse().ok()).next_back()
        }
        // The process succeeded, but its output is invalid.
        FailureKind::HookOutput | FailureKind::Values => Some(0),
        FailureKind::Bug
        | FailureKind::Cancelled
        | FailureKind::Cluster
        | FailureKind::Conflict
        | FailureKind::Dropped
        | FailureKind::Files
        | FailureKind::Forbidden
        | FailureKind::HookLimit
        | FailureKind::HookTimeout
        | FailureKind::MissingKind
        | FailureKind::Package
        | FailureKind::Release
        | FailureKind::Render
        | FailureKind::Storage
        | FailureKind::Terminating => None,
    }
}

/// Returns the lines that differ, with some around them.
fn diff(expected: &Value, actual: &Value) -> String {
    let yaml = |value: &Value| if value.is_null() { String::new() } else { values::yaml::emit_pretty(value) };
    let (expected, actual) = (yaml(expected), yaml(actual));
    let mut text = String::new();
    for (sign, line) in line_diff::hunks(&expected, &actual, 4).iter().flat_map(|hunk| &hunk.lines) {
        let _ = writeln!(text, "{sign} {line}");
    }
    text.trim_end().to_owned()
}

/// Returns the ConfigMap's data as values.
pub(super) fn parsed_config(data: &Map<String, Value>) -> Value {
    let parsed = |value: &Value| value.as_str().and_then(|text| values::yaml::parse(text).ok());
    data.iter().map(|(key, value)| (key.clone(), parsed(value).unwrap_or_else(|| value.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::test_file::Action;
    use super::*;

    #[test]
    fn an_object_that_is_too_many_is_shown_by_its_name_and_one_that_is_expected_by_the_given_keys() {
        let object = |namespace: &str, name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": name, "labels": {"a": "b"}}, "data": {"x": "eA=="}});
        let cluster_wide = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c"}});
        let expect = json!({"converted": [{"kind": "Secret", "metadata": {"name": "a"}}]});
        let step = Step {
            pointer: String::new(),
            action: Action::Start,
            expect: expect.as_object().unwrap().clone(),
            is_open: false,
        };
        let converted = vec![object("ns", "a"), object("ns", "b"), cluster_wide.clone()];
        let found = mismatches(&step, &Observation { converted, ..Observation::default() });
        let [mismatch] = found.as_slice() else { panic!("{found:?}") };
        let second =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "ns", "name": "b"}});
        let first = json!({"kind": "Secret", "metadata": {"name": "a"}});
        assert_eq!(mismatch.actual, Some(json!([first, second, cluster_wide])));
        for line in ["+ - apiVersion: v1", "+   kind: Secret", "+     name: b", "+     namespace: ns"] {
            assert!(mismatch.message.lines().any(|told| told == line), "{line}: {}", mismatch.message);
        }
    }
}

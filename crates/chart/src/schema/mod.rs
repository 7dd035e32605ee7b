//! Validation of values against the `values.schema.json` of charts.

mod address;
mod compile;
mod decimal;
mod document;
mod draft;
mod equal;
mod evaluate;
mod finding;
mod format;
mod message;
mod metaschema;
mod node;
mod problem;

use golang::json::{self, DecodeError};
use serde_json::{Map, Value};

use crate::chart::Chart;
use evaluate::Evaluation;

/// What the schemas of a chart and its dependencies find wrong with values, as Helm prints it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("values don't meet the specifications of the schema(s) in the following chart(s):\n{0}")]
pub struct SchemaError(String);

/// Checks the values of `chart`, and its sections against the schemas of the dependencies.
pub fn validate(chart: &Chart, values: Map<String, Value>) -> Result<(), SchemaError> {
    let mut findings = String::new();
    collect(chart, &Value::Object(values), &mut findings);
    if findings.is_empty() { Ok(()) } else { Err(SchemaError(findings)) }
}

/// Reports whether `chart` or one of its dependencies has a schema.
pub(crate) fn is_in(chart: &Chart) -> bool {
    chart.schema.is_some() || chart.dependencies.iter().any(is_in)
}

fn collect(chart: &Chart, values: &Value, findings: &mut String) {
    if let Some(schema) = &chart.schema
        && let Err(found) = validate_one(schema, values)
    {
        findings.push_str(chart.name());
        findings.push_str(":\n");
        findings.push_str(&found);
    }
    for dependency in &chart.dependencies {
        let section = values.get(dependency.name()).unwrap_or(&Value::Null);
        collect(dependency, section, findings);
    }
}

/// Checks `values` against one schema; what is wrong comes with a line for each finding.
fn validate_one(schema: &[u8], values: &Value) -> Result<(), String> {
    let schema = read(schema)?;
    let compiled = compile::compile(schema).map_err(|problem| problem.to_string())?;
    Evaluation::of_values(&compiled).run(values).map_err(|finding| {
        let lines = finding.lines();
        format!("{}\n", lines.strip_prefix('\n').unwrap_or(&lines))
    })
}

/// Reads a schema; an error is in Go's words.
fn read(text: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(text).map_err(|error| match json::decode(text) {
        Err(problem) => unread(text, &problem),
        Ok(_) => format!("invalid JSON: {error}"),
    })
}

/// Returns Go's words for `problem`, which differ for a text that ends too early.
fn unread(text: &[u8], problem: &DecodeError) -> String {
    if text.trim_ascii().is_empty() {
        return "EOF".to_owned();
    }
    let problem = problem.to_string();
    if problem.ends_with("after top-level value") {
        return "invalid character after top-level value".to_owned();
    }
    // A control character can't be right: if it is what is wrong now, the end was before.
    let mut marked = text.to_vec();
    marked.push(1);
    let is_cut = json::decode(&marked).is_err_and(|error| error.to_string().contains("'\\x01'"));
    if is_cut { "unexpected EOF".to_owned() } else { problem }
}

#[cfg(test)]
mod tests;

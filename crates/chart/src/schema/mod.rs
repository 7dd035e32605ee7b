//! Validation of values against the `values.schema.json` of charts.

mod message;
mod tree;

use serde_json::{Map, Value};

use crate::chart::Chart;

/// What the schemas of a chart and its dependencies find wrong with values, as Helm prints it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("values don't meet the specifications of the schema(s) in the following chart(s):\n{0}")]
pub struct SchemaError(String);

/// Checks the values of `chart`, and its sections against the schemas of the dependencies.
pub fn validate(chart: &Chart, values: &Map<String, Value>) -> Result<(), SchemaError> {
    let mut findings = String::new();
    collect(chart, &Value::Object(values.clone()), &mut findings);
    if findings.is_empty() { Ok(()) } else { Err(SchemaError(findings)) }
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
    let schema: Value = serde_json::from_slice(schema).map_err(|error| syntax(schema, &error))?;
    let validator = jsonschema::options().build(&schema).map_err(|error| {
        format!("the schema can't be used: at '{}': {error}", error.instance_path().as_str())
    })?;
    let found: Vec<_> = validator.iter_errors(values).collect();
    let found: Vec<_> = found.iter().collect();
    if found.is_empty() {
        return Ok(());
    }
    Err(tree::print(&found, &schema))
}

/// Returns Go's words for text that is not JSON.
fn syntax(text: &[u8], error: &serde_json::Error) -> String {
    if text.trim_ascii().is_empty() {
        return "EOF".to_owned();
    }
    if error.is_eof() {
        return "unexpected EOF".to_owned();
    }
    format!("invalid JSON: {error}")
}

#[cfg(test)]
mod tests;

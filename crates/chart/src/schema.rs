//! Validation of values against the `values.schema.json` of charts.

use serde_json::{Map, Value};
use values::json_schema::{self, Limits};

use crate::chart::Chart;

/// The address that Helm gives to the schema of a chart.
const URL: &str = "file:///values.schema.json";

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
        && let Err(found) = json_schema::validate(URL, schema, values, Limits::WIDE)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_names_its_chart() {
        let mut chart = Chart { schema: Some(b"{\"type\": ".as_slice().into()), ..Chart::default() };
        "demo".clone_into(&mut chart.metadata.name);
        let error = validate(&chart, Map::new()).unwrap_err().to_string();
        assert!(error.ends_with("following chart(s):\ndemo:\nunexpected EOF"), "{error}");
    }
}

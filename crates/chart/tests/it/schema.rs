//! Schemas, some of them random, that real Helm was asked about.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use chart::chart::Chart;
use chart::schema::validate;
use serde_json::{Map, Value};

use crate::golden::findings::canonical;

/// Each is a schema as text, values, and what Helm printed: nothing if the values fit.
const CASES: &str = include_str!("../golden/schema/cases.json");

const HEAD: &str = "values don't meet the specifications of the schema(s) in the following chart(s):\nsx:\n";

fn check(schema: &str, values: &Map<String, Value>) -> String {
    let mut chart = Chart { schema: Some(schema.as_bytes().into()), ..Chart::default() };
    "sx".clone_into(&mut chart.metadata.name);
    match validate(&chart, values.clone()) {
        Ok(()) => String::new(),
        Err(error) => error.to_string().strip_prefix(HEAD).unwrap().trim_end().to_owned(),
    }
}

#[test]
fn findings_of_many_schemas_read_as_helms() {
    let cases: Value = serde_json::from_str(CASES).unwrap();
    let mut wrong = Vec::new();
    for case in cases.as_array().unwrap() {
        let (schema, values) = (case[0].as_str().unwrap(), case[1].as_object().unwrap());
        let (expected, found) = (case[2].as_str().unwrap(), check(schema, values));
        if canonical(expected) != canonical(&found) {
            wrong.push(format!(
                "{schema}\n{}\nexpected {expected}\nfound {found}",
                Value::from(values.clone())
            ));
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn a_schema_that_refers_to_itself_for_ever_is_survived() {
    let chain: Map<String, Value> = (0..20_000)
        .map(|index| (format!("d{index}"), serde_json::json!({"$ref": format!("#/$defs/d{}", index + 1)})))
        .collect();
    let schema = serde_json::json!({"$ref": "#/$defs/d0", "$defs": chain});
    assert_eq!(
        check(&schema.to_string(), &Map::new()),
        "json-pointer in \"file:///values.schema.json#/$defs/d20000\" not found"
    );
    let cycle = serde_json::json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}});
    assert!(check(&cycle.to_string(), &Map::new()).contains("causing reference cycle"));
}

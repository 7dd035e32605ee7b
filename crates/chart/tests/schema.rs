//! Schemas, some of them random, that real Helm was asked about.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use chart::chart::Chart;
use chart::schema::validate;
use serde_json::{Map, Value};

/// Each is a schema as text, values, and what Helm printed: nothing if the values fit.
const CASES: &str = include_str!("golden/schema/cases.json");

const HEAD: &str = "values don't meet the specifications of the schema(s) in the following chart(s):\nsx:\n";

fn check(schema: &str, values: &Map<String, Value>) -> String {
    let mut chart = Chart { schema: Some(schema.as_bytes().into()), ..Chart::default() };
    "sx".clone_into(&mut chart.metadata.name);
    match validate(&chart, values) {
        Ok(()) => String::new(),
        Err(error) => error.to_string().strip_prefix(HEAD).unwrap().trim_end().to_owned(),
    }
}

/// A finding, and those below it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Finding(String, Vec<Finding>);

/// Takes the findings that are indented by `indent` from the front of `lines`.
fn findings(lines: &mut &[&str], indent: usize) -> Vec<Finding> {
    let mut found = Vec::new();
    while let Some((first, rest)) = lines.split_first() {
        if first.len() - first.trim_start().len() < indent || !first.trim_start().starts_with("- at ") {
            break;
        }
        *lines = rest;
        found.push(Finding(with_sorted_names(first), findings(lines, indent + 2)));
    }
    found.sort();
    found
}

/// Helm prints findings and names in the random order of its maps.
fn canonical(text: &str) -> String {
    fn push(findings: &[Finding], out: &mut String) {
        for Finding(line, causes) in findings {
            out.push_str(line);
            out.push('\n');
            push(causes, out);
        }
    }
    let (mut out, lines) = (String::new(), text.lines().collect::<Vec<_>>());
    let mut rest = lines.as_slice();
    while let Some((first, behind)) = rest.split_first() {
        let found = findings(&mut rest, 0);
        if found.is_empty() {
            out.push_str(first);
            out.push('\n');
            rest = behind;
        }
        push(&found, &mut out);
    }
    out
}

fn with_sorted_names(line: &str) -> String {
    for words in ["additional properties ", "missing properties "] {
        if let Some((before, names)) = line.split_once(words) {
            let (names, behind) = names.split_once(" not allowed").unwrap_or((names, ""));
            let mut names: Vec<&str> = names.split(", ").collect();
            names.sort_unstable();
            return format!("{before}{words}{}{behind}", names.join(", "));
        }
    }
    line.to_owned()
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

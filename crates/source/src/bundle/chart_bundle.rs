//! Chart bundles: one chart below `chart/`, and plans.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::chart::load;
use ::chart::warnings::Warnings;
use serde_json::Value;

use super::descriptor::Plan;
use super::meta::{read_plan, read_yaml};
use super::problem::Findings;
use super::tree::{Content, Files};

/// From how many bytes on a schema is too large.
const SCHEMA_LIMIT: usize = 64 << 10;

/// The schemas of a plan.
const SCHEMAS: [&str; 3] =
    ["create-instance-schema.json", "update-instance-schema.json", "bind-instance-schema.json"];

/// Checks `chart/`, and returns the directory of the chart.
pub(super) fn check_chart(files: &Files<'_>, findings: &mut Findings) -> Option<String> {
    let listed = files.list("chart");
    let directories: Vec<&str> =
        listed.iter().filter(|(_, is_directory)| **is_directory).map(|(name, _)| *name).collect();
    for name in listed.iter().filter(|(_, is_directory)| !**is_directory).map(|(name, _)| *name) {
        findings.warning(format!("chart/{name}"), "the file is left out: only the chart's directory is read");
    }
    match directories.as_slice() {
        [] => {
            findings.problem("chart", "there has to be one directory with a chart in it, and there is none");
            None
        }
        [name] => {
            let directory = format!("chart/{name}");
            check_loads(files, &directory, |_| false, findings);
            Some(directory)
        }
        _ => {
            let names = directories.join(", ");
            findings.problem(
                "chart",
                format!("there has to be one directory with a chart in it, and there are {names}"),
            );
            None
        }
    }
}

/// Loads the chart in a directory, as it is loaded before it is rendered, without files that are no part of it. Templates
/// are not read.
pub(super) fn check_loads(
    files: &Files<'_>,
    directory: &str,
    is_skipped: impl Fn(&str) -> bool,
    findings: &mut Findings,
) {
    let content = |content: &Content| match content {
        Content::Bytes(bytes) => Arc::clone(bytes),
        Content::Size(_) => Arc::from([]),
    };
    let mut tree: BTreeMap<String, Arc<[u8]>> = BTreeMap::new();
    for (path, found, _) in files.below(directory).filter(|(path, _, _)| !is_skipped(path)) {
        if let Content::Size(size) = found
            && *size > load::MAX_FILE_BYTES
        {
            let most = load::MAX_FILE_BYTES >> 20;
            findings.problem(
                join(directory, path),
                format!("the file is larger than {most} MiB, the most that a chart may hold"),
            );
        }
        tree.insert(path.to_owned(), content(found));
    }
    if let Err(error) = load::from_directory(&tree, &mut Warnings::default()) {
        let place = if directory.is_empty() { "Chart.yaml" } else { directory };
        findings.problem(place, format!("the chart can't be loaded: {error}"));
    }
}

fn join(directory: &str, path: &str) -> String {
    if directory.is_empty() { path.to_owned() } else { format!("{directory}/{path}") }
}

/// Checks `plans/`, and returns the plans that could be read. `is_bindable` is what the bundle says.
pub(super) fn check_plans(files: &Files<'_>, is_bindable: bool, findings: &mut Findings) -> Vec<Plan> {
    let listed = files.list("plans");
    if !listed.values().any(|is_directory| *is_directory) {
        findings.problem("plans", "there is no plan: add a directory with meta.yaml, such as plans/default");
    }
    let mut plans = Vec::new();
    for (name, is_directory) in listed {
        if !is_directory {
            findings
                .warning(format!("plans/{name}"), "the file is left out: only directories of plans are read");
            continue;
        }
        let directory = format!("plans/{name}");
        plans.extend(read_plan(files, &directory, is_bindable, findings));
        check_values(files, &format!("{directory}/values.yaml"), findings);
        for schema in SCHEMAS {
            check_schema(files, &format!("{directory}/{schema}"), findings);
        }
    }
    plans
}

fn check_values(files: &Files<'_>, path: &str, findings: &mut Findings) {
    match read_yaml(files, path, findings) {
        None | Some(Value::Null | Value::Object(_)) => {}
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            findings.problem(path, "the values have to be a mapping of names to values");
        }
    }
}

fn check_schema(files: &Files<'_>, path: &str, findings: &mut Findings) {
    let Some(bytes) = files.bytes(path) else { return };
    if bytes.len() >= SCHEMA_LIMIT {
        findings.problem(
            path,
            format!("the schema has {} bytes: it has to be smaller than {SCHEMA_LIMIT}", bytes.len()),
        );
        return;
    }
    match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Object(_) | Value::Null) => {}
        Ok(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            findings.problem(path, "the schema has to be a JSON object");
        }
        Err(error) => findings.problem(path, format!("the schema is no JSON: {error}")),
    }
}

/// Checks `docs/meta.yaml`, which is not used but read by others.
pub(super) fn check_documents(files: &Files<'_>, findings: &mut Findings) {
    let path = "docs/meta.yaml";
    let count = match read_yaml(files, path, findings) {
        None | Some(Value::Null) => return,
        Some(documents) => documents.get("docs").and_then(Value::as_array).map_or(0, Vec::len),
    };
    if count != 1 {
        findings.problem(path, format!("docs has to be a list of one entry, and has {count}"));
    }
}

//! Chart bundles: one chart below `chart/`, and plans.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::chart::load;
use ::chart::warnings::Warnings;
use serde_json::{Map, Value};
use values::{json_schema, unique};

use super::crds;
use super::descriptor::Plan;
use super::meta::{read_plan, read_yaml, read_yaml_within};
use super::problem::Findings;
use super::tree::{Content, Files, MAX_READ_BYTES};

/// How many plans a bundle may have: those of all modules are held as long as the operator runs.
pub(super) const MAX_PLANS: usize = 50;

/// How many bytes the values of a plan may have, and how much memory they may take: anchors multiply them.
pub(super) const MAX_VALUES: usize = 64 << 10;
const MAX_VALUES_TREE: usize = 1 << 20;

/// From how many bytes on a schema is too large.
const SCHEMA_LIMIT: usize = 64 << 10;

/// The schema of what the user configures with a plan.
pub(super) const CREATE_SCHEMA: &str = "create-instance-schema.json";

/// The schemas of a plan.
const SCHEMAS: [&str; 3] = [CREATE_SCHEMA, "update-instance-schema.json", "bind-instance-schema.json"];

/// Checks `chart/`, and returns the directory of the chart.
pub(super) fn check_chart(files: &Files<'_>, findings: &mut Findings) -> Option<String> {
    let directory = chart_directory(files, findings)?;
    check_loads(files, &directory, |_| false, findings);
    crds::check(files, &format!("{directory}/"), findings);
    Some(directory)
}

/// Returns the directory of the chart, without a look at what is in it.
pub(super) fn chart_directory(files: &Files<'_>, findings: &mut Findings) -> Option<String> {
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
        [name] => Some(format!("chart/{name}")),
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
    match load::from_directory_within(&tree, MAX_READ_BYTES, &mut Warnings::default()) {
        Ok(chart) => crds::check_dependencies(&chart, directory, findings),
        Err(error) => {
            let place = if directory.is_empty() { "Chart.yaml" } else { directory };
            findings.problem(place, format!("the chart can't be loaded: {error}"));
        }
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
    if listed.values().filter(|is_directory| **is_directory).count() > MAX_PLANS {
        findings.problem("plans", format!("there are more than {MAX_PLANS} plans: remove what nobody picks"));
        return Vec::new();
    }
    let mut plans: Vec<Plan> = Vec::new();
    for (name, is_directory) in listed {
        if !is_directory {
            findings
                .warning(format!("plans/{name}"), "the file is left out: only directories of plans are read");
            continue;
        }
        let directory = format!("plans/{name}");
        let plan = read_plan(files, &directory, is_bindable, findings);
        if let Some(plan) = plan.as_ref()
            && let Some(other) = plans.iter().find(|other| other.name == plan.name)
        {
            let message =
                format!("the plan is left out: {} has the name {:?}, too", other.directory, plan.name);
            findings.warning(directory.as_str(), message);
        }
        plans.extend(plan);
        let _ = read_values(files, &format!("{directory}/values.yaml"), findings);
        for schema in SCHEMAS {
            check_schema(files, &format!("{directory}/{schema}"), findings);
        }
    }
    plans
}

/// Returns the values of a plan; an empty object if there are none, or if a problem was found.
pub(super) fn read_values(files: &Files<'_>, path: &str, findings: &mut Findings) -> Value {
    let nothing = || Value::Object(Map::new());
    if let Some(size) = files.bytes(path).map(<[u8]>::len).filter(|size| *size > MAX_VALUES) {
        findings
            .problem(path, format!("the values have {size} bytes, and {MAX_VALUES} are read: shorten them"));
        return nothing();
    }
    match read_yaml_within(files, path, MAX_VALUES_TREE, findings) {
        Some(values @ Value::Object(_)) => values,
        None | Some(Value::Null) => nothing(),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            findings.problem(path, "the values have to be a mapping of names to values");
            nothing()
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
    match unique::from_json(bytes) {
        // Only that one is used.
        Ok(Value::Object(_)) if path.ends_with(CREATE_SCHEMA) => {
            if let Err(error) = json_schema::check(&format!("file:///{path}"), bytes) {
                findings.problem(path, format!("the schema can't be used: {error}"));
            }
        }
        Ok(Value::Object(_) | Value::Null) => {}
        Ok(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            findings.problem(path, "the schema has to be a JSON object");
        }
        Err(error) if error.is_data() => findings.problem(path, error.to_string()),
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

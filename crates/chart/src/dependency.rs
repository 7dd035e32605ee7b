//! Which dependencies of a chart are used, and what they hand to it.

use serde_json::{Map, Value, json};

use crate::chart::Chart;
use crate::coalesce::{CoalesceError, Nulls, coalesce, merge_tables};
use crate::metadata::Dependency;
use crate::semver::{Constraint, Version};
use crate::warnings::Warnings;

/// Dependencies of `Chart.yaml` that `charts/` does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found in Chart.yaml, but missing in charts/ directory: {}", .0.join(", "))]
pub struct MissingDependencies(pub Vec<String>);

/// Checks that every dependency of `Chart.yaml` is in `charts/`.
pub fn check(chart: &Chart) -> Result<(), MissingDependencies> {
    let is_missing =
        |wanted: &&Dependency| !chart.dependencies.iter().any(|found| found.name() == wanted.name);
    let missing: Vec<String> =
        chart.metadata.dependencies.iter().filter(is_missing).map(|wanted| wanted.name.clone()).collect();
    if missing.is_empty() { Ok(()) } else { Err(MissingDependencies(missing)) }
}

/// Drops what conditions and tags switch off, names dependencies by their aliases,
/// and takes over the values that `import-values` asks for.
pub fn resolve(
    chart: &mut Chart,
    user: &Map<String, Value>,
    warnings: &mut Warnings,
) -> Result<(), CoalesceError> {
    enable(chart, user, "", warnings)?;
    import_all(chart, warnings)
}

fn enable(
    chart: &mut Chart,
    values: &Map<String, Value>,
    path: &str,
    warnings: &mut Warnings,
) -> Result<(), CoalesceError> {
    if chart.metadata.dependencies.is_empty() {
        return Ok(());
    }
    chart.dependencies = aliased(chart);
    for wanted in &mut chart.metadata.dependencies {
        if !wanted.alias.is_empty() {
            wanted.name.clone_from(&wanted.alias);
        }
        wanted.enabled = true;
    }
    let values = coalesce(chart, values, Nulls::Remove, warnings)?;
    for wanted in &mut chart.metadata.dependencies {
        apply_tags(wanted, &values, warnings);
        apply_conditions(wanted, &values, path, warnings);
    }
    let (kept, dropped): (Vec<_>, Vec<_>) =
        chart.metadata.dependencies.drain(..).partition(|wanted| wanted.enabled);
    chart.dependencies.retain(|found| !dropped.iter().any(|wanted| wanted.name == found.name()));
    chart.metadata.dependencies = kept;
    for dependency in &mut chart.dependencies {
        let path = format!("{path}{}.", dependency.name());
        enable(dependency, &values, &path, warnings)?;
    }
    Ok(())
}

/// Reports whether `version` is one that `constraint` allows; neither may be malformed.
pub fn is_compatible(constraint: &str, version: &str) -> bool {
    match (Constraint::parse(constraint), Version::parse(version)) {
        (Ok(constraint), Ok(version)) => constraint.matches(&version),
        _ => false,
    }
}

/// Returns the charts that are not listed, then one for each listing that one fits.
fn aliased(chart: &Chart) -> Vec<Chart> {
    let fits = |wanted: &Dependency, found: &Chart| {
        wanted.name == found.name() && is_compatible(&wanted.version, &found.metadata.version)
    };
    let listed = |found: &Chart| chart.metadata.dependencies.iter().any(|wanted| fits(wanted, found));
    let mut charts: Vec<Chart> = chart.dependencies.iter().filter(|found| !listed(found)).cloned().collect();
    for wanted in &chart.metadata.dependencies {
        if let Some(found) = chart.dependencies.iter().find(|found| fits(wanted, found)) {
            let mut found = found.clone();
            if !wanted.alias.is_empty() {
                found.metadata.name.clone_from(&wanted.alias);
            }
            charts.push(found);
        }
    }
    charts
}

fn apply_tags(wanted: &mut Dependency, values: &Map<String, Value>, warnings: &mut Warnings) {
    let Some(Value::Object(tags)) = values.get("tags") else { return };
    let (mut on, mut off) = (false, false);
    for tag in &wanted.tags {
        match tags.get(tag) {
            Some(Value::Bool(true)) => on = true,
            Some(Value::Bool(false)) => off = true,
            Some(_) => {
                let text = format!("Warning: Tag '{tag}' for chart {} returned non-bool value", wanted.name);
                warnings.add_from("dependencies.go:95", text);
            }
            None => {}
        }
    }
    wanted.enabled = on || !off;
}

fn apply_conditions(
    wanted: &mut Dependency,
    values: &Map<String, Value>,
    path: &str,
    warnings: &mut Warnings,
) {
    for condition in wanted.condition.trim().split(',').filter(|condition| !condition.is_empty()) {
        match scalar(values, &format!("{path}{condition}")) {
            Some(Value::Bool(enabled)) => {
                wanted.enabled = *enabled;
                break;
            }
            Some(_) => {
                let name = &wanted.name;
                warnings.add_from(
                    "dependencies.go:64",
                    format!("Warning: Condition path '{condition}' for chart {name} returned non-bool value"),
                );
            }
            None => {}
        }
    }
}

/// Returns the value at a path with dots, if it is no map.
fn scalar<'v>(values: &'v Map<String, Value>, path: &str) -> Option<&'v Value> {
    let (table, key) = match path.rsplit_once('.') {
        Some((parents, key)) => (table(values, parents).ok()?, key),
        None => (values, path),
    };
    table.get(key).filter(|value| !value.is_object())
}

/// Returns the map at a path with dots, or the key that holds none.
pub(crate) fn table<'v, 'p>(
    mut values: &'v Map<String, Value>,
    path: &'p str,
) -> Result<&'v Map<String, Value>, &'p str> {
    for key in path.split('.') {
        match values.get(key) {
            Some(Value::Object(inner)) => values = inner,
            Some(_) | None => return Err(key),
        }
    }
    Ok(values)
}

fn import_all(chart: &mut Chart, warnings: &mut Warnings) -> Result<(), CoalesceError> {
    for dependency in &mut chart.dependencies {
        import_all(dependency, warnings)?;
    }
    import(chart, warnings)
}

/// Puts what the dependencies export below the values of `chart`.
fn import(chart: &mut Chart, warnings: &mut Warnings) -> Result<(), CoalesceError> {
    if chart.metadata.dependencies.is_empty() {
        return Ok(());
    }
    let mut values = coalesce(chart, &Map::new(), Nulls::Keep, &mut Warnings::default())?;
    let mut imported = Map::new();
    for wanted in &mut chart.metadata.dependencies {
        let name = wanted.name.clone();
        for import in &mut wanted.import_values {
            let (child, parent, warning) = match &*import {
                Value::Object(entry) => {
                    let text = |key: &str| match entry.get(key) {
                        Some(Value::String(text)) => text.clone(),
                        Some(other) => other.to_string(),
                        None => "<nil>".to_owned(),
                    };
                    (text("child"), text("parent"), format!("table from chart {name}"))
                }
                Value::String(export) => (format!("exports.{export}"), ".".to_owned(), "table".to_owned()),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => continue,
            };
            *import = json!({ "child": child, "parent": parent });
            match table(&values, &format!("{name}.{child}")) {
                Ok(found) => merge_tables(&mut imported, &nested(&parent, found.clone()), warnings),
                Err(key) => {
                    let text = format!("Warning: ImportValues missing {warning}: {key:?} is not a table");
                    let place =
                        if warning == "table" { "dependencies.go:287" } else { "dependencies.go:270" };
                    warnings.add_from(place, text);
                }
            }
        }
        wanted.import_values.retain(Value::is_object);
    }
    merge_tables(&mut values, &imported, warnings);
    chart.values = Some(values.into());
    Ok(())
}

/// Returns `values` at the end of a path with dots; a single dot is the top.
fn nested(path: &str, values: Map<String, Value>) -> Map<String, Value> {
    if path == "." {
        return values;
    }
    path.rsplit('.').fold(values, |inner, key| {
        let mut outer = Map::new();
        outer.insert(key.to_owned(), Value::Object(inner));
        outer
    })
}

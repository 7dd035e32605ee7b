//! Which dependencies of a chart are used, and what they hand to it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::chart::Chart;
use crate::coalesce::{CoalesceError, Nulls, coalesced, merge_tables, written};
use crate::metadata::Dependency;
use crate::semver::{Constraint, Version};
use crate::table::{Node, Table};
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
    enable(chart, user, At { path: "", source: "" }, &mut BTreeSet::new(), warnings)?;
    import_all(chart, warnings)
}

/// Where a chart is.
#[derive(Clone, Copy)]
struct At<'p> {
    /// Its path in the values, which ends with a dot.
    path: &'p str,
    /// Which of the dependencies of which chart it was made of.
    source: &'p str,
}

/// Drops what is switched off. `renamed` are the sources whose listings bear their aliases already: charts that are made of the
/// same one share its listings, so that those of the second one find nothing by its first name, as in Helm.
fn enable(
    chart: &mut Chart,
    values: &Map<String, Value>,
    at: At<'_>,
    renamed: &mut BTreeSet<String>,
    warnings: &mut Warnings,
) -> Result<(), CoalesceError> {
    if chart.metadata.dependencies.is_empty() {
        return Ok(());
    }
    let rename = |chart: &mut Chart| {
        for wanted in chart.metadata.dependencies.iter_mut().filter(|wanted| !wanted.alias.is_empty()) {
            wanted.name.clone_from(&wanted.alias);
        }
    };
    if !renamed.insert(at.source.to_owned()) {
        rename(chart);
        // They were read, too, and are in another form, which Helm does not read.
        chart.metadata.dependencies.iter_mut().for_each(|wanted| wanted.import_values.clear());
    }
    let mut sources: Vec<usize>;
    (sources, chart.dependencies) = aliased(chart).into_iter().unzip();
    rename(chart);
    let mut listed = std::mem::take(&mut chart.metadata.dependencies);
    let table = coalesced(chart, values, Nulls::Remove, warnings)?;
    for wanted in &mut listed {
        wanted.enabled = true;
        apply_tags(wanted, &table, warnings);
        apply_conditions(wanted, &table, at.path, warnings);
    }
    // The values are large, and hardly any dependency has dependencies to decide on.
    let has_more = chart.dependencies.iter().any(|found| !found.metadata.dependencies.is_empty());
    let values = if has_more { written(chart, &table)? } else { Map::new() };
    drop(table);
    let (kept, dropped): (Vec<_>, Vec<_>) = listed.into_iter().partition(|wanted| wanted.enabled);
    let is_kept = |found: &Chart| !dropped.iter().any(|wanted| wanted.name == found.name());
    let mut stays = chart.dependencies.iter().map(is_kept).collect::<Vec<_>>().into_iter();
    sources.retain(|_| stays.next().unwrap_or(true));
    chart.dependencies.retain(is_kept);
    chart.metadata.dependencies = kept;
    for (dependency, source) in chart.dependencies.iter_mut().zip(sources) {
        let path = format!("{}{}.", at.path, dependency.name());
        let source = format!("{}/{source}", at.source);
        enable(dependency, &values, At { path: &path, source: &source }, renamed, warnings)?;
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

/// Returns the charts that are not listed, then one for each listing that one fits; each with its place among those that lie
/// in `charts/`.
fn aliased(chart: &Chart) -> Vec<(usize, Chart)> {
    let fits = |wanted: &Dependency, found: &Chart| {
        wanted.name == found.name() && is_compatible(&wanted.version, &found.metadata.version)
    };
    let listed = |found: &Chart| chart.metadata.dependencies.iter().any(|wanted| fits(wanted, found));
    let found = || chart.dependencies.iter().enumerate();
    let mut charts: Vec<(usize, Chart)> =
        found().filter(|(_, found)| !listed(found)).map(|(place, found)| (place, found.clone())).collect();
    for wanted in &chart.metadata.dependencies {
        if let Some((place, found)) = found().find(|(_, found)| fits(wanted, found)) {
            let mut found = found.clone();
            if !wanted.alias.is_empty() {
                found.metadata.name.clone_from(&wanted.alias);
            }
            charts.push((place, found));
        }
    }
    charts
}

fn apply_tags(wanted: &mut Dependency, values: &Table<'_>, warnings: &mut Warnings) {
    let Some(Node::Table(tags)) = values.get("tags") else { return };
    let (mut on, mut off) = (false, false);
    for tag in &wanted.tags {
        match tags.get(tag) {
            Some(Node::Other(Value::Bool(true))) => on = true,
            Some(Node::Other(Value::Bool(false))) => off = true,
            Some(_) => {
                let text = format!("Warning: Tag '{tag}' for chart {} returned non-bool value", wanted.name);
                warnings.add_from("dependencies.go:95", text);
            }
            None => {}
        }
    }
    wanted.enabled = on || !off;
}

fn apply_conditions(wanted: &mut Dependency, values: &Table<'_>, path: &str, warnings: &mut Warnings) {
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
fn scalar<'v>(values: &Table<'v>, path: &str) -> Option<&'v Value> {
    let found = match path.rsplit_once('.') {
        Some((parents, key)) => values.at(parents).ok()?.get(key),
        None => values.get(path),
    };
    match found? {
        Node::Other(value) => Some(value),
        Node::Table(_) => None,
    }
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
    let mut listed = std::mem::take(&mut chart.metadata.dependencies);
    let nothing = Map::new();
    let values = coalesced(chart, &nothing, Nulls::Keep, warnings)?;
    let imported = Table::default();
    for wanted in &mut listed {
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
            // What is imported first is the table of the dependency, so that what is imported into it changes both. An empty table
            // is handed over as a new one.
            match values.at(&format!("{name}.{child}")) {
                Ok(found) => {
                    let found = if found.is_empty() { Table::default() } else { found };
                    merge_tables(&imported, &found.below(&parent), warnings);
                }
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
    let own = written(chart, &values)?;
    let merged = if imported.is_empty() {
        None
    } else {
        let table = Table::of(&own);
        merge_tables(&table, &imported, warnings);
        Some(written(chart, &table)?)
    };
    drop((values, imported));
    chart.values = Some(merged.unwrap_or(own).into());
    chart.metadata.dependencies = listed;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::coalesce::coalesce;

    fn map(value: Value) -> Map<String, Value> {
        let Value::Object(map) = value else { panic!("not an object") };
        map
    }

    /// Returns the values of a chart `top`, which has `mid`, which imports from `low`.
    fn resolved(imports: Value, mid: Value, low: Value) -> Value {
        let named = |name: &str, values: Value| {
            let mut chart = Chart { values: Some(Arc::new(map(values))), ..Chart::default() };
            name.clone_into(&mut chart.metadata.name);
            "1.0.0".clone_into(&mut chart.metadata.version);
            chart
        };
        let listed = |name: &str, imports: Value| {
            let Value::Array(import_values) = imports else { panic!("not a list") };
            Dependency {
                name: name.to_owned(),
                version: "*".to_owned(),
                import_values,
                ..Dependency::default()
            }
        };
        let mut mid = named("mid", mid);
        mid.dependencies.push(named("low", low));
        mid.metadata.dependencies.push(listed("low", imports));
        let mut top = named("top", json!({}));
        top.dependencies.push(mid);
        top.metadata.dependencies.push(listed("mid", json!([])));
        let (mut warnings, user) = (Warnings::default(), Map::new());
        resolve(&mut top, &user, &mut warnings).unwrap();
        Value::Object(coalesce(&top, &user, Nulls::Remove, &mut warnings).unwrap())
    }

    // Helm's answer is this one more often than not: the loop of Go that merges the table may miss what is added to it.
    #[test]
    fn slip_25_what_an_import_adds_to_the_table_that_is_imported_is_imported() {
        let imports = json!([{"child": "exports.data", "parent": "imp"}, "data"]);
        let low = json!({"exports": {"data": {"b": 1, "imp": {"x": 2}}}});
        let values = resolved(imports, json!({}), low);
        assert_eq!((&values["mid"]["x"], &values["mid"]["b"]), (&json!(2), &json!(1)));
        assert_eq!(values["mid"]["imp"], json!({"b": 1, "imp": {"x": 2}, "x": 2}));
    }
}

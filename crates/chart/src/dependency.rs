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
    let mut shared = Shared::default();
    let mut node = shared.node_of(chart, None);
    enable(chart, &mut node, user, At { path: "", source: "" }, &mut shared, warnings)?;
    for (dependency, node) in chart.dependencies.iter_mut().zip(&node.below) {
        shared.place(dependency, node, &chart.metadata.name);
    }
    import_all(chart, warnings)
}

/// What charts have in common that are made of the same one.
#[derive(Default)]
struct Shared {
    /// The sources whose listings bear their aliases already, so that those of the second chart that is made of one find
    /// nothing by its first name.
    renamed: BTreeSet<String>,
    /// The charts as Helm holds them: those below a chart that is used twice are not copied, and know one chart that holds them.
    objects: Vec<Object>,
}

/// A chart as Helm holds it.
struct Object {
    name: String,
    /// The chart that holds it.
    holder: Option<usize>,
}

/// Which object a chart is, and those below it.
#[derive(Clone)]
struct ChartNode {
    object: usize,
    below: Vec<ChartNode>,
}

impl Shared {
    fn add(&mut self, name: &str, holder: Option<usize>) -> usize {
        self.objects.push(Object { name: name.to_owned(), holder });
        self.objects.len() - 1
    }

    fn node_of(&mut self, chart: &Chart, holder: Option<usize>) -> ChartNode {
        let object = self.add(chart.name(), holder);
        let below = chart.dependencies.iter().map(|found| self.node_of(found, Some(object))).collect();
        ChartNode { object, below }
    }

    /// Returns what `holder` holds from now on: each chart with its place among those that were there. Those that are not listed stay
    /// what they are.
    fn held(&mut self, holder: &ChartNode, charts: &[Aliased]) -> Vec<(usize, ChartNode)> {
        let with_place = |found: &Aliased| {
            let node = holder.below.get(found.place)?.clone();
            if !found.is_listed {
                if let Some(object) = self.objects.get_mut(node.object) {
                    object.holder = Some(holder.object);
                }
                return Some((found.place, node));
            }
            let object = self.add(found.chart.name(), Some(holder.object));
            Some((found.place, ChartNode { object, below: node.below }))
        };
        charts.iter().filter_map(with_place).collect()
    }

    /// Tells a chart, and those below it, what path their templates have, where it is not the one below `holder`.
    fn place(&self, chart: &mut Chart, node: &ChartNode, holder: &str) {
        let below = chart.path_in(holder);
        let path = self.path_of(node.object);
        if path != below {
            chart.path = Some(path.clone());
        }
        for (dependency, node) in chart.dependencies.iter_mut().zip(&node.below) {
            self.place(dependency, node, &path);
        }
    }

    fn path_of(&self, object: usize) -> String {
        let Some(Object { name, holder }) = self.objects.get(object) else { return String::new() };
        holder.map_or_else(|| name.clone(), |holder| format!("{}/charts/{name}", self.path_of(holder)))
    }
}

/// A chart that another one uses.
struct Aliased {
    /// Its place among those that lie in `charts/`.
    place: usize,
    /// Whether the other one lists it.
    is_listed: bool,
    chart: Chart,
}

/// Where a chart is.
#[derive(Clone, Copy)]
struct At<'p> {
    /// Its path in the values, which ends with a dot.
    path: &'p str,
    /// Which of the dependencies of which chart it was made of.
    source: &'p str,
}

/// Drops what is switched off. A chart without a list of dependencies is left as it is, with all below it.
fn enable(
    chart: &mut Chart,
    node: &mut ChartNode,
    values: &Map<String, Value>,
    at: At<'_>,
    shared: &mut Shared,
    warnings: &mut Warnings,
) -> Result<(), CoalesceError> {
    if !lists_dependencies(chart) {
        return Ok(());
    }
    let rename = |chart: &mut Chart| {
        for wanted in chart.metadata.dependencies.iter_mut().filter(|wanted| !wanted.alias.is_empty()) {
            wanted.name.clone_from(&wanted.alias);
        }
    };
    if !shared.renamed.insert(at.source.to_owned()) {
        rename(chart);
        // They were read, too, and are in another form, which Helm does not read.
        chart.metadata.dependencies.iter_mut().for_each(|wanted| wanted.import_values.clear());
    }
    let used = aliased(chart);
    let mut origins = shared.held(node, &used);
    chart.dependencies = used.into_iter().map(|found| found.chart).collect();
    rename(chart);
    let mut listed = std::mem::take(&mut chart.metadata.dependencies);
    let table = coalesced(chart, values, Nulls::Remove, warnings)?;
    for wanted in &mut listed {
        wanted.enabled = true;
        apply_tags(wanted, &table, warnings);
        apply_conditions(wanted, &table, at.path, warnings);
    }
    // The values are large, and hardly any dependency has dependencies to decide on.
    let has_more = chart.dependencies.iter().any(lists_dependencies);
    let values = if has_more { written(chart, &table)? } else { Map::new() };
    drop(table);
    let (kept, dropped): (Vec<_>, Vec<_>) = listed.into_iter().partition(|wanted| wanted.enabled);
    let is_kept = |found: &Chart| !dropped.iter().any(|wanted| wanted.name == found.name());
    let mut stays = chart.dependencies.iter().map(is_kept).collect::<Vec<_>>().into_iter();
    origins.retain(|_| stays.next().unwrap_or(true));
    chart.dependencies.retain(is_kept);
    chart.metadata.dependencies = kept;
    for (dependency, (place, node)) in chart.dependencies.iter_mut().zip(&mut origins) {
        let path = format!("{}{}.", at.path, dependency.name());
        let source = format!("{}/{place}", at.source);
        enable(dependency, node, &values, At { path: &path, source: &source }, shared, warnings)?;
    }
    node.below = origins.into_iter().map(|(_, node)| node).collect();
    Ok(())
}

fn lists_dependencies(chart: &Chart) -> bool {
    chart.metadata.has_dependency_list || !chart.metadata.dependencies.is_empty()
}

/// Reports whether `version` is one that `constraint` allows; neither may be malformed.
pub fn is_compatible(constraint: &str, version: &str) -> bool {
    match (Constraint::parse(constraint), Version::parse(version)) {
        (Ok(constraint), Ok(version)) => constraint.matches(&version),
        _ => false,
    }
}

/// Returns the charts that are not listed, then one for each listing that one fits.
fn aliased(chart: &Chart) -> Vec<Aliased> {
    let fits = |wanted: &Dependency, found: &Chart| {
        wanted.name == found.name() && is_compatible(&wanted.version, &found.metadata.version)
    };
    let listed = |found: &Chart| chart.metadata.dependencies.iter().any(|wanted| fits(wanted, found));
    let found = || chart.dependencies.iter().enumerate();
    let mut charts: Vec<Aliased> = found()
        .filter(|(_, found)| !listed(found))
        .map(|(place, found)| Aliased { place, is_listed: false, chart: found.clone() })
        .collect();
    for wanted in &chart.metadata.dependencies {
        if let Some((place, found)) = found().find(|(_, found)| fits(wanted, found)) {
            let mut chart = found.clone();
            if !wanted.alias.is_empty() {
                chart.metadata.name.clone_from(&wanted.alias);
            }
            charts.push(Aliased { place, is_listed: true, chart });
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

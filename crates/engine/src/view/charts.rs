//! All Charts and Repositories, and the modules that name a chart, as data and as lines.

use std::cmp::Ordering;

use chart::semver::Version;
use serde_json::{Value, json};

use super::format::{Format, columns, one_line, span};
use super::why::{Unknown, unknown};
use super::{ChartRepositoryView, ChartVersionView, ChartView, ModuleChartView, View};
use crate::package::Package;

/// A chart that a person means.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MeantChart {
    /// The name of the Repository.
    pub repository: String,
    /// The name of the chart in it.
    pub chart: String,
    /// What is meant of it if no version is named: the version that is pinned, or the highest that is kept.
    pub version: Option<String>,
}

/// Returns the chart that a person means: `REPOSITORY/CHART`, the name of a Chart, or that of a module. The version is the one that is
/// pinned, or the highest that is kept.
///
/// # Errors
///
/// If there is none.
pub fn find(view: &View, name: &str) -> Result<MeantChart, Unknown> {
    let charts = &view.charts;
    if let Some(module) = charts.modules.iter().find(|module| module.module.as_str() == name) {
        let pinned = module.pinned.as_ref().map(|pinned| pinned.version.to_string());
        return Ok(MeantChart {
            repository: module.repository.clone(),
            chart: module.name.clone(),
            version: pinned,
        });
    }
    let is_of = |chart: &ChartView| name == format!("{}/{}", chart.repository, chart.chart);
    let mut meant = charts.charts.iter().filter(|chart| chart.name == name || is_of(chart)).peekable();
    if let Some(chart) = meant.peek().copied() {
        let kept = meant.flat_map(|chart| &chart.versions).map(|version| &version.version);
        return Ok(MeantChart {
            repository: chart.repository.clone(),
            chart: chart.chart.clone(),
            version: kept.max_by(|a, b| by_precedence(a, b)).cloned(),
        });
    }
    if let Some((repository, chart)) = name.split_once('/')
        && charts.repositories.iter().any(|known| *known.access.name == *repository)
    {
        return Ok(MeantChart { repository: repository.to_owned(), chart: chart.to_owned(), version: None });
    }
    let modules = charts.modules.iter().map(|module| module.module.as_str());
    Err(unknown("chart", name, modules.chain(charts.charts.iter().map(|chart| chart.name.as_str()))))
}

/// Compares two versions. What is none is lower than all.
fn by_precedence(a: &str, b: &str) -> Ordering {
    match (Version::parse(a), Version::parse(b)) {
        (Ok(a), Ok(b)) => a.precedence(&b),
        (a, b) => a.is_ok().cmp(&b.is_ok()),
    }
}

/// Returns all of it as data.
pub fn data(view: &View, format: Format<'_>) -> Value {
    let charts = &view.charts;
    json!({
        "repositories": charts.repositories.iter().map(|its| repository_data(its, format)).collect::<Vec<_>>(),
        "charts": charts.charts.iter().map(|chart| chart_data(chart, format)).collect::<Vec<_>>(),
        "modules": charts.modules.iter().map(|module| module_data(module, format)).collect::<Vec<_>>(),
    })
}

/// Returns those modules as data for which there is something newer.
pub fn outdated_data(view: &View, format: Format<'_>) -> Value {
    json!({"modules": outdated(view).map(|module| module_data(module, format)).collect::<Vec<_>>()})
}

fn outdated(view: &View) -> impl Iterator<Item = &ModuleChartView> {
    view.charts.modules.iter().filter(|module| module.is_outdated())
}

fn repository_data(repository: &ChartRepositoryView, format: Format<'_>) -> Value {
    json!({
        "name": &*repository.access.name,
        "url": crate::addon::shown_url(&repository.access.url),
        "group": repository.group,
        "synced": repository.is_synced,
        "charts": repository.charts,
        "message": (format.show)(&repository.message),
        "nextSeconds": repository.next_in.map(|time| time.as_secs_f64()),
    })
}

fn chart_data(chart: &ChartView, format: Format<'_>) -> Value {
    let version = |its: &ChartVersionView| json!({"constraint": its.constraint, "version": its.version, "digest": its.digest});
    json!({
        "name": chart.name,
        "repository": chart.repository,
        "chart": chart.chart,
        "synced": chart.is_synced,
        "versions": chart.versions.iter().map(version).collect::<Vec<_>>(),
        "highest": chart.highest,
        "message": (format.show)(&chart.message),
        "nextSeconds": chart.next_in.map(|time| time.as_secs_f64()),
    })
}

fn module_data(module: &ModuleChartView, format: Format<'_>) -> Value {
    let package =
        |package: &Package| json!({"version": &*package.version, "digest": package.digest.as_str()});
    json!({
        "module": module.module.as_str(),
        "chart": module.chart,
        "repository": module.repository,
        "name": module.name,
        "constraint": module.constraint,
        "autoUpgrade": module.auto_upgrade,
        "pinned": module.pinned.as_ref().map(package),
        "previous": module.previous.as_ref().map(package),
        "rejected": module.rejected,
        "givenUp": module.given_up.as_ref().map(|its| json!({"version": &*its.version, "error": (format.show)(&its.error)})),
        "fits": module.fits,
        "highest": module.highest,
    })
}

/// Returns how far something is, in one word.
pub fn state(is_synced: Option<bool>) -> &'static str {
    match is_synced {
        None => "new",
        Some(true) => "synced",
        Some(false) => "failed",
    }
}

/// Returns all Charts as a table.
pub fn text(view: &View, format: Format<'_>) -> String {
    if view.charts.charts.is_empty() {
        return "There is no Chart: docs/charts.md says how to have charts kept.\n".to_owned();
    }
    let row = |chart: &ChartView| {
        let versions = chart.versions.iter().map(|its| format!("{} ({})", its.version, its.constraint));
        let module = view.charts.modules.iter().find(|module| module.chart == chart.name);
        vec![
            chart.name.clone(),
            format!("{}/{}", chart.repository, chart.chart),
            state(chart.is_synced).to_owned(),
            versions.collect::<Vec<_>>().join(", "),
            chart.highest.clone().unwrap_or_default(),
            module.map(|module| module.module.to_string()).unwrap_or_default(),
            chart.next_in.map(span).unwrap_or_default(),
            one_line(&(format.show)(&chart.message)),
        ]
    };
    let rows: Vec<Vec<String>> = view.charts.charts.iter().map(row).collect();
    columns(&["NAME", "CHART", "STATE", "VERSIONS", "HIGHEST", "MODULE", "NEXT IN", "MESSAGE"], &rows, "")
}

/// Returns the modules as a table for which there is something newer.
pub fn outdated_text(view: &View) -> String {
    let row = |module: &ModuleChartView| {
        let version = |version: &Option<String>| version.clone().unwrap_or_default();
        vec![
            module.module.to_string(),
            format!("{}/{}", module.repository, module.name),
            module.constraint.clone(),
            module.pinned.as_ref().map(|pinned| pinned.version.to_string()).unwrap_or_default(),
            version(&module.fits),
            version(&module.highest),
        ]
    };
    let rows: Vec<Vec<String>> = outdated(view).map(row).collect();
    if rows.is_empty() {
        return "Every module that names a chart has the newest version of it.\n".to_owned();
    }
    columns(&["MODULE", "CHART", "CONSTRAINT", "PINNED", "FITS", "HIGHEST"], &rows, "")
}

/// Returns versions of a chart as a table.
pub fn versions_text(versions: &[Value]) -> String {
    let row = |version: &Value| {
        let field = |name: &str| version.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let is = |name: &str| version.get(name).and_then(Value::as_bool).unwrap_or_default();
        let notes = [("kept", is("kept")), ("deprecated", is("deprecated"))];
        let notes: Vec<&str> = notes.into_iter().filter(|(_, is_so)| *is_so).map(|(note, _)| note).collect();
        vec![field("version"), one_line(&field("appVersion")), one_line(&field("created")), notes.join(", ")]
    };
    let rows: Vec<Vec<String>> = versions.iter().map(row).collect();
    columns(&["VERSION", "APP VERSION", "CREATED", "NOTES"], &rows, "")
}

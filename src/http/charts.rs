//! What the socket answers about charts from repositories. See docs/charts.md.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use engine::view::charts::{self, MeantChart};
use engine::view::{ModuleChartView, View};
use engine::{ModuleName, Package};
use serde_json::{Value, json};

use super::debug_state::DebugState;
use super::response::{ended, formatted, not_found, split, text, text_or_failure};
use super::secret_values::SecretValues;

type Fields = BTreeMap<String, String>;

/// Returns the chart and the version that a query is about, or the answer that there is none.
#[expect(clippy::result_large_err, reason = "it is the answer")]
fn meant(view: &View, query: &Fields) -> Result<MeantChart, Response> {
    let name = query.get("name").map(String::as_str).unwrap_or_default();
    let found = charts::find(view, name);
    let found = found.map_err(|unknown| (StatusCode::NOT_FOUND, format!("{unknown}\n")).into_response())?;
    let version = query.get("version").filter(|version| !version.is_empty()).cloned();
    Ok(MeantChart { version: version.or(found.version), ..found })
}

pub(super) async fn asked(
    State(debug): State<DebugState>,
    Path(file): Path<String>,
    Query(query): Query<Fields>,
) -> Response {
    let Some(view) = debug.questions.view().await else { return ended() };
    let secret = SecretValues::of(view.secrets.clone(), debug.may_show(&query));
    match split(&file) {
        ("list", "text") => text(secret.telling(|telling| charts::text(&view, telling))),
        ("list", format) => formatted(format, &secret.telling(|telling| charts::data(&view, telling))),
        ("outdated", "text") => text(charts::outdated_text(&view)),
        ("outdated", format) => {
            formatted(format, &secret.telling(|telling| charts::outdated_data(&view, telling)))
        }
        ("versions", format) => versions(&debug, &view, &query, format).await,
        ("values", _) => match meant(&view, &query) {
            Ok(meant) => text_or_failure(debug.charts.values(meant).await),
            Err(answer) => answer,
        },
        ("archive", _) => archive(&debug, &view, &query, false).await,
        ("package", _) => archive(&debug, &view, &query, true).await,
        ("plan", _) => plan(&debug, &view, &query, &secret).await,
        _ => not_found(),
    }
}

async fn versions(debug: &DebugState, view: &View, query: &Fields, format: &str) -> Response {
    let meant = match meant(view, query) {
        Ok(meant) => meant,
        Err(answer) => return answer,
    };
    let of_chart = view
        .charts
        .charts
        .iter()
        .filter(|chart| (&chart.repository, &chart.chart) == (&meant.repository, &meant.chart));
    let kept: Vec<&str> =
        of_chart.flat_map(|chart| &chart.versions).map(|version| version.version.as_str()).collect();
    let entries = match debug.charts.versions(meant.clone()).await {
        Ok(entries) => entries,
        Err(failure) => return text_or_failure(Err(failure)),
    };
    let line = |entry: &Value| {
        let field = |name: &str| entry.get(name).cloned().unwrap_or_default();
        let version = field("version");
        let is_kept = version.as_str().is_some_and(|version| kept.contains(&version));
        json!({
            "version": version, "appVersion": field("appVersion"), "created": field("created"),
            "deprecated": field("deprecated").as_bool().unwrap_or_default(), "digest": field("digest"), "kept": is_kept,
        })
    };
    let lines: Vec<Value> = entries.iter().map(line).collect();
    if format == "text" {
        return text(charts::versions_text(&lines));
    }
    formatted(format, &json!({"repository": meant.repository, "chart": meant.chart, "versions": lines}))
}

/// Answers with an archive, or with what its file is called and which digest it has.
async fn archive(debug: &DebugState, view: &View, query: &Fields, is_described: bool) -> Response {
    let meant = match meant(view, query) {
        Ok(meant) => meant,
        Err(answer) => return answer,
    };
    match debug.charts.archive(meant).await {
        Err(failure) => text_or_failure(Err(failure)),
        Ok((Package { chart, version, digest, .. }, _)) if is_described => {
            let file = format!("{chart}-{version}.tgz");
            formatted("json", &json!({"file": file, "version": &*version, "digest": digest.as_str()}))
        }
        Ok((_, bytes)) => ([(header::CONTENT_TYPE, "application/gzip")], bytes).into_response(),
    }
}

/// Answers how the cluster differs from what another version of a module's chart renders to.
async fn plan(debug: &DebugState, view: &View, query: &Fields, secret: &SecretValues) -> Response {
    let name = query.get("name").map(String::as_str).unwrap_or_default();
    let is_it = |module: &&ModuleChartView| module.module.as_str() == name;
    let Some(its) = view.charts.modules.iter().find(is_it) else {
        let text = format!(
            "there is no module {name:?} that is on and names a chart; `addon-operator chart list` shows those\n"
        );
        return (StatusCode::NOT_FOUND, text).into_response();
    };
    let known = view.charts.repositories.iter().find(|known| *known.access.name == *its.repository);
    let Some(repository) = known.map(|known| known.access.clone()) else {
        let text = format!("module {name}: there is no Repository {:?}\n", its.repository);
        return (StatusCode::NOT_FOUND, text).into_response();
    };
    let version = query.get("version").filter(|version| !version.is_empty()).cloned();
    let meant = MeantChart {
        repository: its.repository.clone(),
        chart: its.name.clone(),
        version: version.or_else(|| Some(its.constraint.clone())),
    };
    let package = match debug.charts.look_at(repository, meant).await {
        Ok(package) => Arc::new(package),
        Err(failure) => return text_or_failure(Err(failure)),
    };
    let Some(((module, target), values)) = debug.questions.chart_input(ModuleName::from(name)).await else {
        return ended();
    };
    let module = Arc::new(module.installed_from(&package));
    let outcome = debug.releases.diff((module, target), values, secret.are_shown()).await;
    text_or_failure(outcome.map(|text| secret.hide(&text)).map_err(|failure| secret.hide_failure(&failure)))
}

//! The routes of the TCP port, for everybody. They never show the values of modules. See docs/operating.md#http.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use engine::Failure;
use engine::view::{Format, TaskView, View, status};
use serde::Deserialize;

use super::explain::{self, OutputFormat};
use super::exposition;
use super::mask::Mask;
use super::page::{PageCache, PageOptions};
use super::response::{ended, json, not_allowed, not_found, text};
use super::routes::PORT;
use super::{converge_status, queue};
use crate::cluster::WatchHealths;
use crate::driver::Questions;
use crate::telemetry::Telemetry;

/// How long a watch may be broken before `/healthz` fails.
const BROKEN_WATCH: Duration = Duration::from_mins(1);

/// What `/healthz` checks.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// The watches of bindings.
    pub watches: WatchHealths,
}

#[derive(Clone)]
struct PublicState {
    questions: Questions,
    telemetry: Arc<Telemetry>,
    health: Health,
    pages: PageCache,
}

/// Returns the routes of the port.
pub fn router(questions: Questions, telemetry: Arc<Telemetry>, health: Health) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/discovery", get(discovery))
        .route("/graph", get(graph))
        .route("/journal", get(journal))
        .route("/status", get(overview))
        .route("/why/{what}/{name}", get(why))
        .route("/healthz", get(healthz))
        .route("/metrics", get(metrics))
        .route("/metrics/hooks", get(hook_metrics))
        .route("/queue", get(queue_page))
        .route("/readyz", get(readyz))
        .route("/status/converge", get(converge))
        .fallback(|| async { not_found() })
        .method_not_allowed_fallback(|| async { not_allowed() })
        .with_state(PublicState { questions, telemetry, health, pages: PageCache::default() })
}

#[derive(Default, Deserialize)]
struct ConvergeQuery {
    #[serde(default)]
    output: String,
}

async fn index(State(public): State<PublicState>, Query(query): Query<BTreeMap<String, String>>) -> Response {
    public.pages.page(&public.questions, PageOptions::of(&query)).await
}

async fn discovery() -> Response {
    let whys = ["/why/module/{name}", "/why/queue/{name}", "/why/task/{id}"];
    text(format!("GET {}\n", [PORT, &whys].concat().join("\nGET ")))
}

async fn healthz(State(public): State<PublicState>) -> Response {
    let broken: Vec<String> = public
        .health
        .watches
        .all()
        .into_iter()
        .filter(|watch| watch.since.elapsed() > BROKEN_WATCH)
        .filter_map(|watch| Some(format!("watch of {}: {}\n", watch.name, watch.error?)))
        .collect();
    if broken.is_empty() {
        StatusCode::OK.into_response()
    } else {
        (StatusCode::INTERNAL_SERVER_ERROR, broken.concat()).into_response()
    }
}

async fn readyz(State(public): State<PublicState>) -> Response {
    match public.questions.view().await {
        Some(view) if view.converge.first_done => text("Startup converge done.\n".to_owned()),
        Some(_) => (StatusCode::INTERNAL_SERVER_ERROR, "Startup converge in progress\n").into_response(),
        None => ended(),
    }
}

async fn converge(State(public): State<PublicState>, Query(query): Query<ConvergeQuery>) -> Response {
    let Some(view) = public.questions.view().await else { return ended() };
    if query.output == "json" {
        json(&converge_status::data(&view.converge))
    } else {
        text(converge_status::text(&view.converge))
    }
}

async fn metrics(State(public): State<PublicState>, request: HeaderMap) -> Response {
    let view = public.questions.view().await;
    exposition::answer(public.telemetry.metrics_text(view.as_ref()), &request)
}

async fn hook_metrics(State(public): State<PublicState>, request: HeaderMap) -> Response {
    exposition::answer(public.telemetry.hook_metrics_text(), &request)
}

async fn queue_page(State(public): State<PublicState>, Query(query): Query<explain::Query>) -> Response {
    let Some(view) = public.questions.view().await else { return ended() };
    let Some(mask) = Mask::new(&public.questions, &view).await else { return ended() };
    let show = |task: &TaskView| {
        let shown = |failure: &Arc<Failure>| mask.show(failure, task.module.as_ref());
        task.last_failure.as_ref().map(shown).unwrap_or_default()
    };
    let page = || {
        let telling = Format { show: &|text| mask.text(text), at: &explain::time_of_day };
        queue::page_text(&view, &show, &status::problems(&view, telling))
    };
    explain::answer(
        OutputFormat::of(&query, OutputFormat::Text),
        || queue::list_json(&view, true, &show),
        page,
    )
}

async fn graph(State(public): State<PublicState>, Query(query): Query<explain::Query>) -> Response {
    let Some(view) = public.questions.view().await else { return ended() };
    explain::graph(&view, &query)
}

async fn journal(State(public): State<PublicState>, Query(query): Query<explain::Query>) -> Response {
    let output = OutputFormat::of(&query, OutputFormat::Text);
    answer_masked(&public, |view, telling| explain::journal(view, &query, output, telling)).await
}

async fn overview(State(public): State<PublicState>, Query(query): Query<explain::Query>) -> Response {
    let output = OutputFormat::of(&query, OutputFormat::Text);
    answer_masked(&public, |view, telling| explain::status(view, output, telling)).await
}

async fn why(
    State(public): State<PublicState>,
    Path((what, name)): Path<(String, String)>,
    Query(query): Query<explain::Query>,
) -> Response {
    let output = OutputFormat::of(&query, OutputFormat::Json);
    answer_masked(&public, |view, telling| explain::why(view, &what, &name, output, telling)).await
}

/// Answers from the current view, with values masked.
async fn answer_masked(public: &PublicState, answer: impl FnOnce(&View, Format<'_>) -> Response) -> Response {
    let Some(view) = public.questions.view().await else { return ended() };
    let Some(mask) = Mask::new(&public.questions, &view).await else { return ended() };
    answer(&view, Format { show: &|text| mask.text(text), at: &explain::time_of_day })
}

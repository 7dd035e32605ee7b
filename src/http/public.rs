//! The routes of the TCP port, for everybody. They never show the values of modules. See docs/operating.md#http.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use engine::Failure;
use engine::view::{ConvergeView, Format, TaskView, View, problems};
use serde::Deserialize;

use super::explain::{self, OutputFormat};
use super::exposition;
use super::mask::Mask;
use super::page::{PageCache, PageOptions};
use super::response::{after_start, ended, json, not_allowed, not_found, text};
use super::routes::PORT;
use super::{converge_status, queue};
use crate::driver::Questions;
use crate::telemetry::Telemetry;

/// How long `/healthz` waits for the driver, and how late its timers may be. Less than a probe waits for us.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Clone)]
struct PublicState {
    questions: Questions,
    telemetry: Arc<Telemetry>,
    pages: PageCache,
}

/// Returns the routes of the port.
pub fn router(questions: Questions, telemetry: Arc<Telemetry>) -> Router {
    let explanations = Router::new()
        .route("/graph", get(graph))
        .route("/journal", get(journal))
        .route("/status", get(overview))
        .route("/why/{what}/{name}", get(why))
        .route("/queue", get(queue_page))
        .route("/readyz", get(readyz))
        .route("/status/converge", get(converge))
        .route_layer(from_fn_with_state(questions.clone(), after_start));
    explanations
        .route("/", get(index))
        .route("/discovery", get(discovery))
        .route("/healthz", get(healthz))
        .route("/metrics", get(metrics))
        .route("/metrics/hooks", get(hook_metrics))
        .fallback(|| async { not_found() })
        .method_not_allowed_fallback(|| async { not_allowed() })
        .with_state(PublicState { questions, telemetry, pages: PageCache::default() })
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
    let whys = ["/why/module/{name}", "/why/queue/{name}", "/why/source/{name}", "/why/task/{id}"];
    text(format!("GET {}\n", [PORT, &whys].concat().join("\nGET ")))
}

/// Answers whether a restart would help. It mends an operator that hangs, but no missing right and no API server.
async fn healthz(State(public): State<PublicState>) -> Response {
    if public.questions.is_alive(PATIENCE).await {
        return StatusCode::OK.into_response();
    }
    let text = format!("the operator hangs: no turn of its loop within {} s\n", PATIENCE.as_secs());
    (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
}

async fn readyz(State(public): State<PublicState>) -> Response {
    match public.questions.converge().await {
        Some(converge) if converge.first_done => text("Startup converge done.\n".to_owned()),
        // The words are those of the reference operator. A standby is ready: it answers reviews, and can take over.
        Some(ConvergeView { standby_of: Some(Some(_)), .. }) => {
            text("HA mode is enabled and waiting for acquiring the lock.\n".to_owned())
        }
        Some(ConvergeView { standby_of: Some(None), .. }) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "HA mode is enabled but no leader is elected\n")
                .into_response()
        }
        Some(_) => (StatusCode::INTERNAL_SERVER_ERROR, "Startup converge in progress\n").into_response(),
        None => ended(),
    }
}

async fn converge(State(public): State<PublicState>, Query(query): Query<ConvergeQuery>) -> Response {
    let Some(converge) = public.questions.converge().await else { return ended() };
    if query.output == "json" {
        json(&converge_status::data(&converge))
    } else {
        text(converge_status::text(&converge))
    }
}

async fn metrics(State(public): State<PublicState>, request: HeaderMap) -> Response {
    // What the operator counts is told at its start, too.
    let view = if public.questions.start().is_some() { None } else { public.questions.heads().await };
    exposition::answer(public.telemetry.metrics(view.as_ref()), &request)
}

async fn hook_metrics(State(public): State<PublicState>, request: HeaderMap) -> Response {
    exposition::answer(iter::once(public.telemetry.hook_metrics_text()), &request)
}

async fn queue_page(State(public): State<PublicState>, Query(query): Query<explain::Query>) -> Response {
    let Some((view, mask)) = Mask::of(&public.questions).await else { return ended() };
    let show = |task: &TaskView| {
        let shown = |failure: &Arc<Failure>| mask.show(failure, task.module.as_ref());
        task.last_failure.as_ref().map(shown).unwrap_or_default()
    };
    let page = || {
        let telling = Format { show: &|text| mask.text(text), at: &explain::time_of_day };
        queue::page_text(&view, &show, &problems(&view, telling))
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
    let Some((view, mask)) = Mask::of(&public.questions).await else { return ended() };
    answer(&view, Format { show: &|text| mask.text(text), at: &explain::time_of_day })
}

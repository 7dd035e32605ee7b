//! The TCP port: what everybody may see. No value of a module ever appears here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use engine::Failure;
use engine::view::{TaskView, Telling, View, status};
use serde::Deserialize;
use serde_json::Value;

use super::explain::{self, Form};
use super::exposition;
use super::mask::Mask;
use super::page::{Pages, Wish};
use super::{converge_status, queue};
use crate::driver::Questions;
use crate::kube::Healths;
use crate::telemetry::Telemetry;

/// How long a watch may be without a sign of life before the operator counts as not alive.
const BROKEN_WATCH: Duration = Duration::from_mins(1);

/// What the operator's health depends on.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// The watches of bindings.
    pub watches: Healths,
}

#[derive(Clone)]
struct Public {
    questions: Questions,
    telemetry: Arc<Telemetry>,
    health: Health,
    pages: Pages,
}

/// The routes, for `/discovery` and for the page at `/`.
pub(super) const ROUTES: &[&str] = &[
    "/",
    "/discovery",
    "/graph",
    "/healthz",
    "/journal",
    "/metrics",
    "/metrics/hooks",
    "/queue",
    "/readyz",
    "/status",
    "/status/converge",
];

/// Returns the routes of the port.
pub(super) fn router(questions: Questions, telemetry: Arc<Telemetry>, health: Health) -> Router {
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
        .fallback(|| async { super::debug::not_found() })
        .method_not_allowed_fallback(|| async { super::debug::not_allowed() })
        .with_state(Public { questions, telemetry, health, pages: Pages::default() })
}

#[derive(Default, Deserialize)]
struct Format {
    #[serde(default)]
    output: String,
}

fn text(body: String) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response()
}

fn json(body: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}

fn ended() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the operator is starting or ending\n").into_response()
}

async fn index(State(public): State<Public>, Query(query): Query<BTreeMap<String, String>>) -> Response {
    public.pages.page(&public.questions, Wish::of(&query)).await
}

async fn discovery() -> Response {
    let whys = ["/why/module/{name}", "/why/queue/{name}", "/why/task/{id}"];
    text(format!("GET {}\n", [ROUTES, &whys].concat().join("\nGET ")))
}

async fn healthz(State(public): State<Public>) -> Response {
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

async fn readyz(State(public): State<Public>) -> Response {
    match public.questions.view().await {
        Some(view) if view.converge.first_done => text("Startup converge done.\n".to_owned()),
        Some(_) => (StatusCode::INTERNAL_SERVER_ERROR, "Startup converge in progress\n").into_response(),
        None => ended(),
    }
}

async fn converge(State(public): State<Public>, Query(query): Query<Format>) -> Response {
    let Some(view) = public.questions.view().await else { return ended() };
    if query.output == "json" {
        json(&converge_status::data(&view.converge))
    } else {
        text(converge_status::text(&view.converge))
    }
}

async fn metrics(State(public): State<Public>, request: HeaderMap) -> Response {
    let view = public.questions.view().await;
    exposition::answer(public.telemetry.metrics_text(view.as_ref()), &request)
}

async fn hook_metrics(State(public): State<Public>, request: HeaderMap) -> Response {
    exposition::answer(public.telemetry.hook_metrics_text(), &request)
}

async fn queue_page(State(public): State<Public>, Query(query): Query<explain::Query>) -> Response {
    let Some(view) = public.questions.view().await else { return ended() };
    let Some(mask) = Mask::new(&public.questions, &view).await else { return ended() };
    let show = |task: &TaskView| {
        let shown = |failure: &Arc<Failure>| mask.show(failure, task.module.as_ref());
        task.last_failure.as_ref().map(shown).unwrap_or_default()
    };
    let page = || {
        let telling = Telling { show: &|text| mask.text(text), at: &explain::time_of_day };
        queue::page_text(&view, &show, &status::problems(&view, telling))
    };
    explain::answer(Form::of(&query, Form::Text), || queue::list_json(&view, true, &show), page)
}

async fn graph(State(public): State<Public>, Query(query): Query<explain::Query>) -> Response {
    let Some(view) = public.questions.view().await else { return ended() };
    explain::graph(&view, &query)
}

async fn journal(State(public): State<Public>, Query(query): Query<explain::Query>) -> Response {
    let form = Form::of(&query, Form::Text);
    told(&public, |view, telling| explain::journal(view, &query, form, telling)).await
}

async fn overview(State(public): State<Public>, Query(query): Query<explain::Query>) -> Response {
    let form = Form::of(&query, Form::Text);
    told(&public, |view, telling| explain::status(view, form, telling)).await
}

async fn why(
    State(public): State<Public>,
    Path((what, name)): Path<(String, String)>,
    Query(query): Query<explain::Query>,
) -> Response {
    let form = Form::of(&query, Form::Json);
    told(&public, |view, telling| explain::why(view, &what, &name, form, telling)).await
}

/// Answers from a picture, without the values of modules.
async fn told(public: &Public, tell: impl FnOnce(&View, Telling<'_>) -> Response) -> Response {
    let Some(view) = public.questions.view().await else { return ended() };
    let Some(mask) = Mask::new(&public.questions, &view).await else { return ended() };
    tell(&view, Telling { show: &|text| mask.text(text), at: &explain::time_of_day })
}

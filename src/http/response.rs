//! Answers that the port and the socket share: data in a format, and what is refused.

use std::borrow::Cow;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use engine::view::nearest;
use engine::{Failure, Inspection, ModuleName};
use serde_json::Value;

use crate::driver::Questions;

/// Splits the last part of a path, like `values.yaml`, into name and format. Without a known format it is text.
pub(super) fn split(file: &str) -> (&str, &str) {
    file.rsplit_once('.')
        .filter(|(_, format)| matches!(*format, "json" | "yaml" | "text"))
        .unwrap_or((file, "text"))
}

/// Returns data in a format; text is YAML, except for what has a text of its own.
pub(super) fn formatted(format: &str, data: &Value) -> Response {
    match format {
        "json" => json(data),
        "yaml" => yaml(data),
        _ => text(format!("{data}\n")),
    }
}

/// Answers with JSON on one line.
pub(super) fn json(data: &Value) -> Response {
    // The escapes are those of JSON, and such letters are in texts only.
    ([(header::CONTENT_TYPE, "application/json")], shown(format!("{data}\n"))).into_response()
}

/// Answers with YAML.
pub(super) fn yaml(data: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/yaml")], values::yaml::emit(data)).into_response()
}

/// Answers with plain text, which may be read on a terminal.
pub(super) fn text(body: String) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], shown(body)).into_response()
}

/// Returns a text without what a terminal would obey.
fn shown(body: String) -> String {
    match engine::view::escaped(&body) {
        Cow::Borrowed(_) => body,
        Cow::Owned(escaped) => escaped,
    }
}

/// Answers that there is no engine to ask.
pub(super) fn ended() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the operator is starting or ending\n").into_response()
}

/// Answers what the operator does at its start, if that is not over: nobody could answer the request itself.
pub(super) async fn after_start(
    State(questions): State<Questions>,
    request: Request,
    next: Next,
) -> Response {
    match questions.start() {
        Some(doing) => (StatusCode::SERVICE_UNAVAILABLE, text(starting(&doing))).into_response(),
        None => next.run(request).await,
    }
}

/// Returns what is said of an operator that starts.
pub(super) fn starting(doing: &str) -> String {
    format!("The operator starts: {doing}\n")
}

/// Answers that there is no such route, in the words of the reference operator.
pub(super) fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "404 page not found\n").into_response()
}

/// Answers that the method is wrong; the header Allow names the right one.
pub(super) fn not_allowed() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, "405 method not allowed\n").into_response()
}

/// Returns whether a query parameter is true, in any of Go's spellings.
pub(super) fn is_true(text: Option<&String>) -> bool {
    text.is_some_and(|text| matches!(text.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True"))
}

/// Answers with a text, or with a failure and its advice.
pub(super) fn text_or_failure(outcome: Result<String, Failure>) -> Response {
    match outcome {
        Ok(text) => text.into_response(),
        Err(failure) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("{}\n", with_advice(&failure))).into_response()
        }
    }
}

/// Returns a failure with its advice.
pub(super) fn with_advice(failure: &Failure) -> String {
    match &failure.advice {
        Some(advice) => format!("{failure} ({advice})"),
        None => failure.to_string(),
    }
}

/// Answers that there is no such module, with the name that is nearest.
pub(super) fn unknown(inspection: &Inspection, name: &str) -> Response {
    let found = nearest(name, inspection.modules.keys().map(ModuleName::as_str));
    let hint = found.map(|found| format!(": {name}; did you mean {found}?")).unwrap_or_default();
    (StatusCode::INTERNAL_SERVER_ERROR, format!("module not found{hint}\n")).into_response()
}

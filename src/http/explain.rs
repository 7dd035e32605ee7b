//! Answers to why, status, journal and graph. The socket and the port share them; only the socket shows values.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use engine::view::{Format, View, graph, journal, status, why};
use jiff::Timestamp;
use serde_json::Value;

use super::response;

/// The query parameters of a request, by name.
pub(super) type Query = BTreeMap<String, String>;

/// The format of an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum OutputFormat {
    Json,
    Text,
    Yaml,
}

impl OutputFormat {
    /// Returns the format of `?output=` or `?format=`, or else `usual`.
    pub(super) fn of(query: &Query, usual: Self) -> Self {
        query.get("output").or_else(|| query.get("format")).map_or(usual, |name| Self::named(name, usual))
    }

    /// Returns the format with this name, or else `usual`.
    pub(super) fn named(name: &str, usual: Self) -> Self {
        match name {
            "json" => Self::Json,
            "text" => Self::Text,
            "yaml" => Self::Yaml,
            _ => usual,
        }
    }
}

/// Returns the time of day of a moment `ago` in the past, to the second.
pub(super) fn time_of_day(ago: Duration) -> String {
    let then = Timestamp::now().checked_sub(ago).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{then:.0}")
}

pub(super) fn answer(
    output: OutputFormat,
    data: impl FnOnce() -> Value,
    text: impl FnOnce() -> String,
) -> Response {
    match output {
        OutputFormat::Json => response::json(&data()),
        OutputFormat::Yaml => response::yaml(&data()),
        OutputFormat::Text => response::text(text()),
    }
}

/// Answers why a module, a queue, a module source or a task is in its state.
pub(super) fn why(
    view: &View,
    what: &str,
    name: &str,
    output: OutputFormat,
    telling: Format<'_>,
) -> Response {
    if what == "source"
        && let Some(refusal) = view.refusal()
    {
        return response::text_or_failure(Err(refusal));
    }
    let found = match what {
        "module" => why::module(view, name, telling),
        "queue" => why::queue(view, name, telling),
        "source" => why::source(view, name, telling),
        "task" => why::task(view, name, telling),
        other => {
            let text = format!(
                "there is no answer about {other:?}; ask /why/module/NAME, /why/queue/NAME, /why/source/NAME or /why/task/ID\n"
            );
            return (StatusCode::NOT_FOUND, text).into_response();
        }
    };
    match found {
        Ok(found) => answer(output, || found.data(), || found.text()),
        Err(unknown) if output == OutputFormat::Json => {
            let error = serde_json::json!({"error": unknown.to_string()});
            (StatusCode::NOT_FOUND, response::json(&error)).into_response()
        }
        Err(unknown) => (StatusCode::NOT_FOUND, format!("{unknown}\n")).into_response(),
    }
}

/// Answers the status of the whole operator.
pub(super) fn status(view: &View, output: OutputFormat, telling: Format<'_>) -> Response {
    answer(output, || status::data(view, telling), || status::text(view, telling))
}

/// Answers which tasks ended after number `?after=`.
pub(super) fn journal(view: &View, query: &Query, output: OutputFormat, telling: Format<'_>) -> Response {
    let after = query.get("after").and_then(|after| after.parse().ok()).unwrap_or(0);
    answer(output, || journal::data(view, after, telling), || journal::text(view, after, telling))
}

/// Answers with the picture of the modules: SVG, or what Graphviz reads with `?format=text`.
pub(super) fn graph(view: &View, query: &Query) -> Response {
    match query.get("format").map(String::as_str) {
        Some("text" | "dot") => response::text(graph::dot(view)),
        Some(_) | None => ([(header::CONTENT_TYPE, "image/svg+xml")], graph::svg(view)).into_response(),
    }
}

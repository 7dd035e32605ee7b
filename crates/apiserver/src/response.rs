//! Responses: plain text, JSON, refusals, warnings and entity tags.

use axum::body::Body;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use http::{HeaderMap, Response, StatusCode};

use crate::fingerprint::fingerprint;
use crate::status::{ApiError, Outcome};

/// Adds a warning before those that an answer has.
pub(crate) fn warn_first(answer: &mut Response<Body>, warning: String) {
    let later: Vec<HeaderValue> = answer.headers().get_all("warning").iter().cloned().collect();
    answer.headers_mut().remove("warning");
    warn(answer, &[warning]);
    for warning in later {
        answer.headers_mut().append("warning", warning);
    }
}

/// Adds a warning header for each text.
pub(crate) fn warn(answer: &mut Response<Body>, warnings: &[String]) {
    for text in warnings {
        let escaped: String = text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .flat_map(|c| if matches!(c, '"' | '\\') { vec!['\\', c] } else { vec![c] })
            .collect();
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{escaped}\"").as_bytes()) {
            answer.headers_mut().append("warning", value);
        }
    }
}

pub(crate) fn text(status: StatusCode, text: impl Into<String>) -> Response<Body> {
    with_type(status, "text/plain; charset=utf-8", text.into())
}

pub(crate) fn json(status: StatusCode, body: impl Into<Body>) -> Response<Body> {
    with_type(status, "application/json", body)
}

pub(crate) fn with_type(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Body>,
) -> Response<Body> {
    let mut answer = Response::new(body.into());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

pub(crate) fn refusal(error: &ApiError) -> Response<Body> {
    let status = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = json(status, error.to_bytes());
    if let Some(seconds) = error.retry_after() {
        answer.headers_mut().insert("retry-after", HeaderValue::from(seconds));
    }
    answer.extensions_mut().insert(error.clone());
    answer
}

/// Returns the answer that carries a refusal and what was to be warned of until then.
pub(crate) fn warned_refusal(error: &ApiError, warnings: &[String]) -> Response<Body> {
    let mut answer = refusal(error);
    warn(&mut answer, warnings);
    answer
}

/// Returns an answer or a refusal with what is to be warned of.
pub(crate) fn warned(answer: Outcome<Response<Body>>, warnings: &[String]) -> Response<Body> {
    let mut answer = answer.unwrap_or_else(|error| refusal(&error));
    warn(&mut answer, warnings);
    answer
}

/// Returns a document with its entity tag, or "not modified" if the client already has this version.
pub(crate) fn tagged(headers: &HeaderMap, body: Bytes, content_type: &'static str) -> Response<Body> {
    let tag = format!("\"{:016X}\"", fingerprint(&body));
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut answer = if known == Some(&tag) {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        answer
    } else {
        let mut answer = Response::new(Body::from(body));
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        answer
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        answer.headers_mut().insert(ETAG, tag);
    }
    answer.headers_mut().insert("vary", HeaderValue::from_static("Accept"));
    answer
}

/// Marks answers that never end, which are not compressed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endless;

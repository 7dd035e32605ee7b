//! A server for the targets that need a whole one: the same in each run.

use std::future::Future;
use std::time::Duration;

use apiserver::{ApiServer, Clock};
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use tower::ServiceExt as _;

/// How long the end of an answer is waited for: a watch has none.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a server answered.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The body; of a watch what came first.
    pub(crate) body: Vec<u8>,
    /// Whether the body came to its end.
    pub(crate) is_whole: bool,
}

/// Runs `work` on a clock that stands still while anybody works.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(work)
}

/// Begins to set up a server whose names, identities and times are always the same.
pub(crate) fn builder() -> apiserver::Builder {
    let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    ApiServer::builder().seed(1).clock(Clock::new(move || now))
}

/// Sends a request and reads its answer.
pub(crate) async fn send(server: &ApiServer, request: Request<Body>) -> Answer {
    let answer = server.service().oneshot(request).await.unwrap();
    let (head, mut body) = answer.into_parts();
    let mut bytes = Vec::new();
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            bytes.extend_from_slice(&frame.into_data().unwrap_or_else(|_| Bytes::new()));
        }
    };
    let is_whole = tokio::time::timeout(PATIENCE, reading).await.is_ok();
    Answer { status: head.status, headers: head.headers, body: bytes, is_whole }
}

/// Sends a GET.
pub(crate) async fn get(server: &ApiServer, path: &str) -> Answer {
    send(server, Request::get(path).body(Body::empty()).unwrap()).await
}

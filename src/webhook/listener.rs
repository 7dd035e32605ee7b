//! The HTTPS listener: one review in, one answer out. What is no review does not reach the engine.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use connections::Limits;
use engine::{Event, RefusalReason};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::pending::PendingReviews;
use crate::driver::Inbox;
use crate::http_listener::{self, Patience, Responder};

/// How long the API server may take to agree on a connection, to send a request, and until the next one.
const HANDSHAKE: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_mins(1);

/// How many connections are open at a time. The API server has few, and sends many requests through each.
const PATIENT: Patience = Patience {
    limits: Limits { connections: 512, probes: 16, idle: Duration::from_secs(90) },
    head: PATIENCE,
};

/// How many bytes a review may have: two objects of the largest size that the API server stores, or the objects of a list.
const LONGEST_REVIEW: usize = 8 << 20;
const LONGEST_CONVERSION: usize = 64 << 20;

/// How many bytes the bodies have together that are read, or wait for their hooks. Further ones are read when there is room.
const BODIES: usize = 2 * LONGEST_CONVERSION;

/// Takes reviews.
#[derive(Clone)]
pub(super) struct Listener {
    pub(super) tls: TlsAcceptor,
    pub(super) pending: PendingReviews,
    pub(super) inbox: Inbox,
    bodies: Arc<tokio::sync::Semaphore>,
}

impl Listener {
    pub(super) fn new(tls: TlsAcceptor, pending: PendingReviews, inbox: Inbox) -> Self {
        Self { tls, pending, inbox, bodies: Arc::new(tokio::sync::Semaphore::new(BODIES)) }
    }

    /// Takes reviews until it is dropped.
    pub(super) async fn listen(self, listener: Arc<TcpListener>) {
        http_listener::listen(listener, PATIENT, self).await;
    }

    /// Returns the answer to a request.
    async fn reviewed(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        if head.method == Method::GET && path == "/healthz" {
            return text(StatusCode::OK, "");
        }
        if head.method != Method::POST {
            return text(StatusCode::METHOD_NOT_ALLOWED, "reviews are sent with POST");
        }
        if !is_json(&head.headers) {
            return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type has to be application/json");
        }
        let timeout = head.uri.query().and_then(timeout);
        let (review, _room) = match self.read(&path, &head.headers, body).await {
            Ok(review) => review,
            Err((status, message)) => return text(status, &message),
        };
        let pending = self.pending.add(&self.inbox);
        let event = Event::ReviewRequested { id: pending.id, webhook: path, review, timeout };
        if !self.inbox.event(event).await {
            return text(StatusCode::SERVICE_UNAVAILABLE, "the operator ends");
        }
        match pending.answered().await {
            Some(Ok(answer)) => {
                let body = serde_json::to_vec(&*answer).unwrap_or_default();
                let mut response = Response::new(Body::from(body));
                let json = http::HeaderValue::from_static("application/json");
                response.headers_mut().insert(CONTENT_TYPE, json);
                response
            }
            Some(Err(refusal)) => {
                let status = match refusal.reason {
                    RefusalReason::Busy => StatusCode::SERVICE_UNAVAILABLE,
                    RefusalReason::Expired => StatusCode::GATEWAY_TIMEOUT,
                    RefusalReason::Malformed => StatusCode::BAD_REQUEST,
                    RefusalReason::Unknown => StatusCode::NOT_FOUND,
                };
                text(status, &refusal.message)
            }
            None => text(StatusCode::SERVICE_UNAVAILABLE, "the operator ends"),
        }
    }

    /// Reads a body as JSON. Returns the room that it takes, too.
    async fn read(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: Incoming,
    ) -> Result<(Arc<Value>, tokio::sync::OwnedSemaphorePermit), (StatusCode, String)> {
        let longest = if path.starts_with("/convert/") { LONGEST_CONVERSION } else { LONGEST_REVIEW };
        let too_long = || (StatusCode::PAYLOAD_TOO_LARGE, format!("a review has {longest} bytes at most"));
        let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if announced.is_some_and(|length: usize| length > longest) {
            return Err(too_long());
        }
        let room = u32::try_from(announced.unwrap_or(longest)).unwrap_or(u32::MAX);
        let reading = async {
            let room = Arc::clone(&self.bodies).acquire_many_owned(room).await;
            (Limited::new(body, longest).collect().await, room)
        };
        let read = tokio::time::timeout(PATIENCE, reading).await;
        let slow = |_| (StatusCode::REQUEST_TIMEOUT, "the review did not come in time".to_owned());
        let (read, room) = read.map_err(slow)?;
        let bytes = match read {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Err(too_long()),
            Err(error) => return Err((StatusCode::BAD_REQUEST, format!("the body can't be read: {error}"))),
        };
        let room = room.map_err(|_| (StatusCode::SERVICE_UNAVAILABLE, "the operator ends".to_owned()))?;
        let review = serde_json::from_slice(&bytes);
        let review = review.map_err(|_| (StatusCode::BAD_REQUEST, "Invalid JSON payload".to_owned()))?;
        Ok((Arc::new(review), room))
    }
}

impl Responder for Listener {
    type Stream = TlsStream<TcpStream>;

    async fn agree(&self, stream: TcpStream) -> Option<Self::Stream> {
        tokio::time::timeout(HANDSHAKE, self.tls.accept(stream)).await.ok()?.ok()
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        self.reviewed(request).await
    }
}

/// Returns whether a body is JSON. Parameters such as a character set may follow.
fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or_default();
    given.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// Returns how long the API server waits, as it says in the query: `timeout=10s`.
fn timeout(query: &str) -> Option<Duration> {
    let text = query.split('&').find_map(|pair| pair.strip_prefix("timeout="))?;
    engine::duration::parse(text).ok()
}

fn text(status: StatusCode, message: &str) -> Response<Body> {
    let body = if message.is_empty() { String::new() } else { format!("{message}\n") };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response
}

//! The HTTP listener of the broker: one call in, one answer out. Who does not prove who they are does not reach the engine.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use connections::Limits;
use engine::{BrokerRequest, Event};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::access::Access;
use super::credentials::body_of;
use super::observation::{BrokerMetrics, BrokerObservation};
use super::pending::PendingCalls;
use crate::cluster::request::Requests;
use crate::driver::Inbox;
use crate::http_listener::{self, Patience, Responder};

/// How long a platform may take to send a request, and until the next one.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a body and an answer may take.
const TERMS: Terms = Terms { body: PATIENCE, answer: Duration::from_secs(50) };

#[derive(Clone, Copy)]
struct Terms {
    body: Duration,
    answer: Duration,
}

/// How many connections are open at a time.
const PATIENT: Patience = Patience {
    limits: Limits { connections: 256, probes: 0, idle: Duration::from_secs(90) },
    head: PATIENCE,
};

/// How many calls are answered at a time. Others wait.
const CALLS: usize = 32;

/// How many bytes a body may have.
const LONGEST_BODY: usize = 256 << 10;

/// The header with the version that a platform speaks, and the one that is sent back as it came.
const VERSION: &str = "x-broker-api-version";
const IDENTITY: HeaderName = HeaderName::from_static("x-broker-api-request-identity");

/// How many bytes of that one are sent back.
const LONGEST_IDENTITY: usize = 256;

/// Takes calls.
#[derive(Clone)]
pub(super) struct Listener {
    access: Arc<Access>,
    pending: PendingCalls,
    inbox: Inbox,
    requests: Requests,
    calls: Arc<Semaphore>,
    metrics: BrokerMetrics,
    terms: Terms,
}

/// Why a request is no call.
type Refused = (StatusCode, &'static str, &'static str);

impl Listener {
    pub(super) fn new(
        access: Arc<Access>,
        pending: PendingCalls,
        inbox: Inbox,
        requests: Requests,
        metrics: BrokerMetrics,
    ) -> Self {
        let calls = Arc::new(Semaphore::new(CALLS));
        Self { access, pending, inbox, requests, calls, metrics, terms: TERMS }
    }

    /// Takes calls until it is dropped.
    pub(super) async fn listen(self, listener: Arc<TcpListener>) {
        http_listener::listen(listener, PATIENT, self).await;
    }

    /// Returns the answer to a request.
    async fn answered(&self, request: Request<Incoming>) -> Response<Body> {
        let identity = request.headers().get(IDENTITY).filter(|text| text.len() <= LONGEST_IDENTITY).cloned();
        let (status, body) = match self.called(request).await {
            Ok((status, body)) => (status, body),
            Err((status, error, description)) => {
                (status.as_u16(), Arc::new(json!({"error": error, "description": description})))
            }
        };
        let text = serde_json::to_vec(&*body).unwrap_or_default();
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if status == StatusCode::UNAUTHORIZED.as_u16() {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"addon-operator\""));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE.as_u16() {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
        }
        if let Some(identity) = identity {
            headers.insert(IDENTITY, identity);
        }
        response
    }

    /// Has a call answered by the engine.
    async fn called(&self, request: Request<Incoming>) -> Result<(u16, Arc<Value>), Refused> {
        const ENDS: Refused = (StatusCode::SERVICE_UNAVAILABLE, "NotReady", "the operator ends: ask again");
        const LATE: Refused =
            (StatusCode::SERVICE_UNAVAILABLE, "NotReady", "there was no answer in time: ask again");
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let _place = self.calls.acquire().await.map_err(|_| ENDS)?;
        match self.access.admits(&head.headers, path).await {
            Ok(true) => {}
            Ok(false) => {
                let what = "user name and password are missing or wrong: send those of the broker's Secret";
                return Err((StatusCode::UNAUTHORIZED, "Unauthorized", what));
            }
            Err(()) => {
                let what = "the broker's Secret can't be read: ask again";
                return Err((StatusCode::SERVICE_UNAVAILABLE, "NotReady", what));
            }
        }
        let body = read(&head.headers, body, self.terms.body).await?;
        let version = head.headers.get(VERSION).and_then(|text| text.to_str().ok()).map(str::to_owned);
        let request = BrokerRequest {
            method: head.method.as_str().to_owned(),
            path: path.to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            api_version: version,
            body,
        };
        let pending = self.pending.add();
        if !self.inbox.event(Event::BrokerAsked { id: pending.id, request }).await {
            return Err(ENDS);
        }
        let answer = tokio::time::timeout(self.terms.answer, pending.answered()).await.map_err(|_| LATE)?;
        Ok(body_of(&self.requests, answer.ok_or(ENDS)?).await)
    }
}

impl Responder for Listener {
    type Stream = TcpStream;

    async fn agree(&self, stream: TcpStream) -> Option<TcpStream> {
        Some(stream)
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let (method, begun) = (known(request.method()), Instant::now());
        let answer = self.answered(request).await;
        self.metrics.observe(BrokerObservation {
            method,
            status: answer.status().as_u16(),
            took: begun.elapsed(),
        });
        answer
    }
}

/// Returns a method as metrics name it: one of those that mean something, so that their number has a limit.
fn known(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "other",
    }
}

/// Reads a body as JSON; nothing if it is empty.
async fn read(
    headers: &HeaderMap,
    body: Incoming,
    patience: Duration,
) -> Result<Option<Arc<Value>>, Refused> {
    const TOO_LONG: Refused = (StatusCode::PAYLOAD_TOO_LARGE, "BadRequest", "a body has 256 KiB at most");
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > LONGEST_BODY) {
        return Err(TOO_LONG);
    }
    let slow = (StatusCode::REQUEST_TIMEOUT, "BadRequest", "the body did not come in time");
    let read = tokio::time::timeout(patience, Limited::new(body, LONGEST_BODY).collect()).await;
    let bytes = match read.map_err(|_| slow)? {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Err(TOO_LONG),
        Err(_) => return Err((StatusCode::BAD_REQUEST, "BadRequest", "the body can't be read")),
    };
    if bytes.is_empty() {
        return Ok(None);
    }
    let body = serde_json::from_slice(&bytes);
    let wrong = (StatusCode::BAD_REQUEST, "BadRequest", "the body is no JSON: send an object");
    body.map(|body| Some(Arc::new(body))).map_err(|_| wrong)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use kube::Client;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::driver;

    /// Listens for a platform `me:word`, with an engine that says nothing, and returns its address.
    async fn listening() -> (std::net::SocketAddr, impl Sized) {
        let answer = |_: http::Request<kube::client::Body>| async {
            let data = json!({"username": STANDARD.encode("me"), "password": STANDARD.encode("word")});
            let secret = json!({"metadata": {"name": "x"}, "data": data}).to_string().into_bytes();
            Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::from(secret)))
        };
        let requests = Requests::new(Client::new(tower::service_fn(answer), "ops"));
        let access = Arc::new(Access::new(requests.clone(), "ops", "x"));
        let (inbox, _, channels) = driver::channels();
        let mut own =
            Listener::new(access, PendingCalls::default(), inbox, requests, BrokerMetrics::default());
        own.terms = Terms { body: Duration::from_millis(50), answer: Duration::from_millis(50) };
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = listener.local_addr().unwrap();
        tokio::spawn(own.listen(listener));
        (address, channels)
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_and_an_answer_that_does_not_come_are_told() {
        let (address, _channels) = listening().await;
        for (sent, status, says) in [("{", 408, "did not come in time"), ("{}", 503, "no answer in time")] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let authorization = STANDARD.encode("me:word");
            let head = format!(
                "PUT /cluster/v2/service_instances/i HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\
                 Authorization: Basic {authorization}\r\n\r\n{sent}"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(says), "{answer}");
            assert_eq!(answer.contains("retry-after: 5"), status == 503, "{answer}");
        }
    }
}

//! The server as a `tower` service: in process, or behind a socket.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, Response, Version};
use http_body_util::{BodyExt, Limited};

use super::audit::{Audit, Entry};
use super::gzip;
use super::routes::{self, Incoming, dispatch};
use crate::authentication::{User, bearer};
use crate::authorization;
use crate::cluster::Cluster;
use crate::controllers::worker;
use crate::fault_injection::Effect;
use crate::request::{Encoding, Query, Representation};
use crate::response;
use crate::status::{ApiError, Outcome};

/// The largest body that is read, in bytes.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// How much of a body that is too large is read on, in bytes.
const DRAINED: usize = 64 * 1024 * 1024;

/// How long a client may take to send a body.
pub(super) const BODY_TIME: Duration = Duration::from_mins(1);

/// The connection was cut on purpose, by a fault plan.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection was cut by a fault plan")]
pub struct ConnectionCut;

/// A Kubernetes API server as a service: `kube::Client::new(service, "default")`. Clones are the same server.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) audit: Option<Arc<Audit>>,
    /// Whether clients must show a token: those of a socket must.
    pub(crate) checks_token: bool,
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, ConnectionCut>> + Send>>;

impl<B> tower::Service<Request<B>> for Endpoint
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = ConnectionCut;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectionCut>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answer {
        let server = self.clone();
        Box::pin(async move { server.answer(request).await })
    }
}

impl Endpoint {
    async fn answer<B>(self, request: Request<B>) -> Result<Response<Body>, ConnectionCut>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let query = head.uri.query().unwrap_or_default();
        let entry = self
            .audit
            .as_ref()
            .map(|_| Entry::new(self.cluster.now(), &head.method, path, query, &head.headers));
        let struck = self.cluster.faults.strike(&head.method, path, query);
        let user = self.user(&head);
        let name = user.as_ref().map_or_else(String::new, |user| user.name.clone());
        let answered = match struck {
            Some(Effect::Cut) => Err(ConnectionCut),
            Some(Effect::Fail(code)) => Ok(response::refusal(&injected(code))),
            Some(Effect::TooManyRequests(seconds)) => {
                Ok(response::refusal(&ApiError::too_many_requests(seconds)))
            }
            Some(Effect::Delay(time)) => {
                tokio::time::sleep(time).await;
                Ok(self.carry_out(&head, body, user).await)
            }
            Some(Effect::CutAnswer) => {
                self.carry_out(&head, body, user).await;
                Err(ConnectionCut)
            }
            None => Ok(self.carry_out(&head, body, user).await),
        };
        if let (Some(audit), Some(entry)) = (&self.audit, entry) {
            let status = answered.as_ref().map_or(0, |answer| answer.status().as_u16());
            audit.write(&entry, &name, status, self.cluster.now());
        }
        answered
    }

    /// Returns the user of the request; nothing if the token is not known.
    fn user(&self, head: &http::request::Parts) -> Option<User> {
        if !self.checks_token {
            return Some(User::admin());
        }
        match bearer(&head.headers) {
            Some(token) => self.cluster.authenticator.user(token),
            None => Some(User::anonymous()),
        }
    }

    /// Returns the user in whose name a request is made.
    fn acting(&self, user: User, headers: &HeaderMap) -> Outcome<User> {
        if !self.cluster.config.impersonation {
            check_impersonation(headers)?;
        }
        Ok(authorization::impersonated(headers)?.unwrap_or(user))
    }

    async fn carry_out<B>(&self, head: &http::request::Parts, body: B, user: Option<User>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let answered = async {
            let user = user.ok_or_else(ApiError::unauthorized)?;
            check_anonymous(&user, head.uri.path())?;
            let user = self.acting(user, &head.headers)?;
            let body = read_body(head, body).await?;
            let incoming = Incoming {
                method: head.method.clone(),
                path: head.uri.path().to_owned(),
                query: Query::parse(head.uri.query().unwrap_or_default()),
                headers: head.headers.clone(),
                body,
                user,
            };
            let cluster = Arc::clone(&self.cluster);
            let may_wait = routes::may_wait(&cluster, &incoming);
            // A panic is a fault of the server, and one request's only.
            let dispatched =
                move || std::panic::catch_unwind(AssertUnwindSafe(|| dispatch(&cluster, incoming))).ok();
            let answered = if may_wait {
                tokio::task::spawn_blocking(dispatched).await.ok().flatten()
            } else {
                dispatched()
            };
            answered.ok_or_else(|| ApiError::internal("the request made the server panic"))
        };
        let answered = answered.boxed().await.unwrap_or_else(|error: ApiError| response::refusal(&error));
        let answered = as_taken(answered, &head.headers);
        let answered = answered.unwrap_or_else(|error| response::refusal(&error));
        worker::start(&self.cluster);
        let mut answered = gzip::compressed(answered, accepts_gzip(head));
        answered.headers_mut().insert("cache-control", HeaderValue::from_static("no-cache, private"));
        answered
    }
}

/// Returns a refusal in the form that the client takes; other answers stay as they are.
fn as_taken(mut answer: Response<Body>, headers: &HeaderMap) -> Outcome<Response<Body>> {
    let Some(error) = answer.extensions_mut().remove::<ApiError>() else {
        return Ok(answer);
    };
    let representation = Representation::of_refusal(headers);
    if representation.encoding == Encoding::Yaml {
        *answer.body_mut() = Body::from(crate::read::encode(&error.to_value(), &representation)?);
        let content_type = HeaderValue::from_static(representation.content_type());
        answer.headers_mut().insert(CONTENT_TYPE, content_type);
    }
    Ok(answer)
}

fn injected(code: u16) -> ApiError {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    };
    ApiError::new(code, reason, "this fault was planned")
}

/// Clients without a token may only ask how the server is.
fn check_anonymous(user: &User, path: &str) -> Outcome<()> {
    let public = ["/healthz", "/livez", "/readyz", "/version"];
    if user.name != "system:anonymous" || public.iter().any(|name| path.starts_with(name)) {
        return Ok(());
    }
    let message = format!("forbidden: User \"system:anonymous\" cannot use path {path:?}");
    Err(ApiError::new(403, "Forbidden", message).with_details(crate::status::Details::default()))
}

/// Refuses requests in the name of another user.
///
/// Without impersonation no rights are checked, so that the answer would say that the other user may do everything.
fn check_impersonation(headers: &HeaderMap) -> Outcome<()> {
    let Some((name, value)) = headers.iter().find(|(name, _)| name.as_str().starts_with("impersonate-"))
    else {
        return Ok(());
    };
    let value = String::from_utf8_lossy(value.as_bytes());
    let message = format!(
        "impersonation is forbidden: this server does not check the rights of users and cannot act as another one ({name}: {value}); leave out --as, --as-group and --as-uid, or use a real cluster"
    );
    Err(ApiError::new(403, "Forbidden", message).with_details(crate::status::Details::default()))
}

async fn read_body<B>(head: &http::request::Parts, body: B) -> Outcome<Bytes>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let announced =
        head.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let mut body = pin!(body);
    if announced.is_some_and(|length| length > BODY_LIMIT) {
        drain(head.version, body).await;
        return Err(ApiError::too_large(BODY_LIMIT));
    }
    let read = tokio::time::timeout(BODY_TIME, Limited::new(body.as_mut(), BODY_LIMIT).collect());
    let body = match read.await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            drain(head.version, body).await;
            return Err(ApiError::too_large(BODY_LIMIT));
        }
        Ok(Err(error)) => {
            return Err(ApiError::bad_request(format!("the body could not be read: {error}")));
        }
        Err(_) => return Err(ApiError::new(408, "Timeout", "the body did not come in time")),
    };
    let encoded = head.headers.get(CONTENT_ENCODING).is_some_and(|value| value == "gzip");
    if encoded { gzip::decompressed(&body, BODY_LIMIT) } else { Ok(body) }
}

/// Reads the rest of a body in HTTP/2 that is too large. What a client still sends when its stream ends is an error for it, so that
/// it would not see the refusal; in HTTP/1.1 it does.
async fn drain<B>(version: Version, body: Pin<&mut B>)
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if version != Version::HTTP_2 {
        return;
    }
    let mut rest = Limited::new(body, DRAINED);
    let ended = async { while let Some(Ok(_)) = rest.frame().await {} };
    // One that is larger still, or takes longer, ends so.
    let _ = tokio::time::timeout(BODY_TIME, ended).await;
}

fn accepts_gzip(head: &http::request::Parts) -> bool {
    head.headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|item| item.split(';').next().is_some_and(|name| name.trim() == "gzip"))
    })
}

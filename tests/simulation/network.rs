//! What stands between the operator and the API server: every request takes its time, and some meet a fault.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use apiserver::Endpoint;
use axum::body::{Body, Bytes};
use futures::{StreamExt as _, stream};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tower::{BoxError, Service};

use crate::scenario::{CONFIG_PATH, Extra, ITEMS_PATH, KEYS, Scenario};
use crate::seed::Seed;
use crate::trace::Trace;
use crate::windows::{Kind, Window, fault};

/// What a request is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Purpose {
    Read,
    List,
    Watch,
    Write,
}

/// A request of the operator.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) at: Duration,
    /// Which operator asked, counted from 0.
    pub(crate) life: usize,
    pub(crate) purpose: Purpose,
    pub(crate) method: Method,
    pub(crate) path: String,
}

/// The network of one run. Clones are the same network.
#[derive(Clone)]
pub(crate) struct Network {
    endpoint: Endpoint,
    life: usize,
    shared: Arc<Shared>,
}

struct Shared {
    seed: Seed,
    begun: Instant,
    windows: Vec<Window>,
    trace: Trace,
    counts: Mutex<BTreeMap<String, u64>>,
    asked: Mutex<Vec<Asked>>,
    /// How many operators have ended.
    ended: AtomicUsize,
    /// Of which operator each connection is that has died in silence, and that nobody has given up.
    dead: Mutex<Vec<usize>>,
    /// How many requests are delayed, and will be carried out whoever waits for them.
    delayed: AtomicUsize,
}

/// A connection that has died in silence, until it is given up.
struct DeadConnection(Network);

impl Network {
    pub(crate) fn new(endpoint: Endpoint, seed: Seed, windows: Vec<Window>, trace: Trace) -> Self {
        let shared = Shared {
            seed,
            begun: Instant::now(),
            windows,
            trace,
            counts: Mutex::default(),
            asked: Mutex::default(),
            ended: AtomicUsize::new(0),
            dead: Mutex::default(),
            delayed: AtomicUsize::new(0),
        };
        Self { endpoint, life: 0, shared: Arc::new(shared) }
    }

    /// Returns which operator it is for, counted from 0.
    pub(crate) fn life(&self) -> usize {
        self.life
    }

    /// Returns the network of the operator that comes next. What the last one still asks for is not carried out, but for
    /// what was sent before it ended.
    pub(crate) fn of_next_life(&self) -> Self {
        let life = self.shared.ended.fetch_add(1, Ordering::Relaxed) + 1;
        Self { life, ..self.clone() }
    }

    /// Returns at once while the operator lives, and never when it does not.
    async fn while_alive(&self) {
        if self.shared.ended.load(Ordering::Relaxed) > self.life {
            std::future::pending::<()>().await;
        }
    }

    /// Returns all requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// Returns how many connections of this operator have died in silence, and are not given up yet.
    pub(crate) fn dead_connections(&self) -> usize {
        self.shared.dead.lock().unwrap().iter().filter(|life| **life == self.life).count()
    }

    /// Returns how many requests are delayed, and will be carried out whoever waits for them.
    pub(crate) fn delayed(&self) -> usize {
        self.shared.delayed.load(Ordering::Relaxed)
    }

    /// Lets a connection die in silence. Never returns.
    async fn die(self) {
        self.shared.dead.lock().unwrap().push(self.life);
        let _dead = DeadConnection(self);
        std::future::pending::<()>().await;
    }

    /// Returns when the last fault can begin.
    pub(crate) fn heals_at(&self) -> Duration {
        self.shared.windows.iter().map(Window::end).max().unwrap_or_default()
    }
}

impl Drop for DeadConnection {
    fn drop(&mut self) {
        let mut dead = self.0.shared.dead.lock().unwrap();
        if let Some(place) = dead.iter().position(|life| *life == self.0.life) {
            dead.swap_remove(place);
        }
    }
}

impl Shared {
    fn nth(&self, question: &str) -> u64 {
        let mut counts = self.counts.lock().unwrap();
        let count = counts.entry(question.to_owned()).or_default();
        *count += 1;
        *count
    }
}

type Answer = Result<Response<Body>, BoxError>;

impl Service<Request<kube::client::Body>> for Network {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let network = self.clone();
        Box::pin(async move { network.answer(request).await })
    }
}

impl Network {
    async fn answer(mut self, request: Request<kube::client::Body>) -> Answer {
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default();
        let purpose = match *request.method() {
            Method::GET if query.contains("watch=true") => Purpose::Watch,
            Method::GET if query.contains("limit=") || query.contains("labelSelector") => Purpose::List,
            Method::GET => Purpose::Read,
            _ => Purpose::Write,
        };
        let shared = Arc::clone(&self.shared);
        let selector = query.split('&').find(|part| part.contains("Selector")).unwrap_or_default();
        let question = format!("{purpose:?} {} {path} {selector}", request.method());
        let nth = shared.nth(&question);
        sleep(Duration::from_millis(shared.seed.between(&format!("latency {question}"), nth, 1, 40))).await;
        self.while_alive().await;
        let fault =
            fault(shared.seed, &shared.windows, shared.begun.elapsed(), (&question, nth), (purpose, &path));
        shared.asked.lock().unwrap().push(Asked {
            at: shared.begun.elapsed(),
            life: self.life,
            purpose,
            method: request.method().clone(),
            path: path.clone(),
        });
        let hit = fault.map(|kind| format!(" meets {kind:?}")).unwrap_or_default();
        shared.trace.note(|| format!("{purpose:?} {} {path} {selector}#{nth}{hit}", request.method()));
        if is_forbidden(Scenario::of(shared.seed).extra, purpose, &path, selector) {
            return Ok(refusal(403, None));
        }
        let Some(kind) = fault else {
            let answer = self.carry_out(request).await?;
            return Ok(if purpose == Purpose::Watch {
                late_watch(answer, shared.seed, question)
            } else {
                answer
            });
        };
        let draw = |what: &str, low, high| shared.seed.between(&format!("{what} {question}"), nth, low, high);
        match kind {
            Kind::Delay => {
                self.carry_out_late(request, Duration::from_millis(draw("delay", 200, 70_000))).await
            }
            Kind::Lost => std::future::pending().await,
            Kind::Cut => Err("the connection was closed before the request was carried out".into()),
            Kind::CutAnswer => {
                self.carry_out(request).await?;
                Err("the connection was closed before the answer".into())
            }
            Kind::Refused(code) => Ok(refusal(code, None)),
            Kind::TooMany(after) => Ok(refusal(429, after)),
            Kind::HalfAnswer | Kind::Silent | Kind::Expired | Kind::Ended => {
                let answer = self.carry_out(request).await?;
                let after = Duration::from_millis(draw("long", 0, 30_000));
                Ok(if purpose == Purpose::Watch {
                    let answer = late_watch(answer, shared.seed, question.clone());
                    broken_watch(self.clone(), answer, kind, (draw("chunks", 0, 4), after))
                } else {
                    broken_answer(answer, (kind == Kind::Silent).then(|| self.clone())).await
                })
            }
        }
    }

    /// Carries out a request after some time, also when nobody waits for it any more: what was sent is not taken back,
    /// neither by who has given up nor by who was killed.
    async fn carry_out_late(mut self, request: Request<kube::client::Body>, late: Duration) -> Answer {
        let (answer, answered) = oneshot::channel();
        self.shared.delayed.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            let shown = format!("{} {}", request.method(), request.uri().path());
            sleep(late).await;
            let outcome = self.carry_out(request).await;
            let status = outcome.as_ref().map(|answer| answer.status().as_u16()).unwrap_or_default();
            self.shared.delayed.fetch_sub(1, Ordering::Relaxed);
            if answer.send(outcome).is_err() {
                self.shared.trace.note(|| format!("too late: {shown} is carried out: {status}"));
            }
        });
        answered.await?
    }

    async fn carry_out(&mut self, request: Request<kube::client::Body>) -> Answer {
        Ok(self.endpoint.call(request).await?.map(Body::new))
    }
}

/// Returns whether a role never allows it.
fn is_forbidden(extra: Extra, purpose: Purpose, path: &str, selector: &str) -> bool {
    match extra {
        Extra::NamespaceOnly => {
            ["/api/v1/configmaps", "/api/v1/secrets"].contains(&path) && selector.contains("heritage")
        }
        Extra::UnwatchedConfig => {
            purpose == Purpose::Watch
                && path == CONFIG_PATH
                && selector.contains("addon-operator")
                && selector.starts_with("fieldSelector")
        }
        Extra::UnwatchedItems => purpose == Purpose::Watch && path == ITEMS_PATH,
        Extra::ForbiddenKeys => matches!(purpose, Purpose::List | Purpose::Watch) && path == KEYS,
        Extra::Nothing | Extra::ChartHook | Extra::Edits | Extra::LateWatch => false,
    }
}

fn status(code: u16) -> serde_json::Value {
    let reason = match code {
        403 => "Forbidden",
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        _ => "InternalError",
    };
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "reason": reason, "message": format!("refused by the simulation with {code}")})
}

fn refusal(code: u16, retry_after: Option<u64>) -> Response<Body> {
    let mut answer = Response::builder().status(code).header("content-type", "application/json");
    if let Some(seconds) = retry_after {
        answer = answer.header("retry-after", seconds);
    }
    answer.body(Body::from(status(code).to_string())).unwrap()
}

fn cut() -> BoxError {
    "the connection was closed in the middle".into()
}

/// Returns an answer of which only the first half comes. Then the connection ends, or dies in silence in a network.
async fn broken_answer(answer: Response<Body>, silent_in: Option<Network>) -> Response<Body> {
    let (head, body) = answer.into_parts();
    let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let half: Result<Bytes, BoxError> = Ok(bytes.slice(..bytes.len() / 2));
    let end = stream::once(async move {
        if let Some(network) = silent_in {
            network.die().await;
        }
        Err(cut())
    });
    Response::from_parts(head, Body::from_stream(stream::iter([half]).chain(end)))
}

/// Returns a watch that breaks after some chunks or some time, whichever comes first.
fn broken_watch(
    network: Network,
    answer: Response<Body>,
    kind: Kind,
    (chunks, after): (u64, Duration),
) -> Response<Body> {
    let (head, body) = answer.into_parts();
    let until = Instant::now() + after;
    let state = (Box::pin(body.into_data_stream()), chunks, false);
    let lines = stream::unfold(state, move |(mut inner, left, is_over)| {
        let network = network.clone();
        async move {
            if is_over {
                return None;
            }
            let next = if left == 0 && kind != Kind::HalfAnswer {
                None
            } else {
                tokio::select! {
                    biased;
                    next = inner.next() => next,
                    () = tokio::time::sleep_until(until) => None,
                }
            };
            let chunk: Result<Bytes, BoxError> = match (next, left) {
                (Some(Ok(chunk)), 1..) => return Some((Ok(chunk), (inner, left - 1, false))),
                (Some(Err(error)), _) => Err(error.into()),
                (found, _) => match kind {
                    Kind::Silent => {
                        network.die().await;
                        return None;
                    }
                    Kind::Expired => {
                        let line = json!({"type": "ERROR", "object": status(410)});
                        Ok(Bytes::from(format!("{line}\n")))
                    }
                    Kind::HalfAnswer => match found {
                        // The half line; behind it the connection ends.
                        Some(Ok(chunk)) => {
                            let half = stream_half(&chunk);
                            return Some((Ok(half), (Box::pin(ended()), 1, false)));
                        }
                        _ => Err(cut()),
                    },
                    _ => return None,
                },
            };
            Some((chunk, (inner, 0, true)))
        }
    });
    Response::from_parts(head, Body::from_stream(lines))
}

/// Parts of the watches of one table: each has a lateness of its own.
const WATCHES: [&str; 11] = [
    "addon-operator",
    "/api/v1/configmaps labelSelector=item",
    "/work/configmaps",
    "/api/v1/configmaps labelSelector=heritage",
    "owner%3Dhelm",
    "credentials",
    "/api/v1/secrets labelSelector=heritage",
    "/namespaces ",
    "/customresourcedefinitions",
    "/things",
    "/gadgets",
];

/// Returns a watch whose lines come a little late, and its end as well.
///
/// A change wakes the watches of a table in no certain order, and so does the end of all of them. As no two of them are
/// late by the same time, the order in which the operator sees it is the same each time all the same.
fn late_watch(answer: Response<Body>, seed: Seed, question: String) -> Response<Body> {
    let (head, body) = answer.into_parts();
    let own = WATCHES.iter().position(|part| question.contains(part)).unwrap_or(WATCHES.len()) as u64 * 3 + 1;
    let lines = stream::unfold((Box::pin(body.into_data_stream()), 0), move |(mut inner, nth)| {
        let more = 32 * seed.between(&question, nth, 0, 5);
        async move {
            let chunk = inner.next().await;
            sleep(Duration::from_millis(own + more)).await;
            Some((chunk?, (inner, nth + 1)))
        }
    });
    Response::from_parts(head, Body::from_stream(lines))
}

fn stream_half(chunk: &Bytes) -> Bytes {
    chunk.slice(..chunk.len() / 2)
}

/// Returns a body whose connection has ended.
fn ended() -> axum::body::BodyDataStream {
    Body::from_stream(stream::once(async { Err::<Bytes, BoxError>(cut()) })).into_data_stream()
}

//! A limit of requests to the API server on our side: so many at once, so many a second in the long run.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;
use tower::{Layer, Service};

use super::request_metrics::RequestMetrics;

/// When it is the turn of a request, as a limit says it. A request carries one if somebody wants to know.
///
/// Who waits for an answer counts from there: a request that the operator itself holds back says nothing of the API server.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn(Arc<Mutex<Option<Instant>>>);

impl Turn {
    fn set(&self, at: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// Returns when the request could be sent; `None` if no limit has seen it.
    fn get(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an answer of the API server, at most for `patience` from the time at which the request could be sent.
    pub(super) async fn answer<T>(&self, patience: Duration, answer: impl Future<Output = T>) -> Option<T> {
        let mut answer = std::pin::pin!(answer);
        let mut end = Instant::now() + patience;
        loop {
            if let Ok(answer) = tokio::time::timeout_at(end, answer.as_mut()).await {
                return Some(answer);
            }
            end = self.get().map(|turn| turn + patience).filter(|later| *later > end)?;
        }
    }
}

/// A token bucket that the clients made with it share.
#[derive(Clone, Debug)]
pub struct RateLimit {
    per_second: f64,
    burst: f64,
    bucket: Arc<Mutex<Bucket>>,
    metrics: RequestMetrics,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl RateLimit {
    /// Returns a limit of `per_second` requests in the long run and `burst` at once; 0 per second is no limit.
    pub fn new(per_second: f64, burst: u32) -> Self {
        let burst = f64::from(burst.max(1));
        let bucket = Bucket { tokens: burst, filled: Instant::now() };
        Self { per_second, burst, bucket: Arc::new(Mutex::new(bucket)), metrics: RequestMetrics::default() }
    }

    /// Returns the limit with what measures the requests of its clients.
    #[must_use]
    pub fn with_metrics(self, metrics: RequestMetrics) -> Self {
        Self { metrics, ..self }
    }

    /// Returns what measures the requests of its clients.
    pub(super) fn metrics(&self) -> &RequestMetrics {
        &self.metrics
    }

    /// Takes a token and returns how long to wait until it is there.
    fn take(&self, now: Instant) -> Duration {
        if self.per_second <= 0.0 {
            return Duration::ZERO;
        }
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(bucket.filled).as_secs_f64();
        bucket.tokens = (bucket.tokens + passed * self.per_second).min(self.burst) - 1.0;
        bucket.filled = now;
        if bucket.tokens >= 0.0 {
            Duration::ZERO
        } else {
            Duration::from_secs_f64(-bucket.tokens / self.per_second)
        }
    }

    /// Puts a token back.
    fn give_back(&self) {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.tokens = (bucket.tokens + 1.0).min(self.burst);
    }
}

/// A token of a request. It goes back when nobody waits for the request any more before it was sent.
struct Token(Option<RateLimit>);

impl Token {
    fn spend(&mut self) {
        self.0 = None;
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if let Some(limit) = self.0.take() {
            limit.give_back();
        }
    }
}

impl<S> Layer<S> for RateLimit {
    type Service = RateLimited<S>;

    fn layer(&self, inner: S) -> RateLimited<S> {
        RateLimited { inner, limit: self.clone() }
    }
}

/// A service whose requests wait for the limit.
#[derive(Debug)]
pub struct RateLimited<S> {
    inner: S,
    limit: RateLimit,
}

impl<S, B> Service<http::Request<B>> for RateLimited<S>
where
    S: Service<http::Request<B>>,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let now = Instant::now();
        let wait = self.limit.take(now);
        if let Some(turn) = request.extensions().get::<Turn>() {
            turn.set(now + wait);
        }
        self.limit.metrics.throttled(request.method().as_str(), request.uri().path(), wait);
        // The inner future does nothing before it is polled.
        let answer = self.inner.call(request);
        let mut token = Token(Some(self.limit.clone()));
        Box::pin(async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            token.spend();
            answer.await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_the_rest_comes_at_the_rate() {
        let limit = RateLimit::new(10.0, 2);
        let now = Instant::now();
        let waits: Vec<u128> = (0..4).map(|_| limit.take(now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 100, 200]);
        assert_eq!(limit.take(now + Duration::from_secs(10)), Duration::ZERO);
        assert_eq!(RateLimit::new(0.0, 1).take(now), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_waited_for_from_the_turn_of_its_request_on() {
        const PATIENCE: Duration = Duration::from_secs(30);
        let limit = RateLimit::new(0.01, 1);
        let service = |takes: u64| {
            let answers = move |_: http::Request<()>| async move {
                tokio::time::sleep(Duration::from_secs(takes)).await;
                Ok::<_, std::convert::Infallible>(())
            };
            limit.layer(tower::service_fn(answers))
        };
        let asked = async |takes: u64| {
            let (turn, mut request) = (Turn::default(), http::Request::new(()));
            request.extensions_mut().insert(turn.clone());
            let begun = Instant::now();
            let answer = turn.answer(PATIENCE, service(takes).call(request)).await;
            (answer.is_some(), begun.elapsed().as_secs())
        };
        assert_eq!(asked(1).await, (true, 1));
        assert_eq!(asked(29).await, (true, 99 + 29), "its own wait is no fault of the API server");
        assert_eq!(asked(31).await, (false, 71 + 30), "a silent API server is found all the same");
        // Without a limit the time counts from the beginning.
        let turn = Turn::default();
        assert!(turn.answer(PATIENCE, std::future::pending::<()>()).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn slip_02_a_request_that_nobody_waits_for_any_more_leaves_its_token_to_others() {
        let limit = RateLimit::new(1.0, 1);
        let answers = |_: http::Request<()>| async { Ok::<_, std::convert::Infallible>(()) };
        let mut service = limit.layer(tower::service_fn(answers));
        let request = || http::Request::new(());
        service.call(request()).await.unwrap();
        for _ in 0..100 {
            let waiting = service.call(request());
            assert!(tokio::time::timeout(Duration::from_millis(1), waiting).await.is_err());
        }
        let begun = Instant::now();
        service.call(request()).await.unwrap();
        assert!(begun.elapsed() <= Duration::from_secs(1), "{:?}", begun.elapsed());
    }
}

//! A limit of requests to the API server on our side: so many at once, so many a second in the long run.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;
use tower::{Layer, Service};

use super::request_metrics::RequestMetrics;

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
        let wait = self.limit.take(Instant::now());
        self.limit.metrics.throttled(request.method().as_str(), request.uri().path(), wait);
        // The inner future does nothing before it is polled.
        let answer = self.inner.call(request);
        Box::pin(async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
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
}

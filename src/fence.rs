//! What keeps this process from acting when another operator may: a deadline that the Lease is renewed for.
//!
//! The engine decides when an operator is over. This is for what the engine can't see: work that was begun before, and a
//! process that was stopped in the middle of it. Neither starts a process nor writes to the API server behind the fence.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use engine::{Failure, FailureKind};
use http::Method;
use tower::{BoxError, Layer, Service};

use crate::process::{Guard, since_boot};

/// How much later than the deadline the guard strikes. Until then the operator ends by itself, and says why.
const GRACE: Duration = Duration::from_millis(500);

/// A deadline for starting processes and for writing. Its clones are the same fence.
#[derive(Clone, Debug, Default)]
pub struct Fence(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    /// Until when, in nanoseconds since the machine was started; the highest number for ever.
    until: AtomicU64,
    guard: Mutex<Option<Guard>>,
    mark: String,
}

impl Fence {
    /// Returns one that is always open.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns one that is open until it is given a deadline.
    ///
    /// `mark` is an entry of the environment, `NAME=value`, that everything has that this process starts, and nobody else.
    pub fn marked(mark: String) -> Self {
        let until = AtomicU64::new(u64::MAX);
        Self(Some(Arc::new(Inner { until, guard: Mutex::default(), mark })))
    }

    /// Lets this process act for some time, counted from `from` on the clock of [`since_boot`].
    ///
    /// # Errors
    ///
    /// When nobody would end this process afterwards: then it must not begin to act. What was allowed before stays so.
    pub fn allow(&self, from: Duration, time: Duration) -> io::Result<()> {
        let Some(inner) = &self.0 else { return Ok(()) };
        if !self.is_open() {
            return Err(io::Error::other("its time was over"));
        }
        let until = from.saturating_add(time);
        let mut guard = inner.guard.lock().unwrap_or_else(PoisonError::into_inner);
        let told = guard.as_mut().map(|guard| guard.allow(until + GRACE));
        if !matches!(told, Some(Ok(()))) {
            // There is none yet, or somebody killed it.
            let mut new = Guard::start(&inner.mark)?;
            new.allow(until + GRACE)?;
            *guard = Some(new);
        }
        inner.until.store(u64::try_from(until.as_nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
        Ok(())
    }

    /// Ends the time in which this process may act.
    pub fn close(&self) {
        if let Some(inner) = &self.0 {
            inner.until.store(0, Ordering::SeqCst);
        }
    }

    /// Returns whether this process may act.
    pub fn is_open(&self) -> bool {
        let Some(inner) = &self.0 else { return true };
        let until = inner.until.load(Ordering::SeqCst);
        until == u64::MAX || since_boot() < Duration::from_nanos(until)
    }

    /// Returns why this process may not act, if that is so.
    ///
    /// # Errors
    ///
    /// When its time is over.
    pub fn check(&self) -> Result<(), Failure> {
        if self.is_open() { Ok(()) } else { Err(Failure::new(FailureKind::Cancelled, CLOSED)) }
    }
}

const CLOSED: &str = "the Lease was not renewed in time: another operator may act now";

impl<S> Layer<S> for Fence {
    type Service = Fenced<S>;

    fn layer(&self, inner: S) -> Fenced<S> {
        Fenced { inner, fence: self.clone() }
    }
}

/// A service that passes on requests that change something only as long as this process may act.
#[derive(Clone, Debug)]
pub struct Fenced<S> {
    inner: S,
    fence: Fence,
}

impl<S, B> Service<http::Request<B>> for Fenced<S>
where
    S: Service<http::Request<B>>,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: Into<BoxError> + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let (fence, changes) = (self.fence.clone(), !matches!(*request.method(), Method::GET | Method::HEAD));
        // The inner future sends nothing before it is polled.
        let answer = self.inner.call(request);
        Box::pin(async move {
            if changes && !fence.is_open() {
                return Err(CLOSED.into());
            }
            answer.await.map_err(Into::into)
        })
    }
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn behind_the_fence_is_read_and_nothing_is_written() {
        let fence = Fence::marked("X=1".to_owned());
        let passes = async |method: Method| {
            let service = tower::service_fn(|_: http::Request<()>| async { Ok::<_, BoxError>(()) });
            let request = http::Request::builder().method(method).body(()).unwrap();
            fence.layer(service).oneshot(request).await.is_ok()
        };
        assert!(fence.check().is_ok() && passes(Method::POST).await, "who never led may write");
        fence.close();
        assert!(fence.check().is_err() && passes(Method::GET).await);
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert!(!passes(method.clone()).await, "{method}");
        }
        assert!(fence.allow(since_boot(), GRACE).is_err(), "what is over stays so");
        assert!(Fence::none().is_open());
    }
}

//! A deadline for each answer of the API server, so that no request waits for ever for a connection that died in silence.
//!
//! Most requests have shorter deadlines of their own, with better messages. This one is for all that have none.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tower::{BoxError, Layer, Service};

use super::list::is_watch;

/// How long the head of an answer may take, and then each further part of it.
const PATIENCE: Duration = Duration::from_secs(90);

/// Gives each answer a deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline;

/// A service whose answers have a deadline.
#[derive(Clone, Debug)]
pub(super) struct WithDeadline<S> {
    inner: S,
}

/// A body that fails when nothing of it comes for too long.
pub(super) struct DeadlineBody<B> {
    inner: Pin<Box<B>>,
    /// `None` for a watch, which is silent for as long as nothing happens and has a deadline of its own.
    silence: Option<Pin<Box<Sleep>>>,
}

/// Nothing came in time.
#[derive(Debug, thiserror::Error)]
#[error("the API server did not answer within {} s; the connection may be dead", PATIENCE.as_secs())]
struct Late;

impl<S> Layer<S> for Deadline {
    type Service = WithDeadline<S>;

    fn layer(&self, inner: S) -> Self::Service {
        WithDeadline { inner }
    }
}

impl<S, R, B> Service<Request<R>> for WithDeadline<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<DeadlineBody<B>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let is_watch = request.uri().query().is_some_and(is_watch);
        let answered = self.inner.call(request);
        Box::pin(async move {
            let answer = timeout(PATIENCE, answered).await.map_err(|_| Late)?.map_err(Into::into)?;
            // A watch that is refused is an answer like any other.
            let is_endless = is_watch && answer.status().is_success();
            let silence = (!is_endless).then(|| Box::pin(sleep(PATIENCE)));
            Ok(answer.map(|body| DeadlineBody { inner: Box::pin(body), silence }))
        })
    }
}

impl<B> Body for DeadlineBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        if let Poll::Ready(frame) = self.inner.as_mut().poll_frame(context) {
            if let Some(silence) = &mut self.silence {
                silence.as_mut().reset(Instant::now() + PATIENCE);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        match &mut self.silence {
            Some(silence) => silence.as_mut().poll(context).map(|()| Some(Err(Late.into()))),
            None => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::stream;
    use http_body_util::{BodyExt as _, StreamBody};
    use tower::{ServiceExt as _, service_fn};

    use super::*;

    type Lines = Pin<Box<dyn futures::Stream<Item = Result<Frame<Bytes>, BoxError>> + Send>>;

    fn get(path: &str) -> Request<()> {
        Request::get(path).body(()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_never_answered_fails() {
        let silent = service_fn(|_: Request<()>| {
            std::future::pending::<Result<Response<StreamBody<Lines>>, BoxError>>()
        });
        let begun = Instant::now();
        let error = Deadline.layer(silent).oneshot(get("/api")).await.err().unwrap();
        assert_eq!(begun.elapsed().as_secs(), PATIENCE.as_secs());
        assert!(error.to_string().contains("did not answer within 90 s"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_stops_in_the_middle_fails_unless_it_is_a_watch() {
        let half = |status: u16| {
            service_fn(move |_: Request<()>| async move {
                let first: Result<_, BoxError> = Ok(Frame::data(Bytes::from_static(b"half")));
                let lines: Lines =
                    Box::pin(futures::StreamExt::chain(stream::iter([first]), stream::pending()));
                Ok::<_, BoxError>(Response::builder().status(status).body(StreamBody::new(lines)).unwrap())
            })
        };
        let begun = Instant::now();
        for (status, path) in [(200, "/api"), (403, "/api/v1/pods?watch=true")] {
            let answer = Deadline.layer(half(status)).oneshot(get(path)).await.unwrap();
            assert!(answer.into_body().collect().await.is_err());
        }
        assert_eq!(begun.elapsed().as_secs(), 2 * PATIENCE.as_secs());
        let answer = Deadline.layer(half(200)).oneshot(get("/api/v1/pods?watch=true")).await.unwrap();
        let day = timeout(Duration::from_hours(24), answer.into_body().collect()).await;
        assert!(day.is_err(), "a watch is silent for as long as nothing happens");
    }
}

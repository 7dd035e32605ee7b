//! A limit of what is sent in one request, so that what no API server takes is not sent.
//!
//! An API server answers before it has read all of a body that is too large, and closes the connection. Whether its answer is
//! seen then, or an error of the connection that says nothing, is a matter of luck. The answer here is the one that it would give.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::Body;
use kube::core::Status;
use serde_json::json;
use tower::{Layer, Service};

/// How much an API server reads of a body, in bytes.
const MOST: u64 = 3 << 20;

/// The reason in the answer that says that it was made here.
const MADE_HERE: &str = "BodyLimit";

/// Answers requests whose body no API server takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimit;

/// A service that gets no request with a larger body.
#[derive(Clone, Debug)]
pub(super) struct Limited<S> {
    inner: S,
}

impl<S> Layer<S> for BodyLimit {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Limited { inner }
    }
}

impl<S, R, B> Service<Request<R>> for Limited<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Future: Send + 'static,
    R: Body,
{
    type Response = Response<Either<B, Full<Bytes>>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let size = request.body().size_hint().lower();
        if size > MOST {
            return Box::pin(async move { Ok(too_large(size).map(Either::Right)) });
        }
        let answer = self.inner.call(request);
        Box::pin(async move { Ok(answer.await?.map(Either::Left)) })
    }
}

/// Returns what an API server says of a body with so many bytes.
fn too_large(size: u64) -> Response<Full<Bytes>> {
    let message = format!("Request entity too large: it has {size} bytes, and the limit is {MOST}");
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": "RequestEntityTooLarge", "code": 413, "details": {"causes": [{"reason": MADE_HERE}]},
    });
    let mut answer = Response::new(Full::from(status.to_string()));
    *answer.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Returns whether an answer was made here, so that its text quotes nothing.
pub(crate) fn is_made_here(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == MADE_HERE)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::Method;
    use http_body_util::BodyExt as _;
    use tower::{ServiceExt as _, service_fn};

    use super::*;

    #[tokio::test]
    async fn a_body_that_no_api_server_takes_is_not_sent() {
        let sent = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&sent);
        let service = BodyLimit.layer(service_fn(move |_: Request<Full<Bytes>>| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())) }
        }));
        let most = usize::try_from(MOST).unwrap();
        let asked = async |method: Method, size: usize| {
            let request = Request::builder().method(method).body(Full::from(vec![b' '; size])).unwrap();
            service.clone().oneshot(request).await.unwrap()
        };
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(asked(method, most + 1).await.status(), 413);
        }
        assert_eq!(sent.load(Ordering::Relaxed), 0);
        let answer = asked(Method::POST, most + 2).await.into_body().collect().await.unwrap().to_bytes();
        let status: kube::core::Status = serde_json::from_slice(&answer).unwrap();
        assert_eq!((status.code, status.reason.as_str()), (413, "RequestEntityTooLarge"));
        assert_eq!(
            status.message,
            "Request entity too large: it has 3145730 bytes, and the limit is 3145728"
        );
        for size in [0, most] {
            assert_eq!(asked(Method::POST, size).await.status(), 200, "{size}");
        }
        assert_eq!(sent.load(Ordering::Relaxed), 2);
    }
}

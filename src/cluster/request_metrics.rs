//! Metrics of requests to the API server, reported to a listener.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tower::{Layer, Service};

/// What was observed of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RequestObservation<'a> {
    /// It was answered, or the connection broke.
    Answered {
        /// Whose client sent it.
        component: &'static str,
        /// The HTTP method, in capitals.
        method: &'a str,
        /// Its path, with `{namespace}` and `{name}` in place of those.
        path: &'a str,
        /// The host it was sent to.
        host: &'a str,
        /// The status; `None` without an answer.
        status: Option<u16>,
        /// From sending it to the head of the answer.
        took: Duration,
    },
    /// It waited because of the limit on our side.
    Throttled {
        /// Whose client sends it.
        component: &'static str,
        /// The HTTP method, in capitals.
        method: &'a str,
        /// Its path, as above.
        path: &'a str,
        /// How long.
        waited: Duration,
    },
}

type Listener = Box<dyn Fn(RequestObservation<'_>) + Send + Sync>;

/// Observes the requests of a client and reports them to a listener, once there is one.
#[derive(Clone, Default)]
pub struct RequestMetrics {
    component: &'static str,
    listener: Arc<OnceLock<Listener>>,
}

impl fmt::Debug for RequestMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestMetrics").field("component", &self.component).finish_non_exhaustive()
    }
}

impl RequestMetrics {
    /// Returns metrics without a listener. `component` says whose client it is.
    pub fn new(component: &'static str) -> Self {
        Self { component, listener: Arc::default() }
    }

    /// Sets the listener; a second one is ignored.
    pub fn listen(&self, listener: impl Fn(RequestObservation<'_>) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
    }

    /// Reports that a request waited.
    pub(super) fn throttled(&self, method: &str, path: &str, waited: Duration) {
        if let Some(listener) = self.listener.get() {
            listener(RequestObservation::Throttled {
                component: self.component,
                method,
                path: &shape(path),
                waited,
            });
        }
    }
}

impl<S> Layer<S> for RequestMetrics {
    type Service = Measured<S>;

    fn layer(&self, inner: S) -> Measured<S> {
        Measured { inner, metrics: self.clone() }
    }
}

/// A service whose requests are measured.
#[derive(Clone, Debug)]
pub struct Measured<S> {
    inner: S,
    metrics: RequestMetrics,
}

impl<S, B, R> Service<http::Request<B>> for Measured<S>
where
    S: Service<http::Request<B>, Response = http::Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let metrics = self.metrics.clone();
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let begun = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            if let Some(listener) = metrics.listener.get() {
                listener(RequestObservation::Answered {
                    component: metrics.component,
                    method: method.as_str(),
                    path: &shape(uri.path()),
                    host: uri.authority().map_or("", http::uri::Authority::as_str),
                    status: answer.as_ref().ok().map(|answer| answer.status().as_u16()),
                    took: begun.elapsed(),
                });
            }
            answer
        })
    }
}

/// Returns a path without the names in it, so that there are few different ones.
fn shape(path: &str) -> String {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let root = match parts.first() {
        Some(&"api") => 2,
        Some(&"apis") => 3,
        Some(_) | None => return path.to_owned(),
    };
    let mut shaped: Vec<&str> = Vec::with_capacity(parts.len());
    let is_in_namespace = parts.get(root) == Some(&"namespaces") && parts.len() > root + 2;
    let resource = if is_in_namespace { root + 2 } else { root };
    for (place, part) in parts.iter().enumerate() {
        shaped.push(match place {
            place if is_in_namespace && place == root + 1 => "{namespace}",
            place if place == resource + 1 => "{name}",
            _ => part,
        });
    }
    format!("/{}", shaped.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_without_names() {
        for (path, shaped) in [
            ("/api/v1/pods", "/api/v1/pods"),
            ("/api/v1/namespaces", "/api/v1/namespaces"),
            ("/api/v1/namespaces/web", "/api/v1/namespaces/{name}"),
            ("/api/v1/namespaces/web/pods", "/api/v1/namespaces/{namespace}/pods"),
            ("/api/v1/namespaces/web/pods/a/status", "/api/v1/namespaces/{namespace}/pods/{name}/status"),
            (
                "/apis/apps/v1/namespaces/web/deployments/a",
                "/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
            ),
            ("/apis/a.b/v1/widgets/x", "/apis/a.b/v1/widgets/{name}"),
            ("/apis/apps/v1", "/apis/apps/v1"),
            ("/version", "/version"),
        ] {
            assert_eq!(shape(path), shaped);
        }
    }
}

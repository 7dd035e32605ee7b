//! Documents about the types of the kinds that are served.

use axum::body::Body;
use http::{Response, StatusCode};

use crate::answer;
use crate::cluster::Cluster;
use crate::dispatch::Incoming;

/// Answers `/openapi/…`.
pub(crate) fn answer(_cluster: &Cluster, _path: &str, _incoming: &Incoming) -> Response<Body> {
    answer::text(StatusCode::NOT_FOUND, "404 page not found\n")
}

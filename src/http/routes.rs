//! What is answered where.

use std::sync::Arc;

use axum::Router;

use super::debug::{self, Asked};
use super::public::{self, Health};
use crate::telemetry::Telemetry;

/// Returns the routes of the TCP port: what everybody may see.
pub fn port(asked: &Asked, telemetry: &Arc<Telemetry>, health: Health) -> Router {
    public::router(asked.questions.clone(), Arc::clone(telemetry), health)
}

/// Returns the routes of the socket: what its owner may see.
pub fn socket(asked: &Asked) -> Router {
    debug::router(asked.clone())
}

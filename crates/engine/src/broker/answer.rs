//! Answers of the broker as the specification has them.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::effect::{BrokerAnswer, BrokerBody};

/// Why a call is not carried out. Its description names no value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Refusal {
    status: u16,
    error: &'static str,
    description: String,
}

/// Returns an answer with this content.
pub(super) fn json_answer(status: u16, body: Value) -> BrokerAnswer {
    BrokerAnswer { status, body: BrokerBody::Json(Arc::new(body)) }
}

/// Returns the answer that something is under way.
pub(super) fn accepted(operation: &str) -> BrokerAnswer {
    json_answer(202, json!({"operation": operation}))
}

impl Refusal {
    fn new(status: u16, error: &'static str, description: impl Into<String>) -> Self {
        Self { status, error, description: description.into() }
    }

    /// Something in the call is missing or wrong.
    pub(super) fn bad_request(description: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", description)
    }

    /// There is no such thing.
    pub(super) fn not_found(description: impl Into<String>) -> Self {
        Self::new(404, "NotFound", description)
    }

    /// Something else is in its place.
    pub(super) fn conflict(description: impl Into<String>) -> Self {
        Self::new(409, "Conflict", description)
    }

    /// It is not there any more.
    pub(super) fn gone(description: impl Into<String>) -> Self {
        Self::new(410, "Gone", description)
    }

    /// The platform speaks another version.
    pub(super) fn version(description: impl Into<String>) -> Self {
        Self::new(412, "PreconditionFailed", description)
    }

    /// The platform does not take answers that come later.
    pub(super) fn async_required() -> Self {
        Self::new(422, "AsyncRequired", "this takes time: ask with accepts_incomplete=true")
    }

    /// Something else is under way; the platform asks again. It takes this for no failure.
    pub(super) fn concurrency(description: impl Into<String>) -> Self {
        Self::new(422, "ConcurrencyError", description)
    }

    /// The broker does not do that.
    pub(super) fn unsupported(description: impl Into<String>) -> Self {
        Self::new(422, "NotSupported", description)
    }

    /// It can't be done now.
    pub(super) fn failed(description: impl Into<String>) -> Self {
        Self::new(500, "InternalError", description)
    }

    /// Nobody can say now.
    pub(super) fn unavailable(description: impl Into<String>) -> Self {
        Self::new(503, "NotReady", description)
    }

    /// Returns it as an answer.
    pub(super) fn answer(self) -> BrokerAnswer {
        json_answer(self.status, json!({"error": self.error, "description": self.description}))
    }
}

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
    /// What our own words for it are, where clients know it by the words of the specification.
    detail: Option<String>,
}

/// How clients know two errors beside their names: they compare these words.
const ASYNC: &str = "This service plan requires client support for asynchronous service operations.";
const CONCURRENT: &str =
    "The Service Broker does not support concurrent requests that mutate the same resource.";

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
        Self { status, error, description: description.into(), detail: None }
    }

    /// Returns it with the words by which clients know it.
    fn known_as(self, words: &str) -> Self {
        Self { description: words.to_owned(), detail: Some(self.description), ..self }
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
        let what = "this takes time: ask with accepts_incomplete=true";
        Self::new(422, "AsyncRequired", what).known_as(ASYNC)
    }

    /// Something else is under way; the platform asks again. It takes this for no failure.
    pub(super) fn concurrency(description: impl Into<String>) -> Self {
        Self::new(422, "ConcurrencyError", description).known_as(CONCURRENT)
    }

    /// The platform knows something of the plan that is not in the catalog.
    pub(super) fn maintenance() -> Self {
        let what = "no plan of the catalog has maintenance_info: read the catalog again, and leave it out";
        Self::new(422, "MaintenanceInfoConflict", what)
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
        let mut body = json!({"error": self.error, "description": self.description});
        if let Some((fields, detail)) = body.as_object_mut().zip(self.detail) {
            fields.insert("detail".to_owned(), Value::String(detail));
        }
        json_answer(self.status, body)
    }
}

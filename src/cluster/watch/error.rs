//! Why a list or a watch did not work.

use serde_json::Value;
use thiserror::Error;

use crate::cluster::request::{Cause, RequestError};

/// Why a list or a watch did not work. What was asked for is named by whoever reports it.
#[derive(Debug, Error)]
pub(crate) enum WatchError {
    /// The list must be read again: the API server does not know any more what came behind our last change.
    #[error("the API server has forgotten the version")]
    Expired,
    /// There is no such kind.
    #[error("the kind does not exist")]
    KindMissing,
    /// Nothing comes, not even the end of the watch: its connection is dead.
    #[error("the watch is silent; its connection is dead")]
    Silent,
    /// The operator may not do this.
    #[error("{0}")]
    Forbidden(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

impl WatchError {
    /// Returns what the object of an `ERROR` event says, which is a `Status`.
    pub(crate) fn of_status(status: &[u8]) -> Self {
        let status: Value = serde_json::from_slice(status).unwrap_or_default();
        let message =
            status.get("message").and_then(Value::as_str).unwrap_or("the watch ended with an error");
        match status.get("code").and_then(Value::as_u64) {
            Some(410) => Self::Expired,
            Some(403) => Self::Forbidden(message.to_owned()),
            Some(_) | None => Self::Failed(message.to_owned()),
        }
    }
}

impl From<RequestError> for WatchError {
    fn from(error: RequestError) -> Self {
        let message = match error.cause() {
            Cause::Refused { message, .. } => message.clone(),
            Cause::Rejected { code, .. } => format!("status {code}"),
            Cause::Late(_) => "the API server does not answer".to_owned(),
            Cause::NoConnection(cause) => format!("no connection: {cause}"),
            Cause::Unreadable(cause) => cause.clone(),
        };
        match error.code() {
            403 => Self::Forbidden(message),
            404 => Self::KindMissing,
            410 => Self::Expired,
            _ => Self::Failed(message),
        }
    }
}

impl From<serde_json::Error> for WatchError {
    fn from(error: serde_json::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

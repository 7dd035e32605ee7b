//! Why a list or a watch did not work.

use engine::FailureKind;
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
    /// The API server can't be reached, or does not answer.
    #[error("{0}")]
    Unreachable(String),
    /// It answers that it can't do this now, or ends the watch at once.
    #[error("{0}")]
    Unavailable(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// How often a watch is tried again without a new list when the API server is not able to. It may not be able to for ever
/// with this version: one from before the API server was set back lies in its future.
const WITHOUT_LIST: u32 = 4;

impl WatchError {
    /// Returns the error of a task that panicked.
    pub(crate) fn panicked() -> Self {
        Self::Failed("a bug: the watch has panicked, the log says where".to_owned())
    }

    /// Returns what kind of thing went wrong, for decisions.
    pub(crate) fn kind(&self) -> FailureKind {
        if let Self::Forbidden(_) = self { FailureKind::Forbidden } else { FailureKind::Cluster }
    }

    /// Returns whether, after so many failures, the watch is opened again where it was, and nothing is listed anew.
    pub(crate) fn keeps_version(&self, failures: u32) -> bool {
        match self {
            Self::Silent | Self::Unreachable(_) => true,
            Self::Unavailable(_) => failures < WITHOUT_LIST,
            Self::Expired | Self::KindMissing | Self::Forbidden(_) | Self::Failed(_) => false,
        }
    }

    /// Returns what the object of an `ERROR` event says, which is a `Status`.
    pub(crate) fn of_status(status: &[u8]) -> Self {
        let status: Value = serde_json::from_slice(status).unwrap_or_default();
        let message =
            status.get("message").and_then(Value::as_str).unwrap_or("the watch ended with an error");
        match status.get("code").and_then(Value::as_u64) {
            Some(410) => Self::Expired,
            Some(403) => Self::Forbidden(message.to_owned()),
            Some(429 | 500..) => Self::Unavailable(message.to_owned()),
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
            429 | 500.. => Self::Unavailable(message),
            _ if matches!(error.cause(), Cause::Late(_) | Cause::NoConnection(_)) => {
                Self::Unreachable(message)
            }
            _ => Self::Failed(message),
        }
    }
}

impl From<serde_json::Error> for WatchError {
    fn from(error: serde_json::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

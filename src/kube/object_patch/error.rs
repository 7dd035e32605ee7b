//! Why an operation on an object did not work.

use engine::{Failure, FailureKind};

use crate::cluster::{ResolveError, failure, is_already_there, is_conflict};

/// Why an operation did not work.
pub(super) enum PatchError {
    /// The operation itself is wrong, or its kind is not there.
    Failure(Failure),
    /// The API server refused it, or the connection broke.
    Request(kube::Error),
    /// The API server gave no answer.
    Silence(Failure),
}

impl PatchError {
    /// Returns the error of an operation that can't be right.
    pub(super) fn new(kind: FailureKind, text: impl Into<String>) -> Self {
        Self::Failure(Failure::new(kind, text))
    }

    /// Returns whether the API server gave no answer.
    pub(super) fn is_silence(&self) -> bool {
        match self {
            Self::Silence(_) => true,
            Self::Request(error) => matches!(error, kube::Error::HyperError(_) | kube::Error::Service(_)),
            Self::Failure(_) => false,
        }
    }

    /// Returns whether what was written is wrong, and not the moment: the same is refused each time.
    pub(super) fn is_of_content(&self) -> bool {
        match self {
            Self::Request(kube::Error::Api(status)) => {
                // Of a field with another type, server-side apply says that the server failed.
                matches!(status.code, 400 | 413 | 422) || status.message.contains("typed patch object")
            }
            Self::Failure(failure) => failure.kind == FailureKind::HookOutput,
            Self::Request(_) | Self::Silence(_) => false,
        }
    }

    /// Returns the failure for the engine.
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Self::Failure(failure) | Self::Silence(failure) => failure,
            Self::Request(error) => {
                let failure = failure("the API server refused", &error);
                if is_conflict(&error) && !is_already_there(&error) {
                    return Failure { kind: FailureKind::Conflict, ..failure };
                }
                failure
            }
        }
    }
}

impl From<kube::Error> for PatchError {
    fn from(error: kube::Error) -> Self {
        Self::Request(error)
    }
}

impl From<ResolveError> for PatchError {
    fn from(error: ResolveError) -> Self {
        let failure = Failure::of(FailureKind::Cluster, &error);
        match error {
            ResolveError::Cluster(_) => Self::Silence(failure),
            ResolveError::Unknown(_) => Self::Failure(failure),
        }
    }
}

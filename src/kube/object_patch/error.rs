//! Why an operation on an object did not work.

use engine::hook::reconcile::exceeds_quota_alone;
use engine::{Failure, FailureKind};

use super::unquoted;
use crate::cluster::{ResolveError, failure, is_already_there, is_conflict};

/// What the API server says of an object that has no form of its kind. Its code says that the server failed.
const OF_FORM: [&str; 2] = ["typed patch object", "failed to convert new object"];

/// What the API server says of a new object while the one whose place it is to take lives: there is no room for both, or a port is
/// taken. Or a webhook can't be asked without a write.
const OF_LIVING: [&str; 3] = ["exceeded quota", "already allocated", "does not support dry run"];

/// Why an operation did not work.
pub(super) enum PatchError {
    /// The operation itself is wrong, or its kind is not there.
    Failure(Failure),
    /// The API server refused it, or the connection broke.
    Request(kube::Error),
    /// The same, of what holds data of the object: these are quoted nowhere. The text is what the hook wrote.
    Taken(kube::Error, String),
    /// The API server gave no answer.
    Silence(Failure),
}

impl PatchError {
    /// Returns the error of an operation that can't be right.
    pub(super) fn new(kind: FailureKind, text: impl Into<String>) -> Self {
        Self::Failure(Failure::new(kind, text))
    }

    /// Returns the error of an operation that wrote data of the object itself, as what the hook wrote says.
    pub(super) fn of_taken(self, written: impl Into<String>) -> Self {
        match self {
            Self::Request(error) => Self::Taken(error, written.into()),
            Self::Failure(_) | Self::Silence(_) | Self::Taken(..) => self,
        }
    }

    /// Returns what a request ended with.
    pub(super) fn request(&self) -> Option<&kube::Error> {
        match self {
            Self::Request(error) | Self::Taken(error, _) => Some(error),
            Self::Failure(_) | Self::Silence(_) => None,
        }
    }

    /// Returns whether the API server gave no answer.
    pub(super) fn is_silence(&self) -> bool {
        match self {
            Self::Silence(_) => true,
            Self::Request(error) | Self::Taken(error, _) => {
                matches!(error, kube::Error::HyperError(_) | kube::Error::Service(_))
            }
            Self::Failure(_) => false,
        }
    }

    /// Returns whether what was written is wrong, and not the moment: the same is refused each time.
    pub(super) fn is_of_content(&self) -> bool {
        match self {
            Self::Request(kube::Error::Api(status)) | Self::Taken(kube::Error::Api(status), _) => {
                matches!(status.code, 400 | 413 | 422) || self.is_of_form()
            }
            Self::Failure(failure) => failure.kind == FailureKind::HookOutput,
            Self::Request(_) | Self::Silence(_) | Self::Taken(..) => false,
        }
    }

    /// Returns whether what was written has not the form of its kind.
    pub(super) fn is_of_form(&self) -> bool {
        self.says(&OF_FORM)
    }

    /// Returns whether a new object is refused only because the one lives whose place it is to take.
    pub(super) fn is_of_living(&self) -> bool {
        let Some(error) = self.request() else { return false };
        let is_too_large = matches!(error, kube::Error::Api(status) if exceeds_quota_alone(&status.message));
        is_already_there(error) || (self.says(&OF_LIVING) && !is_too_large)
    }

    fn says(&self, texts: &[&str]) -> bool {
        let Some(kube::Error::Api(status)) = self.request() else { return false };
        texts.iter().any(|text| status.message.contains(text))
    }

    /// Returns the error with a sentence behind it, if the API server refused something.
    pub(super) fn with(self, sentence: &str) -> Self {
        match self {
            Self::Request(kube::Error::Api(mut status)) => {
                status.message = format!("{}; {sentence}", status.message);
                Self::Request(kube::Error::Api(status))
            }
            Self::Failure(_) | Self::Request(_) | Self::Silence(_) | Self::Taken(..) => self,
        }
    }

    /// Returns the failure for the engine.
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Self::Failure(failure) | Self::Silence(failure) => failure,
            Self::Request(error) => refused(&error),
            Self::Taken(error, written) => {
                let failure = refused(&error);
                let told = if let kube::Error::Api(status) = &error {
                    unquoted::told(status, &written)
                } else if is_unreadable(&error) {
                    "its answer can't be read".to_owned()
                } else {
                    return failure;
                };
                Failure { message: format!("{REFUSED}: {told}"), chain: Vec::new(), ..failure }
            }
        }
    }
}

/// How a refusal begins.
const REFUSED: &str = "the API server refused";

/// Returns whether an answer came that is not understood. It has the object.
fn is_unreadable(error: &kube::Error) -> bool {
    matches!(error, kube::Error::SerdeError(_) | kube::Error::FromUtf8(_))
}

fn refused(error: &kube::Error) -> Failure {
    let failure = failure(REFUSED, error);
    if is_conflict(error) && !is_already_there(error) {
        return Failure { kind: FailureKind::Conflict, ..failure };
    }
    failure
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

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn refusal(code: u16, reason: &str, message: &str) -> PatchError {
        PatchError::Request(kube::Error::Api(Box::new(Status {
            code,
            reason: reason.to_owned(),
            message: message.to_owned(),
            ..Status::default()
        })))
    }

    #[test]
    fn what_has_not_the_form_of_its_kind_is_wrong_though_the_server_says_that_it_failed() {
        for message in [
            "failed to create typed patch object (ns/a; /v1, Kind=ConfigMap): .date: field not declared in schema",
            "failed to convert new object (ns/a; /v1, Kind=Secret) to proper version: illegal base64 data at input byte 3",
        ] {
            let error = refusal(500, "InternalError", message);
            assert!(error.is_of_content() && error.is_of_form(), "{message}");
        }
        let failed = refusal(500, "InternalError", "etcdserver: request timed out");
        assert!(!failed.is_of_content() && !failed.is_of_form());
    }

    #[test]
    fn what_only_the_living_object_is_in_the_way_of_is_no_reason_to_keep_it() {
        for (code, reason, message) in [
            (409, "AlreadyExists", r#"jobs.batch "a" already exists"#),
            (
                403,
                "Forbidden",
                r#"pods "a" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"#,
            ),
            (
                422,
                "Invalid",
                r#"Service "a" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"#,
            ),
            (400, "BadRequest", r#"admission webhook "a.b.c" does not support dry run"#),
        ] {
            assert!(refusal(code, reason, message).is_of_living(), "{message}");
        }
        let denied = r#"admission webhook "a.b.c" denied the request: no"#;
        assert!(!refusal(403, "Forbidden", denied).is_of_living());
        let too_large = r#"persistentvolumeclaims "v" is forbidden: exceeded quota: q, requested: requests.storage=2Gi, used: requests.storage=1Gi, limited: requests.storage=1Gi"#;
        assert!(!refusal(403, "Forbidden", too_large).is_of_living());
    }
}

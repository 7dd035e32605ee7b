//! Why work on a chart repository came to nothing: what is wrong with the repository or a right, or with us.

use engine::{Failure, FailureKind};

use crate::cluster::failure;

/// Why something came to nothing.
#[derive(Debug)]
pub(super) enum Stop {
    /// Somebody has to correct the repository, the object or a right.
    Rejected(String),
    /// The API server or the operator failed.
    Failed(Failure),
}

impl Stop {
    /// Returns what an error of the API server comes to. What it refuses is told to those who look at the object.
    pub(super) fn of(what: &str, error: &kube::Error) -> Self {
        let failure = failure(what, error);
        let kube::Error::Api(status) = error else { return Self::Failed(failure) };
        if !(400..500).contains(&status.code) || [409, 429].contains(&status.code) {
            return Self::Failed(failure);
        }
        let advice = match status.code {
            403 => "; the operator's ServiceAccount needs a role for it (examples/install)",
            _ => "",
        };
        Self::Rejected(format!("{failure}{advice}"))
    }

    /// Returns the failure of work that did not end.
    pub(super) fn defect(error: &tokio::task::JoinError) -> Self {
        let text = format!("a defect of the operator, in chart repositories: {error}");
        Self::Failed(Failure::new(FailureKind::Bug, text))
    }
}

/// Returns an outcome as the engine takes it.
pub(super) fn outcome<T>(outcome: Result<T, Stop>) -> Result<Result<T, String>, Failure> {
    match outcome {
        Ok(done) => Ok(Ok(done)),
        Err(Stop::Rejected(problem)) => Ok(Err(problem)),
        Err(Stop::Failed(failure)) => Err(failure),
    }
}

/// Does what takes time on a thread of its own.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stop> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Stop::defect(&error))
}

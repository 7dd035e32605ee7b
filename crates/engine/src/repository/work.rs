//! What work is about in chart repositories, and what comes of its steps.

use std::sync::Arc;
use std::time::Duration;

use crate::failure::Failure;
use crate::name::ModuleName;
use crate::notice::TaskType;
use crate::package::{FetchedIndex, RepositoryKind, ResolvedChart, StoredPackage};
use crate::reconcile::WorkKey;

/// The first wait after something failed, and the longest.
const FIRST_RETRY: Duration = Duration::from_secs(30);
const LAST_RETRY: Duration = Duration::from_hours(1);

/// Who works on the charts of modules.
const MODULE: &str = "Module";

/// The answer to an effect.
#[derive(Debug)]
pub(super) enum RepositoryAnswer {
    Fetched(Result<Result<FetchedIndex, String>, Failure>),
    Patched(Result<(), Failure>),
    Pinned(Result<(), Failure>),
    Resolved(Result<Result<ResolvedChart, String>, Failure>),
    Stored(Result<Result<StoredPackage, String>, Failure>),
}

impl RepositoryAnswer {
    /// Returns why something was not done by us or the API server.
    pub(super) fn failure(self) -> Option<Failure> {
        match self {
            Self::Fetched(outcome) => outcome.err(),
            Self::Patched(outcome) | Self::Pinned(outcome) => outcome.err(),
            Self::Resolved(outcome) => outcome.err(),
            Self::Stored(outcome) => outcome.err(),
        }
    }
}

/// Returns how long something is left alone that failed so many times in a row.
pub(super) fn retry_after(failures: u32) -> Duration {
    FIRST_RETRY.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LAST_RETRY)
}

/// Returns the key of the work on an object.
pub(super) fn work_key(kind: RepositoryKind, name: &Arc<str>) -> WorkKey {
    let task = match kind {
        RepositoryKind::Chart => TaskType::ChartReconcile,
        RepositoryKind::RepoGroup => TaskType::RepoGroupReconcile,
        RepositoryKind::Repository => TaskType::RepositoryReconcile,
    };
    WorkKey { task, controller: kind.as_str(), namespace: "".into(), name: Arc::clone(name) }
}

/// Returns the key of the work on the chart of a module.
pub(super) fn module_key(name: &ModuleName) -> WorkKey {
    let task = TaskType::ChartReconcile;
    WorkKey { task, controller: MODULE, namespace: "".into(), name: name.as_str().into() }
}

/// Whose work it is.
pub(super) enum Worked {
    Object(RepositoryKind),
    Module,
}

/// Returns whose work it is.
pub(super) fn of_work(work: &WorkKey) -> Worked {
    work.controller.parse().map_or(Worked::Module, Worked::Object)
}

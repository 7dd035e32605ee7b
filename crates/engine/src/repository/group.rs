//! What is known about a `RepoGroup`, and how far the work on it is.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::object::Object;
use super::work::RepositoryAnswer;
use crate::package::RepoGroupSpec;

/// What is known about a `RepoGroup`.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) object: Option<Object<RepoGroupSpec>>,
    /// What is being written.
    pub(super) writing: Option<Written>,
    /// The answer to it.
    pub(super) answer: Option<RepositoryAnswer>,
    /// The Repositories that were written in this pass; what a watch says of them may be older.
    pub(super) applied: BTreeSet<Arc<str>>,
}

/// What is written, so that it is known before the watch says so.
#[derive(Debug)]
pub(super) enum Written {
    Repository(Arc<str>),
    Status(Value),
}

impl Group {
    /// Forgets how far the work is.
    pub(super) fn begin_anew(&mut self) {
        self.writing = None;
        self.applied.clear();
    }
}

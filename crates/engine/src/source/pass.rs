//! How far the work on a configuration is, and what came of its last step.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::assessment::Assessment;
use super::registration::Change;
use crate::addon::{Digest, Fetched, SourceKey, SourceSpec};
use crate::event::StoreError;
use crate::failure::{Failure, FailureKind};
use crate::notice::TaskType;
use crate::reconcile::{Step, WorkKey};

/// How far the work on a configuration is.
///
/// ```text
/// Idle ─▶ Finalizing ─▶ Pending ─▶ Starting ─▶ Fetching ─▶ Registering ─▶ Keeping ─▶ Committing ─▶ Writing ─▶ Bumping
///  └────▶ Deleting
/// ```
#[derive(Debug, Default)]
pub(super) enum Pass {
    #[default]
    Idle,
    /// Bundles of it are looked for in the cluster, before anything else.
    Restoring(Vec<Digest>),
    Finalizing,
    Pending,
    Starting,
    Fetching {
        generation: i64,
        spec: Arc<SourceSpec>,
    },
    Registering(Box<Registering>),
    Keeping(Box<Keeping>),
    Committing {
        /// The commit that puts it into force.
        version: u64,
        keeping: Box<Keeping>,
    },
    Writing,
    Bumping,
    Deleting(DeletePass),
}

/// What is to be registered.
#[derive(Debug)]
pub(super) struct Registering {
    pub(super) generation: i64,
    pub(super) spec: Arc<SourceSpec>,
    /// What was fetched, or why the spec can't be read.
    pub(super) fetched: Result<Fetched, String>,
}

/// What is being registered.
#[derive(Debug)]
pub(super) struct Keeping {
    pub(super) generation: i64,
    pub(super) spec: Arc<SourceSpec>,
    pub(super) assessment: Assessment,
    /// The ids that it had before.
    pub(super) ids: BTreeSet<String>,
}

/// The answer to an effect.
#[derive(Debug)]
pub(super) enum SourceAnswer {
    Fetched(Result<Fetched, Failure>),
    Kept(Result<(), StoreError>),
    Patched(Result<(), Failure>),
    /// The bundles that can't be had.
    Restored(BTreeSet<Digest>),
}

/// How far the end of a configuration is.
///
/// ```text
/// Begin ─▶ Keeping ─▶ Removing ─▶ Bumping ─▶ Unfinalizing
///            └────▶ Hanging
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum DeletePass {
    /// Nothing was done.
    #[default]
    Begin,
    /// The registry is written in which its modules are withdrawn.
    Keeping,
    /// That failed, which is being told.
    Hanging,
    /// Its modules are being removed.
    Removing,
    /// Counters of those are raised that failed.
    Bumping,
    /// Its finalizer is being removed.
    Unfinalizing,
}

/// Where the work on a configuration goes on.
pub(super) enum Go {
    On(Pass),
    Stop(Pass, Step),
}

/// Returns why something was not written.
pub(super) fn failed(answer: Option<SourceAnswer>) -> Option<Failure> {
    match answer {
        Some(SourceAnswer::Patched(Err(failure)) | SourceAnswer::Fetched(Err(failure))) => Some(failure),
        Some(SourceAnswer::Kept(Err(error))) => Some(store_failure(error)),
        Some(
            SourceAnswer::Patched(Ok(()))
            | SourceAnswer::Fetched(Ok(_))
            | SourceAnswer::Kept(Ok(()))
            | SourceAnswer::Restored(_),
        )
        | None => None,
    }
}

/// Returns the failure that an error of the store is.
pub(super) fn store_failure(error: StoreError) -> Failure {
    match error {
        StoreError::Registry(failure) => failure,
        StoreError::Bundles(problems) => {
            let first = problems.into_iter().next().map(|(_, failure)| failure);
            first.unwrap_or_else(|| Failure::new(FailureKind::Cluster, "the bundles could not be written"))
        }
    }
}

/// Who does this work.
const CONTROLLER: &str = "Registry";

/// What there is to look at.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    wanted: Swept,
    /// The configurations whose objects may be gone while something of them is registered.
    gone: BTreeSet<SourceKey>,
    /// The configurations with versions that have shown whether they are good, and are on trial still.
    tried: BTreeSet<SourceKey>,
    /// The configurations of whose modules something is to change.
    due: BTreeSet<SourceKey>,
    /// Those that the registry is being written for, if it is.
    writing: Option<BTreeSet<SourceKey>>,
    pub(super) answer: Option<SourceAnswer>,
}

impl Sweep {
    /// Has it look at everything at the next occasion.
    pub(super) fn want(&mut self) {
        self.wanted = Swept::All;
    }

    /// Has it look at what a configuration registered.
    pub(super) fn want_of(&mut self, key: &SourceKey) {
        if let Swept::Some(keys) = &mut self.wanted {
            keys.insert(key.clone());
        }
    }

    /// Has it end the trials of versions of a configuration.
    pub(super) fn want_of_tried(&mut self, key: &SourceKey) {
        self.tried.insert(key.clone());
    }

    /// Returns the configurations with trials to be ended.
    pub(super) fn tried(&self) -> &BTreeSet<SourceKey> {
        &self.tried
    }

    /// Forgets the trials of a configuration: none of them is to be ended.
    pub(super) fn forget_tried(&mut self, key: &SourceKey) {
        self.tried.remove(key);
    }

    /// Has it look whether the object of a configuration is gone.
    pub(super) fn want_of_gone(&mut self, key: &SourceKey) {
        self.gone.insert(key.clone());
        self.want();
    }

    /// Records that something is to change.
    pub(super) fn found(&mut self, change: &Change) {
        self.due.extend(change.iter().map(|(key, _)| key.clone()));
    }

    /// Returns the configurations of whose modules something is to change, once.
    pub(super) fn begin(&mut self) -> BTreeSet<SourceKey> {
        std::mem::take(&mut self.due)
    }

    /// Records that the registry is being written for these.
    pub(super) fn writes(&mut self, due: BTreeSet<SourceKey>) {
        self.writing = Some(due);
    }

    pub(super) fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Records that the registry was written, or that it `is_done` not: then they are still due.
    pub(super) fn written(&mut self, is_done: bool) {
        self.due.extend(self.writing.take().into_iter().flatten().filter(|_| !is_done));
    }

    /// Returns what there is to look at, once.
    pub(super) fn take(&mut self) -> Swept {
        std::mem::take(&mut self.wanted)
    }

    /// Iterates over the configurations whose objects may be gone.
    pub(super) fn gone(&self) -> impl Iterator<Item = &SourceKey> {
        self.gone.iter()
    }

    /// Forgets those whose objects are not gone, or that have nothing any more.
    pub(super) fn keep_gone(&mut self, is_gone: &BTreeSet<SourceKey>) {
        self.gone.retain(|key| is_gone.contains(key));
    }
}

/// Whose modules there are to look at.
#[derive(Debug)]
pub(super) enum Swept {
    All,
    Some(BTreeSet<SourceKey>),
}

impl Default for Swept {
    fn default() -> Self {
        Self::Some(BTreeSet::new())
    }
}

/// Returns the key of this work.
pub(super) fn sweep_key() -> WorkKey {
    let task = TaskType::AddonsReconcile;
    WorkKey { task, controller: CONTROLLER, namespace: "".into(), name: "addons".into() }
}

//! What is known about the chart of a module, and how far the work on it is.

use std::sync::Arc;

use super::work::RepositoryAnswer;
use crate::package::{ChartReference, Pin};

/// What is known about the chart of a module.
#[derive(Debug, Default)]
pub(super) struct ModuleChart {
    /// What the module names, as long as it is on.
    pub(super) reference: Option<Arc<ChartReference>>,
    pub(super) pin: Option<Pin>,
    pub(super) stage: Stage,
    /// The answer to the effect of its stage.
    pub(super) answer: Option<RepositoryAnswer>,
    /// The reference for which its Chart was written; what a watch says of it may be older.
    pub(super) applied: Option<Arc<ChartReference>>,
    /// Whether its Chart was deleted; what a watch says may be older.
    pub(super) is_deleted: bool,
}

/// What its work is doing.
#[derive(Debug, Default)]
pub(super) enum Stage {
    #[default]
    Idle,
    Applying(Arc<ChartReference>),
    Deleting,
    Pinning(Option<Box<Pin>>),
}

impl ModuleChart {
    /// Forgets how far the work is.
    pub(super) fn begin_anew(&mut self) {
        self.stage = Stage::Idle;
        self.applied = None;
    }
}

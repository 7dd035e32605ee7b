//! What is known about the chart of a module, and how far the work on it is.

use std::sync::Arc;

use objects::legal;

use super::work::RepositoryAnswer;
use crate::name::ModuleName;
use crate::package::{ChartReference, Pin, ResolvedVersion};
use crate::time::Time;

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
    /// Whether the module is gone for good.
    pub(super) is_gone: bool,
    /// What is known about its package, if that is not where it was.
    pub(super) lost: Option<Lost>,
}

/// What is known about a package that is lost.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// Where its archive is.
    pub(super) version: Option<ResolvedVersion>,
    /// Why it could not be had the last time.
    pub(super) problem: Option<String>,
    /// How many times in a row.
    pub(super) failures: u32,
    /// When it is tried again.
    pub(super) retry_at: Option<Time>,
    /// Whether it was written again.
    pub(super) is_back: bool,
}

/// What its work is doing.
#[derive(Debug, Default)]
pub(super) enum Stage {
    #[default]
    Idle,
    Applying(Arc<ChartReference>),
    Deleting,
    /// The version that is pinned is looked for, because its package is lost.
    Finding,
    Storing,
    Pinning(Option<Box<Pin>>),
}

/// How the names of Charts of modules begin.
pub(super) const MODULE_CHART: &str = "module-";

/// Returns the name of the Chart of a module.
pub(super) fn chart_of(module: &ModuleName) -> Arc<str> {
    legal::object(&format!("{MODULE_CHART}{module}")).into()
}

impl ModuleChart {
    /// Forgets how far the work is.
    pub(super) fn begin_anew(&mut self) {
        self.stage = Stage::Idle;
        self.applied = None;
    }
}

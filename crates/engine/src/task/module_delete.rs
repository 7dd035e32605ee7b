//! The removal of a module: how far it got.

use crate::name::{ModuleName, ReleaseName};
use crate::release_target::ReleaseTarget;
use crate::time::Time;

/// The removal of a module and how far it got.
#[derive(Clone, Debug)]
pub(crate) struct ModuleDelete {
    pub(crate) module: ModuleName,
    /// The step that runs now.
    pub(crate) stage: DeleteStage,
    /// Whether hooks that nobody has asked for their configuration are asked for it.
    pub(crate) reads_hooks: bool,
}

/// The removal of a release that no module owns.
#[derive(Clone, Debug)]
pub(crate) struct ModulePurge {
    pub(crate) release: ReleaseName,
    /// Where it is.
    pub(crate) target: ReleaseTarget,
}

/// A step of a [`ModuleDelete`].
///
/// ```text
/// Begin ─▶ BeforeDeleteHelm(0) ─▶ … ─▶ Uninstall ─▶ Finalize ─▶ AfterDeleteHelm(0) ─▶ … ─▶ FinalizeRest ─▶ done
///   ▲                                                                                │
///   └──────────────────────────────── any step fails ────────────────────────────────┘
/// ```
///
/// A removed release is not removed again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DeleteStage {
    /// Nothing was done.
    Begin,
    /// The n-th `beforeDeleteHelm` hook.
    BeforeDeleteHelm(usize),
    /// The release.
    Uninstall,
    /// The end of the objects that left with the release and that its own hooks finalize, with when it began to wait for that.
    Finalize(Option<Time>),
    /// The n-th `afterDeleteHelm` hook.
    AfterDeleteHelm(usize),
    /// The end of those that these hooks deleted.
    FinalizeRest(Option<Time>),
}

impl ModuleDelete {
    /// Creates a removal that did not begin.
    pub(crate) fn new(module: ModuleName) -> Self {
        Self { module, stage: DeleteStage::Begin, reads_hooks: true }
    }

    /// Records that a hook of the current stage succeeded.
    pub(crate) fn hook_done(&mut self) {
        if let DeleteStage::BeforeDeleteHelm(n) | DeleteStage::AfterDeleteHelm(n) = &mut self.stage {
            *n += 1;
        }
    }
}

//! The run of a module: how far it got.

use std::sync::Arc;

use serde_json::Value;

use crate::name::ModuleName;

/// A module run and how far it got.
#[derive(Clone, Debug)]
pub(crate) struct ModuleRun {
    pub(crate) module: ModuleName,
    /// The step that runs now.
    pub(crate) stage: RunStage,
    /// It may be the module's first run.
    pub(crate) does_startup: bool,
    /// Its bundle is another one now.
    pub(crate) is_reload: bool,
    /// The files of the module as this attempt found them when it began.
    pub(crate) content: Option<u64>,
}

/// A step of a [`ModuleRun`].
///
/// ```text
/// Begin ─▶ OnStartup ─▶ Synchronize ─▶ BeforeHelm(0) ─▶ … ─▶ Upgrade ─▶ Credentials ─▶ (Leave) ─▶ AfterHelm(0) ─▶ … ─▶ done
///   ▲                                       ▲                                                              │
///   ├─ fails in the module's first run ─────┼──────────────────────────────────────────────────────────────┤
///   └─ fails later: hooks that started stay │─ values changed: runs again ─────────────────────────────────┘
/// ```
#[derive(Clone, Debug)]
pub(crate) enum RunStage {
    /// Nothing was done.
    Begin,
    /// The `onStartup` hooks that did not run yet.
    OnStartup,
    /// The bindings that are not live yet.
    Synchronize,
    /// The n-th `beforeHelm` hook.
    BeforeHelm(usize),
    /// The chart.
    Upgrade,
    /// The credentials of the release, if the module has plans.
    Credentials,
    /// The removal of the release from where it was before.
    Leave,
    /// The n-th `afterHelm` hook.
    AfterHelm {
        n: usize,
        /// The values before the first of them.
        values_before: Arc<Value>,
    },
}

impl ModuleRun {
    /// Creates a run that did not begin.
    pub(crate) fn new(module: ModuleName, does_startup: bool) -> Self {
        Self { module, stage: RunStage::Begin, does_startup, is_reload: false, content: None }
    }

    /// Returns how far it got: what comes later is more.
    pub(crate) fn step(&self) -> (u8, usize) {
        match self.stage {
            RunStage::Begin => (0, 0),
            RunStage::OnStartup => (1, 0),
            RunStage::Synchronize => (2, 0),
            RunStage::BeforeHelm(n) => (3, n),
            RunStage::Upgrade => (4, 0),
            RunStage::Credentials => (5, 0),
            RunStage::Leave => (6, 0),
            RunStage::AfterHelm { n, .. } => (7, n),
        }
    }

    /// Returns the run as one that runs another bundle, if it does.
    #[must_use]
    pub(crate) fn reloading(self, is_reload: bool) -> Self {
        Self { is_reload, ..self }
    }

    /// Returns whether the run will see the values as they are now: no hook and no chart has read any.
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.stage, RunStage::Begin | RunStage::OnStartup | RunStage::Synchronize)
    }

    /// Returns whether the chart was not rendered yet.
    pub(crate) fn is_before_upgrade(&self) -> bool {
        !matches!(self.stage, RunStage::Credentials | RunStage::Leave | RunStage::AfterHelm { .. })
    }

    /// Returns whether the release is being removed from where it was before.
    pub(crate) fn is_leaving(&self) -> bool {
        matches!(self.stage, RunStage::Leave)
    }

    /// Records that a hook of the current stage succeeded.
    pub(crate) fn hook_done(&mut self) {
        if let RunStage::BeforeHelm(n) | RunStage::AfterHelm { n, .. } = &mut self.stage {
            *n += 1;
        }
    }
}

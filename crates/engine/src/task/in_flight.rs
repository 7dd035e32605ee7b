//! What is in flight: the effect that the head of a queue waits for.

use std::sync::Arc;

use crate::catalog::Hook;
use crate::configuration::hook_output::Prepared;
use crate::module::Question;
use crate::name::{ModuleName, RunId};
use crate::task::Task;
use crate::time::Time;

/// The head of a queue while an effect of it is in flight.
#[derive(Debug)]
pub(crate) struct Running {
    /// The task.
    pub(crate) task: Task,
    /// Which answer it waits for.
    pub(crate) run: RunId,
    /// What it waits for.
    pub(crate) work: Work,
    /// When the effect began.
    pub(crate) since: Time,
    /// Nobody wants the answer any more; the queue only waits for its end.
    pub(crate) dropped: bool,
}

/// What kind of answer is awaited.
#[derive(Debug)]
pub(crate) enum Work {
    /// CRDs are installed.
    Crds,
    /// A hook runs, or what it wrote is carried out.
    Hook(Box<HookWork>),
    /// Releases are listed.
    List,
    /// A module is read again.
    Load,
    /// A release is installed, upgraded or removed.
    Release(ModuleName),
    /// A release that no module owns is removed.
    Purge,
    /// An enabled script runs.
    Script(Box<ScriptWork>),
}

/// An enabled script that runs.
#[derive(Debug)]
pub(crate) struct ScriptWork {
    /// The module whose script it is.
    pub(crate) module: ModuleName,
    /// What it reads.
    pub(crate) question: Question,
}

/// A hook that runs, or whose output is carried out.
#[derive(Debug)]
pub(crate) struct HookWork {
    /// The hook.
    pub(crate) hook: Arc<Hook>,
    /// The type of binding of its first context.
    pub(crate) binding_type: &'static str,
    /// How far it is.
    pub(crate) stage: HookStage,
}

/// How far a run of a hook is.
#[derive(Debug)]
pub(crate) enum HookStage {
    /// Its process runs.
    Process,
    /// Its changes of objects are carried out.
    Patching(Prepared),
    /// Its change of the ConfigMap is written.
    Saving(Prepared),
}

impl Work {
    /// Returns whether a process runs that can be ended.
    pub(crate) fn is_process(&self) -> bool {
        match self {
            Self::Hook(work) => match work.stage {
                HookStage::Process => true,
                HookStage::Patching(_) | HookStage::Saving(_) => false,
            },
            Self::Script(_) => true,
            Self::Crds | Self::List | Self::Load | Self::Release(_) | Self::Purge => false,
        }
    }
}

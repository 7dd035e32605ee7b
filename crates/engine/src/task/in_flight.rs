//! What is in flight: the effect that the first task of a queue waits for.

use std::sync::Arc;

use super::{BindingType, Question, Task};
use crate::catalog::Hook;
use crate::configuration::Prepared;
use crate::name::{ModuleName, RunId};
use crate::time::Time;

/// The first task of a queue while an effect of it is in flight.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) task: Task,
    pub(crate) run: RunId,
    /// What the answer is about.
    pub(crate) answer: Answer,
    /// When the effect began.
    pub(crate) since: Time,
    /// What the effect waits for, for people, and since when.
    pub(crate) waits: Option<(String, Time)>,
    /// Its answer is not wanted any more; the queue only waits for its end.
    pub(crate) dropped: bool,
}

/// What an awaited answer is about, and what has to be known when it comes.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The credentials of a release are written, or removed if they are not `wanted`.
    Credentials { wanted: bool },
    /// A hook runs, or what it wrote is carried out.
    Hook(Box<HookInFlight>),
    /// The release of a module is upgraded or removed.
    Release(ModuleName),
    /// An enabled script runs.
    Script(Box<ScriptInFlight>),
    /// What the task says.
    Task,
}

/// An enabled script that runs.
#[derive(Debug)]
pub(crate) struct ScriptInFlight {
    /// The module whose script it is.
    pub(crate) module: ModuleName,
    /// What it reads. The answer is kept with it, so that it is not asked twice.
    pub(crate) question: Question,
}

/// A hook that runs, or whose output is carried out.
#[derive(Debug)]
pub(crate) struct HookInFlight {
    pub(crate) hook: Arc<Hook>,
    /// The type of binding of its first context.
    pub(crate) binding_type: BindingType,
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

impl Answer {
    /// Returns whether a process runs that can be ended.
    pub(crate) fn is_process(&self) -> bool {
        match self {
            Self::Hook(hook) => matches!(hook.stage, HookStage::Process),
            Self::Script(_) => true,
            Self::Credentials { .. } | Self::Release(_) | Self::Task => false,
        }
    }

    /// Returns whether it can be ended when the operator ends: a process, or a change of a release, which may wait
    /// for a hook of its chart.
    pub(crate) fn can_be_cancelled(&self) -> bool {
        self.is_process() || matches!(self, Self::Release(_))
    }
}

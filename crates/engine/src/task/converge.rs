//! A full pass over all modules: how far it got.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::Trigger;
use crate::configuration::Decision;
use crate::enabled::EnabledModules;
use crate::event::Verdict;
use crate::name::{ModuleName, RunId};
use crate::time::Time;

/// How far a converge got.
///
/// ```text
/// StandBy ─▶ BeforeAll ─▶ Discovering ─▶ Modules ─▶ AfterAll ─▶ done
///                           ▲      │
///                           └ fails┘ every 5 s
/// ```
#[derive(Clone, Debug)]
pub(crate) struct Converge {
    /// Whether all modules run, or only those that something changed for.
    pub(crate) mode: ConvergeMode,
    /// What happens next.
    pub(crate) phase: ConvergePhase,
    /// What its module runs say about themselves.
    pub(crate) event: Trigger,
    /// Whether enabled scripts run that answered the same question before.
    pub(crate) force_scripts: bool,
}

/// Which modules a converge runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ConvergeMode {
    /// These, if no module was switched on or off; otherwise all.
    Changed(BTreeSet<ModuleName>),
    /// All.
    Full,
}

/// What a converge does next.
#[derive(Clone, Debug)]
pub(crate) enum ConvergePhase {
    /// It did not begin.
    StandBy,
    /// Its `beforeAll` hooks are queued before it.
    BeforeAll,
    /// It finds out which modules are on.
    Discovering(Discovery),
    /// The tasks of its modules are queued before it.
    Modules,
    /// Its `afterAll` hooks are queued before it.
    AfterAll {
        /// The global values before the first of them.
        values_before: Arc<Value>,
    },
}

/// How far a discovery got. The modules are asked in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Discovery {
    /// The place of the next module.
    pub(crate) next: usize,
    /// The modules found enabled so far.
    pub(crate) enabled: EnabledModules,
    /// What was found out so far, each with the place of its module.
    pub(crate) decisions: Vec<(usize, Decision)>,
    /// The places of the modules that are asked, ascending; `None` for all.
    pub(crate) places: Option<Vec<usize>>,
    /// Which flags it asks for, as a number.
    pub(crate) edition: u64,
    /// The last run before it; `None` when it did not begin. Later runs of scripts belong to it.
    pub(crate) since: Option<RunId>,
}

/// What an enabled script reads.
#[derive(Clone)]
pub(crate) struct Question {
    /// The global section, its configuration, the module's section, its configuration.
    pub(crate) sections: [Arc<Value>; 4],
    /// The modules found enabled before it.
    pub(crate) enabled: EnabledModules,
    /// A hash of the script itself.
    pub(crate) content: u64,
}

/// What an enabled script said, and to which question.
#[derive(Clone, Debug)]
pub(crate) struct ScriptAnswer {
    /// What it read.
    pub(crate) question: Question,
    /// What it said.
    pub(crate) verdict: Verdict,
    /// The run in which it said so.
    pub(crate) run: RunId,
    pub(crate) at: Time,
}

/// Modules of one order number that run at a time, in queues of their own.
#[derive(Clone, Debug)]
pub(crate) struct ParallelModuleRun {
    /// The modules that did not succeed yet.
    pub(crate) waiting_for: BTreeSet<ModuleName>,
    /// Whether their queues have been filled.
    pub(crate) is_queued: bool,
    /// What their runs say about themselves.
    pub(crate) event: Trigger,
}

impl Converge {
    /// Returns whether it did not begin.
    pub(crate) fn is_unstarted(&self) -> bool {
        matches!(self.phase, ConvergePhase::StandBy)
    }

    /// Makes its discovery start over, with all scripts, if it is at one. Returns whether it is.
    pub(crate) fn restart_discovery(&mut self) -> bool {
        let ConvergePhase::Discovering(discovery) = &mut self.phase else { return false };
        *discovery = Discovery::default();
        self.force_scripts = true;
        true
    }
}

impl PartialEq for Question {
    fn eq(&self, other: &Self) -> bool {
        let mut sections = self.sections.iter().zip(&other.sections);
        self.content == other.content
            && self.enabled == other.enabled
            && sections.all(|(own, its)| Arc::ptr_eq(own, its) || own == its)
    }
}

// Values can hold secrets.
impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Question").field("enabled", &self.enabled).finish_non_exhaustive()
    }
}

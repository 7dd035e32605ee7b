//! What is known about each module.

pub(crate) mod broken_files;
pub(crate) mod delete;
pub(crate) mod events;
pub(crate) mod hook_run;
pub(crate) mod hooks;
pub(crate) mod release;
pub(crate) mod reload;
pub(crate) mod run;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use crate::catalog::Module;
use crate::converge::discovery::Decision;
use crate::event::Verdict;
use crate::failure::Failure;
use crate::module::events::Announced;
use crate::name::{HookName, ModuleName};
use crate::time::Time;

/// A module and everything that the engine remembers about it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, none excludes another")]
pub(crate) struct ModuleState {
    /// Its files, as they are in force.
    pub(crate) spec: Arc<Module>,
    /// Why the files in the catalog are not in force, if they are not.
    pub(crate) broken_version: Option<Failure>,
    /// What the last discovery said; `None` before the first.
    pub(crate) decision: Option<Decision>,
    /// What it is doing.
    pub(crate) phase: Phase,
    /// Why, as it was told last.
    pub(crate) reason: Option<String>,
    /// Since when.
    pub(crate) since: Time,
    /// A run of it began: there may be something to delete when it is switched off.
    pub(crate) is_active: bool,
    /// Its first run is through.
    pub(crate) first_run_done: bool,
    /// The hooks whose `onStartup` ran, with the content that ran.
    pub(crate) started_hooks: BTreeMap<HookName, u64>,
    /// Its crontab lines fire.
    pub(crate) schedules_on: bool,
    /// The content whose CRDs are installed.
    pub(crate) crds_of: Option<u64>,
    /// What is known about its release.
    pub(crate) release: Release,
    /// The objects of its release are watched.
    pub(crate) release_watched: bool,
    /// Why its last run failed, until one succeeds.
    pub(crate) last_error: Option<Arc<Failure>>,
    /// Why its release is left alone, if it is.
    pub(crate) parked: Option<Parked>,
    /// Objects of its release that somebody else changed since the last upgrade.
    pub(crate) changed_objects: BTreeSet<String>,
    /// The last upgrades.
    pub(crate) upgrades: VecDeque<Upgrade>,
    /// What its enabled script said, and to which question.
    pub(crate) script: Option<ScriptAnswer>,
    /// A run of it takes its bindings into service.
    pub(crate) is_synchronizing: bool,
    /// Events were lost while it was off without being removed.
    pub(crate) missed_events: bool,
    /// Effects in flight that nobody waits for any more.
    pub(crate) stale_runs: usize,
    /// What the cluster was told about it.
    pub(crate) announced: Announced,
}

/// What a module is doing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// It is off.
    Disabled,
    /// It is being removed.
    Deleting,
    /// Its last run failed.
    Failed,
    /// Its directory is gone; its release is left alone.
    Orphaned,
    /// Its release is left alone until a person or a change helps.
    Parked,
    /// Its last run succeeded.
    Running,
    /// Its first run did not come to an end yet.
    Starting,
}

/// What is known about a release.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Release {
    /// There is none.
    Absent,
    /// It is there.
    Deployed {
        /// Its revision.
        revision: u32,
        /// A hash of its manifests.
        checksum: u64,
    },
    /// The last attempt to change it failed.
    Broken,
    /// Nobody looked.
    Unknown,
    /// Its module is in maintenance.
    Unmanaged,
}

/// An upgrade that wrote a revision.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Upgrade {
    /// When.
    pub(crate) at: Time,
    /// The outside event that led to it.
    pub(crate) cause: String,
    /// A hash of its manifests.
    pub(crate) checksum: u64,
    /// What it changed first.
    pub(crate) changed: Option<String>,
    /// The values that it was rendered with.
    pub(crate) values: Arc<Value>,
    /// The files that it was rendered from.
    pub(crate) content: u64,
}

impl Upgrade {
    /// Reports whether both were made for the same reason and brought about the same: the same
    /// manifests, or out of the same values and files another value at the same place, as a
    /// chart does that asks for the time or for a random text.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let same_place = self.changed.is_some()
            && self.changed == other.changed
            && self.content == other.content
            && self.values == other.values;
        self.cause == other.cause && (self.checksum == other.checksum || same_place)
    }
}

/// Why a release is left alone, and what ends that.
#[derive(Clone, Debug)]
pub(crate) struct Parked {
    /// Why, in one line.
    pub(crate) why: String,
    /// The values at that time; others end it.
    pub(crate) values: Arc<Value>,
    /// The files at that time; others end it.
    pub(crate) content: u64,
}

/// What an enabled script said, and to which question.
#[derive(Clone, Debug)]
pub(crate) struct ScriptAnswer {
    /// What it read.
    pub(crate) question: Question,
    /// What it said.
    pub(crate) verdict: Verdict,
    /// When.
    pub(crate) at: Time,
}

/// What an enabled script reads.
#[derive(Clone)]
pub(crate) struct Question {
    /// The global section, its configuration, the module's section, its configuration.
    pub(crate) sections: [Arc<Value>; 4],
    /// The modules found enabled before it.
    pub(crate) enabled: Arc<[ModuleName]>,
    /// The script itself.
    pub(crate) content: u64,
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

impl Phase {
    /// Returns the name that pictures use.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Deleting => "deleting",
            Self::Failed => "failed",
            Self::Orphaned => "orphaned",
            Self::Parked => "parked",
            Self::Running => "running",
            Self::Starting => "starting",
        }
    }
}

impl ModuleState {
    /// Returns the state of a module that nothing is known about but its files.
    pub(crate) fn new(spec: Arc<Module>, now: Time) -> Self {
        Self {
            spec,
            broken_version: None,
            decision: None,
            phase: Phase::Disabled,
            reason: None,
            since: now,
            is_active: false,
            first_run_done: false,
            started_hooks: BTreeMap::new(),
            schedules_on: false,
            crds_of: None,
            release: Release::Unknown,
            release_watched: false,
            last_error: None,
            parked: None,
            changed_objects: BTreeSet::new(),
            upgrades: VecDeque::new(),
            script: None,
            is_synchronizing: false,
            missed_events: false,
            stale_runs: 0,
            announced: Announced::default(),
        }
    }

    /// Returns whether the last discovery found the module enabled.
    pub(crate) fn is_on(&self) -> bool {
        self.phase != Phase::Orphaned && self.decision.as_ref().is_some_and(|decision| decision.enabled)
    }

    /// Returns whether its CRDs are not installed as they are now.
    pub(crate) fn needs_crds(&self) -> bool {
        !self.spec.crds.is_empty() && self.crds_of != Some(self.spec.content)
    }

    /// Forgets what a deletion undoes. What is known about release and files stays.
    pub(crate) fn reset(&mut self) {
        self.is_active = false;
        self.first_run_done = false;
        self.started_hooks.clear();
        self.schedules_on = false;
        self.crds_of = None;
        self.last_error = None;
        self.parked = None;
        self.upgrades.clear();
        self.changed_objects.clear();
        self.is_synchronizing = false;
        self.missed_events = false;
    }
}

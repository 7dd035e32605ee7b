//! What is known about one module.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::events::{Announced, Change};
use super::object_readiness::Readiness;
use super::provision::Provision;
use super::release_drift::ReleaseDrift;
use super::release_places::ReleasePlaces;
use crate::addon::Digest;
use crate::catalog::{Hook, Module};
use crate::configuration::{Configuration, Decision};
use crate::drift_settings::DriftMode;
use crate::event::Verdict;
use crate::failure::Failure;
use crate::hook::Lifecycle;
use crate::name::{HookName, RunId};
use crate::package::Package;
use crate::release_target::ReleaseTarget;
use crate::task::{ModuleRun, Question, ScriptAnswer};
use crate::time::Time;

/// A module and everything that the engine remembers about it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, none excludes another")]
pub(crate) struct ModuleState {
    /// Its files, as they are in force.
    pub(super) spec: Arc<Module>,
    /// The bundle whose hooks are in force, if those of its own were not asked yet what they want.
    pub(super) hooks_from: Option<Digest>,
    /// Why the files in the catalog are not in force, if they are not.
    pub(super) broken_version: Option<Failure>,
    /// What the last discovery said; `None` before the first.
    pub(super) decision: Option<Decision>,
    /// What it is doing.
    pub(super) phase: Phase,
    /// Why, as it was reported last.
    pub(super) reason: Option<String>,
    /// Since when.
    pub(super) since: Time,
    /// A run of it began, or its removal: there may be something to delete when it is off.
    pub(super) is_active: bool,
    /// A process before this one may have run it: it was there when this one began, or was registered and its bundle not there.
    pub(super) may_have_run: bool,
    /// Its directory is gone, and nothing of it had begun: all that may be left is a release from before this start.
    pub(super) never_began: bool,
    /// Its first run is through.
    pub(super) first_run_done: bool,
    /// How it is being removed, if it is.
    pub(super) leaving: Option<Leaving>,
    /// When its removal began or had to wait first, if it is to be removed. A converge that begins anew has another task for it.
    pub(super) removal_since: Option<Time>,
    /// What its removal waits for, for people.
    pub(super) removal_waits: Option<String>,
    /// The content of its last run that succeeded.
    pub(super) ran: Option<u64>,
    /// The hooks whose `onStartup` ran, with the content that ran.
    pub(super) started_hooks: BTreeMap<HookName, u64>,
    /// Its crontab lines fire.
    pub(super) schedules_on: bool,
    /// The content whose CRDs are installed.
    pub(super) crds_of: Option<u64>,
    /// What is known about its release.
    pub(super) release: Release,
    /// Whether its objects are ready.
    pub(super) readiness: Readiness,
    /// Where its release is.
    pub(super) places: ReleasePlaces,
    /// The objects of its release are watched.
    pub(super) release_watched: bool,
    /// There is no Secret with credentials of its release: it was looked for.
    pub(super) has_no_credentials: bool,
    /// Why its last run failed, until one succeeds or waits behind what failed.
    pub(super) last_error: Option<Arc<Failure>>,
    /// How far that run had got.
    pub(super) failed_at: (u8, usize),
    /// Its run waits behind what failed before.
    pub(super) is_past_failure: bool,
    /// Why its release is left alone, if it is.
    pub(super) parked: Option<Parked>,
    /// What others did to the objects of its release.
    pub(super) drift: ReleaseDrift,
    /// The last upgrades.
    pub(super) upgrades: VecDeque<Upgrade>,
    /// What its enabled script said, and to which question.
    pub(super) script: Option<ScriptAnswer>,
    /// A run of it is at its Synchronizations.
    pub(super) is_synchronizing: bool,
    /// Events were lost while it was off without being removed.
    pub(super) missed_events: bool,
    /// Its bundle is another one than that which ran last.
    pub(super) is_reloaded: bool,
    /// The Kubernetes Events about it.
    pub(super) announced: Announced,
    /// How many runs failed since it has its package and its bundle, without a success between them.
    pub(super) package_failures: u32,
    /// Whether a run succeeded since it has its package and its bundle.
    pub(super) is_package_good: bool,
    /// The package with which its release was written last.
    pub(super) written_package: Option<Arc<Package>>,
    /// Where the charts come from that its own chart needs, in their order.
    pub(super) provisions: Vec<Provision>,
    /// Whether its package could not be read.
    pub(super) is_package_lost: bool,
}

/// What a module is doing.
#[derive(Clone, Copy, Debug, Eq, strum::IntoStaticStr, PartialEq)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Phase {
    /// It is off.
    Disabled,
    /// It is being removed.
    Deleting,
    /// Its last run failed.
    Failed,
    /// It is on, and its chart was never found: it is neither run nor removed.
    Held,
    /// Its directory is gone; its release is left alone.
    Orphaned,
    /// Its release is left alone until a person or a change helps.
    Parked,
    /// Its last run succeeded.
    Running,
    /// Its first run did not come to an end yet.
    Starting,
    /// It is on, and what it requires is not there: it does not run as its files are now.
    Waiting,
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
    /// It was not looked for.
    Unknown,
    /// Its module is in maintenance.
    Unmanaged,
}

/// An upgrade that wrote a revision.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Upgrade {
    pub(super) at: Time,
    /// The outside event that led to it.
    pub(super) cause: String,
    /// A hash of its manifests.
    pub(super) checksum: u64,
    /// What it changed first.
    pub(super) changed: Option<String>,
    /// The values that it was rendered with: the global section, and that of its module.
    pub(super) values: [Arc<Value>; 2],
    /// The files that it was rendered from.
    pub(super) content: u64,
}

impl Upgrade {
    /// Reports whether both were rendered from the same values and files.
    pub(super) fn is_of_same_input(&self, other: &Self) -> bool {
        self.content == other.content && self.values == other.values
    }

    /// Reports whether both, of the same values and files, were made for the same reason and brought about the same: the
    /// same manifests, or another value at the same place, as a chart does that asks for the time or for a random text.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let same_place = self.changed.is_some() && self.changed == other.changed;
        self.cause == other.cause && (self.checksum == other.checksum || same_place)
    }
}

/// Why a release is left alone, and what ends that.
#[derive(Clone, Debug)]
pub(crate) struct Parked {
    /// Why, in one line.
    pub(super) why: String,
    /// What the chart read at that time: the global section, and that of its module; others end it.
    pub(super) values: [Arc<Value>; 2],
    /// The files at that time; others end it.
    pub(super) content: u64,
    /// Whether the module does not run at all, not only its release.
    pub(super) stops_runs: bool,
}

impl Phase {
    /// Returns the name that pictures use.
    pub(crate) fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns what a person wants to hear of the step to `next`, if anything.
    ///
    /// Modules that are on from the beginning, and do what they did, are no news.
    pub(super) fn change_to(self, next: Self) -> Option<Change> {
        match next {
            Self::Deleting => Some(Change::Disabled),
            Self::Failed => Some(Change::Failed),
            Self::Orphaned => Some(Change::Orphaned),
            Self::Parked => Some(Change::Parked),
            Self::Running => (self == Self::Failed).then_some(Change::Recovered),
            Self::Disabled | Self::Held | Self::Starting | Self::Waiting => None,
        }
    }
}

/// How a module is being removed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    /// Whether a run of it in this process has prepared what its hooks read.
    pub(super) was_ready: bool,
}

impl ModuleState {
    /// Returns the state of a module that nothing is known about but its files.
    pub(crate) fn new(spec: Arc<Module>, now: Time) -> Self {
        let provisions = vec![Provision::Unknown; spec.dependencies.named.len()];
        Self {
            spec,
            provisions,
            hooks_from: None,
            broken_version: None,
            decision: None,
            phase: Phase::Disabled,
            reason: None,
            since: now,
            is_active: false,
            may_have_run: false,
            never_began: false,
            first_run_done: false,
            leaving: None,
            removal_since: None,
            ran: None,
            started_hooks: BTreeMap::new(),
            schedules_on: false,
            crds_of: None,
            release: Release::Unknown,
            readiness: Readiness::default(),
            places: ReleasePlaces::default(),
            release_watched: false,
            has_no_credentials: false,
            removal_waits: None,
            last_error: None,
            failed_at: (0, 0),
            is_past_failure: false,
            parked: None,
            drift: ReleaseDrift::default(),
            upgrades: VecDeque::new(),
            script: None,
            is_synchronizing: false,
            missed_events: false,
            is_reloaded: false,
            announced: Announced::default(),
            package_failures: 0,
            is_package_good: false,
            written_package: None,
            is_package_lost: false,
        }
    }

    /// Returns what it is doing.
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns whether a discovery said whether it is on.
    pub(crate) fn is_decided(&self) -> bool {
        self.decision.is_some()
    }

    /// Returns the run of it that comes next.
    pub(crate) fn next_run(&self) -> ModuleRun {
        ModuleRun::new(self.spec.name.clone(), !self.first_run_done).reloading(self.is_reloaded)
    }

    /// Returns whether the last discovery found the module enabled.
    pub(crate) fn is_on(&self) -> bool {
        self.phase != Phase::Orphaned && self.decision.as_ref().is_some_and(|decision| decision.enabled)
    }

    /// Returns whether the module is on, or no discovery has said yet that it is not.
    pub(crate) fn may_be_on(&self) -> bool {
        self.phase != Phase::Orphaned && self.decision.as_ref().is_none_or(|decision| decision.enabled)
    }

    /// Returns whether objects of its release that somebody changes are put right. In maintenance they are left alone.
    pub(crate) fn is_enforced(&self, configuration: &Configuration) -> bool {
        self.spec.settings.drift.mode == DriftMode::Enforce
            && !configuration.is_in_maintenance(&self.spec.key)
    }

    /// Returns whether it names a chart that was never found, or whose package is lost. It is on, and does not run.
    pub(crate) fn is_held(&self) -> bool {
        let lacks_package =
            self.spec.chart.is_some() && (self.spec.package.is_none() || self.is_package_lost);
        lacks_package || self.provisions.iter().any(|provision| !provision.is_settled())
    }

    /// Returns whether it is on and can run.
    pub(crate) fn can_run(&self) -> bool {
        self.is_on() && !self.is_held() && self.phase != Phase::Waiting
    }

    /// Records that the list of releases has one of this module, which is on or orphaned. If it is switched off before it ran
    /// once, that has to be removed all the same.
    pub(super) fn release_found(&mut self, target: &ReleaseTarget, wanted: &ReleaseTarget) {
        self.places.found(target, wanted);
        self.is_active |= self.is_on() && self.release == Release::Unknown;
    }

    /// Returns whether it is on record that nothing of it was released, and nobody has seen otherwise.
    pub(super) fn has_no_release(&self, configuration: &Configuration) -> bool {
        configuration.is_unreleased(&self.spec.name) && self.places.next().is_none()
    }

    /// Returns whether there may be a release of it. Files without a chart make none, but those before them may have made one.
    pub(super) fn may_have_release(&self) -> bool {
        match self.release {
            Release::Absent => false,
            Release::Unknown => self.spec.has_chart,
            Release::Broken | Release::Deployed { .. } | Release::Unmanaged => true,
        }
    }

    /// Returns whether there may be a release of it to remove, here or where it was before.
    pub(super) fn may_leave_release(&self, configuration: &Configuration) -> bool {
        self.may_have_release() && !self.has_no_release(configuration) || self.places.next().is_some()
    }

    /// Returns whether it is to have no release while it is on: its bundle has no chart. Of a directory that is not said, since it may
    /// be about to be written. In maintenance what there is is left alone.
    pub(super) fn wants_no_release(&self, configuration: &Configuration) -> bool {
        let is_chartless = !self.spec.has_chart && self.spec.origin.digest().is_some();
        is_chartless && !configuration.is_in_maintenance(&self.spec.key)
    }

    /// Returns whether its release is to be removed while it is on: the bundle before the one in force had a chart.
    pub(super) fn drops_release(&self, configuration: &Configuration) -> bool {
        self.places.next().is_some() && self.wants_no_release(configuration)
    }

    /// Returns its files, as they are in force.
    pub(crate) fn spec(&self) -> &Arc<Module> {
        &self.spec
    }

    /// Returns whether there may be something to delete when it is off: a run of it began, or its removal.
    pub(crate) fn is_active(&self) -> bool {
        self.is_active
    }

    /// Returns whether its first run is through.
    pub(crate) fn first_run_done(&self) -> bool {
        self.first_run_done
    }

    /// Returns what its enabled script said to this question, if it was asked after the run `since`.
    pub(crate) fn answer_to(&self, question: &Question, since: Option<RunId>) -> Option<&Verdict> {
        let is_new = |answer: &&ScriptAnswer| since.is_none_or(|since| answer.run > since);
        let answer = self.script.as_ref().filter(is_new).filter(|answer| answer.question == *question)?;
        Some(&answer.verdict)
    }

    /// Returns the next hook whose `onStartup` did not run as it is now.
    pub(super) fn next_startup(&self) -> Option<Arc<Hook>> {
        let started = |hook: &Hook| self.started_hooks.get(&hook.id.name) == Some(&hook.content);
        hooks_at(&self.spec, Lifecycle::OnStartup).into_iter().find(|hook| !started(hook)).cloned()
    }

    /// Returns whether its CRDs are not installed as they are now.
    pub(crate) fn needs_crds(&self) -> bool {
        let has_crds = !self.spec.crds.is_empty() || self.spec.package.is_some();
        has_crds && self.crds_of != Some(self.spec.content)
    }

    /// Returns whether its CRDs could not be written, and it does not run with its files because of that.
    pub(crate) fn lacks_crds(&self) -> bool {
        self.last_error.is_some() && self.needs_crds()
    }

    /// Forgets what a deletion undoes. What is known about release and files stays.
    pub(super) fn reset(&mut self) {
        self.is_active = false;
        self.may_have_run = false;
        self.first_run_done = false;
        self.leaving = None;
        self.removal_since = None;
        self.ran = None;
        self.started_hooks.clear();
        self.schedules_on = false;
        self.crds_of = None;
        self.last_error = None;
        self.is_past_failure = false;
        self.parked = None;
        self.upgrades.clear();
        self.drift.clear();
        self.is_synchronizing = false;
        self.missed_events = false;
        self.is_reloaded = false;
    }
}

/// Returns the hooks of a module that run at `point`, in their order.
pub(super) fn hooks_at(module: &Module, point: Lifecycle) -> Vec<&Arc<Hook>> {
    let mut hooks: Vec<_> =
        module.hooks.iter().filter_map(|hook| Some((hook.spec.order(point)?, &hook.id.name, hook))).collect();
    hooks.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    hooks.into_iter().map(|(_, _, hook)| hook).collect()
}

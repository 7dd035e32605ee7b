//! How far an instance is with what was asked last: the keys that are written, then what its module does.

use std::time::Duration;

use super::instances::{Entry, Instance, State};
use super::offers::PATIENCE_SECONDS;
use crate::config_object::ConfigText;
use crate::configuration::Configuration;
use crate::effect::{Basis, Effect};
use crate::failure::Failure;
use crate::module::{Lower, Modules, Phase};
use crate::name::RunId;
use crate::time::Time;

/// How long a write may take to come back.
const RETURN: Duration = Duration::from_secs(30);

/// How long a module may stay off that was switched on, or on that was switched off.
const SWITCH: Duration = Duration::from_mins(2);

/// How many runs of a module in a row fail before its instance has failed. The module is tried further.
const FAILED_RUNS: u32 = 3;

/// How many writes in a row fail before an operation has.
const FAILED_WRITES: u32 = 5;

/// What is done for an instance.
#[derive(Debug)]
pub(super) struct Operation {
    stage: Stage,
    begun: Time,
    /// Why it has failed, if it has.
    failure: Option<String>,
    /// Whether that was told.
    is_told: bool,
    /// The runs of the module that failed since the last one that did not.
    failed_runs: u32,
    failed_writes: u32,
    /// Since when the module is on or off against what it should be.
    unswitched_since: Option<Time>,
}

#[derive(Debug)]
enum Stage {
    /// The next key is looked for.
    Deciding,
    /// A key is being written.
    Writing(RunId, Box<Entry>),
    /// It was written, and is read again.
    Seeing(Box<Entry>, Time),
    /// It could not be written, and is tried again then.
    Retrying(Time),
    /// Nothing more is done until it is asked again.
    Ended,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of the {}", self.key, self.object)
    }
}

/// What an operation comes to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Progress {
    /// It goes on.
    Going,
    /// All of it is done.
    Done,
}

impl Operation {
    /// Returns an operation that begins now.
    pub(super) fn new(now: Time) -> Self {
        Self {
            stage: Stage::Deciding,
            begun: now,
            failure: None,
            is_told: false,
            failed_runs: 0,
            failed_writes: 0,
            unswitched_since: None,
        }
    }

    /// Returns why it has failed, if it has.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Returns why it has failed, the first time that it is asked.
    pub(super) fn news(&mut self) -> Option<&str> {
        let failure = self.failure.as_deref().filter(|_| !self.is_told)?;
        self.is_told = true;
        Some(failure)
    }

    /// Returns whether it is under way.
    pub(super) fn is_going(&self) -> bool {
        self.failure.is_none()
    }

    /// Returns whether a write is for it.
    pub(super) fn awaits(&self, run: RunId) -> bool {
        matches!(self.stage, Stage::Writing(its, _) if its == run)
    }

    /// Returns whether nothing of it is in flight.
    pub(super) fn is_at_rest(&self) -> bool {
        !matches!(self.stage, Stage::Writing(..))
    }

    /// Records that a run of the module failed.
    pub(super) fn run_failed(&mut self) {
        self.failed_runs = self.failed_runs.saturating_add(1);
    }

    /// Records that a key was written, or was not.
    pub(super) fn written(&mut self, now: Time, outcome: Result<(), Failure>, retry_delay: Duration) {
        let Stage::Writing(_, entry) = std::mem::replace(&mut self.stage, Stage::Deciding) else { return };
        match outcome {
            Ok(()) => {
                self.failed_writes = 0;
                self.stage = Stage::Seeing(entry, now + RETURN);
            }
            Err(failure) => {
                self.failed_writes += 1;
                if self.failed_writes >= FAILED_WRITES {
                    self.fail(format!("{entry:?} can't be written: {}", failure.for_everybody().message));
                } else {
                    self.stage = Stage::Retrying(now + retry_delay);
                }
            }
        }
    }

    fn fail(&mut self, why: String) {
        self.failure = Some(why);
        self.stage = Stage::Ended;
    }

    /// Returns when there is something to do by itself.
    pub(super) fn next_wakeup(&self) -> Option<Time> {
        if self.failure.is_some() {
            return None;
        }
        let of_stage = match &self.stage {
            Stage::Deciding | Stage::Writing(..) | Stage::Ended => None,
            Stage::Seeing(_, at) | Stage::Retrying(at) => Some(*at),
        };
        let switch = self.unswitched_since.map(|since| since + SWITCH);
        let end = self.begun + Duration::from_secs(PATIENCE_SECONDS);
        of_stage.into_iter().chain(switch).chain([end]).min()
    }

    /// Does the next step. `is_converged` says whether it is known which modules are off.
    pub(super) fn advance(
        &mut self,
        instance: &Instance,
        modules: &Modules,
        lower: &mut Lower<'_>,
        is_converged: bool,
    ) -> Progress {
        let now = lower.cx.now;
        let is_said = |configuration: &Configuration, entry: &Entry| {
            configuration.text_of(entry.object, &entry.key) == entry.text.as_deref()
        };
        match &self.stage {
            Stage::Seeing(entry, until) => {
                if !is_said(lower.configuration, entry) {
                    if now >= *until {
                        let why = format!("somebody else changed {entry:?}; ask for the instance once more");
                        self.fail(why);
                    }
                    return Progress::Going;
                }
                self.stage = Stage::Deciding;
            }
            Stage::Retrying(at) if now >= *at => self.stage = Stage::Deciding,
            Stage::Deciding => {}
            // A module that recovers is what was asked for, after all.
            Stage::Ended if instance.state == State::Provisioning => {}
            Stage::Writing(..) | Stage::Retrying(_) | Stage::Ended => return Progress::Going,
        }
        let (entries, is_off) = match instance.state {
            State::Provisioned => return Progress::Going,
            State::Provisioning => (instance.entries(), false),
            State::Deprovisioning => {
                let flag = instance.flag(false);
                let is_said = is_said(lower.configuration, &flag);
                let is_off = is_said && is_converged && is_off(modules, lower, instance);
                let leftovers = if is_off { instance.leftovers() } else { Vec::new() };
                (std::iter::once(flag).chain(leftovers).collect(), is_off)
            }
        };
        let next = entries.into_iter().find(|entry| !is_said(lower.configuration, entry));
        match next {
            Some(_) if matches!(self.stage, Stage::Ended) => Progress::Going,
            Some(entry) => {
                self.write(entry, lower);
                Progress::Going
            }
            None if is_off => Progress::Done,
            None => self.judge(instance, modules, lower),
        }
    }

    fn write(&mut self, entry: Entry, lower: &mut Lower<'_>) {
        let run = lower.cx.ids.run();
        // What a person wrote meanwhile is not overwritten.
        let basis = if entry.is_ours { Basis::Nothing } else { Basis::Text(None) };
        lower.cx.push(Effect::SaveConfigValues {
            run,
            object: entry.object,
            key: entry.key.clone(),
            text: entry.text.clone().map(ConfigText),
            basis,
        });
        self.stage = Stage::Writing(run, Box::new(entry));
    }

    /// Looks what the module does with what it was told.
    fn judge(&mut self, instance: &Instance, modules: &Modules, lower: &Lower<'_>) -> Progress {
        let (now, name) = (lower.cx.now, &instance.module);
        let is_wanted = instance.state == State::Provisioning;
        let Some(module) = modules.get(name) else {
            if !is_wanted {
                return Progress::Done;
            }
            self.fail(format!("there is no module {name} any more: its addon is not registered"));
            return Progress::Going;
        };
        if module.is_on() == is_wanted {
            self.unswitched_since = None;
        }
        if is_wanted && module.is_on() {
            if module.phase() == Phase::Running && !lower.queues.is_pending(name) {
                return Progress::Done;
            }
            if module.phase() == Phase::Parked || self.failed_runs >= FAILED_RUNS {
                self.fail(failed(modules, instance));
            }
        } else if module.is_on() != is_wanted {
            let since = *self.unswitched_since.get_or_insert(now);
            if now.since(since) >= SWITCH {
                let word = if is_wanted { "off" } else { "on" };
                let why = modules.why_off(name);
                let why = if is_wanted {
                    why.message
                } else {
                    format!("`addon-operator why module {name}` says why")
                };
                self.fail(format!("module {name} stays {word}: {why}"));
            }
        }
        if self.failure.is_none() && now.since(self.begun) >= Duration::from_secs(PATIENCE_SECONDS) {
            let phase = module.phase().as_str();
            self.fail(format!("module {name} is {phase} after {PATIENCE_SECONDS} s"));
        }
        Progress::Going
    }
}

/// Returns whether nothing of a module runs.
fn is_off(modules: &Modules, lower: &Lower<'_>, instance: &Instance) -> bool {
    let Some(module) = modules.get(&instance.module) else { return true };
    module.is_decided()
        && !module.is_on()
        && !module.is_active()
        && module.phase() != Phase::Deleting
        && !lower.queues.is_pending(&instance.module)
}

fn failed(modules: &Modules, instance: &Instance) -> String {
    let why = modules.error_of(&instance.module).unwrap_or_default();
    format!("module {} fails: {why}", instance.module)
}

//! What is known about one configuration: its object, the work on it, and what the last pass found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::object::SourceObject;
use super::pass::{Pass, SourceAnswer};
use super::status::{SourcePhase, Status};
use crate::addon::SourceKey;
use crate::failure::Failure;
use crate::name::ModuleName;
use crate::notice::TaskType;
use crate::reconcile::WorkKey;
use crate::time::Time;

/// How many changes of a status by others within [`QUARREL_TIME`] are one too many.
const QUARREL: usize = 2;
const QUARREL_TIME: std::time::Duration = std::time::Duration::from_mins(1);

/// What is known about one configuration.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, none excludes another")]
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Its object; `None` when that is gone.
    pub(super) object: Option<SourceObject>,
    pub(super) pass: Pass,
    /// The answer to the effect of its pass.
    pub(super) answer: Option<SourceAnswer>,
    pub(super) decided: Option<Arc<Decided>>,
    /// Whether what was decided is what the object said at the start.
    pub(super) is_adopted: bool,
    /// Whether it is processed again although it is decided.
    pub(super) is_doubted: bool,
    /// When its finalizer was written last.
    pub(super) finalized_at: Option<Time>,
    /// What it waits for before it is processed, in words: configurations that it depends on.
    pub(super) waits_for: Option<String>,
    /// When it is processed again by itself.
    pub(super) process_at: Option<Time>,
    /// How many times in a row something of it could not be fetched.
    pub(super) unfetched: u32,
    /// The status that it is to have.
    pub(super) desired: Option<Status>,
    /// Whether its object has had that status since it was written.
    pub(super) is_written: bool,
    /// When others changed the status.
    pub(super) quarrels: Vec<Time>,
    /// The generation at which the status is left to others.
    pub(super) left_alone_at: Option<i64>,
    /// The configurations to bump that failed because of it.
    pub(super) bumps: BTreeSet<SourceKey>,
    /// Why its deletion could not begin, while that is being told.
    pub(super) hanging: Option<Failure>,
    /// The modules whose removal it waits for, if it waits for any, each with what that waits for.
    pub(super) removing: Option<BTreeMap<ModuleName, Option<String>>>,
    /// Why a removal failed, as it was announced last.
    pub(super) announced_removal: Option<String>,
    /// Whether those that failed were chosen as it is deleted.
    pub(super) is_bumped: bool,
    /// The phase that was announced, or that it had when it was seen first.
    pub(super) announced: Option<SourcePhase>,
    /// Whether its end was announced.
    pub(super) is_end_announced: bool,
}

/// What the last complete pass found.
#[derive(Debug, Default)]
pub(super) struct Decided {
    pub(super) generation: i64,
    /// The time of day when it ended.
    pub(super) processed_at: String,
    /// Its status, but for the states of modules.
    pub(super) status: Status,
    pub(super) blocked_by: BTreeSet<SourceKey>,
    /// The ids of what it offers.
    pub(super) offered: BTreeSet<String>,
    /// The repositories that may offer more, for all that is known, as the spec names them.
    pub(super) unread: BTreeSet<String>,
}

/// The work on a configuration.
pub(super) fn work_key(key: &SourceKey) -> WorkKey {
    let (namespace, name) = (Arc::clone(&key.namespace), Arc::clone(&key.name));
    WorkKey { task: TaskType::AddonsReconcile, controller: key.kind.as_str(), namespace, name }
}

impl Source {
    /// Returns whether its object is there and is not being deleted.
    pub(super) fn is_there(&self) -> bool {
        self.object.as_ref().is_some_and(|object| !object.is_deleting)
    }

    /// Returns whether its last pass was for the object as it is.
    pub(super) fn is_decided(&self) -> bool {
        let generation = self.object.as_ref().map(|object| object.generation);
        self.decided.as_ref().is_some_and(|decided| Some(decided.generation) == generation)
    }

    /// Returns whether nothing is done for its object until it is deleted.
    pub(super) fn is_suspended(&self) -> bool {
        self.object.as_ref().is_some_and(|object| object.spec.is_suspended && !object.is_deleting)
    }

    /// Returns whether its object is not processed now: it is suspended, or waits for others.
    pub(super) fn is_held_back(&self) -> bool {
        self.is_suspended() || self.waits_for.is_some()
    }

    /// Returns whether others that depend on it may be processed.
    pub(super) fn is_ready(&self) -> bool {
        let is_now = self.is_decided() || self.is_suspended();
        self.is_there() && is_now && self.phase() == SourcePhase::Ready
    }

    /// Returns whether the last pass was for the object as it is, and it is not time for another one.
    pub(super) fn is_settled(&self, now: Time) -> bool {
        self.is_decided() && !self.is_doubted && self.process_at.is_none_or(|at| at > now)
    }

    /// Returns whether it is only looked at again: it is ready as it is, and nobody asked for anything.
    pub(super) fn is_refresh(&self) -> bool {
        self.is_decided() && !self.is_doubted && self.phase() == SourcePhase::Ready
    }

    /// Returns when its finalizer may be written, if not yet: somebody who removes it again and again gets no faster answer.
    pub(super) fn finalizer_at(&self, now: Time) -> Option<Time> {
        self.finalized_at.map(|at| at + QUARREL_TIME).filter(|at| *at > now)
    }

    /// Returns how far it is.
    pub(super) fn phase(&self) -> SourcePhase {
        let said = self.object.as_ref().map(|object| object.status.phase).unwrap_or_default();
        self.decided.as_ref().map_or(said, |decided| decided.status.phase)
    }

    /// Returns what it does, in a few words, for those that wait for it.
    pub(super) fn state(&self) -> &'static str {
        match self.phase() {
            _ if !self.is_there() => "being deleted",
            _ if self.is_suspended() => "suspended",
            SourcePhase::Failed if self.is_decided() => "Failed",
            SourcePhase::Failed | SourcePhase::None | SourcePhase::Pending | SourcePhase::Ready => {
                "not Ready yet"
            }
        }
    }

    /// Returns whether others write its status, so that we do not.
    pub(super) fn is_left_alone(&self) -> bool {
        self.left_alone_at.is_some()
            && self.left_alone_at == self.object.as_ref().map(|object| object.generation)
    }

    /// Records an object that says what is fine already as decided, unless what it says `is_so` not: nothing is asked, nothing is
    /// written. Returns whether it was.
    pub(super) fn adopt(&mut self, is_so: impl FnOnce(&Status) -> bool) -> bool {
        let Some(object) = self.object.as_ref().filter(|_| self.decided.is_none()) else { return false };
        let status = &object.status;
        if matches!(status.phase, SourcePhase::Ready | SourcePhase::Failed) {
            // An operator that ran before said so.
            self.announced.get_or_insert(status.phase);
        }
        let is_current = status.observed_generation == object.generation || object.spec.is_suspended;
        if status.phase != SourcePhase::Ready || !is_current {
            return false;
        }
        let status = status.without_retained();
        if !is_so(&status) {
            return false;
        }
        let offered = object.status.addons().map(|addon| addon.id.clone()).collect();
        let processed_at = object.processed_at.clone();
        let generation = status.observed_generation;
        let decided = Decided { generation, processed_at, status, offered, ..Decided::default() };
        self.decided = Some(Arc::new(decided));
        self.desired = Some(object.status.clone());
        self.is_adopted = true;
        true
    }

    /// Looks whether others changed the status that we wrote. Returns whether that is once too often, which is told once.
    pub(super) fn quarrels(&mut self, now: Time) -> bool {
        let Some(object) = &self.object else { return false };
        if self.desired.as_ref() == Some(&object.status) {
            self.is_written = true;
            return false;
        }
        if !std::mem::replace(&mut self.is_written, false) || !self.is_decided() {
            return false;
        }
        self.quarrels.retain(|at| now.since(*at) < QUARREL_TIME);
        self.quarrels.push(now);
        let is_over = self.quarrels.len() >= QUARREL && !self.is_left_alone();
        if is_over {
            self.left_alone_at = self.object.as_ref().map(|object| object.generation);
        }
        is_over
    }

    /// Returns whether there is something to do about the object as it is.
    pub(super) fn has_work(&self) -> bool {
        let Some(object) = &self.object else { return false };
        if object.is_deleting {
            return object.has_finalizer();
        }
        let is_as_wanted = self.desired.as_ref() == Some(&object.status) && object.has_finalizer();
        !self.is_decided() || self.is_doubted || (!self.is_left_alone() && !is_as_wanted)
    }
}

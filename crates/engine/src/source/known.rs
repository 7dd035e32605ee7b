//! What is known about one configuration: its object, the work on it, and what the last pass found.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::object::SourceObject;
use super::pass::{Pass, SourceAnswer};
use super::status::{SourcePhase, Status};
use crate::addon::SourceKey;
use crate::reconcile::WorkKey;
use crate::time::Time;

/// How many changes of a status by others within [`QUARREL_TIME`] are one too many.
const QUARREL: usize = 2;
const QUARREL_TIME: std::time::Duration = std::time::Duration::from_mins(1);

/// What is known about one configuration.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Its object; `None` when that is gone.
    pub(super) object: Option<SourceObject>,
    pub(super) pass: Pass,
    /// The answer to the effect of its pass.
    pub(super) answer: Option<SourceAnswer>,
    pub(super) decided: Option<Decided>,
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
}

/// The work on a configuration.
pub(super) fn work_key(key: &SourceKey) -> WorkKey {
    let (namespace, name) = (Arc::clone(&key.namespace), Arc::clone(&key.name));
    WorkKey { controller: key.kind.as_str(), namespace, name }
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

    /// Returns how far it is.
    pub(super) fn phase(&self) -> SourcePhase {
        let said = self.object.as_ref().map(|object| object.status.phase).unwrap_or_default();
        self.decided.as_ref().map_or(said, |decided| decided.status.phase)
    }

    /// Returns whether others write its status, so that we do not.
    pub(super) fn is_left_alone(&self) -> bool {
        self.left_alone_at.is_some()
            && self.left_alone_at == self.object.as_ref().map(|object| object.generation)
    }

    /// Records an object that says what is fine already as decided: nothing is asked, nothing is written.
    pub(super) fn adopt(&mut self) {
        let Some(object) = self.object.as_ref().filter(|_| self.decided.is_none()) else { return };
        let status = &object.status;
        if matches!(status.phase, SourcePhase::Ready | SourcePhase::Failed) {
            // An operator that ran before said so.
            self.announced.get_or_insert(status.phase);
        }
        if status.phase == SourcePhase::Ready && status.observed_generation == object.generation {
            let offered = status.addons().map(|addon| addon.id.clone()).collect();
            let status = status.without_retained();
            let processed_at = object.processed_at.clone();
            let generation = object.generation;
            self.decided = Some(Decided { generation, processed_at, status, offered, ..Decided::default() });
            self.desired = Some(object.status.clone());
        }
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
        !self.is_decided() || (!self.is_left_alone() && self.desired.as_ref() != Some(&object.status))
    }
}

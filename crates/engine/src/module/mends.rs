//! The objects of releases that are to be put right: when, and how many at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::name::{ModuleName, RunId};
use crate::time::Time;

/// How many objects are put right at the same time.
const AT_ONCE: usize = 4;

/// A module and one of its objects: `namespace/Kind/name`.
pub(super) type MendKey = (ModuleName, Arc<str>);

/// The mends that wait, and those under way.
#[derive(Debug, Default)]
pub(super) struct Mends {
    due: BTreeSet<(Time, MendKey)>,
    waiting: BTreeMap<MendKey, Time>,
    pub(super) running: BTreeMap<RunId, MendKey>,
}

impl Mends {
    /// Has an object put right at a time, and at no other.
    pub(super) fn put(&mut self, at: Time, key: MendKey) {
        if let Some(before) = self.waiting.insert(key.clone(), at) {
            self.due.remove(&(before, key.clone()));
        }
        self.due.insert((at, key));
    }

    /// Returns an object whose turn it is.
    pub(super) fn take_due(&mut self, now: Time) -> Option<MendKey> {
        if self.running.len() >= AT_ONCE || self.due.first().is_none_or(|(at, _)| *at > now) {
            return None;
        }
        let (_, key) = self.due.pop_first()?;
        self.waiting.remove(&key);
        Some(key)
    }

    /// Returns whether an object is to be put right: it waits for that, or it is under way.
    pub(super) fn is_asked(&self, key: &MendKey) -> bool {
        self.waiting.contains_key(key) || self.running.values().any(|running| running == key)
    }

    /// Returns when the next one is due.
    pub(super) fn next_wakeup(&self) -> Option<Time> {
        self.due.first().filter(|_| self.running.len() < AT_ONCE).map(|(at, _)| *at)
    }
}

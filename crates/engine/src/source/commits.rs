//! Which version of what is registered is in force.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::registration::Registration;
use crate::addon::{Digest, RegisteredAddon, Registry, SourceKey};
use crate::name::{ModuleName, RunId};
use crate::queue::Queues;
use crate::time::Time;

/// What was loaded.
#[derive(Debug)]
pub(crate) struct Commit {
    /// Its number.
    pub(super) version: u64,
    /// What it was made from.
    pub(crate) registry: Arc<Registry>,
    /// The bundle of each module before it.
    pub(super) before: BTreeMap<ModuleName, Digest>,
}

/// Which version of what is registered is in force.
#[derive(Debug, Default)]
pub(super) struct Commits {
    pub(super) wanted: u64,
    pub(super) in_force: u64,
    /// Whether a task for it is in `main`.
    pub(super) is_queued: bool,
    pub(super) loading: Option<(u64, Arc<Registry>)>,
    /// When it is tried again, if it failed. Meanwhile `main` goes on.
    pub(super) retry_at: Option<Time>,
    /// What began to run from bundles that are not in force any more.
    pub(super) old_runs: BTreeSet<RunId>,
    /// Whether a bundle that was lost is there again: what is registered is loaded once more.
    has_restored: bool,
    /// Whether there may be bundles that nobody needs.
    pub(super) has_unused: bool,
    pub(super) dropping: Option<RunId>,
}

impl Commits {
    pub(super) fn wanted(&self) -> u64 {
        self.wanted
    }

    pub(super) fn in_force(&self) -> u64 {
        self.in_force
    }

    /// Records that there may be bundles that nobody needs: an operator that was killed had no time to remove them.
    pub(super) fn doubt_bundles(&mut self) {
        self.has_unused = true;
    }

    /// Returns whether bundles are being removed.
    pub(super) fn is_dropping(&self) -> bool {
        self.dropping.is_some()
    }

    /// Records that a bundle is there again that was lost.
    pub(super) fn restored(&mut self) {
        self.has_restored = true;
    }

    /// Returns whether a bundle is there again that was lost, and was not written to the cluster yet.
    pub(super) fn has_restored(&self) -> bool {
        self.has_restored
    }

    /// Forgets those runs from old bundles that have ended.
    pub(super) fn forget_ended_runs(&mut self, queues: &Queues) {
        self.old_runs.retain(|run| queues.running(*run).is_some());
    }

    /// Returns whether something runs from a bundle that is not in force any more.
    pub(super) fn has_old_runs(&self) -> bool {
        !self.old_runs.is_empty()
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.dropping.is_none()
    }

    pub(super) fn next_wakeup(&self) -> Option<Time> {
        self.retry_at
    }

    /// Records that another registry is written, in which `changed` differ, and whether it leaves a bundle unused.
    pub(super) fn registered(
        &mut self,
        old: &Registration,
        new: &Registration,
        changed: &BTreeSet<&SourceKey>,
        has_unused: bool,
    ) {
        let modules = |registration: &Registration| -> Vec<RegisteredAddon> {
            let of_changed = changed.iter().flat_map(|key| registration.of(key));
            let active = of_changed.filter(|addon| addon.is_active);
            let mut active: Vec<_> = active
                .map(|addon| RegisteredAddon { is_retained: false, is_held: false, ..addon.clone() })
                .collect();
            active.sort_by(|a, b| a.bundle.name.cmp(&b.bundle.name));
            active
        };
        let is_restored = std::mem::take(&mut self.has_restored);
        self.wanted += u64::from(is_restored || modules(old) != modules(new));
        self.has_unused |= has_unused;
    }
}

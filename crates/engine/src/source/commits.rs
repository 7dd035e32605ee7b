//! Which version of what is registered is in force.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::registration::{Change, Registration};
use crate::addon::{Digest, RegisteredAddon, Registry, SourceKey};
use crate::name::RunId;
use crate::queue::Queues;
use crate::time::Time;

/// What was loaded.
#[derive(Debug)]
pub(crate) struct Commit {
    /// Its number.
    pub(super) version: u64,
    /// What it was made from.
    pub(crate) registry: Arc<Registry>,
    /// What was running of modules, and from which bundle.
    pub(super) runs: BTreeMap<RunId, Option<Digest>>,
}

/// Which version of what is registered is in force.
#[derive(Debug, Default)]
pub(super) struct Commits {
    pub(super) wanted: u64,
    in_force: u64,
    /// The configurations whose addons changed, with the version that puts that into force.
    changed: BTreeMap<SourceKey, u64>,
    /// The configurations that wait until a version is in force.
    waiting: BTreeSet<(u64, SourceKey)>,
    /// Whether a task for it is in `main`.
    pub(super) is_queued: bool,
    pub(super) loading: Option<(u64, Arc<Registry>)>,
    /// When it is tried again, if it failed. Meanwhile `main` goes on.
    pub(super) retry_at: Option<Time>,
    /// What began to run from bundles that are not in force any more.
    pub(super) old_runs: BTreeSet<RunId>,
    /// How many bundles that were lost are there again: what is registered is loaded once more.
    restored: u64,
    /// How many of them were there when the last write to the cluster began. Others may be found meanwhile.
    writing: u64,
    /// How many of them were written to the cluster.
    written: u64,
    /// Whether there may be bundles that nobody needs.
    pub(super) has_unused: bool,
    pub(super) dropping: Option<RunId>,
    /// The bundles of modules in force that nobody registered any more: what is in their place can't be used.
    pub(super) outdated: BTreeSet<Digest>,
}

impl Commits {
    pub(super) fn wanted(&self) -> u64 {
        self.wanted
    }

    pub(super) fn in_force(&self) -> u64 {
        self.in_force
    }

    /// Returns whether bundles are being removed.
    pub(super) fn is_dropping(&self) -> bool {
        self.dropping.is_some()
    }

    /// Records that a bundle is there again that was lost.
    pub(super) fn restored(&mut self) {
        self.restored += 1;
    }

    /// Has what is registered loaded once more.
    pub(super) fn load_again(&mut self) {
        self.wanted += 1;
    }

    /// Returns whether a bundle is there again that was lost, and was not written to the cluster yet.
    pub(super) fn has_restored(&self) -> bool {
        self.restored > self.written
    }

    /// Records that what is there now is about to be written to the cluster.
    pub(super) fn writing(&mut self) {
        self.writing = self.restored;
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

    /// Records that what is registered is written and about to change.
    pub(super) fn registered<'a>(&mut self, registration: &'a Registration, change: &'a Change) {
        // All that says which modules there are, and how they are switched.
        let modules = |addons: &mut dyn Iterator<Item = &'a RegisteredAddon>| {
            let module = |addon: &'a RegisteredAddon| {
                (
                    &addon.bundle.name,
                    &addon.source,
                    &addon.url,
                    &addon.bundle,
                    addon.auto_enable,
                    addon.is_withdrawn,
                )
            };
            let mut modules: Vec<_> = addons.filter(|addon| addon.is_active).map(module).collect();
            modules.sort_by_key(|module| module.0);
            modules
        };
        let before = modules(&mut change.iter().flat_map(|(key, _)| registration.of(key)));
        let after = modules(&mut change.iter().flat_map(|(_, addons)| addons));
        let is_restored = self.writing > self.written;
        self.written = self.writing;
        self.wanted += u64::from(is_restored || before != after);
        if self.wanted != self.in_force {
            self.changed.extend(change.iter().map(|(key, _)| (key.clone(), self.wanted)));
        }
    }

    /// Records which version is in force. Returns the configurations whose addons changed with it.
    pub(super) fn put_into_force(&mut self, version: u64) -> Vec<SourceKey> {
        self.in_force = version;
        let (now, later): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.changed).into_iter().partition(|(_, wanted)| *wanted <= version);
        self.changed = later;
        now.into_keys().collect()
    }

    /// Records that a configuration waits until a version is in force.
    pub(super) fn wait_for(&mut self, version: u64, key: &SourceKey) {
        self.waiting.insert((version, key.clone()));
    }

    /// Returns the configurations that waited for what is in force.
    pub(super) fn take_waiting(&mut self) -> Vec<SourceKey> {
        let mut waited = Vec::new();
        while let Some((version, _)) = self.waiting.first()
            && *version <= self.in_force
            && let Some((_, key)) = self.waiting.pop_first()
        {
            waited.push(key);
        }
        waited
    }

    /// Records that there may be bundles that nobody needs any more.
    pub(super) fn left_bundles(&mut self) {
        self.has_unused = true;
    }
}

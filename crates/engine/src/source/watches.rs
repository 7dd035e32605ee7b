//! The watches of the objects of configurations: one for each kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::addon::{SourceKey, SourceKind};
use crate::effect::Effect;
use crate::hook::{MonitorSpec, selection::Selection};
use crate::module::Lower;
use crate::name::MonitorId;

/// The watches of the objects of configurations.
#[derive(Debug, Default)]
pub(super) struct SourceWatches {
    kinds: BTreeMap<MonitorId, SourceKind>,
    /// The kinds whose objects are all known.
    listed: BTreeSet<SourceKind>,
    /// The kinds that are not there.
    absent: BTreeSet<SourceKind>,
    /// Whether it was told that a kind is not there.
    is_absence_told: bool,
}

impl SourceWatches {
    /// Starts to watch the objects of both kinds.
    pub(super) fn start(&mut self, lower: &mut Lower<'_>) {
        self.absent.clear();
        for kind in [SourceKind::Cluster, SourceKind::Namespaced] {
            let monitor = lower.bindings.own_monitor();
            self.kinds.insert(monitor, kind);
            let selection = Selection {
                api_version: SourceKey::API_VERSION.to_owned(),
                kind: kind.as_str().to_owned(),
                ..Selection::default()
            };
            let spec = Arc::new(MonitorSpec { selection, jq_filter: None, keep_objects: true });
            lower.cx.push(Effect::StartMonitor { monitor, spec });
        }
    }

    /// Returns the kind that a watch is about, if it is one of these.
    pub(super) fn kind_of(&self, monitor: MonitorId) -> Option<SourceKind> {
        self.kinds.get(&monitor).copied()
    }

    /// Returns whether nothing is watched.
    pub(super) fn is_off(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Records that there is no such kind, and so no object of it.
    pub(super) fn absent(&mut self, kind: SourceKind) {
        self.absent.insert(kind);
    }

    /// Returns whether all objects of all kinds are known.
    pub(super) fn are_all_listed(&self) -> bool {
        let is_known = |kind: &SourceKind| self.listed.contains(kind) || self.absent.contains(kind);
        self.kinds.values().all(is_known)
    }

    /// Records that all objects of a kind are known.
    pub(super) fn listed(&mut self, kind: SourceKind) {
        self.listed.insert(kind);
    }

    /// Returns whether all objects of a kind are known.
    pub(super) fn is_listed(&self, kind: SourceKind) -> bool {
        self.listed.contains(&kind)
    }

    /// Returns whether all objects of any kind are known.
    pub(super) fn is_any_listed(&self) -> bool {
        !self.listed.is_empty()
    }

    /// Returns whether it has to be told that a kind is not there: the first time.
    pub(super) fn tells_absence(&mut self) -> bool {
        !std::mem::replace(&mut self.is_absence_told, true)
    }
}

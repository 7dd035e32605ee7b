//! The watches of the objects of chart repositories: one for each kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::effect::Effect;
use crate::hook::{MonitorSpec, selection::Selection};
use crate::module::Lower;
use crate::name::MonitorId;
use crate::package::{RepositoryKey, RepositoryKind};

/// The watches of the objects of chart repositories.
#[derive(Debug, Default)]
pub(super) struct RepositoryWatches {
    kinds: BTreeMap<MonitorId, RepositoryKind>,
    /// The kinds whose objects are all known.
    listed: BTreeSet<RepositoryKind>,
}

impl RepositoryWatches {
    /// Starts to watch the objects of all kinds.
    pub(super) fn start(&mut self, lower: &mut Lower<'_>) {
        for kind in RepositoryKind::ALL {
            let monitor = lower.bindings.own_monitor();
            self.kinds.insert(monitor, kind);
            let selection = Selection {
                api_version: RepositoryKey::API_VERSION.to_owned(),
                kind: kind.as_str().to_owned(),
                ..Selection::default()
            };
            let spec = Arc::new(MonitorSpec { selection, jq_filter: None, keep_objects: true });
            lower.cx.push(Effect::StartMonitor { monitor, spec });
        }
        lower.cx.push(Effect::WatchChartMaps);
    }

    /// Returns the kind that a watch is about, if it is one of these.
    pub(super) fn kind_of(&self, monitor: MonitorId) -> Option<RepositoryKind> {
        self.kinds.get(&monitor).copied()
    }

    /// Returns whether nothing is watched.
    pub(super) fn is_off(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Records that all objects of a kind are known.
    pub(super) fn listed(&mut self, kind: RepositoryKind) {
        self.listed.insert(kind);
    }

    /// Returns whether all objects of all kinds are known. Before that nothing is decided.
    pub(super) fn are_all_listed(&self) -> bool {
        self.listed.len() == RepositoryKind::ALL.len()
    }
}

//! What is known about modules that wait for others.

use std::collections::{BTreeMap, BTreeSet};

use super::state::Phase;
use crate::name::ModuleName;

/// What is known about modules that wait for others.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Those that wait now.
    pub(super) waiting: BTreeSet<ModuleName>,
    /// The way from a module back to itself, for those that require themselves over others.
    pub(super) circles: BTreeMap<ModuleName, Vec<ModuleName>>,
    /// Whether something happened that they may wait for.
    pub(super) is_changed: bool,
}

impl Waits {
    /// Records that something happened that modules may wait for.
    pub(super) fn changed(&mut self) {
        self.is_changed = true;
    }

    /// Records what a module is doing now.
    pub(super) fn phase_changed(&mut self, name: &ModuleName, phase: Phase) {
        self.is_changed = true;
        if phase == Phase::Waiting {
            self.waiting.insert(name.clone());
        } else {
            self.waiting.remove(name);
        }
    }
}

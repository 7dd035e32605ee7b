//! Which crontab lines fire, and for whom.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::Hook;
use crate::name::{BindingKey, CronLine};

/// The schedules that are switched on.
#[derive(Debug, Default)]
pub(super) struct Schedules {
    lines: BTreeMap<CronLine, BTreeSet<BindingKey>>,
    changed: bool,
    /// The lines as they were reported last.
    reported: BTreeSet<CronLine>,
}

impl Schedules {
    /// Switches the schedules of `hook` on.
    pub(super) fn enable(&mut self, hook: &Hook, order: u32) {
        for (index, binding) in hook.spec.schedules.iter().enumerate() {
            let users = self.lines.entry(binding.crontab.clone()).or_insert_with(|| {
                self.changed = true;
                BTreeSet::new()
            });
            users.insert(BindingKey::new(&hook.id, order, index));
        }
    }

    /// Switches the schedules of `hook` off.
    pub(super) fn disable(&mut self, hook: &Hook, order: u32) {
        for (index, binding) in hook.spec.schedules.iter().enumerate() {
            let Some(users) = self.lines.get_mut(&binding.crontab) else { continue };
            users.remove(&BindingKey::new(&hook.id, order, index));
            if users.is_empty() {
                self.lines.remove(&binding.crontab);
                self.changed = true;
            }
        }
    }

    /// Returns the bindings that `line` fires for, in order.
    pub(super) fn users(&self, line: &CronLine) -> Vec<BindingKey> {
        self.lines.get(line).map(|users| users.iter().cloned().collect()).unwrap_or_default()
    }

    /// Returns all lines if they are others than at the last call.
    pub(super) fn take_changed(&mut self) -> Option<BTreeSet<CronLine>> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let lines: BTreeSet<CronLine> = self.lines.keys().cloned().collect();
        if lines == self.reported {
            return None;
        }
        self.reported.clone_from(&lines);
        Some(lines)
    }
}

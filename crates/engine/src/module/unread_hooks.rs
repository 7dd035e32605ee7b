//! The hooks of bundles that are asked what they want beside the queues, and those that could not be asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::failure::Failure;
use crate::name::{ModuleName, RunId};
use crate::time::Time;

/// The hooks of how many modules are asked at the same time.
pub(super) const AT_ONCE: usize = 8;

/// The hooks of bundles that are asked what they want beside the queues.
#[derive(Debug, Default)]
pub(super) struct UnreadHooks {
    /// The modules whose hooks are asked, with how that failed before.
    pub(super) running: BTreeMap<RunId, (ModuleName, Option<Unanswered>)>,
    /// The modules whose hooks could not be asked.
    pub(super) failed: BTreeMap<ModuleName, Unanswered>,
    /// The numbers of what was known when it was looked last whose hooks are to be asked; `None` if it has to be looked again.
    pub(super) seen: Option<(u64, u64)>,
}

/// Why hooks did not say what they want.
#[derive(Debug)]
pub(super) struct Unanswered {
    /// How many times they were asked.
    pub(super) times: u32,
    /// When they are asked again.
    pub(super) next_at: Time,
    /// What happened the last time.
    pub(super) failure: Arc<Failure>,
}

impl UnreadHooks {
    /// Returns why the hooks of a module did not say what they want the last time.
    pub(super) fn unanswered(&self, name: &ModuleName) -> Option<&Arc<Failure>> {
        let again = self.running.values().find(|(asked, _)| asked == name);
        let last = again.and_then(|(_, before)| before.as_ref()).or_else(|| self.failed.get(name));
        last.map(|unanswered| &unanswered.failure)
    }
}

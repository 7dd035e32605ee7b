//! What the cluster is told about modules: Kubernetes Events, few enough to be read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::effect::Effect;
use crate::engine::Engine;
use crate::module::Phase;
use crate::name::ModuleName;
use crate::time::Time;
use crate::view::masked_text;

/// How many Events a module may cause within [`WINDOW`].
const LIMIT: usize = 10;
/// The time in which they are counted.
const WINDOW: Duration = Duration::from_mins(10);

/// A Kubernetes Event about a module. It quotes no values.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Announcement {
    /// The module.
    pub module: ModuleName,
    /// Whether a person should look at it.
    pub warning: bool,
    /// One word for machines: `ModuleFailed`.
    pub reason: &'static str,
    /// One line for people.
    pub message: String,
}

/// What was told about one module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Announced {
    /// When, in the last [`WINDOW`].
    times: VecDeque<Time>,
    /// What was told last.
    last: String,
    /// How many changes were not told since.
    untold: usize,
}

impl Announced {
    /// Returns the message to tell now, if there is room for one.
    fn admit(&mut self, message: String, now: Time) -> Option<String> {
        if message == self.last {
            return None;
        }
        while self.times.front().is_some_and(|at| now.since(*at) >= WINDOW) {
            self.times.pop_front();
        }
        if self.times.len() >= LIMIT {
            self.untold += 1;
            return None;
        }
        self.times.push_back(now);
        self.last.clone_from(&message);
        match std::mem::take(&mut self.untold) {
            0 => Some(message),
            untold => Some(format!("{message} ({untold} changes before it were not told)")),
        }
    }
}

impl Engine {
    /// Tells the cluster that a module does something else now.
    pub(crate) fn announce(&mut self, name: &ModuleName, phase: Phase, why: Option<&str>) {
        let now = self.now;
        let because = why.map(|why| format!(": {}", self.without_values(name, why))).unwrap_or_default();
        let Some(module) = self.modules.get_mut(name) else { return };
        let message = format!("module {name} is {}{because}", phase.as_str());
        let Some(message) = module.announced.admit(message, now) else { return };
        let (reason, warning) = match phase {
            Phase::Disabled => ("ModuleDisabled", false),
            Phase::Deleting => ("ModuleDeleting", false),
            Phase::Failed => ("ModuleFailed", true),
            Phase::Orphaned => ("ModuleOrphaned", true),
            Phase::Parked => ("ModuleParked", true),
            Phase::Running => ("ModuleRunning", false),
            Phase::Starting => ("ModuleStarting", false),
        };
        self.out.push(Effect::Announce(Announcement { module: name.clone(), warning, reason, message }));
    }

    /// Returns a text without the values of a module and of the global section.
    fn without_values(&self, name: &ModuleName, text: &str) -> String {
        let owned = self.sections_seen_by(Some(name));
        let values: Vec<&Value> = owned.iter().map(AsRef::as_ref).collect();
        masked_text(text, &values)
    }

    /// Returns the sections that whoever works for `module` can quote: its own and the global one; all of them for `None`.
    pub(crate) fn sections_seen_by(&self, module: Option<&ModuleName>) -> Vec<Arc<Value>> {
        let own = module.and_then(|name| self.sections.get(name));
        let all = self.sections.values().filter(|_| own.is_none());
        let seen = std::iter::once(&self.global).chain(own).chain(all);
        seen.flat_map(|section| [Arc::clone(section.result()), section.config_or_null()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_flaps_is_told_of_ten_times_in_ten_minutes() {
        let mut told = Announced::default();
        let at = |seconds| Time::from_start(Duration::from_secs(seconds));
        let admitted: Vec<_> = (0..30).filter_map(|n| told.admit(format!("change {n}"), at(n))).collect();
        assert_eq!(admitted.len(), LIMIT);
        let later = told.admit("change 99".to_owned(), at(700)).unwrap();
        assert_eq!(later, "change 99 (20 changes before it were not told)");
        assert_eq!(told.admit("change 99".to_owned(), at(800)), None, "the same is not told twice");
    }
}

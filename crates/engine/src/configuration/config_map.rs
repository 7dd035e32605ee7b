//! What the user wrote into the ConfigMap, key by key. See docs/modules.md#values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::effect::{Basis, ConfigText};
use crate::event::ConfigData;
use crate::failure::{Failure, FailureKind};
use crate::name::{ModuleName, RunId};
use crate::time::Time;

/// The values of `<key>Maintenance` that switch maintenance on.
const MAINTENANCE: [&str; 2] = ["NoResourceReconciliation", "noresourcereconciliation"];

/// The ConfigMap as it was understood. A bad key keeps what it said before.
#[derive(Debug, Default)]
pub(super) struct ConfigMap {
    /// The text of each key as it was read last.
    pub(super) seen: BTreeMap<String, String>,
    /// The last data, for modules that come later.
    pub(super) data: Option<Arc<ConfigData>>,
    pub(super) flags: BTreeMap<String, bool>,
    pub(super) maintenance: BTreeSet<String>,
    /// What is wrong, by key.
    pub(super) problems: BTreeMap<String, Failure>,
    /// Since when.
    pub(super) problems_at: BTreeMap<String, Time>,
    /// Sections that had good content once; to be absent is good. The modules of others have to wait.
    pub(super) good: BTreeSet<String>,
    /// Why the ConfigMap could not be read at all.
    pub(super) rejected: Option<(Failure, Time)>,
    pub(super) unknown: BTreeSet<String>,
    /// It was read once.
    pub(super) was_read: bool,
    pub(super) saves: BTreeMap<RunId, PendingSave>,
    /// The version that our last write of a key made.
    saved_versions: BTreeMap<String, u64>,
}

/// A write of the ConfigMap that is in flight.
#[derive(Debug)]
pub(super) struct PendingSave {
    /// The key.
    pub(super) key: String,
    /// What is written.
    text: String,
    /// What that means.
    pub(super) value: Arc<Value>,
}

/// What a new version of the ConfigMap changed.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The global values differ.
    pub(crate) global: bool,
    /// The values or the maintenance of these modules differ.
    pub(crate) modules: BTreeSet<ModuleName>,
    /// It says something else about which modules are on.
    pub(super) flags: bool,
    /// The keys that led to it.
    pub(super) keys: Vec<String>,
}

impl Changes {
    /// Returns whether anything is other than before.
    pub(crate) fn any(&self) -> bool {
        self.global || self.flags || !self.modules.is_empty()
    }
}

impl ConfigMap {
    /// Returns all that is wrong, by key, each with the time since when it is so.
    pub(super) fn problems_since(&self) -> impl Iterator<Item = (Failure, Time)> {
        let at = |key: &String| self.problems_at.get(key).copied().unwrap_or_default();
        let of_keys = self.problems.iter().map(move |(key, failure)| (failure.clone(), at(key)));
        self.rejected.iter().cloned().chain(of_keys)
    }

    /// Records what is being written, so that it does not count as a change by somebody else.
    pub(super) fn save_began(&mut self, run: RunId, key: String, text: String, value: Arc<Value>) {
        self.saves.insert(run, PendingSave { key, text, value });
    }

    /// Returns what a new text of `key` is made from: the text that was read last.
    pub(super) fn basis(&self, key: &str) -> Basis {
        Basis::Text(self.seen.get(key).cloned().map(ConfigText))
    }

    /// Records that the ConfigMap has what we wrote, since `version`.
    pub(super) fn saved(&mut self, save: PendingSave, version: &str) {
        if let Ok(version) = version.parse() {
            self.saved_versions.insert(save.key.clone(), version);
        }
        if let Some(data) = &mut self.data {
            Arc::make_mut(data).0.insert(save.key.clone(), save.text.clone());
        }
        self.seen.insert(save.key, save.text);
    }

    /// Records that a section of the ConfigMap is ours and good.
    pub(super) fn config_committed(&mut self, key: &str) {
        self.problems.remove(key);
        self.problems_at.remove(key);
        self.good.insert(key.to_owned());
    }

    /// Returns whether the text of `key` is worth reading.
    pub(super) fn is_new(&self, key: &str, text: Option<&String>, version: Option<u64>) -> bool {
        let is_stale =
            matches!((version, self.saved_versions.get(key)), (Some(now), Some(saved)) if now < *saved);
        !is_stale && self.seen.get(key) != text
    }

    /// Records the text of a key as it was read.
    pub(super) fn see(&mut self, key: &str, text: Option<&String>) {
        match text {
            Some(text) => self.seen.insert(key.to_owned(), text.clone()),
            None => self.seen.remove(key),
        };
    }

    /// Forgets what was read about a module that is gone. If it comes back, what the ConfigMap says then counts.
    pub(super) fn forget_module(&mut self, key: &str) {
        self.flags.remove(key);
        self.maintenance.remove(key);
        self.good.remove(key);
        for key in keys_of(key) {
            self.seen.remove(&key);
            self.problems.remove(&key);
        }
    }

    /// Records whether a key is good.
    pub(super) fn judge(&mut self, key: &str, problem: Option<Failure>) {
        match problem {
            None => {
                self.problems.remove(key);
                self.good.insert(key.to_owned());
            }
            Some(failure) => {
                self.problems.insert(key.to_owned(), failure);
            }
        }
    }

    /// Reads `<key>Enabled`. Returns whether it says something else than before.
    pub(super) fn read_flag(&mut self, section: &str, key: &str, text: Option<&String>) -> bool {
        match text.map(|text| (text.trim(), text)) {
            None => {
                self.judge(key, None);
                self.flags.remove(section).is_some()
            }
            Some((flag @ ("true" | "false"), _)) => {
                self.judge(key, None);
                let on = flag == "true";
                self.flags.insert(section.to_owned(), on) != Some(on)
            }
            Some((_, text)) => {
                let failure = bad_key(
                    key,
                    &format!("must be true or false, not {} characters of something else", text.len()),
                );
                self.judge(key, Some(failure));
                false
            }
        }
    }

    /// Reads `<key>Maintenance`. Returns whether it says something else than before.
    pub(super) fn read_maintenance(&mut self, section: &str, key: &str, text: Option<&String>) -> bool {
        match text.map(|text| text.trim()) {
            None | Some("") => {
                self.judge(key, None);
                self.maintenance.remove(section)
            }
            Some(word) if MAINTENANCE.contains(&word) => {
                self.judge(key, None);
                self.maintenance.insert(section.to_owned())
            }
            Some(_) => {
                let failure = bad_key(
                    key,
                    &format!("must be {} or empty", MAINTENANCE.first().copied().unwrap_or_default()),
                );
                self.judge(key, Some(failure));
                false
            }
        }
    }
}

/// Returns the keys of the ConfigMap that are about the module with the key `key`.
pub(super) fn keys_of(key: &str) -> [String; 3] {
    [format!("{key}Enabled"), format!("{key}Maintenance"), key.to_owned()]
}

/// Returns the failure of a key that can't be used.
pub(super) fn bad_key(key: &str, what: &str) -> Failure {
    Failure::new(FailureKind::Values, format!("ConfigMap key {key}: {what}"))
}

//! What was read from one of the objects that users write values into.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::config_object::ConfigText;
use crate::effect::Basis;
use crate::event::ConfigData;
use crate::failure::Failure;
use crate::time::Time;

/// What was read from one of the objects.
#[derive(Debug, Default)]
pub(super) struct ConfigTexts {
    /// The text of each key as it was read last.
    seen: BTreeMap<String, String>,
    /// The last data, for modules that come later.
    data: Option<Arc<ConfigData>>,
    /// Why the object could not be read at all, and since when.
    rejected: Option<(Failure, Time)>,
    /// Keys that are about nothing.
    unknown: BTreeSet<String>,
    /// The version that our last write of a key made.
    saved_versions: BTreeMap<String, u64>,
}

impl ConfigTexts {
    /// Takes a new version of the object. Returns false when that is what was read before.
    pub(super) fn take(&mut self, data: &Arc<ConfigData>) -> bool {
        let was_rejected = self.rejected.take().is_some();
        if !was_rejected && self.data.as_ref() == Some(data) {
            return false;
        }
        self.data = Some(Arc::clone(data));
        true
    }

    /// Records that the object could not be read: what it said before stays in force.
    pub(super) fn reject(&mut self, failure: Failure, now: Time) {
        let since = self.rejected.take().map_or(now, |(_, since)| since);
        self.rejected = Some((failure, since));
    }

    /// Returns why the object could not be read, and since when.
    pub(super) fn rejected(&self) -> Option<&(Failure, Time)> {
        self.rejected.as_ref()
    }

    /// Returns the last data.
    pub(super) fn data(&self) -> Option<&Arc<ConfigData>> {
        self.data.as_ref()
    }

    /// Returns all keys that have or had a text.
    pub(super) fn keys(&self, data: &ConfigData) -> BTreeSet<String> {
        self.seen.keys().chain(data.0.keys()).chain(&self.unknown).cloned().collect()
    }

    /// Returns the text of a key as it was read last.
    pub(super) fn text(&self, key: &str) -> Option<&String> {
        self.seen.get(key)
    }

    /// Returns what a new text of `key` is made from: the text that was read last.
    pub(super) fn basis(&self, key: &str) -> Basis {
        Basis::Text(self.seen.get(key).cloned().map(ConfigText))
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

    /// Forgets the text of a key, so that it is read again.
    pub(super) fn forget(&mut self, key: &str) {
        self.seen.remove(key);
    }

    /// Records that the object has a text that we wrote, since `version`.
    pub(super) fn saved(&mut self, key: &str, text: &str, version: &str) {
        if let Ok(version) = version.parse() {
            self.saved_versions.insert(key.to_owned(), version);
        }
        if let Some(data) = &mut self.data {
            Arc::make_mut(data).0.insert(key.to_owned(), text.to_owned());
        }
        self.seen.insert(key.to_owned(), text.to_owned());
    }

    /// Records whether a key is about nothing. Returns whether that is new.
    pub(super) fn set_unknown(&mut self, key: &str, is_unknown: bool) -> bool {
        if is_unknown { self.unknown.insert(key.to_owned()) } else { self.unknown.remove(key) }
    }

    /// Returns the keys that are about nothing.
    pub(super) fn unknown(&self) -> &BTreeSet<String> {
        &self.unknown
    }
}

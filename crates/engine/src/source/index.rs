//! Who has which name, id and bundle of what is registered. A pass looks up the few that it is about, however many there are.

use std::collections::{BTreeMap, BTreeSet};

use crate::addon::{Bundle, Digest, RegisteredAddon, SourceKey};
use crate::name::ModuleName;

/// Who has which name, id and bundle of what is registered.
#[derive(Debug, Default)]
pub(super) struct Index {
    modules: BTreeMap<ModuleName, SourceKey>,
    /// Who has a release of each name that is to be removed where it is.
    displaced: BTreeMap<ModuleName, BTreeSet<SourceKey>>,
    ids: BTreeMap<String, BTreeSet<SourceKey>>,
    /// How many addons have each bundle.
    bundles: BTreeMap<Digest, usize>,
    /// The configurations with modules that are not registered any more.
    unsettled: BTreeSet<SourceKey>,
}

impl Index {
    /// Returns the configuration that has a module.
    pub(super) fn source_of(&self, name: &ModuleName) -> Option<&SourceKey> {
        self.modules.get(name)
    }

    /// Iterates over the configurations that have an addon of an id.
    pub(super) fn with_id(&self, id: &str) -> impl Iterator<Item = &SourceKey> {
        self.ids.get(id).into_iter().flatten()
    }

    /// Iterates over the configurations that have a module of a name, or its release that is to be removed; one may come twice.
    pub(super) fn with_name(&self, name: &ModuleName) -> impl Iterator<Item = &SourceKey> {
        self.modules.get(name).into_iter().chain(self.displaced.get(name).into_iter().flatten())
    }

    /// Returns whether an addon has this bundle.
    pub(super) fn has(&self, digest: &Digest) -> bool {
        self.bundles.contains_key(digest)
    }

    /// Returns the configurations that have the name or the id of one of these.
    pub(super) fn rivals<'b>(&self, bundles: impl Iterator<Item = &'b Bundle>) -> BTreeSet<SourceKey> {
        let mut rivals = BTreeSet::new();
        for bundle in bundles {
            rivals.extend(self.with_id(&bundle.id).cloned());
            rivals.extend(self.modules.get(&bundle.name).cloned());
            rivals.extend(self.displaced.get(&bundle.name).into_iter().flatten().cloned());
        }
        rivals
    }

    /// Returns the configurations with modules that are not registered any more.
    pub(super) fn unsettled(&self) -> &BTreeSet<SourceKey> {
        &self.unsettled
    }

    /// Iterates over the configurations with releases that are to be removed where they are, each once.
    pub(super) fn with_displaced(&self) -> impl Iterator<Item = &SourceKey> {
        let all: BTreeSet<&SourceKey> = self.displaced.values().flatten().collect();
        all.into_iter()
    }

    /// Takes in the addons of a configuration that had none.
    pub(super) fn add(&mut self, key: &SourceKey, addons: &[RegisteredAddon]) {
        for addon in addons {
            let Bundle { id, name, .. } = &addon.bundle;
            if addon.is_active {
                self.modules.insert(name.clone(), key.clone());
            }
            if addon.is_displaced() {
                self.displaced.entry(name.clone()).or_default().insert(key.clone());
            }
            self.ids.entry(id.clone()).or_default().insert(key.clone());
            for digest in addon.digests() {
                *self.bundles.entry(digest.clone()).or_default() += 1;
            }
        }
        if !addons.iter().all(RegisteredAddon::is_registered) {
            self.unsettled.insert(key.clone());
        }
    }

    /// Forgets the addons of a configuration, all that it has.
    pub(super) fn remove(&mut self, key: &SourceKey, addons: &[RegisteredAddon]) {
        for addon in addons {
            let Bundle { id, name, .. } = &addon.bundle;
            if addon.is_active && self.modules.get(name) == Some(key) {
                self.modules.remove(name);
            }
            remove_from(&mut self.displaced, name, key);
            remove_from(&mut self.ids, id, key);
            for digest in addon.digests() {
                if let Some(count) = self.bundles.get_mut(digest) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        self.bundles.remove(digest);
                    }
                }
            }
        }
        self.unsettled.remove(key);
    }
}

/// Takes a configuration out of the set of a key, and the set away if it is empty then.
pub(super) fn remove_from<K: Ord>(sets: &mut BTreeMap<K, BTreeSet<SourceKey>>, of: &K, key: &SourceKey) {
    if let Some(set) = sets.get_mut(of) {
        set.remove(key);
        if set.is_empty() {
            sets.remove(of);
        }
    }
}

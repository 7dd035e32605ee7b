//! Who has which name, id and bundle of what is registered. A pass looks up the few that it is about, however many there are.

use std::collections::{BTreeMap, BTreeSet};

use super::registration::Registration;
use crate::addon::{Bundle, Digest, RegisteredAddon, SourceKey};
use crate::name::ModuleName;

/// Who has which name, id and bundle of what is registered.
#[derive(Debug, Default)]
pub(super) struct Index {
    modules: BTreeMap<ModuleName, SourceKey>,
    ids: BTreeMap<String, BTreeSet<SourceKey>>,
    /// How many addons have each bundle.
    bundles: BTreeMap<Digest, usize>,
    /// The configurations with modules that are not registered any more.
    unsettled: BTreeSet<SourceKey>,
}

impl Index {
    /// Returns the index of what is registered.
    pub(super) fn of(registration: &Registration) -> Self {
        let mut index = Self::default();
        for key in registration.sources() {
            index.add(key, registration.of(key));
        }
        index
    }

    /// Takes in that `new` is in the place of `old`, where the addons of `changed` differ. Returns whether a bundle is in use no
    /// more.
    pub(super) fn renew(
        &mut self,
        old: &Registration,
        new: &Registration,
        changed: &BTreeSet<&SourceKey>,
    ) -> bool {
        // A module may have gone from one to the other.
        for key in changed {
            self.remove(key, old.of(key));
        }
        for key in changed {
            self.add(key, new.of(key));
        }
        let mut before = changed.iter().flat_map(|key| old.of(key));
        before.any(|addon| !self.bundles.contains_key(&addon.bundle.digest))
    }

    /// Returns the configuration that has a module.
    pub(super) fn source_of(&self, name: &ModuleName) -> Option<&SourceKey> {
        self.modules.get(name)
    }

    /// Returns the configurations that have the name or the id of one of these.
    pub(super) fn rivals<'b>(&self, bundles: impl Iterator<Item = &'b Bundle>) -> BTreeSet<SourceKey> {
        let rivals = |bundle: &Bundle| {
            let ids = self.ids.get(&bundle.id).into_iter().flatten();
            ids.chain(self.modules.get(&bundle.name)).cloned().collect::<Vec<_>>()
        };
        bundles.flat_map(rivals).collect()
    }

    /// Iterates over the configurations with modules that are not registered any more.
    pub(super) fn unsettled(&self) -> impl Iterator<Item = &SourceKey> {
        self.unsettled.iter()
    }

    fn add(&mut self, key: &SourceKey, addons: &[RegisteredAddon]) {
        for addon in addons {
            if addon.is_active {
                self.modules.insert(addon.bundle.name.clone(), key.clone());
            }
            self.ids.entry(addon.bundle.id.clone()).or_default().insert(key.clone());
            *self.bundles.entry(addon.bundle.digest.clone()).or_default() += 1;
        }
        if !addons.iter().all(RegisteredAddon::is_registered) {
            self.unsettled.insert(key.clone());
        }
    }

    fn remove(&mut self, key: &SourceKey, addons: &[RegisteredAddon]) {
        for addon in addons {
            if addon.is_active && self.modules.get(&addon.bundle.name) == Some(key) {
                self.modules.remove(&addon.bundle.name);
            }
            if let Some(sources) = self.ids.get_mut(&addon.bundle.id) {
                sources.remove(key);
                if sources.is_empty() {
                    self.ids.remove(&addon.bundle.id);
                }
            }
            if let Some(count) = self.bundles.get_mut(&addon.bundle.digest) {
                *count -= 1;
                if *count == 0 {
                    self.bundles.remove(&addon.bundle.digest);
                }
            }
        }
        self.unsettled.remove(key);
    }
}

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
    /// The configurations with modules that are not registered any more, or that are to leave a namespace.
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

    /// Returns the configurations with modules that are not registered any more, or that are to leave a namespace.
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
        self.come(key, &[], addons);
    }

    /// Takes in the `new` addons of a configuration that had `old` ones. Those that are in both are not looked up. Addons may go from
    /// one configuration to another, so [`Self::go`] is called for all of them before.
    pub(super) fn come(&mut self, key: &SourceKey, old: &[RegisteredAddon], new: &[RegisteredAddon]) {
        for addon in new.iter().filter(|addon| !is_among(addon, old)) {
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
        if new.iter().all(|addon| addon.is_registered() && addon.left_namespaces.is_empty()) {
            self.unsettled.remove(key);
        } else {
            self.unsettled.insert(key.clone());
        }
    }

    /// Forgets what of the `old` addons of a configuration is not among the `new` ones. Returns the bundles that those had.
    pub(super) fn go<'a>(
        &mut self,
        key: &SourceKey,
        old: &'a [RegisteredAddon],
        new: &[RegisteredAddon],
    ) -> Vec<&'a Digest> {
        let mut bundles = Vec::new();
        for addon in old.iter().filter(|addon| !is_among(addon, new)) {
            let Bundle { id, name, .. } = &addon.bundle;
            let has_name = |other: &&RegisteredAddon| other.bundle.name == *name;
            if addon.is_active && self.modules.get(name) == Some(key) {
                self.modules.remove(name);
            }
            if addon.is_displaced() && !new.iter().filter(has_name).any(RegisteredAddon::is_displaced) {
                remove_from(&mut self.displaced, name, key);
            }
            if !new.iter().any(|other| other.bundle.id == *id) {
                remove_from(&mut self.ids, id, key);
            }
            for digest in addon.digests() {
                if let Some(count) = self.bundles.get_mut(digest) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        self.bundles.remove(digest);
                    }
                }
                bundles.push(digest);
            }
        }
        bundles
    }
}

/// Returns whether an addon is among these, which are sorted, as far as the index knows it.
fn is_among(addon: &RegisteredAddon, others: &[RegisteredAddon]) -> bool {
    let place = others.binary_search_by(|other| other.place().cmp(&addon.place()));
    let Some(other) = place.ok().and_then(|place| others.get(place)) else { return false };
    let known = |addon: &RegisteredAddon| (addon.is_active, addon.is_displaced());
    known(other) == known(addon) && other.bundle.id == addon.bundle.id && other.digests().eq(addon.digests())
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

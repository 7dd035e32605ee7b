//! What is registered, and what an assessment, a failure or a deletion makes of it.
//!
//! Of thousands of configurations a pass changes a few. It makes a [`Change`], which holds those alone; the index says which
//! others it concerns. [`Registration::looked_at`] counts what is looked at.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::index::Index;
use crate::addon::{
    Bundle, Digest, HoldReason, RegisteredAddon, Registry, SourceKey, SourceKind, WithheldVersion, sort,
};
use crate::name::ModuleName;

/// What is registered, by configuration.
#[derive(Debug, Default)]
pub(super) struct Registration {
    /// Those of each configuration, none of them empty; shared with what is written.
    addons: BTreeMap<SourceKey, Arc<Vec<RegisteredAddon>>>,
    index: Index,
    /// All of it as it is written.
    registry: Arc<Registry>,
    looked_at: Cell<usize>,
}

/// What differs in the registry that is to be: the addons of some configurations, all of them.
#[derive(Debug, Default)]
pub(super) struct Change {
    addons: BTreeMap<SourceKey, Arc<Vec<RegisteredAddon>>>,
    /// All that is registered then, as it is written, once it is.
    registry: Option<Arc<Registry>>,
}

/// What becomes of a module that its configuration does not bring any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fate {
    /// It was never on: a release of it is looked for, and then it goes.
    Dismiss,
    /// Its module can't be switched off: its name is another one's, or its bundle is lost. Its release is removed where it is.
    Displace,
    /// There is nothing of it: it goes at once.
    Forget,
    /// It goes on, and keeps its id and name.
    Hold,
    /// It goes on, and its id and name are free.
    Retain,
    /// It is switched off and removed first.
    Withdraw,
}

impl Fate {
    /// Makes an addon that is registered no more say what becomes of it.
    fn mark(self, addon: &mut RegisteredAddon) {
        if self == Self::Displace {
            return displace(addon);
        }
        addon.is_held = self == Self::Hold;
        addon.is_retained = matches!(self, Self::Hold | Self::Retain);
        addon.is_withdrawn = matches!(self, Self::Dismiss | Self::Withdraw);
        addon.was_never_on = self == Self::Dismiss;
    }
}

impl Change {
    /// Returns whether everything stays as it is.
    pub(super) fn is_empty(&self) -> bool {
        self.addons.is_empty()
    }

    /// Returns whether a release that is to be removed goes to somebody else.
    pub(super) fn removes(&self, displaced: &RegisteredAddon) -> bool {
        let is_it =
            |addon: &RegisteredAddon| addon.is_displaced() && addon.bundle.name == displaced.bundle.name;
        self.addons.get(&displaced.source).is_some_and(|addons| !addons.iter().any(is_it))
    }

    /// Returns whether a module of a configuration is nobody's any more.
    pub(super) fn drops(&self, key: &SourceKey, name: &ModuleName) -> bool {
        let has = |addons: &Arc<Vec<RegisteredAddon>>| {
            addons.iter().any(|addon| addon.is_active && addon.bundle.name == *name)
        };
        self.addons.get(key).is_some_and(|addons| !has(addons)) && !self.addons.values().any(has)
    }

    /// Iterates over the configurations whose addons are others, with what they are to be.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&SourceKey, &[RegisteredAddon])> {
        self.addons.iter().map(|(key, addons)| (key, addons.as_slice()))
    }
}

impl Registration {
    pub(super) fn new(registry: Registry) -> Self {
        let of_source =
            |addons: &Arc<Vec<RegisteredAddon>>| Some((addons.first()?.source.clone(), Arc::clone(addons)));
        let registry = Arc::new(registry);
        let addons: BTreeMap<_, _> = registry.addons.by_source().filter_map(of_source).collect();
        let mut index = Index::default();
        for (key, addons) in &addons {
            index.add(key, addons);
        }
        Self { addons, index, registry, looked_at: Cell::default() }
    }

    /// Returns it as it is written when it is changed.
    pub(super) fn registry_with(&self, change: &mut Change) -> Arc<Registry> {
        if change.is_empty() {
            return self.registry();
        }
        let addons = self.registry.addons.with(&change.addons);
        Arc::clone(change.registry.insert(Arc::new(Registry { addons, is_written: true })))
    }

    /// Returns it as it is written.
    pub(super) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry)
    }

    /// Changes it. Returns whether a bundle is in use no more.
    pub(super) fn apply(&mut self, change: Change) -> bool {
        let Change { addons, registry } = change;
        let addons_then = || self.registry.addons.with(&addons);
        let registry_then = || Arc::new(Registry { addons: addons_then(), is_written: true });
        self.registry = registry.unwrap_or_else(registry_then);
        let of = |all: &BTreeMap<SourceKey, Arc<Vec<RegisteredAddon>>>, key: &SourceKey| {
            all.get(key).cloned().unwrap_or_default()
        };
        let both: Vec<_> = addons.iter().map(|(key, new)| (key, of(&self.addons, key), new)).collect();
        // A module may have gone from one to the other.
        let mut gone = Vec::new();
        for (key, old, new) in &both {
            gone.extend(self.index.go(key, old, new));
        }
        for (key, old, new) in &both {
            self.index.come(key, old, new);
        }
        let is_unused = gone.into_iter().any(|digest| !self.index.has(digest));
        drop(both);
        for (key, addons) in addons {
            if addons.is_empty() {
                self.addons.remove(&key);
            } else {
                self.addons.insert(key, addons);
            }
        }
        is_unused
    }

    /// Iterates over all addons.
    pub(super) fn iter(&self) -> impl Iterator<Item = &RegisteredAddon> {
        self.addons.values().flat_map(|addons| addons.iter()).inspect(|_| self.look())
    }

    /// Returns the addons of a configuration.
    pub(super) fn of(&self, key: &SourceKey) -> &[RegisteredAddon] {
        self.addons.get(key).map(|addons| addons.as_slice()).unwrap_or_default()
    }

    /// Returns the configurations that have addons.
    pub(super) fn sources(&self) -> impl Iterator<Item = &SourceKey> {
        self.addons.keys().inspect(|_| self.look())
    }

    /// Returns the configuration that has a module.
    pub(super) fn source_of(&self, name: &ModuleName) -> Option<&SourceKey> {
        self.index.source_of(name)
    }

    /// Returns the addon of a configuration whose module has the name.
    pub(super) fn of_module(&self, key: &SourceKey, name: &ModuleName) -> Option<&RegisteredAddon> {
        self.of(key).iter().find(|addon| addon.is_active && addon.bundle.name == *name)
    }

    /// Returns the bundles of a configuration that are among the lost ones.
    pub(super) fn lost_of(&self, key: &SourceKey, lost: &BTreeSet<Digest>) -> Vec<&Bundle> {
        let bundles = self.of(key).iter().map(|addon| &addon.bundle);
        bundles.filter(|bundle| lost.contains(&bundle.digest)).collect()
    }

    /// Adds addons to those of a configuration in `change`.
    pub(super) fn add(&self, change: &mut Change, key: &SourceKey, addons: Vec<RegisteredAddon>) {
        let mut all = self.copy(change, key);
        all.extend(addons);
        sort(&mut all);
        self.set(change, key, all);
    }

    /// Returns the ids that nobody else of its scope can have because of a configuration.
    pub(super) fn ids_of(&self, key: &SourceKey) -> BTreeSet<&str> {
        self.of(key).iter().filter(|addon| addon.holds_id()).map(|addon| &*addon.bundle.id).collect()
    }

    /// Returns the configurations that have an addon of one of these ids.
    pub(super) fn with_ids<'i>(
        &self,
        ids: impl Iterator<Item = &'i String>,
    ) -> impl Iterator<Item = &SourceKey> {
        ids.flat_map(|id| self.index.with_id(id)).inspect(|_| self.look())
    }

    /// Iterates over the addons of those that have the name or the id of one of these.
    pub(super) fn of_rivals<'b>(
        &self,
        bundles: impl Iterator<Item = &'b Bundle>,
    ) -> impl Iterator<Item = &RegisteredAddon> {
        let of = |rival: SourceKey| self.addons.get(&rival).into_iter().flat_map(|addons| addons.iter());
        self.index.rivals(bundles).into_iter().flat_map(of).inspect(|_| self.look())
    }

    /// Replaces the addons of a configuration in `change`. `fate` says what becomes of its modules that are not among them.
    ///
    /// What others have that they hold no more, because they failed or are deleted, is taken over where it is. Two never
    /// have one module.
    pub(super) fn replace(
        &self,
        change: &mut Change,
        key: &SourceKey,
        mut addons: Vec<RegisteredAddon>,
        fate: impl Fn(&RegisteredAddon) -> Fate,
    ) {
        self.note_releases(key, &mut addons);
        self.note_left(key, &mut addons);
        let active: BTreeSet<&ModuleName> =
            addons.iter().filter(|addon| addon.is_active).map(|addon| &addon.bundle.name).collect();
        let ids: BTreeSet<&str> = addons.iter().map(|addon| &*addon.bundle.id).collect();
        let mut rivals = self.index.rivals(addons.iter().map(|addon| &addon.bundle));
        rivals.remove(key);
        for source in rivals {
            let mut others = self.copy(change, &source);
            let is_taken = |addon: &RegisteredAddon| addon.is_active && active.contains(&addon.bundle.name);
            if source.yields_to(key) {
                // Names belong to the cluster first. What a namespace released under this one is its own to remove.
                others.iter_mut().filter(|addon| is_taken(addon)).for_each(displace);
            } else {
                // Who comes here with a name or an id that another one holds was checked for conflicts: that one is on its
                // way out.
                others.retain(|addon| !is_taken(addon));
            }
            if source.shares_scope_with(key) {
                // The release that was to be removed is that of this module now.
                others.retain(|addon| !(addon.is_displaced() && active.contains(&addon.bundle.name)));
                for addon in others.iter_mut().filter(|addon| ids.contains(&*addon.bundle.id)) {
                    addon.is_retained |= !addon.is_withdrawn;
                    addon.is_held = false;
                }
            }
            self.set(change, &source, others);
        }
        let mut leftovers = self.copy(change, key);
        let is_left = |addon: &RegisteredAddon| addon.is_active || addon.is_displaced();
        leftovers.retain(|addon| is_left(addon) && !active.contains(&addon.bundle.name));
        let mut all = addons;
        for mut addon in leftovers {
            let mut fate = fate(&addon);
            if addon.is_withdrawn && !matches!(fate, Fate::Dismiss | Fate::Displace | Fate::Withdraw) {
                fate = if addon.was_never_on { Fate::Dismiss } else { Fate::Withdraw };
            }
            fate.mark(&mut addon);
            if fate != Fate::Forget {
                all.push(addon);
            }
        }
        sort(&mut all);
        self.set(change, key, all);
    }

    /// Makes addons say whether there is a release of whoever had the name before, which was to be removed, and those of a namespace
    /// whether there may be any: what was recorded under a name, and is not removed yet, is the release of whoever has that name now.
    fn note_releases(&self, key: &SourceKey, addons: &mut [RegisteredAddon]) {
        let in_scope = self.of_rivals(addons.iter().map(|addon| &addon.bundle));
        let in_scope = in_scope.filter(|other| other.source.shares_scope_with(key) && !other.is_unreleased);
        let (mut released, mut left) = (BTreeSet::new(), BTreeSet::new());
        for other in in_scope {
            released.insert(&other.bundle.name);
            if other.is_displaced() || other.inherits_release {
                left.insert(&other.bundle.name);
            }
        }
        for addon in addons.iter_mut() {
            addon.is_unreleased =
                key.kind == SourceKind::Namespaced && !released.contains(&addon.bundle.name);
            addon.inherits_release = left.contains(&addon.bundle.name);
        }
    }

    /// Makes addons of the cluster say where releases of their modules may be left: with other files they were in other namespaces, and an
    /// operator may end before what is there is removed.
    fn note_left(&self, key: &SourceKey, addons: &mut [RegisteredAddon]) {
        if key.kind == SourceKind::Namespaced {
            return;
        }
        for addon in addons.iter_mut().filter(|addon| addon.is_active) {
            let Bundle { name, namespace, .. } = &addon.bundle;
            let sources = self.index.with_name(name).filter(|source| source.shares_scope_with(key));
            let before = sources.flat_map(|source| self.of_name(source, name));
            let before = before.filter(|before| before.is_active || before.is_displaced());
            let left = before.flat_map(RegisteredAddon::namespaces).filter(|left| *left != namespace);
            addon.left_namespaces = left.cloned().collect();
        }
    }

    /// Returns the addons of a configuration with the name of a module.
    fn of_name(&self, key: &SourceKey, name: &ModuleName) -> &[RegisteredAddon] {
        let all = self.of(key);
        let begin = all.partition_point(|addon| addon.bundle.name.as_str() < name.as_str());
        let end = all.partition_point(|addon| addon.bundle.name.as_str() <= name.as_str());
        all.get(begin..end).unwrap_or_default()
    }

    /// Forgets in `change` the namespaces of addons where nothing is left any more: those of which `is_left` does not hold.
    pub(super) fn forget_left(
        &self,
        change: &mut Change,
        keys: &BTreeSet<SourceKey>,
        is_left: impl Fn(&RegisteredAddon, Option<&str>) -> bool,
    ) {
        for key in keys {
            if self.of(key).iter().all(|addon| addon.left_namespaces.is_empty()) {
                continue;
            }
            let mut addons = self.copy(change, key);
            for addon in &mut addons {
                let mut left = std::mem::take(&mut addon.left_namespaces);
                left.retain(|namespace| is_left(addon, namespace.as_deref()));
                addon.left_namespaces = left;
            }
            self.set(change, key, addons);
        }
    }

    /// Iterates over the addons of a namespace that have, or had, the module of a name: those that are no modules of it are left out.
    pub(super) fn of_namespace(
        &self,
        namespace: &str,
        name: &ModuleName,
    ) -> impl Iterator<Item = &RegisteredAddon> {
        let is_its =
            move |key: &&SourceKey| key.kind == SourceKind::Namespaced && *key.namespace == *namespace;
        let addons = self.index.with_name(name).filter(is_its).flat_map(|key| self.of(key));
        addons.filter(move |addon| addon.bundle.name == *name && (addon.is_active || addon.is_displaced()))
    }

    /// Records in `change` that a module of a configuration may have a release.
    pub(super) fn record_release(&self, change: &mut Change, key: &SourceKey, name: &ModuleName) {
        let mut addons = self.copy(change, key);
        for addon in addons.iter_mut().filter(|addon| addon.bundle.name == *name) {
            addon.is_unreleased = false;
        }
        self.set(change, key, addons);
    }

    /// Decides in `change` for the modules of configurations that are not registered any more what becomes of them.
    pub(super) fn settle(
        &self,
        change: &mut Change,
        keys: &BTreeSet<SourceKey>,
        fate: impl Fn(&RegisteredAddon) -> Fate,
    ) {
        for key in keys {
            let mut addons = self.copy(change, key);
            addons.retain_mut(|addon| {
                if addon.is_registered() {
                    return true;
                }
                let fate = fate(addon);
                fate.mark(addon);
                fate != Fate::Forget
            });
            self.set(change, key, addons);
        }
    }

    /// Returns the configurations with modules that are not registered any more, or that are to leave a namespace.
    pub(super) fn unsettled(&self) -> &BTreeSet<SourceKey> {
        self.index.unsettled()
    }

    /// Ends the trials of versions of some configurations in `change`: `ended` says of one whether it is over, and if so, why the
    /// version is given up, if it is.
    pub(super) fn end_trials(
        &self,
        change: &mut Change,
        keys: &BTreeSet<SourceKey>,
        ended: impl Fn(&RegisteredAddon) -> Option<Option<HoldReason>>,
    ) {
        let is_tried = |addon: &RegisteredAddon| addon.is_active && addon.is_on_trial();
        for key in keys {
            if !self.of(key).iter().any(|addon| is_tried(addon) && ended(addon).is_some()) {
                continue;
            }
            let mut addons = self.copy(change, key);
            let mut back = Vec::new();
            for addon in addons.iter_mut().filter(|addon| is_tried(addon)) {
                let Some(why) = ended(addon) else { continue };
                let previous = addon.previous.take();
                (addon.is_unproven, addon.starts) = (false, 0);
                let Some((bundle, why)) = previous.zip(why) else { continue };
                let (version, digest) = (addon.bundle.version.clone(), addon.bundle.digest.clone());
                let held = WithheldVersion { version, digest, why };
                let left = addon.namespaces().filter(|left| **left != bundle.namespace);
                let left_namespaces = left.cloned().collect();
                let given_up =
                    std::mem::take(&mut addon.given_up).into_iter().chain(held.given_up()).collect();
                let held_back = Some(held);
                back.push(RegisteredAddon { bundle, left_namespaces, held_back, given_up, ..addon.clone() });
                // It stays registered, as versions do that are no modules.
                addon.is_active = false;
            }
            for addon in back {
                let is_same = |other: &RegisteredAddon| {
                    other.bundle.digest == addon.bundle.digest && other.bundle.name == addon.bundle.name
                };
                addons.retain(|other| !is_same(other));
                addons.push(addon);
            }
            sort(&mut addons);
            self.set(change, key, addons);
        }
    }

    /// Counts one more start in `change` for the addons of a configuration for which `is_it` holds.
    pub(super) fn count_starts(
        &self,
        change: &mut Change,
        key: &SourceKey,
        is_it: impl Fn(&RegisteredAddon) -> bool,
    ) {
        let mut addons = self.copy(change, key);
        for addon in addons.iter_mut().filter(|addon| is_it(addon)) {
            addon.starts = addon.starts.saturating_add(1);
        }
        self.set(change, key, addons);
    }

    /// Iterates over the addons whose releases are to be removed where they are.
    pub(super) fn displaced(&self) -> impl Iterator<Item = &RegisteredAddon> {
        let all = self.index.with_displaced().flat_map(|key| self.of(key)).inspect(|_| self.look());
        all.filter(|addon| addon.is_displaced())
    }

    /// Returns how many addons and configurations were looked at so far.
    pub(super) fn looked_at(&self) -> usize {
        self.looked_at.get()
    }

    fn look(&self) {
        self.looked_at.set(self.looked_at.get().wrapping_add(1));
    }

    fn copy(&self, change: &Change, key: &SourceKey) -> Vec<RegisteredAddon> {
        let addons = change.addons.get(key).map_or_else(|| self.of(key), |addons| addons.as_slice());
        addons.iter().inspect(|_| self.look()).cloned().collect()
    }

    fn set(&self, change: &mut Change, key: &SourceKey, addons: Vec<RegisteredAddon>) {
        if self.of(key) == addons {
            change.addons.remove(key);
        } else {
            change.addons.insert(key.clone(), Arc::new(addons));
        }
    }
}

/// Gives the name of a module to another one.
fn displace(addon: &mut RegisteredAddon) {
    (addon.is_active, addon.is_withdrawn) = (false, true);
    (addon.is_held, addon.is_retained) = (false, false);
}

//! What is registered, and what an assessment, a failure or a deletion makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::addon::{Bundle, Digest, RegisteredAddon, RegisteredAddons, Registry, SourceKey, sort};
use crate::name::ModuleName;

/// What is registered, by configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Registration {
    /// Shared, so that a copy in which one configuration differs costs little.
    addons: BTreeMap<SourceKey, Arc<Vec<RegisteredAddon>>>,
}

/// What becomes of a module that its configuration does not bring any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fate {
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
        addon.is_withdrawn = self == Self::Withdraw;
    }
}

impl Registration {
    pub(super) fn new(registry: Registry) -> Self {
        let of_source = |addons: Arc<Vec<RegisteredAddon>>| Some((addons.first()?.source.clone(), addons));
        Self { addons: registry.addons.by_source().filter_map(of_source).collect() }
    }

    /// Returns it as it is written.
    pub(super) fn registry(&self) -> Arc<Registry> {
        let addons = RegisteredAddons::of_sources(self.addons.values().map(Arc::clone));
        Arc::new(Registry { addons })
    }

    /// Returns the configurations whose addons are others in `next`.
    pub(super) fn differences<'r>(&'r self, next: &'r Self) -> BTreeSet<&'r SourceKey> {
        let is_other = |key: &&SourceKey| match (self.addons.get(*key), next.addons.get(*key)) {
            (Some(one), Some(other)) => !Arc::ptr_eq(one, other) && one != other,
            (one, other) => one.is_some() != other.is_some(),
        };
        self.addons.keys().filter(is_other).chain(next.addons.keys().filter(is_other)).collect()
    }

    /// Iterates over all addons.
    pub(super) fn iter(&self) -> impl Iterator<Item = &RegisteredAddon> {
        self.addons.values().flat_map(|addons| addons.iter())
    }

    /// Returns the addons of a configuration.
    pub(super) fn of(&self, key: &SourceKey) -> &[RegisteredAddon] {
        self.addons.get(key).map(|addons| addons.as_slice()).unwrap_or_default()
    }

    /// Returns the configurations that have addons.
    pub(super) fn sources(&self) -> impl Iterator<Item = &SourceKey> {
        self.addons.keys()
    }

    /// Returns the addon of a configuration whose module has the name.
    pub(super) fn of_module(&self, key: &SourceKey, name: &ModuleName) -> Option<&RegisteredAddon> {
        self.of(key).iter().find(|addon| addon.is_active && addon.bundle.name == *name)
    }

    /// Returns the digests of all bundles.
    pub(super) fn digests(&self) -> BTreeSet<Digest> {
        self.iter().map(|addon| addon.bundle.digest.clone()).collect()
    }

    /// Returns the bundles of a configuration that are among the lost ones.
    pub(super) fn lost_of(&self, key: &SourceKey, lost: &BTreeSet<Digest>) -> Vec<&Bundle> {
        let bundles = self.of(key).iter().map(|addon| &addon.bundle);
        bundles.filter(|bundle| lost.contains(&bundle.digest)).collect()
    }

    /// Returns the ids that nobody else of its scope can have because of a configuration.
    pub(super) fn ids_of(&self, key: &SourceKey) -> BTreeSet<&str> {
        self.of(key).iter().filter(|addon| addon.holds_id()).map(|addon| &*addon.bundle.id).collect()
    }

    /// Replaces the addons of a configuration. `fate` says what becomes of its modules that are not among them. `rivals` are the
    /// configurations that have a name or an id of the addons.
    ///
    /// What others have that they hold no more, because they failed or are deleted, is taken over where it is. Two never
    /// have one module.
    pub(super) fn replace(
        &mut self,
        key: &SourceKey,
        addons: Vec<RegisteredAddon>,
        rivals: &BTreeSet<SourceKey>,
        fate: impl Fn(&RegisteredAddon) -> Fate,
    ) {
        let active: BTreeSet<&ModuleName> =
            addons.iter().filter(|addon| addon.is_active).map(|addon| &addon.bundle.name).collect();
        let ids: BTreeSet<&str> = addons.iter().map(|addon| &*addon.bundle.id).collect();
        let mut leftovers = self.addons.remove(key).map(Arc::unwrap_or_clone).unwrap_or_default();
        let is_left = |addon: &RegisteredAddon| addon.is_active || addon.is_displaced();
        leftovers.retain(|addon| is_left(addon) && !active.contains(&addon.bundle.name));
        for source in rivals {
            let Some(others) = self.addons.get_mut(source).map(Arc::make_mut) else { continue };
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
                for addon in others.iter_mut().filter(|addon| ids.contains(&*addon.bundle.id)) {
                    addon.is_retained |= !addon.is_withdrawn;
                    addon.is_held = false;
                }
            }
        }
        let mut all = addons;
        for mut addon in leftovers {
            let mut fate = fate(&addon);
            if addon.is_withdrawn && fate != Fate::Displace {
                fate = Fate::Withdraw;
            }
            fate.mark(&mut addon);
            if fate != Fate::Forget {
                all.push(addon);
            }
        }
        sort(&mut all);
        self.addons.insert(key.clone(), Arc::new(all));
        self.addons.retain(|_, addons| !addons.is_empty());
    }

    /// Decides for all modules that are not registered any more what becomes of them.
    pub(super) fn settle(&mut self, fate: impl Fn(&RegisteredAddon) -> Fate) {
        for addons in self.addons.values_mut() {
            if addons.iter().all(RegisteredAddon::is_registered) {
                continue;
            }
            Arc::make_mut(addons).retain_mut(|addon| {
                if addon.is_registered() {
                    return true;
                }
                let fate = fate(addon);
                fate.mark(addon);
                fate != Fate::Forget
            });
        }
        self.addons.retain(|_, addons| !addons.is_empty());
    }

    /// Iterates over the addons of a configuration whose releases are to be removed where they are.
    pub(super) fn displaced_of(&self, key: &SourceKey) -> impl Iterator<Item = &RegisteredAddon> {
        self.of(key).iter().filter(|addon| addon.is_displaced())
    }
}

/// Gives the name of a module to another one.
fn displace(addon: &mut RegisteredAddon) {
    (addon.is_active, addon.is_withdrawn) = (false, true);
    (addon.is_held, addon.is_retained) = (false, false);
}

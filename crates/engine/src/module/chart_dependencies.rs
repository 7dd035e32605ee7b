//! The charts that the charts of modules need and do not hold themselves: where each comes from.
//!
//! Work on them is that on the charts of modules. So each has a name like one: `<module>.<chart>`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::provision::{Provision, packages};
use super::{ModuleState, Modules, Phase};
use crate::catalog::Module;
use crate::name::ModuleName;
use crate::package::{ChartDependency, Package};

impl ModuleState {
    /// Returns where the charts come from that a new version of the module needs, as far as that is known from this one.
    pub(super) fn carried(&self, new: &Module) -> Vec<Provision> {
        let known = |wanted: &ChartDependency| {
            let place = self.spec.dependencies.named.iter().position(|named| named == wanted)?;
            self.provisions.get(place).cloned()
        };
        new.dependencies.named.iter().map(|wanted| known(wanted).unwrap_or(Provision::Unknown)).collect()
    }

    /// Records that packages of dependencies could not be read: those that `why` names by their digest, or all. Returns whether
    /// there are some.
    pub(super) fn lose_dependencies(&mut self, why: &str) -> bool {
        let is_named = |package: &Package| why.contains(package.digest.as_str());
        let names_some = packages(&self.provisions).iter().any(|package| is_named(package));
        let mut has_lost = false;
        for provision in &mut self.provisions {
            if let Provision::Here(package) = provision
                && (is_named(package) || !names_some)
            {
                (*provision, has_lost) = (Provision::Lost(Arc::clone(package)), true);
            }
        }
        has_lost
    }

    fn dependency_names(&self) -> impl Iterator<Item = ModuleName> {
        let named = &self.spec.dependencies.named;
        named.iter().enumerate().map(|(place, wanted)| {
            let others = named.iter().take(place).filter(|other| other.name == wanted.name).count();
            let number = if others == 0 { String::new() } else { format!("-{}", others + 1) };
            ModuleName::from(format!("{}.{}{number}", self.spec.name, wanted.name))
        })
    }
}

impl Modules {
    /// Returns the charts that the chart of a module needs, each with the name under which it is worked on. A module whose
    /// directory is gone needs none.
    pub(crate) fn dependencies_of(&self, name: &ModuleName) -> Vec<(ModuleName, ChartDependency)> {
        let Some(module) = self.states.get(name).filter(|module| module.phase != Phase::Orphaned) else {
            return Vec::new();
        };
        module.dependency_names().zip(module.spec.dependencies.named.iter().cloned()).collect()
    }

    /// Returns the modules whose charts need others.
    pub(crate) fn with_dependencies(&self) -> BTreeSet<ModuleName> {
        let needs = self.states.values().filter(|module| !module.spec.dependencies.named.is_empty());
        needs.map(|module| module.spec.name.clone()).collect()
    }

    /// Returns the module that a name belongs to: its own, or that of a chart that its chart needs.
    pub(crate) fn owner_of(&self, name: &ModuleName) -> ModuleName {
        if self.states.contains_key(name) {
            return name.clone();
        }
        match name.as_str().split_once('.') {
            Some((owner, _)) => ModuleName::from(owner),
            None => name.clone(),
        }
    }

    /// Returns the module whose chart needs the one of this name, and its place there.
    pub(super) fn dependency_at(&self, name: &ModuleName) -> Option<(ModuleName, usize)> {
        let owner = self.owner_of(name);
        let module = self.states.get(&owner).filter(|_| owner != *name)?;
        let place = module.dependency_names().position(|known| known == *name)?;
        Some((owner, place))
    }

    pub(super) fn provision_of(&self, name: &ModuleName) -> Option<&Provision> {
        let (owner, place) = self.dependency_at(name)?;
        self.states.get(&owner)?.provisions.get(place)
    }

    /// Returns whether nothing is kept of a chart that the chart of a module needs.
    pub(crate) fn lacks_dependency(&self, name: &ModuleName) -> bool {
        matches!(self.provision_of(name), Some(Provision::Unknown | Provision::Elsewhere))
    }

    /// Records where a chart comes from that the chart of a module needs, unless it is kept already. Returns whether that ended
    /// the wait for it.
    pub(crate) fn set_provision(&mut self, name: &ModuleName, provision: Provision) -> bool {
        let Some((owner, place)) = self.dependency_at(name) else { return false };
        self.supply(&owner, place, provision)
    }

    pub(super) fn supply(&mut self, owner: &ModuleName, place: usize, provision: Provision) -> bool {
        let Some(module) = self.states.get_mut(owner) else { return false };
        let Some(known) = module.provisions.get_mut(place).filter(|known| **known != provision) else {
            return false;
        };
        let is_settled = provision.is_settled();
        *known = provision;
        let packages = packages(&module.provisions);
        if packages != module.spec.dependencies.packages {
            module.spec = Arc::new(module.spec.supplied_with(packages));
        }
        is_settled
    }
}

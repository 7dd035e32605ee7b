//! What modules are installed from: the packages of those that name a chart, and what charts read.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::provision::{Provision, packages};
use super::state::Release;
use super::{ModuleState, Modules, Phase};
use crate::addon::{SourceKey, SourceKind};
use crate::catalog::Module;
use crate::configuration::Configuration;
use crate::context::Context;
use crate::effect::ValuesInput;
use crate::failure::Failure;
use crate::name::{ModuleName, Scope};
use crate::package::{ChartReference, Package};
use crate::release_target::ReleaseTarget;

/// A module that is to come or to take the place of another one, where its release belongs, and what its chart would be rendered with; or why
/// the values do not fit it.
pub(crate) type PlannedInput = Result<((Arc<Module>, ReleaseTarget), ValuesInput), Failure>;

impl Modules {
    /// Returns the modules whose chart may be another one since the last call, or that were switched on or off and name one.
    pub(crate) fn take_chart_changes(&mut self) -> BTreeSet<ModuleName> {
        std::mem::take(&mut self.chart_changes)
    }

    /// Returns the chart that a module names. One whose directory is gone names none.
    pub(crate) fn chart_reference(&self, name: &ModuleName) -> Option<Arc<ChartReference>> {
        let module = self.states.get(name).filter(|module| module.phase != Phase::Orphaned)?;
        module.spec.chart.clone()
    }

    /// Returns how many runs of a module failed since it has its package, and whether one succeeded.
    pub(crate) fn package_runs(&self, name: &ModuleName) -> (u32, bool) {
        self.states.get(name).map_or((0, false), |module| (module.package_failures, module.is_package_good))
    }

    /// Returns whether a module has a package to be installed from, and it can be read as far as is known.
    pub(crate) fn has_package(&self, name: &ModuleName) -> bool {
        if let Some(provision) = self.provision_of(name) {
            return provision.is_settled();
        }
        self.states.get(name).is_some_and(|module| module.spec.package.is_some() && !module.is_package_lost)
    }

    /// Has a module installed from this package from now on. Returns whether that is another one than before.
    pub(crate) fn set_package(&mut self, name: &ModuleName, package: &Arc<Package>) -> bool {
        if let Some((owner, place)) = self.dependency_at(name) {
            return self.supply(&owner, place, Provision::Here(Arc::clone(package)));
        }
        let Some(module) = self.states.get_mut(name) else { return false };
        if module.spec.package.as_ref() == Some(package) {
            return false;
        }
        module.spec = Arc::new(module.spec.installed_from(package));
        (module.package_failures, module.is_package_good) = (0, false);
        self.waits.changed();
        module.is_package_lost = false;
        true
    }

    /// Records that the package of a module could not be read, for this reason: the module is held. Returns whether that concerns it: it names
    /// a chart.
    pub(crate) fn lose_package(&mut self, name: &ModuleName, why: &str) -> bool {
        let Some(module) = self.states.get_mut(name) else { return false };
        if module.spec.chart.is_some() {
            module.is_package_lost = true;
            return true;
        }
        module.lose_dependencies(why)
    }

    /// Returns whether the package of a module could not be read, and was not seen again since.
    pub(crate) fn is_package_lost(&self, name: &ModuleName) -> bool {
        if let Some(provision) = self.provision_of(name) {
            return matches!(provision, Provision::Lost(_));
        }
        self.states.get(name).is_some_and(|module| module.is_package_lost)
    }

    /// Records that the package of a module is there. Returns whether it was lost.
    pub(crate) fn regain_package(&mut self, name: &ModuleName) -> bool {
        if let Some(provision) = self.provision_of(name) {
            let Provision::Lost(package) = provision.clone() else { return false };
            return self.set_package(name, &package);
        }
        self.states.get_mut(name).is_some_and(|module| std::mem::take(&mut module.is_package_lost))
    }

    /// Returns the module as it was loaded, with the package that it has as long as it names a chart.
    pub(super) fn with_package(&self, new: &Arc<Module>) -> Arc<Module> {
        let Some(known) = self.states.get(&new.name) else { return Arc::clone(new) };
        let packages = packages(&known.carried(new));
        if !packages.is_empty() && new.dependencies.packages.is_empty() {
            return Arc::new(new.supplied_with(packages));
        }
        match known.spec.package.as_ref().filter(|_| new.chart.is_some() && new.package.is_none()) {
            Some(package) => Arc::new(new.installed_from(package)),
            None => Arc::clone(new),
        }
    }

    /// Records why a module has no package yet.
    pub(crate) fn hold(
        &mut self,
        cx: &mut Context,
        configuration: &Configuration,
        name: &ModuleName,
        why: &str,
    ) {
        let name = &self.owner_of(name);
        if self.states.get(name).is_some_and(|module| module.is_on() && module.is_held()) {
            self.set_phase(cx, configuration, name, Phase::Held, Some(why.to_owned()));
        }
    }

    /// Takes in that a module has all that it is installed from: it waits for its turn as others do.
    pub(crate) fn hold_no_more(
        &mut self,
        cx: &mut Context,
        configuration: &Configuration,
        name: &ModuleName,
    ) {
        let name = &self.owner_of(name);
        let is_over =
            |module: &ModuleState| module.phase == Phase::Held && module.is_on() && !module.is_held();
        if self.states.get(name).is_some_and(is_over) {
            self.set_phase(cx, configuration, name, Phase::Starting, None);
        }
    }

    /// Returns a module and where its release belongs, with the values that its chart would be rendered with now.
    pub(crate) fn chart_input(
        &self,
        configuration: &Configuration,
        name: &ModuleName,
    ) -> Option<((Arc<Module>, ReleaseTarget), ValuesInput)> {
        let module = Arc::clone(&self.states.get(name)?.spec);
        let input = self.input(configuration, &Scope::Module(name.clone()));
        let target = self.release_target(configuration, name);
        Some(((module, target), ValuesInput { enabled_modules: None, ..input }))
    }

    /// Returns a module that is to take the place of one of its name, with what its chart would be rendered with then.
    pub(crate) fn planned_input(
        &self,
        configuration: &Configuration,
        source: &SourceKey,
        new: &Arc<Module>,
    ) -> PlannedInput {
        let target = match source.kind {
            _ if self.states.contains_key(&new.name) => self.release_target(configuration, &new.name),
            SourceKind::Cluster => self.target_of(configuration, &new.name, Some(new)),
            SourceKind::Namespaced => ReleaseTarget::of_namespace(&source.namespace),
        };
        let module = self.with_package(new);
        let input = configuration.planned_input(&module)?;
        Ok(((module, target), ValuesInput { enabled_modules: None, ..input }))
    }

    /// Returns whether modules, or releases of modules that are not there, may be gone since the last call.
    pub(crate) fn take_departures(&mut self) -> bool {
        std::mem::take(&mut self.has_departures)
    }

    /// Returns whether a module is gone for good: no directory, no source and no release has it. It is as with releases: what only
    /// seems to be gone, because a directory could not be read or nobody knows the releases, is not.
    pub(crate) fn has_departed(&self, configuration: &Configuration, name: &ModuleName) -> bool {
        let owner = &self.owner_of(name);
        let is_there = self.states.contains_key(owner) || configuration.source_of(owner).is_some();
        let is_known =
            self.complete && self.are_releases_known && self.ownerless.is_listed(&self.own_target());
        !is_there && is_known && !self.ownerless.has(owner)
    }

    /// Returns whether a module that is there is off, and nothing is left of it; or whether it does not name a chart any more.
    pub(crate) fn is_removed(&self, name: &ModuleName) -> bool {
        let owner = &self.owner_of(name);
        let Some(module) = self.states.get(owner) else { return false };
        // What can't be read may name it still.
        let is_read = module.phase != Phase::Orphaned && module.spec.broken.is_none();
        let is_named =
            if owner == name { module.spec.chart.is_some() } else { self.dependency_at(name).is_some() };
        if !is_named {
            return is_read;
        }
        let has_release = match module.release {
            Release::Absent => false,
            Release::Unknown => !self.are_releases_known,
            Release::Broken | Release::Deployed { .. } | Release::Unmanaged => true,
        };
        module.is_decided() && !module.is_on() && !module.is_active && !has_release
    }
}

//! Where the releases of modules belong, and where each is.

use std::collections::BTreeSet;

use super::state::Release;
use super::{ModuleState, Modules, Phase};
use crate::catalog::Module;
use crate::configuration::Configuration;
use crate::context::Context;
use crate::effect::Effect;
use crate::failure::{Failure, FailureKind};
use crate::name::{ModuleName, ReleaseName};
use crate::release_target::ReleaseTarget;
use crate::task::{ModuleDelete, ModulePurge, TaskKind};

impl Modules {
    /// Returns where the release of a module belongs: with its files or with a configuration for the whole cluster the place
    /// that its files name, and with a configuration of one namespace that one, with no more rights than were given there.
    pub(crate) fn release_target(&self, configuration: &Configuration, name: &ModuleName) -> ReleaseTarget {
        let files = self.states.get(name).map(|module| &*module.spec);
        self.target_of(configuration, name, files)
    }

    /// Returns where the release of a module belongs that has these files, if any.
    pub(super) fn target_of(
        &self,
        configuration: &Configuration,
        name: &ModuleName,
        files: Option<&Module>,
    ) -> ReleaseTarget {
        let is_built_in = files.is_some_and(|files| files.origin.digest().is_none());
        if let Some(namespace) = configuration.namespace_of(name).filter(|_| !is_built_in) {
            return ReleaseTarget::of_namespace(namespace);
        }
        let named = files.and_then(|files| files.namespace.as_deref());
        ReleaseTarget::of_operator(named.unwrap_or(&self.config.namespace))
    }

    /// Returns where the operator's own modules are that name no other place.
    pub(super) fn own_target(&self) -> ReleaseTarget {
        ReleaseTarget::of_operator(&self.config.namespace)
    }

    /// Returns where there may be releases of ours: the operator's own namespace first, then those that modules belong to.
    pub(crate) fn release_targets(&self, configuration: &Configuration) -> Vec<ReleaseTarget> {
        let own = self.own_target();
        let with_files = self.states.keys().map(|name| self.release_target(configuration, name));
        let of_sources = configuration.namespaces().map(ReleaseTarget::of_namespace);
        let left = self.states.values().flat_map(|module| module.places.all_left().cloned());
        let others: BTreeSet<ReleaseTarget> =
            with_files.chain(of_sources).chain(left).filter(|target| *target != own).collect();
        std::iter::once(own).chain(others).collect()
    }

    /// Returns where the release of a module is, or belongs if it is not known to be anywhere.
    pub(crate) fn release_place(&self, configuration: &Configuration, name: &ModuleName) -> ReleaseTarget {
        let known = self.states.get(name).and_then(|module| module.places.next());
        known.cloned().unwrap_or_else(|| self.release_target(configuration, name))
    }

    /// Returns where the release of a module was before it came to where it is, if it is still there, too.
    pub(crate) fn left_place(&self, name: &ModuleName) -> Option<ReleaseTarget> {
        self.states.get(name)?.places.next_left().cloned()
    }

    /// Returns whether there may be a release of a module in a place, for all that is known.
    pub(crate) fn may_be_in(&self, name: &ModuleName, target: &ReleaseTarget) -> bool {
        self.states.get(name).is_none_or(|module| module.places.has(target))
    }

    /// Records where releases of a module may be, if it is on record that it was to leave a namespace: an operator before this one may
    /// have ended on its way from there.
    pub(super) fn note_left(&mut self, configuration: &Configuration, name: &ModuleName) {
        let wanted = self.release_target(configuration, name);
        let own = &self.config.namespace;
        let left = configuration.left_namespaces(name).map(|left| left.unwrap_or(own));
        let left: Vec<ReleaseTarget> =
            left.map(ReleaseTarget::of_operator).filter(|target| *target != wanted).collect();
        let is_of_bundle = |module: &&mut ModuleState| module.spec.origin.digest().is_some();
        let Some(module) = self.states.get_mut(name).filter(is_of_bundle) else { return };
        if !left.is_empty() {
            module.places.found(&wanted, &wanted);
        }
        for target in &left {
            module.places.found(target, &wanted);
        }
    }

    /// Records that there may be releases from before this start of modules of namespaces that are on. The run of one may stand behind
    /// another that does not come to an end; if it is withdrawn meanwhile, what is there has to be removed all the same.
    pub(crate) fn expect_guests(&mut self, configuration: &Configuration) {
        let unseen = self
            .states
            .iter_mut()
            .filter(|(_, module)| !module.is_active && module.release == Release::Unknown && module.is_on());
        for (name, module) in unseen {
            module.is_active =
                configuration.namespace_of(name).is_some() && !module.has_no_release(configuration);
        }
    }

    /// Returns whether there is a release of a module anywhere.
    pub(crate) fn is_somewhere(&self, name: &ModuleName) -> bool {
        self.states.get(name).is_some_and(|module| module.places.next().is_some())
    }

    /// Records that the release of a name in a place is none of the module that has the name now.
    pub(crate) fn give_up_place(&mut self, cx: &mut Context, name: &ModuleName, target: &ReleaseTarget) {
        let Some(module) = self.states.get_mut(name) else { return };
        if module.places.give_up(target) && std::mem::take(&mut module.release_watched) {
            cx.push(Effect::ForgetRelease { module: name.clone(), target: target.clone() });
        }
    }

    /// Records that a release is gone from a place.
    pub(super) fn place_left(&mut self, release: &ReleaseName, target: &ReleaseTarget) {
        let name = ModuleName::from(release.as_str());
        if let Some(module) = self.states.get_mut(&name) {
            module.places.removed(target);
            // It may be on record that it is to leave this place.
            self.changed.insert(name);
        }
    }

    /// Returns what removes the release of a module, or why that may not be.
    pub(crate) fn removal(
        &self,
        configuration: &Configuration,
        name: &ModuleName,
    ) -> Result<TaskKind, Failure> {
        let release = ReleaseName::from(name.as_str());
        if self.config.ignore_release.as_ref() == Some(&release) {
            let message = format!("release {name} is the operator's own (HELM_IGNORE_RELEASE)");
            return Err(Failure::new(FailureKind::Release, message));
        }
        match self.states.get(name) {
            Some(module) if module.is_on() => {
                let message = format!("module {name} is enabled, its release is in use");
                Err(Failure::new(FailureKind::Release, message)
                    .advise(format!("`addon-operator module disable {name}` removes it with its hooks")))
            }
            Some(module) if module.phase != Phase::Orphaned => {
                Ok(TaskKind::ModuleDelete(ModuleDelete::new(name.clone())))
            }
            Some(_) | None => {
                let target = self.release_place(configuration, name);
                Ok(TaskKind::ModulePurge(ModulePurge { release, target }))
            }
        }
    }
}

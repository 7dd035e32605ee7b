//! The modules of bundles: which configuration of sources brought each, and what that means for whether it is on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Configuration;
use super::decision::Sourced;
use crate::addon::{RegisteredAddon, Registry, SourceKey, SourceKind};
use crate::catalog::{EnabledFlag, Module, Origin};
use crate::name::{ModuleName, QueueName};

/// What differs in which modules bundles bring.
#[derive(Debug, Default)]
pub(crate) struct SourcedChange {
    /// Whether others say from now on which modules are on.
    pub(crate) is_other: bool,
    /// The modules that are withdrawn from now on.
    pub(crate) withdrawn: BTreeSet<ModuleName>,
}

impl Configuration {
    /// Records which modules bundles bring. Returns what differs in that.
    pub(crate) fn set_sourced(&mut self, registry: &Registry) -> SourcedChange {
        let before = std::mem::replace(&mut self.registered, registry.addons.clone());
        let (gone, came) = before.differing(&self.registered);
        let modules = |lists: Vec<&'_ Arc<Vec<RegisteredAddon>>>| -> BTreeMap<ModuleName, Sourced> {
            let addons = lists.into_iter().flat_map(|addons| addons.iter()).filter(|addon| addon.is_active);
            addons.map(|addon| (addon.bundle.name.clone(), Sourced::of(addon))).collect()
        };
        // What is as it was is not looked up: of ten modules of a configuration, one may differ.
        let (mut gone, came) = (modules(gone), modules(came));
        let mut change = SourcedChange::default();
        for (name, now) in came {
            let before = gone.remove(&name);
            if !before.as_ref().is_some_and(|before| before.is_like(&now)) {
                self.undecided.add(&name);
                change.is_other = true;
            }
            if now.is_withdrawn && !before.as_ref().is_some_and(|before| before.is_withdrawn) {
                change.withdrawn.insert(name.clone());
            }
            if before.as_ref() != Some(&now) {
                self.sourced.insert(name, now);
            }
        }
        for name in gone.keys() {
            self.undecided.add(name);
            self.sourced.remove(name);
            change.is_other = true;
        }
        change
    }

    /// Returns the configuration of sources that brought a module, if one did.
    pub(crate) fn source_of(&self, name: &ModuleName) -> Option<&SourceKey> {
        Some(&self.sourced.get(name)?.source)
    }

    /// Iterates over the modules that bundles bring, whether they are there or not.
    pub(crate) fn sourced_names(&self) -> impl Iterator<Item = &ModuleName> {
        self.sourced.keys()
    }

    /// Iterates over the namespaces where releases of a module may be left, as is on record; none of a name is the operator's own.
    pub(crate) fn left_namespaces(&self, name: &ModuleName) -> impl Iterator<Item = Option<&str>> {
        let sourced = self.sourced.get(name).into_iter();
        sourced.flat_map(|sourced| &sourced.left_namespaces).map(Option::as_deref)
    }

    /// Returns the namespace of the configuration that brought a module, if that is one of a namespace.
    pub(crate) fn namespace_of(&self, name: &ModuleName) -> Option<&str> {
        let source = self.source_of(name).filter(|source| source.kind == SourceKind::Namespaced)?;
        Some(&source.namespace)
    }

    /// Returns the queue that a module runs in, if a configuration of a namespace brought it: whoever may write one in a namespace
    /// holds up nobody in others.
    pub(crate) fn guest_queue(&self, name: &ModuleName) -> Option<QueueName> {
        self.namespace_of(name).map(QueueName::of_namespace)
    }

    /// Iterates over the namespaces whose configurations brought modules, in no particular order and perhaps more than once.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.sourced.keys().filter_map(|name| self.namespace_of(name))
    }

    /// Records of which modules of namespaces nothing was released, and of no others.
    pub(crate) fn set_all_unreleased(&mut self, modules: impl Iterator<Item = (Arc<str>, ModuleName)>) {
        self.unreleased = modules.collect();
    }

    /// Records whether nothing of a module of a namespace was released.
    pub(crate) fn set_unreleased(&mut self, module: (Arc<str>, ModuleName), is_unreleased: bool) {
        if is_unreleased {
            self.unreleased.insert(module);
        } else {
            self.unreleased.remove(&module);
        }
    }

    /// Returns whether a module is one of a namespace, and it is on record that nothing of it was released there.
    pub(crate) fn is_unreleased(&self, name: &ModuleName) -> bool {
        let source = self.source_of(name).filter(|source| source.kind == SourceKind::Namespaced);
        source.is_some_and(|source| self.unreleased.contains(&(Arc::clone(&source.namespace), name.clone())))
    }

    /// Returns the configuration of sources that withdraws a module, if one does.
    pub(crate) fn withdrawn_by(&self, name: &ModuleName) -> Option<&SourceKey> {
        self.sourced.get(name).filter(|sourced| sourced.is_withdrawn).map(|sourced| &sourced.source)
    }

    /// Returns whether a module that is withdrawn was never on when that was decided.
    pub(crate) fn was_never_on(&self, name: &ModuleName) -> bool {
        self.sourced.get(name).is_some_and(|sourced| sourced.was_never_on)
    }

    /// Returns what files say about whether a module is on. A bundle has a say only where its configuration lets it.
    pub(super) fn static_flag<'m>(&self, module: &'m Module) -> Option<&'m EnabledFlag> {
        let own = match &module.origin {
            Origin::Bundle { enabled, .. } => enabled.as_ref(),
            Origin::Files => None,
        };
        let is_heard = || self.sourced.get(&module.name).is_some_and(|sourced| sourced.auto_enable);
        own.filter(|_| is_heard()).or(module.enabled.as_ref())
    }
}

//! The charts that the charts of modules need, as far as they come from Repositories. Each is worked on as the chart of a module.

use std::sync::Arc;
use std::time::Duration;

use super::repositories::Repositories;
use crate::module::{Lower, Modules, Provision};
use crate::name::ModuleName;
use crate::package::{ChartDependency, ChartReference, Pin};

/// From where a chart comes that the chart of a module needs.
enum DependencySource {
    /// Nobody knows yet which Repositories there are.
    Unknown,
    Elsewhere,
    Repository(Arc<str>),
}

impl Repositories {
    /// Takes in which charts the chart of a module needs, and from where each comes.
    pub(super) fn observe_dependencies(
        &mut self,
        modules: &mut Modules,
        lower: &mut Lower<'_>,
        owner: &ModuleName,
    ) {
        let needed = modules.dependencies_of(owner);
        let prefix = format!("{owner}.");
        let is_old = |name: &&ModuleName| {
            name.as_str().starts_with(&prefix) && !needed.iter().any(|(known, _)| known == *name)
        };
        let old: Vec<ModuleName> =
            self.modules.keys().chain(self.pins.keys()).filter(is_old).cloned().collect();
        for name in old {
            if let Some(pin) = self.pins.remove(&name) {
                self.modules.entry(name.clone()).or_default().pin = Some(pin);
            }
            self.observe_module(modules, lower, &name, None);
        }
        for (name, dependency) in needed {
            let known = self.modules.get(&name).and_then(|module| module.pin.as_ref());
            let pin = known.or_else(|| self.pins.get(&name));
            let provision = match self.source_of(&dependency, pin) {
                DependencySource::Unknown => Provision::Unknown,
                DependencySource::Elsewhere => Provision::Elsewhere,
                DependencySource::Repository(repository) => {
                    let reference = ChartReference {
                        repository,
                        name: Arc::clone(&dependency.name),
                        version: Arc::clone(&dependency.version),
                        auto_upgrade: false,
                        min_age: Duration::ZERO,
                    };
                    if modules.lacks_dependency(&name) {
                        modules.set_provision(&name, Provision::Awaited);
                    }
                    self.observe_module(modules, lower, &name, Some(&Arc::new(reference)));
                    continue;
                }
            };
            let is_unknown = provision == Provision::Unknown;
            if modules.set_provision(&name, provision) {
                self.repackaged.insert(owner.clone());
            }
            self.observe_module(modules, lower, &name, None);
            if is_unknown {
                let why = format!(
                    "which Repository has chart {:?} of {} is not known yet",
                    &*dependency.name, dependency.repository
                );
                modules.hold(lower.cx, lower.configuration, &name, &why);
            }
        }
    }

    /// Returns from where a chart comes: from the Repository that is named, or from one with the URL. `pin` is what it came to
    /// before: that stays, whatever becomes of its Repository.
    fn source_of(&self, dependency: &ChartDependency, pin: Option<&Pin>) -> DependencySource {
        let url = dependency.repository.trim_end_matches('/');
        if let Some(name) = url.strip_prefix("catalog://") {
            return DependencySource::Repository(name.into());
        }
        if self.config.chart_workers == 0 {
            return DependencySource::Elsewhere;
        }
        let has_url = |name: &&Arc<str>| {
            let access = self.repositories.get(*name).and_then(|repository| repository.access(name));
            access.is_some_and(|access| access.url.trim_end_matches('/') == url)
        };
        let pinned =
            pin.filter(|pin| pin.package.chart == dependency.name && pin.constraint == dependency.version);
        let pinned = || pinned.map(|pin| DependencySource::Repository(Arc::clone(&pin.package.repository)));
        if self.watches.are_all_listed() {
            let found = self.repositories.keys().find(has_url);
            return found
                .cloned()
                .map(DependencySource::Repository)
                .or_else(pinned)
                .unwrap_or(DependencySource::Elsewhere);
        }
        let is_off = !self.config.are_repository_kinds_served && self.watches.is_off();
        pinned().unwrap_or(if is_off { DependencySource::Elsewhere } else { DependencySource::Unknown })
    }
}

//! Pictures of configurations of sources for people.

use std::collections::BTreeMap;

use super::known::work_key;
use super::sources::Sources;
use super::status::SourcePhase;
use crate::addon::{RegisteredAddon, SourceKey, SourceKind, shown_url};
use crate::time::Time;
use crate::view::{
    ModuleOriginView, ModuleView, QueueView, SourceAddonView, SourceRepositoryView, SourceView,
};

impl Sources {
    /// Returns a number that is another one when something changed of which configurations there are, or of what they
    /// registered; `None` while that is not known.
    pub(crate) fn edition(&self) -> Option<u64> {
        let are_listed =
            [SourceKind::Cluster, SourceKind::Namespaced].iter().all(|kind| self.watches.is_listed(*kind));
        let is_looked_after = self.config.source_workers > 0;
        (is_looked_after && (self.watches.is_off() || are_listed)).then_some(self.edition)
    }

    /// Iterates over the configurations that are there.
    pub(crate) fn configurations(&self) -> impl Iterator<Item = &SourceKey> {
        self.known.iter().filter(|(_, source)| source.object.is_some()).map(|(key, _)| key)
    }

    /// Iterates over the addons that are registered, in the version that is a module.
    pub(crate) fn offered(&self) -> impl Iterator<Item = &RegisteredAddon> {
        self.registration.iter().filter(|addon| addon.is_active && addon.is_registered())
    }

    /// Returns a picture of all configurations.
    pub(crate) fn views(&self, now: Time) -> Vec<SourceView> {
        let view = |(key, source): (&SourceKey, &super::known::Source)| {
            let object = source.object.as_ref()?;
            let status = source.desired.as_ref().unwrap_or(&object.status);
            let repositories = status.repositories.iter().map(|line| SourceRepositoryView {
                url: shown_url(&line.url).into_owned(),
                phase: line.status.as_str(),
                reason: line.reason.clone(),
                message: line.message.clone(),
                addons: line
                    .addons
                    .iter()
                    .map(|addon| SourceAddonView {
                        name: addon.name.clone(),
                        version: addon.version.clone(),
                        digest: addon.digest.clone(),
                        phase: addon.status.as_str(),
                        reason: addon.reason.clone(),
                        message: addon.message.clone(),
                        module: addon
                            .module
                            .as_ref()
                            .map(|module| (module.name.clone(), module.state.into())),
                        module_message: addon
                            .module
                            .as_ref()
                            .map(|module| module.message.clone())
                            .unwrap_or_default(),
                        unlisted: addon.unlisted(),
                    })
                    .collect(),
            });
            // As the object says.
            let is_ending = object.is_deleting && source.phase() == SourcePhase::Ready;
            let phase = if is_ending { SourcePhase::Pending } else { source.phase() };
            Some(SourceView {
                key: key.clone(),
                phase: phase.as_str(),
                message: status.message.clone(),
                modules: status.modules.clone(),
                generation: object.generation,
                observed_generation: status.observed_generation,
                is_deleting: object.is_deleting,
                waits_for: source.waits_for.clone(),
                is_suspended: source.is_suspended(),
                is_left_alone: source.is_left_alone(),
                processed_at: object.processed_at.clone(),
                processed_in: source.process_at.map(|at| at.since(now)),
                work: self.reconciles.view_of(&work_key(key), now),
                repositories: repositories.collect(),
            })
        };
        self.known.iter().filter_map(view).collect()
    }

    /// Adds to the pictures of modules which configuration brought them.
    pub(crate) fn add_origins(&self, modules: &mut [ModuleView], now: Time) {
        let addons = self.registration.iter().filter(|addon| addon.is_active);
        let by_name: BTreeMap<_, _> = addons.map(|addon| (&addon.bundle.name, addon)).collect();
        for module in modules {
            module.origin = by_name.get(&module.name).map(|addon| ModuleOriginView {
                source: addon.source.clone(),
                url: shown_url(&addon.url).into_owned(),
                version: addon.bundle.version.clone(),
                digest: addon.bundle.digest.clone(),
                is_retained: addon.is_retained,
                held_back: addon.held_back.as_ref().map(|held| self.held_text(now, addon, held)),
            });
        }
    }

    /// Adds the work on configurations to the pictures of queues.
    pub(crate) fn add_queue_view(&self, queues: &mut Vec<QueueView>, most_tasks: usize, now: Time) {
        self.reconciles.add_view(queues, most_tasks, now);
    }
}

//! Bundles that a start could not restore: their configurations are fetched again, and until then hold up nobody else.

use std::collections::BTreeSet;

use super::sources::Sources;
use super::status::lost_text;
use crate::addon::{Digest, Fetched, RegisteredAddon};
use crate::context::Context;
use crate::module::Modules;
use crate::name::Scope;
use crate::notice::Notice;

impl Sources {
    /// Looks which configurations can't be taken at their word: `lost` are the bundles that could not be restored.
    pub(crate) fn doubt(&mut self, modules: &Modules, lost: &BTreeSet<Digest>) {
        self.lost.clone_from(lost);
        self.unloaded.clone_from(lost);
        let is_odd = |addon: &&RegisteredAddon| {
            let is_taken = addon.is_active && modules.built_in(&addon.bundle.name).is_some();
            is_taken || addon.is_displaced() || self.is_lost(addon)
        };
        self.unsettled = self.registration.iter().filter(is_odd).map(|addon| addon.source.clone()).collect();
        self.removals.want();
    }

    /// Warns of what is lost. Each configuration is fetched again by itself.
    pub(super) fn warn_of_lost(&self, cx: &mut Context) {
        for key in self.registration.sources() {
            let lost = self.registration.lost_of(key, &self.lost);
            if !lost.is_empty() {
                let message = format!("{}; {key} is fetched again", lost_text(&lost));
                cx.notify(Notice::Warned { scope: Scope::Global, message });
            }
        }
    }

    /// Returns whether the bundle of an addon is lost.
    pub(super) fn is_lost(&self, addon: &RegisteredAddon) -> bool {
        self.lost.contains(&addon.bundle.digest)
    }

    /// Returns whether the bundle of an addon was lost, and its module is not there yet.
    pub(super) fn is_unloaded(&self, modules: &Modules, addon: &RegisteredAddon) -> bool {
        self.unloaded.contains(&addon.bundle.digest) && modules.get(&addon.bundle.name).is_none()
    }

    /// Records that bundles were fetched: they are lost no more.
    pub(super) fn found(&mut self, fetched: &Fetched) {
        let addons = fetched.repositories.iter().flat_map(|repository| repository.outcome.iter().flatten());
        for bundle in addons.filter_map(|addon| addon.outcome.as_ref().ok()) {
            if self.lost.remove(&bundle.digest) {
                self.commits.restored();
            }
        }
    }
}

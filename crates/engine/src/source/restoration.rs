//! Bundles that a start could not restore: their configurations are fetched again, and until then hold up nobody else. Also what
//! objects say of a registry that is lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::object::SourceObject;
use super::pass::{Go, Pass};
use super::registration::Change;
use super::sources::Sources;
use super::status::lost_text;
use crate::addon::{Digest, Fetched, RegisteredAddon, SourceKey, SourceKind};
use crate::context::Context;
use crate::effect::Effect;
use crate::hook::snapshot::Item;
use crate::module::Modules;
use crate::name::Scope;
use crate::notice::Notice;
use crate::reconcile::Step;

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

    /// Takes up what the first list of objects of a kind says is registered, if the registry is lost. Their releases are there
    /// still, and maybe their bundles.
    pub(super) fn take_up<'i>(
        &mut self,
        cx: &mut Context,
        objects: impl Iterator<Item = (SourceKey, &'i Arc<Item>)>,
    ) {
        let read = |(key, item): (SourceKey, &'i Arc<Item>)| {
            let object = SourceObject::read(&key, item.object().unwrap_or_default());
            (key, object)
        };
        let Ok(nothing) = format!("sha256:{}", "0".repeat(64)).parse::<Digest>() else { return };
        let is_ready = |(_, object): &(SourceKey, SourceObject)| object.status.was_ready();
        // Of two that name a module, it is that of the one that is ready.
        let (ready, others): (Vec<_>, Vec<_>) = objects.map(read).partition(is_ready);
        let (mut change, mut names) = (Change::default(), BTreeSet::new());
        for (key, object) in ready.into_iter().chain(others) {
            let mut addons = object.registered(&key);
            if key.kind == SourceKind::Namespaced {
                // Who can write a status in a namespace must not get what others offer by its digest: that is fetched.
                for addon in &mut addons {
                    addon.bundle.digest = nothing.clone();
                }
            }
            addons.retain(|addon| {
                let name = &addon.bundle.name;
                self.registration.source_of(name).is_none() && names.insert(name.clone())
            });
            if addons.is_empty() {
                continue;
            }
            let of_it: Vec<String> = addons
                .iter()
                .map(|addon| format!("{} {}", addon.bundle.name, addon.bundle.version))
                .collect();
            let message = format!(
                "the registry of module sources is not there, and {key} says that it registered {}; that is taken up again",
                of_it.join(", ")
            );
            cx.notify(Notice::Warned { scope: Scope::Global, message });
            let digests = addons.iter().map(|addon| addon.bundle.digest.clone());
            self.lost.extend(digests.clone());
            self.unloaded.extend(digests.clone());
            self.unrestored.extend(digests.filter(|digest| *digest != nothing));
            self.registration.add(&mut change, &key, addons);
            self.unsettled.insert(key);
        }
        if change.is_empty() {
            return;
        }
        self.commits.registered(&self.registration, &change);
        self.first_releases.changed(change.iter().flat_map(|(_, addons)| addons));
        self.registration.apply(change);
        self.edition += 1;
    }

    /// Begins to look in the cluster for bundles of a configuration, if nobody has done that yet.
    pub(super) fn restore_bundles(&mut self, cx: &mut Context, key: &SourceKey) -> Option<Go> {
        let bundles = self.registration.of(key).iter().map(|addon| &addon.bundle.digest);
        let digests: Vec<Digest> =
            bundles.filter(|digest| self.unrestored.contains(*digest)).cloned().collect();
        if digests.is_empty() {
            return None;
        }
        for digest in &digests {
            self.unrestored.remove(digest);
        }
        let run = cx.ids.run();
        let effect = Effect::RestoreBundles { run, digests: digests.clone() };
        Some(Go::Stop(Pass::Restoring(digests), Step::Write(run, Box::new(effect))))
    }

    /// Records that bundles are there again, but for those that are `lost` still.
    pub(super) fn restored(&mut self, digests: &[Digest], lost: &BTreeSet<Digest>) {
        let mut is_any = false;
        for digest in digests.iter().filter(|digest| !lost.contains(*digest)) {
            if self.lost.remove(digest) {
                self.commits.restored();
                is_any = true;
            }
        }
        if is_any {
            self.commits.load_again();
        }
    }

    /// Waits until the modules are there whose bundles were found again for a configuration.
    pub(super) fn await_restored(&mut self, key: &SourceKey) -> Option<Step> {
        let is_found =
            |addon: &RegisteredAddon| self.unloaded.contains(&addon.bundle.digest) && !self.is_lost(addon);
        let is_any = self.registration.of(key).iter().any(|addon| addon.is_active && is_found(addon));
        if !is_any || self.commits.wanted() == self.commits.in_force() {
            return None;
        }
        self.commits.wait_for(self.commits.wanted(), key);
        Some(Step::Wait("its modules, whose bundles were found again".to_owned()))
    }

    /// Warns of what is lost. Each configuration is fetched again by itself.
    pub(super) fn warn_of_lost(&self, cx: &mut Context) {
        for key in self.registration.sources() {
            let mut lost = self.registration.lost_of(key, &self.lost);
            lost.retain(|bundle| !self.unrestored.contains(&bundle.digest));
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

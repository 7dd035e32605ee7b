//! What is announced about a configuration: changes of its phase, modules that go on without it, and its end. Each once.

use std::collections::BTreeSet;

use super::registration::Change;
use super::sources::Sources;
use super::status::SourcePhase;
use crate::addon::{DeletionPolicy, RegisteredAddon, SourceKey, SourceReference};
use crate::context::Context;
use crate::effect::{Announcement, Effect};
use crate::module::Modules;
use crate::name::ModuleName;
use crate::notice::Notice;

impl Sources {
    /// Announces that a configuration became ready, or failed.
    pub(super) fn announce_phase(
        &self,
        cx: &mut Context,
        key: &SourceKey,
        phase: SourcePhase,
        message: &str,
    ) {
        let is_ready = phase == SourcePhase::Ready;
        let (reason, word) = if is_ready { ("SourceReady", "ready") } else { ("SourceFailed", "failed") };
        let message = format!("{key} is {word}: {message}");
        cx.notify(Notice::SourceChanged { is_ready, message: message.clone() });
        self.announce(cx, key, (!is_ready, reason), message);
    }

    /// Announces which modules go on after a change that were registered before. Of a lost bundle only the release does.
    pub(super) fn announce_retained(&self, modules: &Modules, cx: &mut Context, change: &Change) {
        for (key, addons) in change.iter() {
            let goes_on = |addon: &&RegisteredAddon| addon.is_active && addon.is_retained;
            let before: BTreeSet<&ModuleName> =
                self.registration.of(key).iter().filter(goes_on).map(|addon| &addon.bundle.name).collect();
            let is_new = |addon: &&RegisteredAddon| goes_on(addon) && !before.contains(&addon.bundle.name);
            let is_lost = |addon: &&RegisteredAddon| self.is_unloaded(modules, addon);
            let (lost, there): (Vec<_>, Vec<_>) = addons.iter().filter(is_new).partition(is_lost);
            let of_lost =
                "their bundles are lost, so they are not there, and their releases stay as they are";
            for (addons, what) in [(there, "they go on"), (lost, of_lost)] {
                if addons.is_empty() {
                    continue;
                }
                let names: Vec<&str> = addons.iter().map(|addon| addon.bundle.name.as_str()).collect();
                let message =
                    format!("{key} does not bring these modules any more; {what}: {}", names.join(", "));
                self.announce(cx, key, (true, "ModulesRetained"), message);
            }
        }
    }

    /// Announces that everything was done for a configuration that is deleted.
    pub(super) fn announce_end(&mut self, cx: &mut Context, key: &SourceKey) {
        let Some(source) = self.known.get_mut(key) else { return };
        let Some(object) = &source.object else { return };
        // Who had no modules leaves nothing behind that anybody would look for.
        let had_modules = object.status.addons().any(|line| line.module.is_some());
        if !had_modules || std::mem::replace(&mut source.is_end_announced, true) {
            return;
        }
        let fate = match object.spec.deletion_policy {
            DeletionPolicy::Delete => "its modules are removed",
            DeletionPolicy::Retain => "its modules go on",
        };
        self.announce(cx, key, (false, "SourceRemoved"), format!("{key} is deleted: {fate}"));
    }

    /// Announces something about a module on the object of the configuration that has it.
    pub(crate) fn announce_of_module(
        &self,
        cx: &mut Context,
        name: &ModuleName,
        told: (bool, &'static str),
        message: String,
    ) {
        if let Some(key) = self.registration.source_of(name) {
            self.announce(cx, key, told, message);
        }
    }

    /// Announces something about the object of a configuration, if that is still there.
    pub(super) fn announce(
        &self,
        cx: &mut Context,
        key: &SourceKey,
        (warning, reason): (bool, &'static str),
        message: String,
    ) {
        let object = self.known.get(key).and_then(|source| source.object.as_ref());
        let Some(uid) = object.map(|object| object.uid.clone()) else { return };
        let source = Some(SourceReference { key: key.clone(), uid });
        cx.push(Effect::Announce(Announcement {
            module: None,
            source,
            object: None,
            warning,
            reason,
            message,
        }));
    }
}

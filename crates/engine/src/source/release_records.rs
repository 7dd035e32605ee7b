//! Which modules of namespaces may have a release. That is on record before the first revision of one is written, so that a
//! configuration which never released anything can be deleted by who has no rights in its namespace, also after a restart.
//!
//! ```text
//! registered: unreleased ─▶ the first revision is due ─▶ the registry is written ─▶ the run of the module goes on
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use super::first_releases::guest_module;
use super::registration::Change;
use super::sources::Sources;
use crate::addon::{RegisteredAddon, SourceKind};
use crate::module::{Lower, Modules};
use crate::name::ModuleName;

impl Sources {
    /// Iterates over the modules of namespaces of which nothing was released.
    pub(crate) fn unreleased(&self) -> impl Iterator<Item = (Arc<str>, ModuleName)> {
        // Who looks after no sources writes no registry.
        let is_written = self.config.source_workers > 0;
        let modules: BTreeSet<_> = self.registration.iter().filter_map(guest_module).collect();
        let is_unreleased =
            move |(namespace, name): &(Arc<str>, ModuleName)| self.has_no_release(namespace, name);
        modules.into_iter().filter(move |_| is_written).filter(is_unreleased)
    }

    /// Handles that the first revision of a module is to be written.
    pub(crate) fn release_due(&mut self, name: &ModuleName) {
        self.first_releases.due.insert(name.clone());
        self.first_releases.is_wanted = true;
    }

    /// Returns whether the first revision of a module waits until it is on record.
    pub(crate) fn records_release(&self, name: &ModuleName) -> bool {
        self.first_releases.due.contains(name)
    }

    /// Returns whether the run of a module does not begin yet: the module is registered no more, or is about not to be. It goes as soon
    /// as that is in force, and nobody would know of what it released meanwhile.
    pub(crate) fn holds_back(&mut self, modules: &Modules, name: &ModuleName) -> bool {
        let is_leaving = self.is_leaving(modules, name);
        if is_leaving {
            self.first_releases.held_back.insert(name.clone());
        }
        is_leaving
    }

    fn is_leaving(&self, modules: &Modules, name: &ModuleName) -> bool {
        if self.config.source_workers == 0 || modules.bundle_of(name).is_none() {
            return false;
        }
        let Some(key) = self.registration.source_of(name) else { return true };
        self.next.as_ref().is_some_and(|change| change.drops(key, name))
    }

    /// Returns whether there is a module whose first revision is due, and is to be put on record.
    pub(super) fn is_any_due(&self) -> bool {
        self.first_releases.due.iter().any(|name| self.due_of(name).is_some())
    }

    /// Returns whether there is one more than when this was asked last. What can't be written is tried again later, and not at once.
    pub(super) fn is_another_due(&mut self) -> bool {
        std::mem::take(&mut self.first_releases.is_wanted) && self.is_any_due()
    }

    /// Records in `change` that the modules may have releases whose first revisions are due.
    pub(super) fn record_due(&self, change: &mut Change) {
        for name in &self.first_releases.due {
            if let Some(addon) = self.due_of(name) {
                self.registration.record_release(change, &addon.source, name);
            }
        }
    }

    /// Tells what is on record now, and has modules go on that waited for it.
    pub(super) fn tell_releases(&mut self, modules: &Modules, lower: &mut Lower<'_>) {
        for module in std::mem::take(&mut self.first_releases.changed) {
            let is_unreleased = self.has_no_release(&module.0, &module.1);
            lower.configuration.set_unreleased(module, is_unreleased);
        }
        // One that is another configuration's by now, or being removed, waits until that is in force.
        let is_over = |name: &ModuleName| !lower.configuration.is_unreleased(name);
        let mut over: BTreeSet<ModuleName> = self.first_releases.due.extract_if(.., is_over).collect();
        for name in std::mem::take(&mut self.first_releases.held_back) {
            if !self.holds_back(modules, &name) {
                over.insert(name);
            }
        }
        if !over.is_empty() {
            let is_its = |name: Option<&ModuleName>| name.is_some_and(|name| over.contains(name));
            lower.queues.take_back(|task| is_its(task.module_run().map(|run| &run.module)));
        }
    }

    /// Returns whether a module of a namespace has no release there, as is on record.
    fn has_no_release(&self, namespace: &Arc<str>, name: &ModuleName) -> bool {
        let mut addons = self.registration.of_namespace(namespace, name).peekable();
        addons.peek().is_some() && addons.all(|addon| addon.is_unreleased)
    }

    /// Returns the addon of a module that has no release and may get one.
    fn due_of(&self, name: &ModuleName) -> Option<&RegisteredAddon> {
        let key = self.registration.source_of(name).filter(|key| key.kind == SourceKind::Namespaced)?;
        let addon = self.registration.of_module(key, name)?;
        (addon.is_unreleased && !addon.is_withdrawn).then_some(addon)
    }
}

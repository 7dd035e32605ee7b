//! Which releases are removed although their modules are not there, and how far that is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::pass::SourceAnswer;
use crate::addon::{RegisteredAddon, SourceKey};
use crate::failure::Failure;
use crate::name::ModuleName;
use crate::notice::TaskType;
use crate::reconcile::WorkKey;

/// Who removes them.
const CONTROLLER: &str = "Release";

/// Which of these releases are gone, and how the last attempt ended.
#[derive(Debug, Default)]
pub(super) struct Removals {
    is_wanted: bool,
    answers: BTreeMap<WorkKey, SourceAnswer>,
    gone: BTreeSet<(SourceKey, ModuleName)>,
    /// Why the last attempt at each failed.
    errors: BTreeMap<(SourceKey, ModuleName), String>,
}

impl Removals {
    /// Has all of them removed that are left.
    pub(super) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// Returns whether there may be some to remove.
    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Records that all that are left are being removed.
    pub(super) fn begun(&mut self) {
        self.is_wanted = false;
    }

    /// Takes the answer to the attempt of a key.
    pub(super) fn answered(&mut self, work: WorkKey, answer: SourceAnswer) {
        self.answers.insert(work, answer);
    }

    /// Returns the answer to the attempt of a key, once.
    pub(super) fn take_answer(&mut self, work: &WorkKey) -> Option<SourceAnswer> {
        self.answers.remove(work)
    }

    /// Records that a release is gone.
    pub(super) fn gone(&mut self, addon: &RegisteredAddon) {
        self.gone.insert(place(addon));
        // Another configuration of the namespace may have left one of this name, too.
        self.is_wanted = true;
    }

    /// Records why a release was not removed.
    pub(super) fn failed(&mut self, addon: &RegisteredAddon, failure: &Failure) {
        let shown = failure.for_everybody();
        let advice = shown.advice.as_ref().map(|advice| format!("; {advice}")).unwrap_or_default();
        self.errors.insert(place(addon), format!("{}{advice}", shown.message));
    }

    /// Returns whether a release is gone.
    pub(super) fn is_gone(&self, addon: &RegisteredAddon) -> bool {
        self.gone.contains(&place(addon))
    }

    /// Forgets what nobody asks for any more.
    pub(super) fn forget_but<'a>(&mut self, displaced: impl Iterator<Item = &'a RegisteredAddon>) {
        let left: BTreeSet<_> = displaced.map(place).collect();
        self.gone.retain(|place| left.contains(place));
        self.errors.retain(|place, _| left.contains(place));
    }

    /// Returns in words that everybody may read why a release was not removed, if that was tried.
    pub(super) fn error_of(&self, addon: &RegisteredAddon) -> Option<String> {
        self.errors.get(&place(addon)).cloned()
    }
}

fn place(addon: &RegisteredAddon) -> (SourceKey, ModuleName) {
    (addon.source.clone(), addon.bundle.name.clone())
}

/// Returns whether a key is of this work.
pub(super) fn is_removal(work: &WorkKey) -> bool {
    work.controller == CONTROLLER
}

/// Returns the key of the removal of a release.
pub(super) fn removal_key(addon: &RegisteredAddon) -> WorkKey {
    removal_work(&addon.source.namespace, &addon.bundle.name)
}

/// Returns the key of the removal of a release of configurations of a namespace; of the cluster, if that is empty.
pub(super) fn removal_work(namespace: &Arc<str>, module: &ModuleName) -> WorkKey {
    let task = TaskType::AddonsReconcile;
    let (namespace, name) = (Arc::clone(namespace), module.as_str().into());
    WorkKey { task, controller: CONTROLLER, namespace, name }
}

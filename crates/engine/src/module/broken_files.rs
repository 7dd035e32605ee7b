//! Changed files of all modules that can't be used: the old ones stay in force, and everybody is told.

use std::sync::Arc;

use crate::catalog::{BrokenPart, Global};
use crate::engine::Engine;
use crate::failure::Failure;
use crate::name::{HookId, Scope};
use crate::notice::Notice;
use crate::queue::fifo::Reason;

/// What of the files is not in force because it is broken; broken modules are not in it.
#[derive(Debug, Default)]
pub(crate) struct BrokenFiles {
    /// Global hooks and schemas.
    global: Vec<BrokenPart>,
    /// Why nothing of the last change is in force.
    rejected: Option<Failure>,
}

impl BrokenFiles {
    /// Returns what is wrong, for people.
    pub(crate) fn failures(&self) -> Vec<Failure> {
        self.rejected.iter().chain(self.global.iter().map(|part| &part.failure)).cloned().collect()
    }
}

impl Engine {
    /// Takes in that changed files can't be loaded at all.
    pub(crate) fn catalog_rejected(&mut self, failure: Failure) {
        if self.broken_files.rejected.as_ref() == Some(&failure) {
            return;
        }
        let message = format!("changed files can't be loaded, the old ones stay in force: {failure}");
        self.notify(Notice::Warned { scope: Scope::Global, message });
        self.broken_files.rejected = Some(failure);
    }

    /// Puts the old versions of what is broken in `new` in its place.
    pub(crate) fn repaired(&mut self, old: &Global, new: &Arc<Global>) -> Arc<Global> {
        self.broken_files.rejected = None;
        let known = std::mem::replace(&mut self.broken_files.global, new.broken.clone());
        for part in new.broken.iter().filter(|part| !known.contains(part)) {
            let what = match &part.hook {
                Some(hook) => format!("global hook {hook}"),
                None => "the global schemas".to_owned(),
            };
            let message = format!(
                "the new version of {what} can't be used, the old one stays in force: {}",
                part.failure
            );
            self.notify(Notice::Warned { scope: Scope::Global, message });
        }
        if new.broken.is_empty() {
            return Arc::clone(new);
        }
        let mut repaired = Global { broken: Vec::new(), ..Global::clone(new) };
        for part in &new.broken {
            let Some(name) = &part.hook else {
                repaired.schemas = Arc::clone(&old.schemas);
                continue;
            };
            repaired.hooks.extend(old.hooks.iter().find(|hook| hook.id.name == *name).cloned());
        }
        repaired.hooks.sort_by(|a, b| a.path.cmp(&b.path));
        Arc::new(repaired)
    }

    /// Returns why no process may be started from the file of `hook`, if its new version is broken.
    pub(crate) fn broken_version(&self, hook: &HookId) -> Option<Reason> {
        let failure = match &hook.scope {
            Scope::Global => {
                let parts = &self.broken_files.global;
                &parts.iter().find(|part| part.hook.as_ref() == Some(&hook.name))?.failure
            }
            Scope::Module(module) => self.modules.get(module)?.broken_version.as_ref()?,
        };
        Some(Reason::BrokenVersion(failure.message.clone()))
    }
}

//! Changed files that can't be used: the old ones stay in force, and that is reported.

use std::sync::Arc;

use crate::catalog::{BrokenPart, Global};
use crate::configuration::Configuration;
use crate::context::Context;
use crate::failure::Failure;
use crate::name::{HookName, Scope};
use crate::notice::Notice;

/// What of the files is not in force because it is broken; broken modules are not in it.
#[derive(Debug, Default)]
pub(super) struct BrokenFiles {
    /// Global hooks and schemas.
    global: Vec<BrokenPart>,
    /// Why nothing of the last change is in force.
    rejected: Option<Failure>,
}

impl BrokenFiles {
    /// Returns what is wrong, for people.
    pub(super) fn failures(&self) -> Vec<Failure> {
        self.rejected.iter().chain(self.global.iter().map(|part| &part.failure)).cloned().collect()
    }

    /// Records and reports that changed files can't be loaded at all.
    pub(super) fn reject(&mut self, cx: &mut Context, failure: Failure) {
        if self.rejected.as_ref().is_some_and(|known| known.repeats(&failure)) {
            return;
        }
        let message = format!("changed files can't be loaded, the old ones stay in force: {failure}");
        cx.notify(Notice::Warned { scope: Scope::Global, message });
        self.rejected = Some(failure);
    }

    /// Returns `new` with the old versions of what is broken in it, and reports what that is.
    pub(super) fn repair(
        &mut self,
        cx: &mut Context,
        configuration: &Configuration,
        old: &Global,
        new: &Arc<Global>,
    ) -> Arc<Global> {
        self.rejected = None;
        let known = std::mem::take(&mut self.global);
        for part in &new.broken {
            let is_same =
                |other: &&BrokenPart| other.hook == part.hook && other.failure.repeats(&part.failure);
            if let Some(same) = known.iter().find(is_same) {
                self.global.push(same.clone());
                continue;
            }
            // What it quotes may not be a value any more when somebody reads it.
            let failure = configuration.told(part.failure.clone(), None, None);
            self.global.push(BrokenPart { hook: part.hook.clone(), failure });
            let what = match &part.hook {
                Some(hook) => format!("global hook {hook}"),
                None => "the global schemas".to_owned(),
            };
            let message = format!(
                "the new version of {what} can't be used, the old one stays in force: {}",
                part.failure
            );
            cx.notify(Notice::Warned { scope: Scope::Global, message });
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

    /// Returns why the version of a global hook that is in force is not the last one.
    pub(super) fn of_hook(&self, hook: &HookName) -> Option<&Failure> {
        Some(&self.global.iter().find(|part| part.hook.as_ref() == Some(hook))?.failure)
    }
}

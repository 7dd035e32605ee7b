//! The hooks of a bundle that another one replaces go on until the new ones have answered `--config`: what the API server was told of
//! them stays, and somebody answers it.
//!
//! ```text
//! bundle 1 ─▶ bundle 2 with the hooks of 1 ─ the run of the module asks the new ones ─▶ bundle 2
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Lower, ModuleState, Modules, Phase};
use crate::catalog::Module;
use crate::name::ModuleName;

impl Modules {
    /// Returns new files as they come into force: with the hooks of the bundle before as long as nobody has asked the new ones.
    pub(super) fn with_hooks(&self, new: &Arc<Module>) -> Arc<Module> {
        let lends = |old: &&ModuleState| {
            let is_used = old.phase != Phase::Orphaned && (old.may_be_on() || old.is_active);
            is_used && old.spec.origin.digest().is_some() && !old.spec.hooks.is_empty()
        };
        let old = self.states.get(&new.name).filter(lends).filter(|_| new.has_unread_hooks);
        old.map_or_else(
            || Arc::clone(new),
            |old| Arc::new(Module { hooks: old.spec.hooks.clone(), ..(**new).clone() }),
        )
    }

    /// Records whose hooks are in force with `new` files of a module.
    pub(super) fn note_lender(&mut self, lower: &mut Lower<'_>, old: &Module, new: &Module) {
        let Some(module) = self.states.get_mut(&new.name) else { return };
        let lender = module.hooks_from.take();
        if new.has_unread_hooks && !new.hooks.is_empty() {
            module.hooks_from = lender.or_else(|| old.origin.digest().cloned());
        } else if lender.is_some_and(|lender| Some(&lender) != new.origin.digest()) {
            self.replaced_hooks.insert(new.name.clone());
            for hook in &old.hooks {
                // Its code is new, so it has to see what there is.
                lower.bindings.synchronize_again(&hook.id);
            }
        }
    }

    /// Returns the modules whose hooks of a bundle before gave way to their own since the last call.
    pub(crate) fn take_replaced_hooks(&mut self) -> BTreeSet<ModuleName> {
        std::mem::take(&mut self.replaced_hooks)
    }
}

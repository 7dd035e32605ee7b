//! Bindings that are not on and may have left their finalizer on objects: who deletes one of these is told what it stays by.
//!
//! While a binding is off, no object gets its finalizer. So its objects are looked at, by their metadata alone, until none has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::identity::ControllerId;
use super::single::Controller;
use crate::catalog::Hook;
use crate::hook::ReconcileBinding;
use crate::module::Modules;

/// Which bindings are looked after that are not on.
#[derive(Debug, Default)]
pub(super) struct Retirement {
    /// Which hooks were in service when it was looked last.
    in_service: Option<u64>,
    /// Those that were on, and are neither on again nor looked after.
    ended: BTreeMap<Arc<ControllerId>, (Arc<Hook>, ReconcileBinding)>,
    /// Those whose finalizer was found on no object.
    through: BTreeSet<Arc<ControllerId>>,
}

impl Retirement {
    /// Records that a binding is on.
    pub(super) fn began(&mut self, id: &Arc<ControllerId>) {
        self.ended.remove(id);
        self.through.remove(id);
    }

    /// Records that a binding is not on any more, which may have no files either.
    pub(super) fn ended(&mut self, controller: &Controller) {
        self.in_service = None;
        if controller.binding.finalizer.is_some() {
            let (hook, binding) = (Arc::clone(&controller.hook), controller.binding.clone());
            self.ended.insert(Arc::clone(&controller.id), (hook, binding));
        }
    }

    /// Records that the finalizer of a binding is on no object.
    pub(super) fn is_through(&mut self, id: Arc<ControllerId>) {
        self.through.insert(id);
    }

    /// Returns the bindings that have to be looked after from now on.
    pub(super) fn due(
        &mut self,
        modules: &Modules,
        is_known: impl Fn(&ControllerId) -> bool,
    ) -> Vec<(Arc<Hook>, ReconcileBinding)> {
        let in_service = Some(modules.in_service());
        if std::mem::replace(&mut self.in_service, in_service) == in_service {
            return Vec::new();
        }
        let off = modules.finalizing().filter(|module| !module.may_be_on());
        for hook in off.flat_map(|module| &module.spec().hooks) {
            for binding in hook.spec.reconciles.iter().filter(|binding| binding.finalizer.is_some()) {
                let id = ControllerId::new(hook, binding);
                self.ended.entry(id).or_insert_with(|| (Arc::clone(hook), binding.clone()));
            }
        }
        let through = &self.through;
        self.ended.retain(|id, _| !through.contains(id) && !is_known(id));
        let is_to_come = |id: &ControllerId| {
            let hook = modules.hook_to_come(&id.hook);
            hook.is_some_and(|hook| hook.spec.reconciles.iter().any(|binding| id.is_of(binding)))
        };
        let (to_come, due): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.ended).into_iter().partition(|(id, _)| is_to_come(id));
        self.ended = to_come;
        due.into_values().collect()
    }

    /// Returns how many bindings are kept by name.
    pub(super) fn entries(&self) -> usize {
        self.ended.len() + self.through.len()
    }
}

impl Controller {
    /// Returns whether its binding is not on, and its finalizer is on no object, or is that of another one now.
    pub(super) fn has_left_nothing(&self) -> bool {
        let is_taken_over =
            || self.binding.finalizer.as_ref().is_some_and(|name| self.peers.finalizers.contains(name));
        self.is_retired && (self.parents.has_nothing() || is_taken_over())
    }
}

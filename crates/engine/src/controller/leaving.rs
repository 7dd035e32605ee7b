//! What is left to finalize for modules that are being removed: they wait for that.

use super::controllers::Controllers;
use super::key_state::KeyState;
use super::single::Controller;
use crate::binding::Unfinished;
use crate::module::Lower;
use crate::name::ModuleName;
use crate::queue::Reason;

impl Controllers {
    /// Tells the modules that are being removed what is left of their objects.
    pub(super) fn tell_leaving(&mut self, lower: &mut Lower<'_>) {
        let look = |(module, told): (&ModuleName, &Unfinished)| {
            let now = self.unfinished(module);
            (now.as_ref() != Some(told)).then(|| (module.clone(), now))
        };
        let news: Vec<_> = lower.bindings.all_leaving().filter_map(look).collect();
        if news.is_empty() {
            return;
        }
        for (module, left) in news {
            // More is allowed to its keys now, perhaps.
            let own = self.all.keys().filter(|id| id.hook.scope.module() == Some(&module));
            self.held_up.extend(own.cloned());
            lower.bindings.set_leaving(module, left);
        }
        lower.queues.wake(|reason| matches!(reason, Reason::Finalizing { .. }));
    }

    fn unfinished(&self, module: &ModuleName) -> Option<Unfinished> {
        let own =
            self.all.values().filter(|one| one.id.hook.scope.module() == Some(module) && !one.is_retired);
        own.filter_map(Controller::unfinished).max_by_key(|left| match left {
            Unfinished::Living => 0,
            Unfinished::Unknown => 1,
            Unfinished::Objects(_) => 2,
        })
    }
}

impl Controller {
    /// Returns what is left of its objects.
    fn unfinished(&self) -> Option<Unfinished> {
        self.binding.finalizer.as_ref()?;
        match self.parents.obstacle() {
            // What is missing altogether has no objects, and what may not be listed may not be listed soon.
            Some(Reason::List(_)) => return Some(Unfinished::Unknown),
            Some(_) => return None,
            None => {}
        }
        let mut held = self.metadata.iter().filter(|(key, metadata)| {
            let is_released = self.keys.get(*key).is_some_and(KeyState::is_released);
            !is_released && self.finalizers(metadata).are_held()
        });
        let deleted = held.clone().find(|(_, metadata)| metadata.is_deleting());
        match deleted {
            Some((key, _)) => Some(Unfinished::Objects(format!("{} {key} to be finalized", self.id.kind))),
            None => held.next().map(|_| Unfinished::Living),
        }
    }
}

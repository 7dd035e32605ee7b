//! Asking hooks of bundles what they want that nobody has asked yet: code of a bundle does not run before its module is on.
//!
//! The API server may know them already, as at a start, or come to ask for them. So they are asked beside the queues as soon as their
//! module is known to be on, and not only when it runs. Those whose bundle before has lent its hooks wait for the run.

use std::sync::Arc;

use super::unread_hooks::{AT_ONCE, Unanswered};
use super::{Lower, ModuleState, Modules, Phase};
use crate::catalog::Module;
use crate::configuration::Configuration;
use crate::effect::Effect;
use crate::failure::Failure;
use crate::name::{ModuleName, RunId, Scope};
use crate::notice::Notice;
use crate::queue::{Queues, Reason};
use crate::time::Time;

impl Modules {
    /// Returns whether it is not known of all hooks that may be wanted what they want.
    pub(crate) fn has_unread_hooks(&self) -> bool {
        self.files.unread().any(|name| self.states.get(name).is_some_and(ModuleState::may_be_on))
    }

    /// Asks hooks of bundles that the API server may ask for, if they `may` be asked already. It costs nothing while the same modules
    /// are on.
    pub(crate) fn ask_unread_hooks(&mut self, lower: &mut Lower<'_>, may: impl Fn(&ModuleName) -> bool) {
        if self.config.webhooks.is_none() {
            return;
        }
        let now = lower.cx.now;
        let known = (self.in_service, lower.configuration.undecided().edition());
        let is_due = self.unread_hooks.failed.values().any(|failed| failed.next_at <= now);
        let free = AT_ONCE.saturating_sub(self.unread_hooks.running.len());
        if free == 0 || (self.unread_hooks.seen == Some(known) && !is_due) {
            return;
        }
        let is_wanted = |name: &&ModuleName| self.is_to_ask(lower.configuration, lower.queues, name, now);
        let (wanted, later): (Vec<&ModuleName>, Vec<&ModuleName>) =
            self.files.unread().filter(is_wanted).partition(|name| may(name));
        let is_rest = wanted.len() <= free && later.is_empty();
        let wanted: Vec<ModuleName> = wanted.into_iter().take(free).cloned().collect();
        let unread = &mut self.unread_hooks;
        unread.seen = is_rest.then_some(known);
        for module in wanted {
            let before = unread.failed.remove(&module);
            let run = lower.cx.ids.run();
            unread.running.insert(run, (module.clone(), before));
            lower.cx.push(Effect::LoadModule { run, module });
        }
        // Those that are due and were not asked are off by now, or their runs ask them.
        unread.failed.retain(|_, failed| failed.next_at > now);
    }

    /// Returns whether the hooks of a module are to be asked beside the queues. Before the first discovery its flags say whether it is
    /// on, if they say it all.
    fn is_to_ask(
        &self,
        configuration: &Configuration,
        queues: &Queues,
        name: &ModuleName,
        now: Time,
    ) -> bool {
        let Some(module) = self.states.get(name).filter(|module| module.phase != Phase::Orphaned) else {
            return false;
        };
        let flags = || {
            configuration.script_of(&module.spec).is_none() && configuration.flags_of(&module.spec).enabled
        };
        let is_on = module.decision.as_ref().map_or_else(flags, |decision| decision.enabled);
        let waits = self.unread_hooks.failed.get(name).is_some_and(|failed| failed.next_at > now);
        // A run of it asks them itself, and again if it failed.
        let runs = |task: &crate::task::Task| task.module_run().is_some_and(|run| run.module == *name);
        let is_asked = || self.asks_hooks_of(name) || queues.in_flight().any(|running| runs(&running.task));
        is_on && !waits && module.last_error.is_none() && !is_asked()
    }

    /// Returns whether the hooks of a module are being asked beside the queues.
    pub(super) fn asks_hooks_of(&self, name: &ModuleName) -> bool {
        self.unread_hooks.running.values().any(|(asked, _)| asked == name)
    }

    /// Returns whether a run asks hooks beside the queues.
    pub(crate) fn asks_hooks_in(&self, run: RunId) -> bool {
        self.unread_hooks.running.contains_key(&run)
    }

    /// Puts the hooks of a module into force that were asked beside the queues. If that failed they are asked again later.
    pub(crate) fn hooks_answered(
        &mut self,
        lower: &mut Lower<'_>,
        run: RunId,
        outcome: Result<Arc<Module>, Failure>,
    ) {
        let Some((name, before)) = self.unread_hooks.running.remove(&run) else { return };
        self.unread_hooks.seen = None;
        lower.queues.wake(|reason| *reason == Reason::Hooks);
        let is_wanted = |module: &Module| {
            let known = self.states.get(&name).map(|known| &known.spec);
            known.is_some_and(|known| known.has_unread_hooks && known.origin == module.origin)
        };
        let outcome = match outcome {
            // Its bundle is another one by now.
            Ok(module) if !is_wanted(&module) => return,
            outcome => outcome.and_then(|module| self.adopt_loaded(lower, &module)),
        };
        let Err(failure) = outcome else { return };
        let times = before.map_or(0, |before| before.times).saturating_add(1);
        let next_at = lower.cx.now + self.config.retry_after(times, 0);
        let failure = Arc::new(lower.configuration.told(failure, Some(&name), None));
        let unanswered = Unanswered { times, next_at, failure: Arc::clone(&failure) };
        self.unread_hooks.failed.insert(name.clone(), unanswered);
        if times == 1 {
            let message = format!(
                "it is not known what its hooks answer the API server: {}; they are asked again",
                failure.for_everybody()
            );
            lower.cx.notify(Notice::Warned { scope: Scope::Module(name), message });
        }
    }

    /// Puts the files of a module into force that were read alone. Returns why they can't be, if they can't.
    pub(crate) fn adopt_loaded(
        &mut self,
        lower: &mut Lower<'_>,
        module: &Arc<Module>,
    ) -> Result<(), Failure> {
        self.unread_hooks.seen = None;
        let problem = module.broken.clone().or_else(|| self.clash(module));
        problem.map_or_else(|| self.adopt_module(lower, module), Err)
    }

    /// Returns when hooks that could not be asked are asked again.
    pub(crate) fn next_question(&self) -> Option<Time> {
        let has_room = self.unread_hooks.running.len() < AT_ONCE;
        self.unread_hooks.failed.values().map(|failed| failed.next_at).min().filter(|_| has_room)
    }
}

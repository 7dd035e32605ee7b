//! Which modules are on: the discovery of a converge. See docs/modules.md#enabled.

use std::sync::Arc;

use super::Converges;
use super::ahead::{Claim, Follows};
use super::script::{question, script_effect};
use crate::cause::Cause;
use crate::configuration::Opinion;
use crate::context::Context;
use crate::enabled::EnabledModules;
use crate::event::{Usage, Verdict};
use crate::failure::Failure;
use crate::module::{Lower, ModuleState, Modules};
use crate::name::{ModuleName, RunId};
use crate::notice::Notice;
use crate::queue::{Next, Queues, Reason};
use crate::task::{Answer, ConvergePhase, Discovery, Question, ScriptInFlight, TaskHead, Trigger};

impl Converges {
    /// Goes on with a discovery. Returns `None` when it is complete.
    pub(super) fn discover(
        &mut self,
        modules: &Modules,
        lower: &mut Lower<'_>,
        head: &TaskHead,
        discovery: &mut Discovery,
        (is_of_all, force_scripts): (bool, bool),
    ) -> Option<Next> {
        if let Some(failure) = lower.configuration.blocking_problem(values::name::GLOBAL) {
            return Some(Next::Fail(failure.clone()));
        }
        let since = self.begin_discovery(modules, lower, discovery, is_of_all || force_scripts);
        let since = force_scripts.then_some(since);
        while let Some((place, module)) = next_of(modules, discovery) {
            if place > discovery.next {
                discovery.enabled.pass(|name| modules.is_before(name, place));
                discovery.next = place;
            }
            modules.look_at_one();
            let spec = module.spec();
            let mut decision = lower.configuration.flags_of(spec);
            let script = lower.configuration.script_of(spec).filter(|_| decision.enabled);
            if let Some(script) = script {
                let question = question(lower, &spec.name, script, &discovery.enabled);
                if let Some(verdict) = module.answer_to(&question, since) {
                    decision.enabled = verdict.enabled;
                    decision.opinions.push(Opinion::Script(verdict.clone()));
                } else {
                    let last = module.answer_to(&question, None).map(|verdict| verdict.enabled);
                    let next = self.ask(modules, lower, module, question, since);
                    if self.config.script_concurrency > 1 {
                        self.ahead.follow(discovery, module, last, since, head.cause.is_of_start());
                    }
                    return Some(next);
                }
            }
            self.ahead.decided(lower.cx, discovery.next, decision.enabled);
            discovery.enabled.find(&spec.name, decision.enabled);
            discovery.decisions.push((discovery.next, decision));
            discovery.next += 1;
        }
        if discovery.places.is_some() {
            discovery.enabled.pass(|_| true);
        }
        self.ahead.stop();
        None
    }

    /// Returns the last run before the discovery.
    ///
    /// If it is not of all modules, those whose flags say what they said are as they were.
    fn begin_discovery(
        &mut self,
        modules: &Modules,
        lower: &Lower<'_>,
        discovery: &mut Discovery,
        is_of_all: bool,
    ) -> RunId {
        if let Some(since) = discovery.since {
            return since;
        }
        self.ahead.stop();
        discovery.edition = lower.configuration.undecided().edition();
        if self.discoveries > 0 && !is_of_all {
            discovery.places = modules.undecided(lower.configuration);
        }
        if discovery.places.is_some() {
            discovery.enabled = EnabledModules::expecting(Arc::clone(modules.enabled()));
            return *discovery.since.insert(lower.cx.ids.newest_run());
        }
        let is_on = |module: &&ModuleState| match self.discoveries {
            0 => lower.configuration.flags_of(module.spec()).enabled,
            _ => module.is_on(),
        };
        let expected = || modules.in_order().filter(is_on).map(|module| &module.spec().name);
        let known = modules.enabled();
        // One list for all discoveries: answers know it, and it is compared with itself.
        let is_known = expected().eq(known.iter());
        let expected = if is_known { Arc::clone(known) } else { expected().cloned().collect() };
        discovery.enabled = EnabledModules::expecting(expected);
        *discovery.since.insert(lower.cx.ids.newest_run())
    }

    /// Asks the script of a module in its turn.
    fn ask(
        &mut self,
        modules: &Modules,
        lower: &mut Lower<'_>,
        module: &ModuleState,
        question: Question,
        since: Option<RunId>,
    ) -> Next {
        let spec = module.spec();
        match self.ahead.claim(lower.cx, &spec.name, &question, since) {
            Claim::InTheWay => Next::Wait(Reason::EarlierRun),
            Claim::Join(run, script, values) => Next::Join(run, Answer::Script(Box::new(script)), values),
            Claim::Nothing => {
                let script = ScriptInFlight { module: spec.name.clone(), question };
                let (run, effect) = script_effect(&self.config, modules, lower, spec, &script);
                Next::Run(run, Answer::Script(Box::new(script)), Box::new(effect))
            }
        }
    }

    /// Plans to ask those scripts again, after the first converge, whose values its hooks have changed: so the first edit of the
    /// ConfigMap finds the answers.
    pub(super) fn ask_after_start(&mut self, modules: &Modules) {
        if self.config.script_concurrency > 1 {
            self.ahead.follow_start(modules);
        }
    }

    /// Asks scripts before their turn, as many as may run.
    pub(crate) fn ask_ahead(&mut self, modules: &Modules, lower: &mut Lower<'_>) {
        let most = match self.ahead.follows() {
            None => return,
            Some(Follows::Discovery(since)) if is_discovering(lower.queues, since) => {
                self.config.script_concurrency.saturating_sub(1)
            }
            Some(Follows::Discovery(_)) => return self.ahead.stop(),
            // Nobody waits for these: one at a time, and only when there is nothing else to do.
            Some(Follows::Start) if self.readiness.has_begun() => return,
            Some(Follows::Start) => 1,
        };
        self.ahead.ask(&self.config, modules, lower, most);
    }

    /// Records how a script ended. Returns the outcome if a discovery waits for it.
    pub(crate) fn script_finished(
        &mut self,
        modules: &mut Modules,
        lower: &mut Lower<'_>,
        run: RunId,
        outcome: Result<Verdict, Failure>,
        usage: Option<Usage>,
    ) -> Option<(Result<Verdict, Failure>, Option<Usage>)> {
        self.ahead.finish(modules, lower, run, outcome, usage)
    }

    /// Makes sure that the script of a module is asked again.
    pub(crate) fn forget_script(&mut self, modules: &mut Modules, cx: &mut Context, name: &ModuleName) {
        modules.forget_script(name);
        self.ahead.forget(cx, name);
    }

    /// Asks nothing more ahead, as the operator ends.
    pub(crate) fn end_scripts_ahead(&mut self, cx: &mut Context) {
        self.ahead.end(cx);
    }

    /// Returns whether a script runs that no discovery waits for.
    pub(crate) fn has_scripts_ahead(&self) -> bool {
        !self.ahead.is_at_rest()
    }

    /// Makes what a discovery found out true. Returns whether a module was switched on or off.
    pub(super) fn commit_discovery(
        &mut self,
        modules: &mut Modules,
        lower: &mut Lower<'_>,
        discovery: Discovery,
    ) -> bool {
        let changed = modules.decide(lower, discovery.decisions);
        lower.configuration.undecided_mut().decided(discovery.edition);
        if changed || self.discoveries == 0 {
            let modules = modules.set_enabled(discovery.enabled);
            // No converge waits for those of namespaces.
            let own = modules.iter().filter(|(name, _)| lower.configuration.namespace_of(name).is_none());
            self.progress.discovered(own.cloned());
            lower.cx.notify(Notice::ModulesDiscovered { modules });
        }
        self.discoveries += 1;
        changed
    }

    /// Looks again which modules are on, because a global hook said something new about that.
    pub(crate) fn flags_changed(&mut self, modules: &Modules, lower: &mut Lower<'_>, cause: &Cause) {
        if self.discoveries > 0 && modules.may_switch(lower.configuration) {
            let none = std::collections::BTreeSet::new();
            self.look_again(lower.cx, lower.queues, none, Trigger::HookChangedFlags, cause);
        }
    }
}

/// Returns the module that is asked next, and its place.
fn next_of<'m>(modules: &'m Modules, discovery: &Discovery) -> Option<(usize, &'m ModuleState)> {
    let place = match &discovery.places {
        None => discovery.next,
        Some(places) => *places.get(places.partition_point(|place| *place < discovery.next))?,
    };
    Some((place, modules.at(place)?))
}

/// Returns whether the discovery that began after the run `since` is under way.
fn is_discovering(queues: &Queues, since: RunId) -> bool {
    let converge = queues.main_head().and_then(|task| task.converge());
    converge.is_some_and(|converge| {
        matches!(&converge.phase, ConvergePhase::Discovering(discovery) if discovery.since == Some(since))
    })
}

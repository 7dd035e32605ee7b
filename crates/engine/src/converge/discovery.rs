//! Which modules are on: the discovery of a converge. See docs/modules.md#enabled.

use std::sync::Arc;

use super::Converges;
use crate::cause::Cause;
use crate::configuration::Opinion;
use crate::context::Context;
use crate::effect::{Effect, ValuesInput};
use crate::event::Usage;
use crate::module::{Lower, Modules};
use crate::name::{HookId, ModuleName, Scope};
use crate::notice::{HookEnd, Notice};
use crate::queue::{Next, Reason};
use crate::task::{Answer, Discovery, Question, ScriptInFlight, TaskHead, Trigger};

impl Converges {
    /// Goes on with a discovery. Returns `None` when it is complete.
    pub(super) fn discover(
        &self,
        modules: &Modules,
        lower: &mut Lower<'_>,
        discovery: &mut Discovery,
        force_scripts: bool,
    ) -> Option<Next> {
        if let Some(failure) = lower.configuration.blocking_problem(values::name::GLOBAL) {
            return Some(Next::Fail(failure.clone()));
        }
        while let Some(module) = modules.at(discovery.next) {
            let spec = module.spec();
            let mut decision = lower.configuration.flags_of(spec);
            if let Some(script) = spec.enabled_script.as_ref().filter(|_| decision.enabled) {
                let sections = lower.configuration.read_by_script(&spec.name);
                let enabled = discovery.enabled.as_slice().into();
                let question = Question { sections, enabled, content: script.content };
                let is_fresh = !force_scripts || discovery.next < discovery.asked;
                match module.answer_to(&question).filter(|_| is_fresh) {
                    Some(verdict) => {
                        decision.enabled = verdict.enabled;
                        decision.opinions.push(Opinion::Script(verdict.clone()));
                    }
                    None if !lower.queues.has_slot() => return Some(Next::Wait(Reason::Slot)),
                    None => {
                        discovery.asked = discovery.next + 1;
                        let run = lower.cx.ids.run();
                        let scope = Scope::Module(spec.name.clone());
                        let input = modules.input(lower.configuration, &scope);
                        let enabled_modules = Some(Arc::clone(&question.enabled));
                        let effect = Effect::RunEnabledScript {
                            run,
                            module: Arc::clone(spec),
                            values: ValuesInput { enabled_modules, ..input },
                            timeout: self.config.script_timeout,
                        };
                        let answer = ScriptInFlight { module: spec.name.clone(), question };
                        return Some(Next::Run(run, Answer::Script(Box::new(answer)), Box::new(effect)));
                    }
                }
            }
            if decision.enabled {
                discovery.enabled.push(spec.name.clone());
            }
            discovery.decisions.push(decision);
            discovery.next += 1;
        }
        None
    }

    /// Makes what a discovery found out true. Returns whether a module was switched on or off.
    pub(super) fn commit_discovery(
        &mut self,
        modules: &mut Modules,
        lower: &mut Lower<'_>,
        discovery: Discovery,
    ) -> bool {
        let changed = modules.decide(lower, discovery.decisions);
        if changed || self.discoveries == 0 {
            let modules = modules.set_enabled(discovery.enabled);
            self.progress.discovered(&modules);
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

/// Reports how a run of the enabled script of a module ended.
pub(crate) fn report_script(
    cx: &mut Context,
    head: &TaskHead,
    module: &ModuleName,
    usage: Option<Usage>,
    outcome: HookEnd,
) {
    cx.notify(Notice::HookRan {
        hook: HookId { scope: Scope::Module(module.clone()), name: "enabled".into() },
        binding: "enabled",
        queue: head.queue.clone(),
        usage,
        outcome,
        is_task: false,
        startup: head.cause.is_of_start(),
    });
}

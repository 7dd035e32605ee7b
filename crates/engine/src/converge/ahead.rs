//! Enabled scripts that are asked before their turn, so that a discovery does not wait for one after the other.
//!
//! A script reads which modules were found on before its own, so what it is asked is known only when those before it have
//! answered. No answer is guessed: a script that acts on a list that was never true can't take that back. There is one case in
//! which answers are known: a discovery that runs all scripts again, although nothing that they read has changed. A script
//! that answered a question in this process is asked this question again before its turn, beside others like it. The first
//! script with a new question ends that, and the ones behind it wait for its answer.
//!
//! ```text
//! asked ahead ─▶ answers, its question is asked in its turn ─▶ taken
//!             ─▶ still runs when its turn comes             ─▶ joined: it is the run of its turn
//!             ─▶ fails                                      ─▶ forgotten: it runs again in its turn
//! one before it answers something else than last time       ─▶ ended, forgotten: it runs again in its turn
//! ```
//!
//! So a discovery finds out what it would find out without this, and a script reads nothing before its turn that it has not
//! read before. How many run is limited, and none takes the place of a hook.
//!
//! The pass after the first converge asks one script at a time, and each reads what those before it have answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::script::{begin_script, question, record_answer, report_script};
use crate::config::Config;
use crate::context::Context;
use crate::effect::{Effect, ValuesInput};
use crate::enabled::EnabledModules;
use crate::event::{Usage, Verdict};
use crate::failure::Failure;
use crate::module::{Lower, ModuleState, Modules};
use crate::name::{ModuleName, RunId};
use crate::notice::{HookEnd, Notice};
use crate::queue::Reason;
use crate::task::{Discovery, Question, ScriptInFlight};

/// The scripts that were asked before their turn.
#[derive(Debug, Default)]
pub(super) struct ScriptsAhead {
    /// Those that run.
    runs: BTreeMap<RunId, ScriptAhead>,
    /// Which are asked next.
    sweep: Option<Sweep>,
    /// How many were asked after the first converge.
    after_start: usize,
}

/// A script that runs before its turn.
#[derive(Debug)]
struct ScriptAhead {
    script: ScriptInFlight,
    values: ValuesInput,
    /// Whether its answer counts. Otherwise, only its end is waited for.
    is_wanted: bool,
    /// Whether it is part of the start of the operator.
    startup: bool,
}

/// A pass over the modules ahead of a discovery, or after the first converge.
#[derive(Debug)]
struct Sweep {
    follows: Follows,
    /// Answers count that later runs gave; `None` for all.
    since: Option<RunId>,
    /// The place where it began.
    first: usize,
    /// Which of the modules from there on are on, as far as that is known.
    known: Vec<bool>,
    /// The modules that are on before the next place.
    enabled: EnabledModules,
    /// Whether the script at the next place was asked, so that its answer is waited for.
    is_waiting: bool,
    startup: bool,
}

/// What a pass over the modules follows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Follows {
    /// A discovery, by its `since`.
    Discovery(RunId),
    /// The first converge.
    Start,
}

/// What a run that was asked ahead means for the turn of its module.
#[derive(Debug)]
pub(super) enum Claim {
    /// It is the run of this turn.
    Join(RunId, ScriptInFlight, ValuesInput),
    /// It has to end first.
    InTheWay,
    /// There is none.
    Nothing,
}

impl Sweep {
    /// Returns the place of the module that it asks next.
    fn next(&self) -> usize {
        self.first + self.known.len()
    }

    /// Goes on to the place behind the module `name`.
    fn pass(&mut self, name: &ModuleName, is_on: bool) {
        self.enabled.find(name, is_on);
        self.known.push(is_on);
        self.is_waiting = false;
    }
}

impl ScriptsAhead {
    /// Forgets what was planned. What runs goes on.
    pub(super) fn stop(&mut self) {
        self.sweep = None;
    }

    /// Records what a discovery found out about the module at a place. What was asked because it was on before, or off, ends.
    pub(super) fn decided(&mut self, cx: &mut Context, place: usize, is_on: bool) {
        let known = |sweep: &Sweep| sweep.known.get(place.checked_sub(sweep.first)?).copied();
        if self.sweep.as_ref().and_then(known).is_some_and(|known| known != is_on) {
            self.end(cx);
        }
    }

    /// Goes on from `discovery`, which waits for the script of `module`. What it said `last` to the same question is known.
    pub(super) fn follow(
        &mut self,
        discovery: &Discovery,
        module: &ModuleState,
        last: Option<bool>,
        since: Option<RunId>,
        startup: bool,
    ) {
        if self.sweep.as_ref().is_some_and(|sweep| sweep.next() > discovery.next) {
            return;
        }
        let follows = discovery.since.map(Follows::Discovery);
        self.sweep = follows.zip(last).map(|(follows, last)| {
            let enabled = discovery.enabled.clone();
            let (first, known) = (discovery.next, Vec::new());
            let mut sweep = Sweep { follows, since, first, known, enabled, is_waiting: false, startup };
            sweep.pass(&module.spec().name, last);
            sweep
        });
    }

    /// Returns what the run that was asked ahead means for the turn of `module`. One that is in the way is ended.
    pub(super) fn claim(
        &mut self,
        cx: &mut Context,
        module: &ModuleName,
        question: &Question,
        since: Option<RunId>,
    ) -> Claim {
        let found = self.runs.iter().find(|(_, ahead)| ahead.script.module == *module);
        let Some((run, ahead)) = found.map(|(run, ahead)| (*run, ahead)) else { return Claim::Nothing };
        let is_new = since.is_none_or(|since| run > since);
        if ahead.is_wanted && is_new && ahead.script.question == *question {
            let Some(ahead) = self.runs.remove(&run) else { return Claim::Nothing };
            return Claim::Join(run, ahead.script, ahead.values);
        }
        self.cancel(cx, |its, _| its == run);
        Claim::InTheWay
    }

    fn cancel(&mut self, cx: &mut Context, which: impl Fn(RunId, &ScriptAhead) -> bool) {
        for (run, ahead) in &mut self.runs {
            if which(*run, ahead) && std::mem::replace(&mut ahead.is_wanted, false) {
                cx.push(Effect::CancelRun { run: *run });
            }
        }
    }

    /// Plans a pass over all modules after the first converge.
    pub(super) fn follow_start(&mut self, modules: &Modules) {
        self.sweep = Some(Sweep {
            follows: Follows::Start,
            since: None,
            first: 0,
            known: Vec::new(),
            enabled: EnabledModules::expecting(Arc::clone(modules.enabled())),
            is_waiting: false,
            startup: true,
        });
    }

    /// Returns why there is more to ask, if so.
    pub(super) fn follows(&self) -> Option<Follows> {
        self.sweep.as_ref().map(|sweep| sweep.follows)
    }

    /// Asks scripts until `most` of them run, or until what the next one reads is not known.
    pub(super) fn ask(&mut self, config: &Config, modules: &Modules, lower: &mut Lower<'_>, most: usize) {
        while let Some(sweep) = &mut self.sweep
            && self.runs.len() < most
            && lower.queues.has_free_slot()
        {
            let Some(module) = modules.at(sweep.next()) else {
                if matches!(sweep.follows, Follows::Start) {
                    self.stop();
                    self.report_end(lower.cx);
                }
                // What a discovery finds out is still compared.
                return;
            };
            let spec = module.spec();
            let is_on = lower.configuration.flags_of(spec).enabled;
            let Some(script) = lower.configuration.script_of(spec).filter(|_| is_on) else {
                sweep.pass(&spec.name, is_on);
                continue;
            };
            let question = question(lower, &spec.name, script, &sweep.enabled);
            if let Some(verdict) = module.answer_to(&question, sweep.since) {
                sweep.pass(&spec.name, verdict.enabled);
                continue;
            }
            match (sweep.follows, module.answer_to(&question, None)) {
                // What those behind it read is known only when it has answered in its turn.
                (Follows::Discovery(_), None) => return,
                (Follows::Discovery(_), Some(last)) => sweep.pass(&spec.name, last.enabled),
                // It failed, or it reads something else by now: so do those behind it.
                (Follows::Start, _) if sweep.is_waiting => {
                    self.stop();
                    return self.report_end(lower.cx);
                }
                (Follows::Start, _) => {
                    sweep.is_waiting = true;
                    self.after_start += 1;
                }
            }
            if !self.runs.values().any(|ahead| ahead.script.module == spec.name) {
                let startup = sweep.startup;
                let script = ScriptInFlight { module: spec.name.clone(), question };
                let (run, values) = begin_script(config, modules, lower, spec, &script);
                self.runs.insert(run, ScriptAhead { script, values, is_wanted: true, startup });
                lower.queues.process_began();
            }
        }
    }

    /// Records how a run ended that was asked ahead. Returns `None` if it was, and the outcome otherwise.
    pub(super) fn finish(
        &mut self,
        modules: &mut Modules,
        lower: &mut Lower<'_>,
        run: RunId,
        outcome: Result<Verdict, Failure>,
        usage: Option<Usage>,
    ) -> Option<(Result<Verdict, Failure>, Option<Usage>)> {
        let Some(ahead) = self.runs.remove(&run) else { return Some((outcome, usage)) };
        lower.queues.process_ended();
        if !outcome.as_ref().is_err_and(Failure::is_cancelled) {
            let end = if outcome.is_ok() { HookEnd::Success } else { HookEnd::Error };
            report_script(lower.cx, &ahead.script.module, ahead.startup, usage, end);
        }
        // Why it failed is told when it fails in its turn, too.
        if let Ok(verdict) = outcome
            && ahead.is_wanted
        {
            record_answer(modules, lower, run, ahead.script, verdict);
        }
        lower.queues.wake(|reason| *reason == Reason::EarlierRun);
        self.report_end(lower.cx);
        None
    }

    /// Reports that the pass after the first converge is over, once.
    fn report_end(&mut self, cx: &mut Context) {
        let asks = matches!(self.follows(), Some(Follows::Start));
        if self.after_start > 0 && self.runs.is_empty() && !asks {
            cx.notify(Notice::ScriptsAskedAgain { scripts: std::mem::take(&mut self.after_start) });
        }
    }

    /// Makes sure that the answer of a script does not count which is being asked.
    pub(super) fn forget(&mut self, cx: &mut Context, module: &ModuleName) {
        self.cancel(cx, |_, ahead| ahead.script.module == *module);
    }

    /// Ends all scripts: nobody will ask in their turn.
    pub(super) fn end(&mut self, cx: &mut Context) {
        self.stop();
        self.cancel(cx, |_, _| true);
    }

    /// Returns whether none runs.
    pub(super) fn is_at_rest(&self) -> bool {
        self.runs.is_empty()
    }
}

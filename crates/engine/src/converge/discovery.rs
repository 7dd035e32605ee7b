//! Which modules are on, and why.

use std::fmt;
use std::sync::Arc;

use crate::cause::Cause;
use crate::effect::{Effect, ValuesInput};
use crate::engine::Engine;
use crate::event::{Usage, Verdict};
use crate::failure::{Failure, FailureKind};
use crate::module::{ModuleState, Phase, Question, ScriptAnswer};
use crate::name::{HookId, HookName, ModuleName, RunId, Scope};
use crate::notice::Notice;
use crate::queue::fifo::Reason;
use crate::queue::next::Next;
use crate::task::in_flight::{Running, ScriptWork, Work};
use crate::task::{ConvergePhase, Task, TaskKind};
use crate::time::Time;

/// How far a discovery got. The modules are asked in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Discovery {
    /// The place of the next module.
    pub(crate) next: usize,
    /// The modules found enabled so far.
    pub(crate) enabled: Vec<ModuleName>,
    /// What was found out so far.
    pub(crate) decisions: Vec<Decision>,
    /// Modules whose script ran in this discovery.
    pub(crate) asked: usize,
}

/// What a global hook said about a module.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct DynamicFlag {
    /// What it says.
    pub(crate) on: bool,
    /// The hook.
    pub(crate) hook: HookId,
    /// Since when it says so.
    pub(crate) since: Time,
    /// Why the hook ran.
    pub(crate) cause: Cause,
}

/// Whether a module is on, and who said so.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Decision {
    /// Whether it is on.
    pub(crate) enabled: bool,
    /// Who said what, the last one wins.
    pub(crate) opinions: Vec<Opinion>,
}

/// What one source says about a module.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Opinion {
    /// A file of static values.
    Static {
        /// What it says.
        on: bool,
        /// The file.
        file: Arc<str>,
    },
    /// A global hook.
    Dynamic {
        /// What it says.
        on: bool,
        /// The hook.
        hook: HookName,
    },
    /// The ConfigMap.
    ConfigMap {
        /// What it says.
        on: bool,
        /// The key.
        key: String,
    },
    /// The enabled script. Its word is the last one.
    Script(Verdict),
}

impl fmt::Display for Opinion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static { on, file } => write!(f, "{file} says {on}"),
            Self::Dynamic { on, hook } => write!(f, "global hook {hook} says {on}"),
            Self::ConfigMap { on, key } => write!(f, "ConfigMap key {key} says {on}"),
            Self::Script(verdict) => {
                write!(f, "enabled script says {}", verdict.enabled)?;
                match &verdict.reason {
                    Some(reason) => write!(f, " ({reason})"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.opinions.is_empty() {
            return f.write_str("nothing enables it");
        }
        for (place, opinion) in self.opinions.iter().enumerate() {
            if place > 0 {
                f.write_str(", then ")?;
            }
            opinion.fmt(f)?;
        }
        Ok(())
    }
}

impl Engine {
    /// Returns what flags say about a module, without its script.
    pub(crate) fn flags_of(&self, module: &ModuleState) -> Decision {
        let spec = &module.spec;
        let mut opinions = Vec::new();
        if let Some(flag) = &spec.enabled {
            opinions.push(Opinion::Static { on: flag.value, file: Arc::clone(&flag.source) });
        }
        if let Some(flag) = self.dynamic_flags.get(&spec.name) {
            opinions.push(Opinion::Dynamic { on: flag.on, hook: flag.hook.name.clone() });
        }
        if let Some(on) = self.user.enabled_flag(&spec.key) {
            opinions.push(Opinion::ConfigMap { on, key: format!("{}Enabled", spec.key) });
        }
        let enabled = opinions.last().is_some_and(Opinion::is_yes);
        Decision { enabled, opinions }
    }

    /// Goes on with the discovery of a converge. Returns it when it is complete.
    pub(crate) fn discover(
        &mut self,
        mut task: Task,
        force_scripts: bool,
    ) -> Result<(Task, Discovery), Box<Next>> {
        let Some(discovery) = task.discovery_mut() else { return Err(Box::new(Next::Done(task))) };
        let mut discovery = std::mem::take(discovery);
        if let Some(failure) = self.user.blocking_problem(values::name::GLOBAL) {
            let failure = failure.clone();
            return Err(Box::new(Next::Fail(task, failure)));
        }
        while let Some(module) = self.order.get(discovery.next).and_then(|name| self.modules.get(name)) {
            let mut decision = self.flags_of(module);
            let spec = Arc::clone(&module.spec);
            if let Some(script) = spec.enabled_script.as_ref().filter(|_| decision.enabled) {
                let question = self.question(module, &discovery.enabled, script.content);
                let known = module.script.as_ref().filter(|answer| answer.question == question);
                let is_fresh = !force_scripts || discovery.next < discovery.asked;
                match known.filter(|_| is_fresh) {
                    Some(answer) => {
                        decision.enabled = answer.verdict.enabled;
                        decision.opinions.push(Opinion::Script(answer.verdict.clone()));
                    }
                    None if self.processes >= self.config.max_hooks.max(1) => {
                        task.set_discovery(discovery);
                        return Err(Box::new(Next::Wait(task, Reason::Slot)));
                    }
                    None => return Err(Box::new(self.ask_script(task, discovery, spec, question))),
                }
            }
            if decision.enabled {
                discovery.enabled.push(spec.name.clone());
            }
            discovery.decisions.push(decision);
            discovery.next += 1;
        }
        Ok((task, discovery))
    }

    fn question(&self, module: &ModuleState, enabled: &[ModuleName], content: u64) -> Question {
        let (values, config) =
            self.sections.get(&module.spec.name).map_or_else(Default::default, |section| {
                (Arc::clone(section.result()), section.config_or_null())
            });
        let sections = [Arc::clone(self.global.result()), self.global.config_or_null(), values, config];
        Question { sections, enabled: enabled.into(), content }
    }

    fn ask_script(
        &mut self,
        mut task: Task,
        mut discovery: Discovery,
        module: Arc<crate::catalog::Module>,
        question: Question,
    ) -> Next {
        let run = self.next_run();
        let name = module.name.clone();
        let values = ValuesInput {
            enabled_modules: Some(Arc::clone(&question.enabled)),
            ..self.values_for(&Scope::Module(name.clone()))
        };
        discovery.asked = discovery.next + 1;
        task.set_discovery(discovery);
        // The answer is kept with its question, so that it is not asked twice.
        let work = ScriptWork { module: name, question };
        self.processes += 1;
        let effect = Effect::RunEnabledScript { run, module, values, timeout: self.config.script_timeout };
        Next::Run(task, run, Work::Script(Box::new(work)), Box::new(effect))
    }

    /// Takes in what an enabled script said.
    pub(crate) fn script_finished(
        &mut self,
        run: RunId,
        outcome: Result<Verdict, Failure>,
        usage: Option<Usage>,
    ) {
        let Some((queue, Running { task, work, .. })) = self.finish_run(run) else { return };
        let Work::Script(work) = work else {
            return self.fail(&queue, task, crate::configuration::hook_output::mismatch("an enabled script"));
        };
        if outcome.as_ref().is_err_and(Failure::is_cancelled) {
            return self.stopped(&queue, task);
        }
        let ScriptWork { module: name, question } = *work;
        let hook = crate::name::HookId { scope: Scope::Module(name.clone()), name: "enabled".into() };
        let end =
            if outcome.is_ok() { crate::notice::HookEnd::Success } else { crate::notice::HookEnd::Error };
        let startup = task.cause.is_of_start();
        self.notify(Notice::HookRan {
            hook,
            binding: "enabled",
            queue: queue.clone(),
            usage,
            outcome: end,
            is_task: false,
            startup,
        });
        let now = self.now;
        match outcome {
            Ok(verdict) => {
                if let Some(module) = self.modules.get_mut(&name) {
                    module.script = Some(ScriptAnswer { question, verdict, at: now });
                }
                self.resume(&queue, task);
            }
            Err(failure) => {
                let mut failure = failure;
                failure.message = format!("enabled script of module {name}: {}", failure.message);
                self.fail(&queue, task, failure);
            }
        }
    }

    /// Makes what a discovery found out true. Returns whether a module was switched on or off.
    pub(crate) fn commit_discovery(&mut self, discovery: Discovery) -> bool {
        let mut changed = false;
        for (name, decision) in self.order.clone().iter().zip(discovery.decisions) {
            let Some(module) = self.modules.get_mut(name) else { continue };
            let was_on = module.is_on();
            changed |= was_on != decision.enabled;
            if module.phase == Phase::Orphaned {
                module.phase = Phase::Disabled;
            }
            module.decision = Some(decision);
            if was_on && !module.is_on() {
                self.disable_module_schedules(name);
            }
            let Some(module) = self.modules.get(name) else { continue };
            if module.is_on() && module.missed_events {
                self.disable_bindings(&Scope::Module(name.clone()));
            }
            let Some(module) = self.modules.get_mut(name) else { continue };
            if module.is_on() {
                module.missed_events = false;
            }
            if module.is_on() && !was_on {
                let reason = module.decision.as_ref().map(ToString::to_string);
                self.set_phase(name, Phase::Starting, reason);
            } else if !module.is_on() && !module.is_active {
                self.set_phase(name, Phase::Disabled, None);
            }
        }
        if changed || self.discoveries == 0 {
            self.enabled_modules = discovery.enabled.into();
            let modules =
                self.order.iter().filter_map(|name| Some((name.clone(), self.modules.get(name)?.is_on())));
            let modules: Vec<_> = modules.collect();
            self.notify(Notice::ModulesDiscovered { modules: modules.into() });
        }
        self.discoveries += 1;
        changed
    }

    /// Takes in that a discovery failed: it starts over, and all scripts run again.
    pub(crate) fn discovery_failed(&mut self, task: &mut Task, failure: &Failure) {
        if let TaskKind::ConvergeModules(converge) = &mut task.kind
            && let ConvergePhase::Discovering(discovery) = &mut converge.phase
        {
            *discovery = Discovery::default();
            converge.force_scripts = true;
            self.notify(Notice::DiscoveryFailed { failure: failure.clone() });
        }
    }

    /// Returns why a module does what it does not, for commands.
    pub(crate) fn why_off(&self, name: &ModuleName) -> Failure {
        let Some(module) = self.modules.get(name) else {
            return Failure::new(FailureKind::Files, format!("there is no module {name}"))
                .advise("`addon-operator status` shows the names");
        };
        if module.phase == Phase::Orphaned {
            let advice =
                format!("put it back, or remove its release with `addon-operator module purge {name}`");
            return Failure::new(
                FailureKind::Files,
                format!("module {name} is orphaned: its directory is gone"),
            )
            .advise(advice);
        }
        let why = module
            .decision
            .as_ref()
            .map_or_else(|| "no discovery was completed yet".to_owned(), ToString::to_string);
        Failure::new(FailureKind::Values, format!("module {name} is not enabled: {why}"))
            .advise(format!("`addon-operator module enable {name}` switches it on in the ConfigMap"))
    }
}

impl Opinion {
    fn is_yes(&self) -> bool {
        match self {
            Self::Static { on, .. } | Self::Dynamic { on, .. } | Self::ConfigMap { on, .. } => *on,
            Self::Script(verdict) => verdict.enabled,
        }
    }
}

impl Task {
    fn discovery_mut(&mut self) -> Option<&mut Discovery> {
        if let TaskKind::ConvergeModules(converge) = &mut self.kind
            && let ConvergePhase::Discovering(discovery) = &mut converge.phase
        {
            Some(discovery)
        } else {
            None
        }
    }

    fn set_discovery(&mut self, discovery: Discovery) {
        if let Some(place) = self.discovery_mut() {
            *place = discovery;
        }
    }
}

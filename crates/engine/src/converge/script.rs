//! Runs of enabled scripts: what each is asked, and what is remembered and reported of it.

use std::sync::Arc;

use crate::catalog::{Module, Script};
use crate::config::Config;
use crate::context::Context;
use crate::effect::{Effect, ValuesInput};
use crate::enabled::EnabledModules;
use crate::event::{Usage, Verdict};
use crate::module::{Lower, Modules};
use crate::name::{HookId, ModuleName, QueueName, RunId, Scope};
use crate::notice::{HookEnd, Notice};
use crate::task::{Question, ScriptInFlight};

/// Returns what the script of a module is asked if these are on before it.
pub(super) fn question(
    lower: &Lower<'_>,
    module: &ModuleName,
    script: &Script,
    enabled: &EnabledModules,
) -> Question {
    let sections = lower.configuration.read_by_script(module);
    Question { sections, enabled: enabled.clone(), content: script.content }
}

/// Returns what runs a script.
pub(super) fn script_effect(
    config: &Config,
    modules: &Modules,
    lower: &mut Lower<'_>,
    module: &Arc<Module>,
    script: &ScriptInFlight,
) -> (RunId, Effect) {
    let run = lower.cx.ids.run();
    let values = input(modules, lower, script);
    let module = Arc::clone(module);
    (run, Effect::RunEnabledScript { run, module, values, timeout: config.script_timeout })
}

/// Begins a run of a script. Returns it with what the script reads.
pub(super) fn begin_script(
    config: &Config,
    modules: &Modules,
    lower: &mut Lower<'_>,
    module: &Arc<Module>,
    script: &ScriptInFlight,
) -> (RunId, ValuesInput) {
    let (run, effect) = script_effect(config, modules, lower, module, script);
    lower.cx.push(effect);
    (run, input(modules, lower, script))
}

fn input(modules: &Modules, lower: &Lower<'_>, script: &ScriptInFlight) -> ValuesInput {
    let input = modules.input(lower.configuration, &Scope::Module(script.module.clone()));
    ValuesInput { enabled_modules: Some(script.question.enabled.clone()), ..input }
}

/// Remembers what a script said, and to which question.
pub(crate) fn record_answer(
    modules: &mut Modules,
    lower: &Lower<'_>,
    run: RunId,
    script: ScriptInFlight,
    mut verdict: Verdict,
) {
    let ScriptInFlight { module, question } = script;
    if let Some(reason) = &mut verdict.reason {
        let secrets = lower.configuration.secrets(Some(&module));
        *reason = secrets.hide(reason).into_owned();
    }
    modules.script_said(lower.cx, &module, (run, question), verdict);
}

/// Reports how a run of the enabled script of a module ended; whether it was part of the `startup` of the operator.
pub(crate) fn report_script(
    cx: &mut Context,
    module: &ModuleName,
    startup: bool,
    usage: Option<Usage>,
    outcome: HookEnd,
) {
    cx.notify(Notice::HookRan {
        hook: HookId { scope: Scope::Module(module.clone()), name: "enabled".into() },
        binding: "enabled",
        queue: QueueName::main(),
        usage,
        outcome,
        is_task: false,
        startup,
    });
}

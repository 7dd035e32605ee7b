//! The run of a module: its hooks and its chart. See docs/contract.md#a-run-of-a-module.

use std::sync::Arc;

use serde_json::Value;

use super::state::hooks_at;
use super::{Lower, Modules, Phase};
use crate::catalog::{Hook, Module};
use crate::configuration::Configuration;
use crate::context::Context;
use crate::effect::{Effect, ValuesInput};
use crate::hook::Lifecycle;
use crate::name::{ModuleName, Scope};
use crate::queue::{Next, Queues, Reason};
use crate::task::{Answer, ModuleRun, RunStage, Task, TaskHead, TaskKind, Trigger};

impl Modules {
    /// Does the next step of a module run.
    pub(crate) fn advance_run(
        &mut self,
        lower: &mut Lower<'_>,
        head: &TaskHead,
        run: &mut ModuleRun,
    ) -> Next {
        loop {
            let Some(module) = self.states.get(&run.module).filter(|module| module.is_on()) else {
                return Next::Gone;
            };
            let spec = Arc::clone(&module.spec);
            match run.stage.clone() {
                RunStage::Begin => {
                    if let Some(next) = self.begin_run(lower, head, run, &spec) {
                        return next;
                    }
                }
                RunStage::OnStartup => {
                    if let Some(hook) = module.next_startup() {
                        return self.start_lifecycle_hook(lower, head, &hook, Lifecycle::OnStartup);
                    }
                    run.stage = RunStage::Synchronize;
                }
                RunStage::Synchronize => {
                    if let Some(next) = self.synchronize(lower, head, run, &spec) {
                        return next;
                    }
                }
                RunStage::BeforeHelm(n) => {
                    if let Some(hook) = hooks_at(&spec, Lifecycle::BeforeHelm).get(n) {
                        let next = self.start_lifecycle_hook(lower, head, hook, Lifecycle::BeforeHelm);
                        let Next::Wait(reason @ Reason::Kind(_)) = next else { return next };
                        // The module that brings the kind may be among the others; hooks start over then.
                        run.stage = RunStage::Begin;
                        return self.wait_for_kind(lower.cx, lower.queues, head, run, reason);
                    }
                    run.stage = RunStage::Upgrade;
                }
                RunStage::Upgrade => {
                    if spec.has_chart && !self.is_release_left_alone(lower.configuration, &run.module) {
                        return self.start_upgrade(lower.cx, lower.configuration, &spec);
                    }
                    run.stage = after_helm(lower.configuration, &run.module);
                }
                RunStage::AfterHelm { n, values_before } => {
                    if let Some(hook) = hooks_at(&spec, Lifecycle::AfterHelm).get(n) {
                        return self.start_lifecycle_hook(lower, head, hook, Lifecycle::AfterHelm);
                    }
                    return self.finish_run(lower.cx, lower.configuration, head, &run.module, &values_before);
                }
            }
        }
    }

    /// Checks whether the module can run at all.
    fn begin_run(
        &mut self,
        lower: &mut Lower<'_>,
        head: &TaskHead,
        run: &mut ModuleRun,
        spec: &Arc<Module>,
    ) -> Option<Next> {
        let name = &run.module;
        let module = self.states.get_mut(name)?;
        if module.stale_runs > 0 {
            return Some(Next::Wait(Reason::EarlierRun));
        }
        if let Some(failure) = &module.broken_version {
            return Some(Next::Wait(Reason::BrokenVersion(failure.message.clone())));
        }
        module.is_active = true;
        if let Some(failure) = &spec.broken {
            if head.failures == 0 {
                // Its files were read a moment ago; they are read again with the next try.
                return Some(Next::Fail(failure.clone()));
            }
            let run = lower.cx.ids.run();
            let effect = Effect::LoadModule { run, module: name.clone() };
            return Some(Next::Run(run, Answer::Task, Box::new(effect)));
        }
        if let Some(failure) = lower.configuration.blocking_problem(&spec.key) {
            return Some(Next::Fail(failure.clone()));
        }
        if !module.first_run_done && module.phase != Phase::Failed {
            let phase = if module.parked.is_some() { Phase::Parked } else { Phase::Starting };
            self.set_phase(lower.cx, lower.configuration, name, phase, None);
        }
        run.stage = RunStage::OnStartup;
        run.waits_for_kind = false;
        for queue in spec.hooks.iter().flat_map(|hook| hook.spec.queues()) {
            lower.queues.ensure(queue);
        }
        None
    }

    /// Starts the watches of the module's hooks and queues their Synchronizations.
    fn synchronize(
        &mut self,
        lower: &mut Lower<'_>,
        head: &TaskHead,
        run: &mut ModuleRun,
        spec: &Arc<Module>,
    ) -> Option<Next> {
        self.states.get_mut(&run.module)?.is_synchronizing = true;
        for hook in &spec.hooks {
            self.enable_bindings(lower, hook);
        }
        // The order of the configuration is kept, so nothing is queued until everything is listed that is waited for.
        let missing = lower.bindings.unlisted(&spec.hooks).next();
        match missing {
            Some(reason @ Reason::Kind(_)) => {
                return Some(self.wait_for_kind(lower.cx, lower.queues, head, run, reason));
            }
            Some(reason) => return Some(Next::Wait(reason)),
            None => {}
        }
        let first = self.queue_synchronizations(lower, head, &spec.hooks);
        if !first.is_empty() {
            return Some(Next::First(first));
        }
        if let Some(reason) = lower.bindings.unsynchronized(&spec.hooks) {
            return Some(Next::Wait(reason));
        }
        self.states.get_mut(&run.module)?.is_synchronizing = false;
        run.stage = RunStage::BeforeHelm(0);
        self.enable_schedules(lower, &run.module);
        None
    }

    /// Returns what a run does that waits for a kind: the others of its converge go first.
    fn wait_for_kind(
        &mut self,
        cx: &Context,
        queues: &Queues,
        head: &TaskHead,
        run: &mut ModuleRun,
        reason: Reason,
    ) -> Next {
        run.waits_for_kind = true;
        self.has_kind_waiters = true;
        if queues.has_other_runs(&head.queue, head.id, head.generation, cx.now) {
            Next::Behind
        } else {
            Next::Wait(reason)
        }
    }

    /// Makes every run that waits for a kind be tried again: one of them may go on now.
    pub(crate) fn reconsider_kinds(&mut self, queues: &mut Queues) {
        if !std::mem::take(&mut self.has_kind_waiters) {
            return;
        }
        for queue in queues.names() {
            queues.edit(&queue, |task| {
                if let TaskKind::ModuleRun(run) = &mut task.kind {
                    run.waits_for_kind = false;
                }
                // All tasks are looked at.
                false
            });
        }
    }

    fn start_upgrade(&self, cx: &mut Context, configuration: &Configuration, spec: &Arc<Module>) -> Next {
        let name = &spec.name;
        if let Some(failure) = configuration.problem_for_chart(name) {
            return Next::Fail(failure);
        }
        let values = self.input(configuration, &Scope::Module(name.clone()));
        let values = ValuesInput { enabled_modules: None, ..values };
        let maintenance = configuration.is_in_maintenance(&spec.key);
        let run = cx.ids.run();
        let effect = Effect::UpgradeRelease { run, module: Arc::clone(spec), values, maintenance };
        Next::Run(run, Answer::Release(name.clone()), Box::new(effect))
    }

    fn finish_run(
        &mut self,
        cx: &mut Context,
        configuration: &Configuration,
        head: &TaskHead,
        name: &ModuleName,
        values_before: &Arc<Value>,
    ) -> Next {
        let Some(module) = self.states.get_mut(name) else { return Next::Gone };
        module.first_run_done = true;
        module.last_error = None;
        let why = module.parked.as_ref().map(|parked| parked.why.clone());
        let phase = if why.is_some() { Phase::Parked } else { Phase::Running };
        self.set_phase(cx, configuration, name, phase, why);
        let values = configuration.values_of(name);
        if Arc::ptr_eq(values_before, &values) || *values_before == values {
            return Next::Done;
        }
        let kind = TaskKind::ModuleRun(ModuleRun::new(name.clone(), false));
        let why = format!("afterHelm hooks of {name} changed its values");
        Next::Then(vec![Task::of(cx, head, kind, Trigger::AfterHelmChangedValues, why)])
    }

    /// Records that a hook of the current stage of a run succeeded.
    pub(crate) fn run_hook_done(&mut self, run: &mut ModuleRun, hook: &Hook, point: Option<Lifecycle>) {
        run.hook_done();
        if let Some(module) = self.states.get_mut(&run.module)
            && point == Some(Lifecycle::OnStartup)
        {
            module.started_hooks.insert(hook.id.name.clone(), hook.content);
        }
    }
}

/// Returns the stage of a module run that follows its chart.
pub(crate) fn after_helm(configuration: &Configuration, name: &ModuleName) -> RunStage {
    RunStage::AfterHelm { n: 0, values_before: configuration.values_of(name) }
}

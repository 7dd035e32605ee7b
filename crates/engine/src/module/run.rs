//! The run of a module: its hooks and its chart. See docs/contract.md#a-run-of-a-module.

use std::sync::Arc;

use serde_json::Value;

use super::delete::start_uninstall;
use super::state::{Release, hooks_at};
use super::{Lower, Modules, Phase};
use crate::catalog::{Hook, Module};
use crate::configuration::Configuration;
use crate::context::Context;
use crate::effect::{Effect, ValuesInput};
use crate::hook::Lifecycle;
use crate::name::{ModuleName, QueueName, Scope};
use crate::queue::{Next, Reason};
use crate::release_target::ReleaseTarget;
use crate::task::{Answer, HookRun, ModuleRun, RunStage, Task, TaskHead, TaskKind, Trigger};

impl Modules {
    /// Does the next step of a module run.
    pub(crate) fn advance_run(
        &mut self,
        lower: &mut Lower<'_>,
        head: &TaskHead,
        run: &mut ModuleRun,
    ) -> Next {
        let mut reached = run.step();
        let next = self.step_of_run(lower, head, run, &mut reached);
        if matches!(next, Next::Wait(_)) {
            self.run_waits(lower.cx, lower.configuration, &run.module, reached);
        }
        next
    }

    /// Does the next step, and records in `reached` how far the run got, if it begins anew because it waits.
    fn step_of_run(
        &mut self,
        lower: &mut Lower<'_>,
        head: &TaskHead,
        run: &mut ModuleRun,
        reached: &mut (u8, usize),
    ) -> Next {
        loop {
            *reached = run.step();
            let Some(module) = self.states.get(&run.module).filter(|module| module.can_run()) else {
                return Next::Gone;
            };
            let spec = Arc::clone(&module.spec);
            if head.queue.is_of_namespace() && run.content.is_some_and(|content| content != spec.content) {
                // A converge does not wait for it, so its files may be others by now.
                (run.stage, run.content) = (RunStage::Begin, None);
            }
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
                        if matches!(&next, Next::Wait(reason) if reason.may_come_from_modules()) {
                            // Other modules go first, and may change what the hooks before this one saw.
                            run.stage = RunStage::Begin;
                        }
                        return next;
                    }
                    run.stage = RunStage::Upgrade;
                }
                RunStage::Upgrade => {
                    if module.drops_release(lower.configuration) {
                        let target = self.release_place(lower.configuration, &run.module);
                        return start_uninstall(lower.cx, &run.module, target);
                    }
                    if spec.has_chart && !self.is_release_left_alone(lower.configuration, &run.module) {
                        return self.start_upgrade(lower.cx, lower.configuration, &spec);
                    }
                    run.stage = after_helm(lower.configuration, &run.module);
                }
                RunStage::Credentials => {
                    if let Some(next) = self.start_credentials(lower.cx, lower.configuration, &spec) {
                        return next;
                    }
                    run.stage = self.after_release(lower.configuration, &run.module);
                }
                RunStage::Leave => {
                    let Some(target) = self.left_place(&run.module) else {
                        run.stage = after_helm(lower.configuration, &run.module);
                        continue;
                    };
                    return start_uninstall(lower.cx, &run.module, target);
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

    /// Begins to install the CRDs of a module.
    pub(crate) fn advance_crds(&self, cx: &mut Context, name: &ModuleName) -> Next {
        let Some(module) = self.states.get(name).filter(|module| module.can_run()) else { return Next::Gone };
        let (run, module) = (cx.ids.run(), Arc::clone(&module.spec));
        Next::Run(run, Answer::Task, Box::new(Effect::EnsureCrds { run, module }))
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
        if let Some(why) = self.waits_for(lower.configuration, name) {
            // It is no task any more, so nothing stands behind it. It is queued again when that is there.
            self.set_phase(lower.cx, lower.configuration, name, Phase::Waiting, Some(why));
            return Some(Next::Gone);
        }
        if let Some(why) = self.parked_runs(lower.configuration, name) {
            self.set_phase(lower.cx, lower.configuration, name, Phase::Parked, Some(why));
            return Some(Next::Gone);
        }
        let is_asked = self.asks_hooks_of(name);
        let module = self.states.get_mut(name)?;
        run.content = Some(spec.content);
        if lower.queues.has_earlier_run(name, &head.queue) {
            return Some(Next::Wait(Reason::EarlierRun));
        }
        if let Some(failure) = &module.broken_version {
            return Some(Next::Wait(Reason::BrokenVersion(failure.for_everybody().message.clone())));
        }
        if spec.has_unread_hooks && is_asked {
            return Some(Next::Wait(Reason::Hooks));
        }
        if spec.has_unread_hooks {
            let run = lower.cx.ids.run();
            let effect = Effect::LoadModule { run, module: name.clone() };
            return Some(Next::Run(run, Answer::Task, Box::new(effect)));
        }
        if let Some(failure) = &spec.broken {
            if head.failures == 0 {
                // Its files were read a moment ago; they are read again with the next try.
                return Some(Next::Fail(failure.clone()));
            }
            let run = lower.cx.ids.run();
            let effect = Effect::LoadModule { run, module: name.clone() };
            return Some(Next::Run(run, Answer::Task, Box::new(effect)));
        }
        // From now on there may be something to delete.
        module.is_active = true;
        if let Some(failure) = lower.configuration.blocking_problem(&spec.key) {
            return Some(Next::Fail(failure.clone()));
        }
        if let Some(failure) = lower.configuration.problem_of_plan(name) {
            return Some(Next::Fail(failure));
        }
        if !module.first_run_done && module.phase != Phase::Failed {
            let phase = if module.parked.is_some() { Phase::Parked } else { Phase::Starting };
            self.set_phase(lower.cx, lower.configuration, name, phase, None);
        }
        run.stage = RunStage::OnStartup;
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
        if let Some(reason) = lower.bindings.unlisted(&spec.hooks).next() {
            return Some(Next::Wait(reason));
        }
        let first = self.queue_synchronizations(lower, head, &spec.hooks);
        if !first.is_empty() {
            return Some(Next::First(first));
        }
        let under_way = lower.bindings.unsynchronized(&spec.hooks).next();
        if let Some((key, reason)) = under_way {
            if leave_main(lower, head, &run.module) {
                return Some(Next::First(self.queue_synchronizations(lower, head, &spec.hooks)));
            }
            // It may wait for a kind itself; then this run waits for that kind, too.
            return Some(Next::Wait(lower.queues.synchronization_aside(&key).unwrap_or(reason)));
        }
        self.states.get_mut(&run.module)?.is_synchronizing = false;
        run.stage = RunStage::BeforeHelm(0);
        self.enable_schedules(lower, &run.module);
        None
    }

    fn start_upgrade(&mut self, cx: &mut Context, configuration: &Configuration, spec: &Arc<Module>) -> Next {
        let name = &spec.name;
        if let Some(failure) = configuration.problem_for_chart(name) {
            return Next::Fail(failure);
        }
        let values = self.input(configuration, &Scope::Module(name.clone()));
        let values = ValuesInput { enabled_modules: None, ..values };
        let maintenance = configuration.is_in_maintenance(&spec.key);
        let run = cx.ids.run();
        // A built-in module may have the name of one that a source brought before.
        let source = spec.origin.digest().and_then(|_| configuration.source_of(name)).cloned();
        let target = self.release_target(configuration, name);
        let is_recorded = target.account.is_none() || !configuration.is_unreleased(name);
        if is_recorded {
            self.enter_place(cx, name, &target);
        }
        if let Some(module) = self.states.get_mut(name) {
            module.written_package.clone_from(&spec.package);
        }
        let module = Arc::clone(spec);
        let effect = Effect::UpgradeRelease { run, module, values, maintenance, source, target, is_recorded };
        Next::Run(run, Answer::Release(name.clone()), Box::new(effect))
    }

    /// Starts to write the credentials of a release, if its module has plans and the release is not left alone. A plan
    /// without credentials may follow one with some: then they are removed.
    fn start_credentials(
        &self,
        cx: &mut Context,
        configuration: &Configuration,
        spec: &Arc<Module>,
    ) -> Option<Next> {
        let name = &spec.name;
        let module = self.states.get(name)?;
        let Release::Deployed { revision, .. } = module.release else { return None };
        let plan = configuration.plan_of(name)?;
        let template = spec.plans.credentials.get(&plan).cloned();
        let wanted = template.is_some();
        if !wanted && module.has_no_credentials {
            return None;
        }
        let values = self.input(configuration, &Scope::Module(name.clone()));
        let values = ValuesInput { enabled_modules: None, ..values };
        let (run, module) = (cx.ids.run(), Arc::clone(spec));
        let target = self.release_target(configuration, name);
        let effect = Effect::WriteCredentials { run, module, template, values, revision, target };
        Some(Next::Run(run, Answer::Credentials { wanted }, Box::new(effect)))
    }

    /// Records that the credentials of a release were written, or removed if they were not `wanted`.
    pub(crate) fn credentials_written(&mut self, name: &ModuleName, wanted: bool) {
        if let Some(module) = self.states.get_mut(name) {
            module.has_no_credentials = !wanted;
        }
    }

    /// Records that the release of a module is about to be written somewhere. What is elsewhere is not watched any more.
    fn enter_place(&mut self, cx: &mut Context, name: &ModuleName, target: &ReleaseTarget) {
        let Some(module) = self.states.get_mut(name) else { return };
        let Some(before) = module.places.enter(target) else { return };
        module.release = Release::Unknown;
        if std::mem::take(&mut module.release_watched) {
            cx.push(Effect::ForgetRelease { module: name.clone(), target: before });
        }
    }

    /// Returns the stage of a module run that follows the upgrade or the removal which succeeded.
    pub(crate) fn after_release(&self, configuration: &Configuration, name: &ModuleName) -> RunStage {
        let module = self.states.get(name);
        let is_there = module.is_some_and(|module| {
            matches!(module.release, Release::Deployed { .. }) || module.drops_release(configuration)
        });
        match self.left_place(name) {
            Some(_) if is_there => RunStage::Leave,
            Some(_) | None => after_helm(configuration, name),
        }
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
        module.ran = Some(module.spec.content);
        self.waits.changed();
        module.last_error = None;
        // The package may have become another one while this run was under way.
        if module.spec.package.is_none() || module.spec.package == module.written_package {
            if !module.is_package_good && module.spec.origin.digest().is_some() {
                self.changed.insert(name.clone());
            }
            if !module.is_package_good && module.spec.package.is_some() {
                self.chart_changes.insert(name.clone());
            }
            (module.package_failures, module.is_package_good) = (0, true);
        }
        module.is_reloaded = false;
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

/// Drops the Synchronizations of a module that an earlier run queued in `main`, if this one is elsewhere: they stand behind
/// what waits for this run. Returns whether there were any.
fn leave_main(lower: &mut Lower<'_>, head: &TaskHead, name: &ModuleName) -> bool {
    let main = QueueName::main();
    let is_one =
        |task: &Task| task.module() == Some(name) && task.hook_run().is_some_and(HookRun::is_synchronization);
    let runs = |task: &Task| task.head.queue.is_main() && is_one(task);
    let is_running = lower.queues.in_flight().any(|running| runs(&running.task));
    !head.queue.is_main() && !is_running && lower.drop_tasks_in(&main, |task| !is_one(task))
}

//! Runs the tests of charts, when people ask for that.
//!
//! They stand in no queue and hold up no run: a test waits while a run, or a removal, of its module has an effect in
//! flight, and a run that comes later does not wait for a test. See docs/charts.md#tests-of-a-chart.

use super::Modules;
use super::chart_tests::{AT_ONCE, Asked, QUEUE};
use crate::chart_test::{TestReport, TestRequest};
use crate::configuration::Configuration;
use crate::context::Context;
use crate::effect::Effect;
use crate::failure::{Failure, FailureKind};
use crate::name::{CommandId, ModuleName, RunId};
use crate::queue::Queues;
use crate::task::{Task, TaskKind};
use crate::time::Time;
use crate::view::QueueView;

impl Modules {
    /// Has the tests of a module's chart run. The answer comes when they have ended.
    ///
    /// # Errors
    ///
    /// When there is no such module or it has no chart, when its tests run already, and when too many others do.
    pub(crate) fn test_chart(
        &mut self,
        cx: &mut Context,
        command: CommandId,
        name: &ModuleName,
        request: TestRequest,
    ) -> Result<(), Failure> {
        let refused = |message: String| Failure::new(FailureKind::Release, message);
        let Some(module) = self.states.get(name) else { return Err(self.why_off(name)) };
        if !module.spec.has_chart {
            return Err(refused(format!("module {name} has no chart, so it has no tests")));
        }
        if self.tests.has(name) {
            let failure = refused(format!("the tests of module {name} run already"));
            return Err(failure.advise("wait until they have ended: they would delete each other's objects. `addon-operator queue list` says since when they run; the end of the command that runs them ends them, and so does the removal of what they wait for"));
        }
        if self.tests.waiting.len() + self.tests.running.len() >= AT_ONCE {
            return Err(
                refused(format!("the tests of {AT_ONCE} modules run already")).advise("try again later")
            );
        }
        let asked = Asked { command, request, task: cx.ids.task(), at: cx.now };
        self.tests.waiting.insert(name.clone(), asked);
        Ok(())
    }

    /// Begins the tests whose modules have no run under way.
    pub(crate) fn advance_tests(&mut self, cx: &mut Context, configuration: &Configuration, queues: &Queues) {
        if self.tests.waiting.is_empty() {
            return;
        }
        let is_busy = |name: &ModuleName| queues.in_flight().any(|running| writes(&running.task, name));
        let ready: Vec<ModuleName> =
            self.tests.waiting.keys().filter(|name| !is_busy(name)).cloned().collect();
        for name in ready {
            let Some(asked) = self.tests.waiting.remove(&name) else { continue };
            let (run, target) = (cx.ids.run(), self.release_place(configuration, &name));
            let request = asked.request.clone();
            cx.push(Effect::TestRelease { run, module: name.clone(), target, request });
            self.tests.running.insert(run, (name, asked, cx.now));
        }
    }

    /// Answers who asked for tests that have ended.
    pub(crate) fn tests_ended(&mut self, cx: &mut Context, run: RunId, outcome: Result<TestReport, Failure>) {
        let Some((name, asked, _)) = self.tests.running.remove(&run) else { return };
        let outcome = outcome.and_then(|report| {
            serde_json::to_string(&report).map_err(|error| {
                let message = format!("what came of the tests of module {name} has no JSON form: {error}");
                Failure::new(FailureKind::Bug, message)
            })
        });
        cx.push(Effect::AnswerCommand { id: asked.command, outcome });
    }

    /// Ends the tests that a command asked for which nobody waits for any more.
    pub(crate) fn abandon_tests(&mut self, cx: &mut Context, command: CommandId) {
        self.tests.waiting.retain(|_, asked| asked.command != command);
        for (run, (_, asked, _)) in &self.tests.running {
            if asked.command == command {
                cx.push(Effect::CancelRun { run: *run });
            }
        }
    }

    /// Adds the tests that run or wait, as a queue of their own.
    pub(crate) fn add_tests_view(&self, queues: &mut Vec<QueueView>, now: Time) {
        QueueView::add(queues, QUEUE, self.tests.views(now));
    }

    /// Ends all tests: whoever runs them can do so again after the next start.
    pub(crate) fn end_tests(&mut self, cx: &mut Context) {
        for (name, Asked { command: id, .. }) in std::mem::take(&mut self.tests.waiting) {
            let message = format!("the tests of module {name} did not run: the operator ends");
            let failure =
                Failure::new(FailureKind::Cancelled, message).advise("run them again when it is back");
            cx.push(Effect::AnswerCommand { id, outcome: Err(failure) });
        }
        for run in self.tests.running.keys() {
            cx.push(Effect::CancelRun { run: *run });
        }
    }

    /// Returns whether no test is under way.
    pub(crate) fn has_no_tests(&self) -> bool {
        self.tests.running.is_empty()
    }
}

/// Returns whether a task changes the release of a module, or is about to.
fn writes(task: &Task, name: &ModuleName) -> bool {
    match &task.kind {
        TaskKind::ModuleDelete(delete) => delete.module == *name,
        TaskKind::ModulePurge(purge) => purge.release.as_str() == name.as_str(),
        TaskKind::ModuleRun(run) => run.module == *name,
        TaskKind::AddonsCommit
        | TaskKind::ConvergeModules(_)
        | TaskKind::DiscoverHelmReleases
        | TaskKind::GlobalHookEnableKubernetesBindings(_)
        | TaskKind::GlobalHookWaitKubernetesSynchronization
        | TaskKind::HookRun(_)
        | TaskKind::ModuleEnsureCrds(_)
        | TaskKind::ParallelModuleRun(_) => false,
    }
}

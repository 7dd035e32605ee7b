//! Ends of converges: when the operator is ready, and when nothing goes on.

use super::Converges;
use super::readiness::Ended;
use crate::cause::Cause;
use crate::context::Context;
use crate::module::{Lower, Modules};
use crate::name::{ModuleName, QueueName};
use crate::notice::{Notice, TaskInfo};
use crate::queue::{End, Queues};
use crate::task::{Task, TaskKind, Trigger};
use crate::time::Time;
use crate::view::ConvergeView;

impl Converges {
    /// Returns whether the first converge is through.
    pub(crate) fn is_first_done(&self) -> bool {
        self.readiness.is_first_done()
    }

    /// Looks whether a converge began or ended.
    pub(crate) fn check_end(&mut self, modules: &Modules, lower: &mut Lower<'_>) {
        let expected = lower.queues.take_expected();
        let unready = lower.queues.unready();
        if !self.readiness.has_begun() {
            let first = || {
                let task = lower.queues.main_tasks().find(|task| task.counts_for_readiness());
                (lower.cx.now, task.map_or_else(|| Cause::outside("unknown"), |task| task.head.cause.clone()))
            };
            if let Some((at, cause)) = expected.or_else(|| (unready > 0).then(first)) {
                self.readiness.begin(at, cause);
            }
        }
        if unready > 0 {
            return;
        }
        let Some(ended) = self.readiness.end(lower.cx.now, self.generation()) else { return };
        let Ended { begun_at, cause, generation, first } = ended;
        let took = lower.cx.now.since(begun_at);
        lower.cx.notify(Notice::ConvergeFinished { generation, took, first, cause: cause.clone() });
        if first {
            modules.enable_global_schedules(lower.bindings);
            let main = QueueName::main();
            let kind = TaskKind::DiscoverHelmReleases;
            let task = Task::new(lower.cx, &main, kind, Trigger::PostConvergeCleanup, cause, None);
            lower.queues.put(lower.cx, &main, End::Back, vec![task]);
        }
    }

    /// Looks whether the operator has become ready.
    ///
    /// A global hook whose kind does not exist yet holds no other back, but what it does for all
    /// modules is not done before: the operator is not called ready.
    pub(crate) fn check_ready(&mut self, modules: &Modules, lower: &mut Lower<'_>) {
        if self.readiness.is_ready() || !self.is_first_done() {
            return;
        }
        let unready = lower.bindings.unready(modules.global_hooks());
        if !self.readiness.set_ready(unready.is_none()) {
            return;
        }
        let Some((hook, kind)) = unready else { return lower.cx.notify(Notice::Ready) };
        let why = format!("hook {hook} waits for kind {kind}, which does not exist");
        lower.cx.notify(Notice::ReadinessWaits { hook, kind });
        lower.cx.notify(Notice::Stuck { why });
    }

    /// Records that the run of a module succeeded.
    pub(crate) fn run_succeeded(&mut self, module: &ModuleName) {
        self.progress.succeeded(module);
    }

    /// Records that a task failed, and reports when nothing goes on. `failure` quotes no values.
    pub(crate) fn task_failed(&mut self, cx: &mut Context, task: &Task, failure: &str) {
        report(cx, self.progress.failed(&task.info(), failure));
    }

    /// Records that a task waits for what does not come by itself, and reports when nothing goes on.
    /// `reason` quotes no values.
    pub(crate) fn task_waits(&mut self, cx: &mut Context, task: &TaskInfo, reason: &str) {
        report(cx, self.progress.waits(task, reason));
    }

    /// Returns a picture of how far converges are.
    pub(crate) fn view(&self, queues: &Queues, now: Time) -> ConvergeView {
        self.readiness.view(self.generation(), queues.unready(), now)
    }
}

fn report(cx: &mut Context, why: Option<String>) {
    if let Some(why) = why {
        cx.notify(Notice::Stuck { why });
    }
}

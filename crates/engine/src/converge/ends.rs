//! Ends of converges: when the operator is ready, and when nothing goes on.

use std::time::Duration;

use super::Converges;
use super::progress::Wait;
use super::readiness::Ended;
use crate::cause::Cause;
use crate::context::Context;
use crate::module::{Lower, Modules};
use crate::name::{ModuleName, QueueName, ReleaseName, Scope};
use crate::notice::{Notice, TaskInfo};
use crate::queue::{End, Queues};
use crate::task::{HookRun, Task, TaskKind, Trigger};
use crate::time::Time;
use crate::view::ConvergeView;

impl Converges {
    /// Returns whether the first converge is through.
    pub(crate) fn is_first_done(&self) -> bool {
        self.readiness.is_first_done()
    }

    /// Looks whether a converge began or ended.
    pub(crate) fn check_end(&mut self, modules: &mut Modules, lower: &mut Lower<'_>) {
        report(lower.cx, self.progress.given_up(lower.cx.now));
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
        let Some(ended) = self.readiness.end(lower.cx.now, self.generation()) else {
            modules.forget_changes();
            return;
        };
        let Ended { begun_at, cause, generation, first } = ended;
        let took = lower.cx.now.since(begun_at);
        if let Some(generation) = generation {
            modules.converge_ended(lower.cx, generation, took, &cause);
        }
        lower.cx.notify(Notice::ConvergeFinished { generation, took, first, cause: cause.clone() });
        if first {
            self.ask_after_start(modules);
            modules.enable_global_schedules(lower.bindings);
            let main = QueueName::main();
            let kind = TaskKind::DiscoverHelmReleases;
            let task = Task::new(lower.cx, &main, kind, Trigger::PostConvergeCleanup, cause, None);
            lower.queues.put(lower.cx, &main, End::Back, vec![task]);
        }
    }

    /// Looks whether the operator has become ready.
    ///
    /// A global hook that waits for what a module may bring holds no other back, but what it does for all
    /// modules is not done before: the operator is not called ready, also while it does that then.
    pub(crate) fn check_ready(&mut self, modules: &Modules, lower: &mut Lower<'_>) {
        if self.readiness.is_ready() || !self.is_first_done() {
            return;
        }
        let unready = lower.bindings.unready(modules.global_hooks());
        let late = || lower.queues.global_hook_aside().filter(|(_, reason)| reason.may_come_from_modules());
        let unready = unready.or_else(late);
        let is_for_all = |task: &Task| {
            let is_global = |run: &HookRun| matches!(run.hook.scope, Scope::Global);
            task.is_of_converge() && task.hook_run().is_some_and(is_global)
        };
        if unready.is_none() && self.readiness.waits() && lower.queues.main_tasks().any(is_for_all) {
            return;
        }
        if !self.readiness.set_ready(unready.is_none()) {
            return;
        }
        let now = lower.cx.now;
        let Some((hook, reason)) = unready else {
            self.progress.hook_waits(None, now);
            return lower.cx.notify(Notice::Ready);
        };
        let wait = Wait { how: format!("hook {hook} waits: {reason}"), patience: reason.patience() };
        self.progress.hook_waits(Some(wait), now);
        let (reason, advice) = (reason.to_string(), reason.advice());
        lower.cx.notify(Notice::ReadinessWaits { hook, reason, advice });
    }

    /// Looks whether the releases are removed that nobody wants any more. They are looked for behind the first converge.
    pub(crate) fn check_cleaned_up(&mut self, lower: &mut Lower<'_>) {
        if !self.readiness.may_clean_up() {
            return;
        }
        let mut tasks = lower.queues.iter().flat_map(|(_, queue)| queue.iter());
        if tasks.any(|task| task.head.trigger == Trigger::PostConvergeCleanup) {
            return;
        }
        self.readiness.set_cleaned_up();
        lower.cx.notify(Notice::CleanedUp);
    }

    /// Records that the run of a module succeeded.
    pub(crate) fn run_succeeded(&mut self, now: Time, module: &ModuleName) {
        self.progress.succeeded(module, now);
    }

    /// Returns when to look whether nothing but waiting is left.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        self.progress.due()
    }

    /// Reports that a release stays that nobody wants any more. `failure` quotes no values.
    pub(crate) fn release_stays(&mut self, cx: &mut Context, release: &ReleaseName, failure: &str) {
        if self.readiness.may_clean_up() {
            report(cx, Some(format!("release {release} was not removed: {failure}")));
        }
    }

    /// Records that a task failed, and reports when nothing goes on. `failure` quotes no values.
    pub(crate) fn task_failed(&mut self, cx: &mut Context, task: &Task, failure: &str) {
        report(cx, self.progress.failed(&task.info(), failure));
    }

    /// Records that a task waits for what does not come by itself, and reports when nothing goes on.
    /// `reason` quotes no values; `patience` is how long it may take after the last module that may have brought it.
    pub(crate) fn task_waits(&mut self, cx: &mut Context, task: &TaskInfo, reason: &str, patience: Duration) {
        report(cx, self.progress.waits(task, reason, patience));
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

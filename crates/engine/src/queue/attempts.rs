//! Attempts at tasks: how they begin, wait, end and fail.

use std::sync::Arc;
use std::time::Duration;

use super::journal::Ending;
use super::{Blocked, Finished, Queues, Reason};
use crate::config::OnModuleFailure;
use crate::context::Context;
use crate::effect::{Effect, ValuesInput};
use crate::failure::{Failure, FailureKind};
use crate::memory::ShortMemory;
use crate::name::{ModuleName, QueueName, RunId, TaskId};
use crate::notice::{Notice, TaskInfo};
use crate::retry::RetryPolicy;
use crate::task::{Answer, HookRun, Running, Task, TaskKind};
use crate::time::Time;

impl Queues {
    /// Begins an effect of the first task of a queue.
    pub(crate) fn start(
        &mut self,
        cx: &mut Context,
        mut task: Task,
        run: RunId,
        answer: Answer,
        effect: Effect,
    ) {
        self.note_begun(cx, &mut task);
        self.processes += usize::from(answer.is_process());
        if let Some(values) = effect.values() {
            task.head.read = Some(values.clone());
        }
        cx.push(effect);
        self.put_running(Running { task, run, answer, since: cx.now, waits: None, dropped: false });
    }

    /// Makes the first task of a queue wait for a process that was begun before, and that read these values.
    pub(crate) fn join(
        &mut self,
        cx: &mut Context,
        mut task: Task,
        run: RunId,
        answer: Answer,
        values: ValuesInput,
    ) {
        self.note_begun(cx, &mut task);
        task.head.read = Some(values);
        self.put_running(Running { task, run, answer, since: cx.now, waits: None, dropped: false });
    }

    /// Records what an effect waits for that is in flight. Returns the module whose removal that is, if it is one.
    pub(crate) fn run_waits(&mut self, cx: &Context, run: RunId, what: Option<String>) -> Option<ModuleName> {
        let running = self.running_mut(run)?;
        running.waits = what.map(|what| (what, cx.now));
        if let TaskKind::ModuleDelete(delete) = &running.task.kind {
            Some(delete.module.clone())
        } else {
            None
        }
    }

    /// Counts a process that no task waits for.
    pub(crate) fn process_began(&mut self) {
        self.processes += 1;
    }

    /// Counts the end of a process that no task waited for.
    pub(crate) fn process_ended(&mut self) {
        self.processes = self.processes.saturating_sub(1);
    }

    /// Takes the task out whose effect ended. An answer that is not wanted is counted.
    pub(crate) fn finish(&mut self, run: RunId) -> Finished {
        let Some(running) = self.take_running(run) else {
            self.stale_answers += 1;
            return Finished::Unknown;
        };
        if running.answer.is_process() {
            self.process_ended();
        }
        if !running.dropped {
            return Finished::Awaited(Box::new(running));
        }
        self.stale_answers += 1;
        Finished::Dropped
    }

    /// Returns whether another process of a hook or script may run because of a task in `queue`.
    ///
    /// The limit is there for floods of events. Modules, and what is in `main` before them, never wait for it: their
    /// queues are few, and each has one process at most. They wait only while memory is short.
    pub(crate) fn has_slot(&self, queue: &QueueName) -> bool {
        let is_free = queue.is_main() || queue.is_parallel();
        (is_free && self.short_memory.is_none()) || self.has_free_slot()
    }

    /// Returns whether the process of a run may begin that was the first of `queue`.
    ///
    /// A Synchronization that the start of a hook waits for may be in any queue, behind others. `main` waits for all of
    /// them, so they wait for no place either.
    pub(crate) fn has_slot_for(&self, queue: &QueueName, run: &HookRun) -> bool {
        let is_awaited = run.is_awaited || self.counts.has_awaited(queue);
        (is_awaited && self.short_memory.is_none()) || self.has_slot(queue)
    }

    /// Returns whether a process may run that waits for a place.
    pub(crate) fn has_free_slot(&self) -> bool {
        // One goes on when memory is short: if nothing ran, nothing would ever change.
        let places = if self.short_memory.is_some() { 1 } else { self.config.max_hooks.max(1) };
        self.processes < places
    }

    /// Takes note of how much memory is used.
    pub(crate) fn memory_changed(&mut self, used: u64, limit: u64) {
        self.short_memory = ShortMemory::of(used, limit);
    }

    /// Returns how much memory is used, while that is close to the limit.
    pub(crate) fn short_memory(&self) -> Option<ShortMemory> {
        self.short_memory
    }

    /// Returns how many processes of hooks and scripts run.
    pub(crate) fn processes(&self) -> usize {
        self.processes
    }

    /// Returns how many answers came that were not wanted any more.
    pub(crate) fn stale_answers(&self) -> u64 {
        self.stale_answers
    }

    /// Puts a task back that can't go on yet, and reports why if that is new. If it `is_aside`, the others pass it.
    ///
    /// Returns the task if a person has to do something about it and that was not reported before.
    pub(crate) fn wait(
        &mut self,
        cx: &mut Context,
        mut task: Task,
        reason: Reason,
        is_aside: bool,
    ) -> Option<TaskInfo> {
        let mut needs_help = None;
        if self.journal.waits_since(task.head.id, &reason).is_none() && !self.joins_parked(&task, &reason) {
            self.journal.waits(task.head.id, reason.clone(), cx.now);
            let info = task.info();
            let advice = reason.needs_help().then(|| reason.advice());
            needs_help = advice.is_some().then(|| info.clone());
            cx.notify(Notice::TaskWaits { task: info, reason: reason.to_string(), advice });
        }
        let why = Blocked::Waiting { reason, since: cx.now };
        if is_aside {
            self.set_aside(task, why);
        } else {
            task.head.holds_since.get_or_insert(cx.now);
            self.put_blocked(task, why);
        }
        needs_help
    }

    /// Records and reports that a task is done. `allowed` is the failure that counts as success.
    pub(crate) fn end(&mut self, cx: &mut Context, mut task: Task, allowed: Option<Failure>) -> Task {
        self.note_begun(cx, &mut task);
        let took = cx.now.since(task.head.begun_at.unwrap_or(cx.now));
        let is_allowed = allowed.is_some();
        let ending = allowed.clone().map_or(Ending::Done, Ending::Allowed);
        self.journal.ended(&task, cx.now, took, ending);
        cx.notify(Notice::TaskFinished {
            task: task.info(),
            took,
            failure: allowed,
            retry: None,
            allowed: is_allowed,
            is_old: false,
        });
        task
    }

    /// Records and reports that a task failed. Returns how long it waits; [`Queues::retry_later`] puts it back.
    ///
    /// What lacks something in a namespace fails until people of that namespace help, and is told less and less often.
    pub(crate) fn fail(
        &mut self,
        cx: &mut Context,
        task: &mut Task,
        failure: &Failure,
        (policy, is_guest): (&RetryPolicy, bool),
    ) -> Duration {
        let delay = self.config.retry_by(policy, task.head.failures.saturating_add(1), task.head.id.number());
        task.head.alike = failure.in_a_row(task.head.last_failure.as_deref(), task.head.alike);
        let is_old = is_guest && is_told_already(task.head.alike);
        self.attempt_failed(cx, task, failure, (Some(delay), is_old));
        task.head.not_before = Some(cx.now + delay);
        delay
    }

    /// Records and reports that a task failed for the last time.
    pub(crate) fn give_up(&mut self, cx: &mut Context, task: &mut Task, failure: &Failure) {
        self.attempt_failed(cx, task, failure, (None, false));
    }

    fn attempt_failed(
        &mut self,
        cx: &mut Context,
        task: &mut Task,
        failure: &Failure,
        (retry, is_old): (Option<Duration>, bool),
    ) {
        self.note_begun(cx, task);
        let head = &mut task.head;
        let took = cx.now.since(head.begun_at.take().unwrap_or(cx.now));
        head.failures = head.failures.saturating_add(1);
        head.queued_at = cx.now;
        head.failing_since.get_or_insert(cx.now);
        self.journal.ended(task, cx.now, took, Ending::Failed(failure.clone()));
        let failure = Some(failure.clone());
        cx.notify(Notice::TaskFinished { task: task.info(), took, failure, retry, allowed: false, is_old });
    }

    /// Records and reports the end of work that is in no queue, which took this long, or its failure with the time until it is
    /// tried again, and whether that was told already.
    pub(crate) fn record_end(
        &mut self,
        cx: &mut Context,
        task: TaskInfo,
        took: Duration,
        failed: Option<(Failure, Duration, bool)>,
    ) {
        let is_old = failed.as_ref().is_some_and(|(.., is_old)| *is_old);
        let (failure, retry) = failed.map(|(failure, delay, _)| (failure, delay)).unzip();
        let ending = failure.clone().map_or(Ending::Done, Ending::Failed);
        self.journal.record(task.clone(), cx.now, took, ending);
        cx.notify(Notice::TaskFinished { task, took, failure, retry, allowed: false, is_old });
    }

    /// Puts a task that failed back to the head of its queue, behind the other module runs of its converge, or aside; a
    /// guest's is always put aside.
    pub(crate) fn retry_later(
        &mut self,
        now: Time,
        mut task: Task,
        failure: Failure,
        delay: Duration,
        is_guest: bool,
    ) {
        let lacks_kind = failure.kind == FailureKind::MissingKind;
        task.head.last_failure = Some(Arc::new(failure));
        if let Some(home) = task.head.queue.home().filter(|_| is_guest).cloned() {
            // It gives way again as soon as it keeps anybody waiting.
            task.head.queue = home;
        }
        let backoff = Blocked::Backoff { until: now + delay, delay };
        let may_pass = self.config.on_module_failure == OnModuleFailure::Pass && task.module_run().is_some();
        if is_guest || (lacks_kind && task.module_run().is_some()) {
            // The module that brings the kind may be anywhere behind it.
            self.set_aside(task, backoff);
        } else if may_pass && self.has_other_runs(&task.head.queue, task.head.id, task.head.generation, now) {
            self.put_behind(task);
        } else {
            self.put_blocked(task, backoff);
        }
    }

    /// Puts a task back whose effect was ended, because the operator ends (`at_shutdown`) or something newer takes its place. It did
    /// not fail.
    pub(crate) fn stop(&mut self, cx: &mut Context, task: Task, at_shutdown: bool) {
        cx.notify(Notice::TaskStopped { task: task.info(), at_shutdown });
        self.resume(task);
    }

    /// Takes note that somebody changed files or the ConfigMap. What is parked goes on.
    pub(crate) fn somebody_repaired(&mut self) {
        self.repairs += 1;
        self.take_back_parked(|_| true);
    }

    /// Returns whether somebody changed files or the ConfigMap since the last attempt at a task began, which read what was before.
    pub(crate) fn is_repaired_since_begun(&self, task: &Task) -> bool {
        task.head.begun_behind != self.repairs
    }

    fn note_begun(&self, cx: &mut Context, task: &mut Task) {
        task.head.holds_since.get_or_insert(cx.now);
        if task.head.begun_at.is_none() {
            task.head.begun_at = Some(cx.now);
            task.head.begun_behind = self.repairs;
            cx.notify(Notice::TaskStarted { task: task.info(), waited: cx.now.since(task.head.queued_at) });
        }
    }

    /// Puts a module run behind the last other one of its converge.
    pub(super) fn put_behind(&mut self, task: Task) {
        self.rebuild(&task.head.queue.clone(), |mut tasks| {
            let is_run = |other: &Task| {
                other.head.generation == task.head.generation
                    && matches!(other.kind, TaskKind::ModuleRun(_) | TaskKind::ParallelModuleRun(_))
            };
            let place = tasks.iter().rposition(is_run).map_or(0, |last| last + 1);
            tasks.insert(place, task);
            tasks
        });
    }

    /// Returns whether module runs of the converge `generation` other than the task `id` wait that could go on.
    fn has_other_runs(&self, queue: &QueueName, id: TaskId, generation: Option<u64>, now: Time) -> bool {
        let waiting = self.by_name.get(queue).into_iter().flat_map(|queue| &queue.tasks);
        waiting.filter(|other| other.head.generation == generation && other.head.id != id).any(|other| {
            other.module_run().map_or(matches!(other.kind, TaskKind::ParallelModuleRun(_)), |_| {
                other.head.not_before.is_none_or(|until| until <= now)
            })
        })
    }
}

/// Returns whether what failed so many times alike was told often enough: it is told the first, second, fourth, eighth time.
pub(crate) fn is_told_already(alike: u32) -> bool {
    !alike.is_power_of_two()
}

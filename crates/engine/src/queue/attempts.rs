//! Moving queues on: one step of their first tasks at a time.

use std::sync::Arc;

use crate::config::OnModuleFailure;
use crate::effect::Effect;
use crate::engine::Engine;
use crate::failure::{Failure, FailureKind};
use crate::module::Phase;
use crate::name::{QueueName, RunId};
use crate::notice::Notice;
use crate::queue::fifo::{Blocked, Reason};
use crate::queue::journal::Ending;
use crate::queue::next::Next;
use crate::queue::queues::Place;
use crate::task::in_flight::{Running, Work};
use crate::task::{Task, TaskKind};
use crate::time::Time;

impl Engine {
    /// Moves a queue on until its head waits for something.
    pub(crate) fn step(&mut self, queue: &QueueName) {
        while let Some(task) = self.queues.take_ready(queue, self.now) {
            let next = self.advance(queue, task);
            if !self.apply(queue, next) {
                return;
            }
        }
    }

    /// Goes on with the task that was running.
    pub(crate) fn resume(&mut self, queue: &QueueName, task: Task) {
        self.queues.put(queue, Place::Front, vec![task]);
    }

    /// Does the next step of a task.
    fn advance(&mut self, queue: &QueueName, task: Task) -> Next {
        match &task.kind {
            TaskKind::ConvergeModules(_) => self.step_converge(task),
            TaskKind::DiscoverHelmReleases => {
                let run = self.next_run();
                Next::Run(task, run, Work::List, Box::new(Effect::ListReleases { run }))
            }
            TaskKind::GlobalHookEnableKubernetesBindings(_) => self.step_enable_bindings(queue, task),
            TaskKind::GlobalHookRun(_) | TaskKind::ModuleHookRun(_) => self.step_hook_task(queue, task),
            TaskKind::GlobalHookWaitKubernetesSynchronization => self.step_wait(task),
            TaskKind::ModuleDelete(_) => self.step_module_delete(queue, task),
            TaskKind::ModuleEnsureCrds(_) => self.step_crds(task),
            TaskKind::ModulePurge(release) => {
                let run = self.next_run();
                let effect = Effect::UninstallRelease { run, release: release.clone() };
                Next::Run(task, run, Work::Purge, Box::new(effect))
            }
            TaskKind::ModuleRun(_) => self.step_module_run(queue, task),
            TaskKind::ParallelModuleRun(_) => self.step_wave(task),
        }
    }

    /// Carries out what a task does next. Returns whether the queue may go on.
    fn apply(&mut self, queue: &QueueName, next: Next) -> bool {
        match next {
            Next::Behind(mut task) => {
                task.begun_at = None;
                self.put_behind(queue, task);
            }
            Next::Done(task) | Next::Gone(task) => self.end(queue, task, None),
            Next::Fail(task, failure) => self.fail(queue, task, failure),
            Next::First(task, tasks) => {
                self.queues.put(queue, Place::Front, vec![task]);
                self.put(queue, Place::Front, tasks);
            }
            Next::Run(task, run, work, effect) => {
                self.begin(queue, task, run, work, *effect);
                return false;
            }
            Next::Then(task, tasks) => {
                // A run that follows up on this one is part of it, for those who wait for the module.
                let is_last = !tasks.iter().any(|next| next.module_run().is_some());
                self.end_attempt(queue, task, None, is_last);
                self.put(queue, Place::Front, tasks);
            }
            Next::Wait(task, reason) => {
                self.wait(queue, task, reason);
                return false;
            }
        }
        true
    }

    /// Begins an effect of the head of a queue.
    pub(crate) fn begin(
        &mut self,
        queue: &QueueName,
        mut task: Task,
        run: RunId,
        work: Work,
        effect: Effect,
    ) {
        let now = self.now;
        self.note_begun(queue, &mut task);
        self.out.push(effect);
        self.queues.run(queue, Running { task, run, work, since: now, dropped: false });
    }

    fn note_begun(&mut self, queue: &QueueName, task: &mut Task) {
        if task.begun_at.is_none() {
            task.begun_at = Some(self.now);
            let waited = self.now.since(task.queued_at);
            self.notify(Notice::TaskStarted { task: task.info(queue), waited });
        }
    }

    fn wait(&mut self, queue: &QueueName, task: Task, reason: Reason) {
        if self.journal.waits_since(task.id, &reason).is_none() {
            self.journal.waits(task.id, reason.clone(), self.now);
            let advice =
                matches!(reason, Reason::BrokenVersion(_) | Reason::Kind(_)).then(|| reason.advice());
            self.notify(Notice::TaskWaits { task: task.info(queue), reason: reason.to_string(), advice });
        }
        let since = self.now;
        self.queues.put_blocked(queue, task, Blocked::Waiting { reason, since });
    }

    /// Takes in that a task is done. `allowed` is the failure that counts as success.
    pub(crate) fn end(&mut self, queue: &QueueName, task: Task, allowed: Option<Failure>) {
        self.end_attempt(queue, task, allowed, true);
    }

    fn end_attempt(&mut self, queue: &QueueName, mut task: Task, allowed: Option<Failure>, is_last: bool) {
        self.note_begun(queue, &mut task);
        let took = self.now.since(task.begun_at.unwrap_or(self.now));
        let is_allowed = allowed.is_some();
        let ending = allowed.clone().map_or(Ending::Done, Ending::Allowed);
        self.journal.ended(queue, &task, self.now, took, ending);
        let info = task.info(queue);
        self.notify(Notice::TaskFinished {
            task: info,
            took,
            failure: allowed,
            retry: None,
            allowed: is_allowed,
        });
        if let TaskKind::ModuleRun(run) = &task.kind
            && is_last
            && !queue.is_main()
        {
            self.wave_member_ended(&run.module, task.generation, None);
        }
    }

    /// Takes in that a task failed: it goes back to the head of its queue and is tried again later.
    pub(crate) fn fail(&mut self, queue: &QueueName, mut task: Task, failure: Failure) {
        self.note_begun(queue, &mut task);
        let took = self.now.since(task.begun_at.take().unwrap_or(self.now));
        task.failures = task.failures.saturating_add(1);
        task.queued_at = self.now;
        task.failing_since.get_or_insert(self.now);
        let delay = self.config.retry_after(task.failures, task.id.number());
        let until = self.now + delay;
        task.not_before = Some(until);
        self.journal.ended(queue, &task, self.now, took, Ending::Failed(failure.clone()));
        let info = task.info(queue);
        self.notify(Notice::TaskFinished {
            task: info,
            took,
            failure: Some(failure.clone()),
            retry: Some(delay),
            allowed: false,
        });
        self.note_failure(queue, &mut task, &failure);
        let is_kind_missing = failure.kind == FailureKind::MissingKind;
        task.last_failure = Some(Arc::new(failure));
        // The module that brings the kind may be among the others.
        let may_pass = self.config.on_module_failure == OnModuleFailure::Pass || is_kind_missing;
        if may_pass && task.module_run().is_some() && self.has_other_runs(queue, &task) {
            self.put_behind(queue, task);
        } else {
            self.queues.put_blocked(queue, task, Blocked::Backoff { until, delay });
        }
    }

    /// Takes in that the process of a task was ended because the operator ends: the task did not fail.
    pub(crate) fn stopped(&mut self, queue: &QueueName, task: Task) {
        self.notify(Notice::TaskStopped { task: task.info(queue) });
        self.resume(queue, task);
    }

    /// Remembers what a failure means for what the task is about.
    fn note_failure(&mut self, queue: &QueueName, task: &mut Task, failure: &Failure) {
        match &mut task.kind {
            TaskKind::ConvergeModules(_) => self.discovery_failed(task, failure),
            TaskKind::ModuleRun(run) => {
                run.stage = crate::module::run::Stage::Begin;
                let name = run.module.clone();
                if let Some(module) = self.modules.get_mut(&name) {
                    module.last_error = Some(Arc::new(failure.clone()));
                    if !module.first_run_done {
                        module.started_hooks.clear();
                    }
                }
                self.set_phase(&name, Phase::Failed, Some(failure.message.clone()));
                if task.generation.is_some() && !queue.is_main() {
                    self.wave_member_ended(&name, task.generation, Some(failure));
                    self.put_wave_behind(&name, task.generation);
                }
            }
            TaskKind::ModuleDelete(delete) => {
                delete.stage = crate::module::delete::Stage::Begin;
                let name = delete.module.clone();
                if let Some(module) = self.modules.get_mut(&name) {
                    module.last_error = Some(Arc::new(failure.clone()));
                }
            }
            TaskKind::ModuleEnsureCrds(name) => {
                if let Some(module) = self.modules.get_mut(name) {
                    module.last_error = Some(Arc::new(failure.clone()));
                }
            }
            TaskKind::DiscoverHelmReleases
            | TaskKind::GlobalHookEnableKubernetesBindings(_)
            | TaskKind::GlobalHookRun(_)
            | TaskKind::GlobalHookWaitKubernetesSynchronization
            | TaskKind::ModuleHookRun(_)
            | TaskKind::ModulePurge(_)
            | TaskKind::ParallelModuleRun(_) => {}
        }
    }

    /// Puts a module run behind the last other one of its converge.
    pub(crate) fn put_behind(&mut self, queue: &QueueName, task: Task) {
        self.queues.rebuild(queue, |mut tasks| {
            let is_run = |other: &Task| {
                other.generation == task.generation
                    && matches!(other.kind, TaskKind::ModuleRun(_) | TaskKind::ParallelModuleRun(_))
            };
            let place = tasks.iter().rposition(is_run).map_or(0, |last| last + 1);
            tasks.insert(place, task);
            tasks
        });
    }

    /// Takes the task out whose effect ended. A stale answer is counted and leads to nothing.
    pub(crate) fn finish_run(&mut self, run: RunId) -> Option<(QueueName, Running)> {
        let Some((queue, running)) = self.queues.finish(run) else {
            self.stale_answers += 1;
            return None;
        };
        if running.work.is_process() {
            self.processes = self.processes.saturating_sub(1);
        }
        if !running.dropped {
            return Some((queue, running));
        }
        self.stale_answers += 1;
        if let Some(module) = running.task.module().cloned().and_then(|name| self.modules.get_mut(&name)) {
            module.stale_runs = module.stale_runs.saturating_sub(1);
            self.queues.wake(|reason| *reason == Reason::EarlierRun);
        }
        None
    }

    /// Ends the operator's life as soon as nothing is in flight.
    pub(crate) fn exit_at_rest(&mut self) {
        let at_rest = self.queues.in_flight().next().is_none() && self.command_saves.is_empty();
        if self.life == crate::engine::Life::Draining && at_rest {
            self.life = crate::engine::Life::Stopped;
            self.out.push(Effect::Exit);
        }
    }

    /// Begins nothing new. Processes that run may finish, for a while.
    pub(crate) fn shut_down(&mut self) {
        if self.life == crate::engine::Life::Stopped || self.life == crate::engine::Life::Draining {
            return;
        }
        self.life = crate::engine::Life::Draining;
        self.cancels_at = Some(Time::from_start(self.now.since_start() + self.config.shutdown_grace()));
    }

    /// Ends the processes that still run when their time is over.
    pub(crate) fn cancel_late_runs(&mut self) {
        if self.cancels_at.is_none_or(|at| at > self.now) {
            return;
        }
        self.cancels_at = None;
        let runs: Vec<RunId> = self
            .queues
            .in_flight()
            .filter(|(_, running)| running.work.is_process())
            .map(|(_, running)| running.run)
            .collect();
        self.out.extend(runs.into_iter().map(|run| Effect::CancelRun { run }));
    }
}

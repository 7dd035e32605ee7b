//! Modules of one order number that run at a time, and what comes before all runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::effect::Effect;
use crate::engine::Engine;
use crate::failure::{Failure, FailureKind};
use crate::module::ModuleState;
use crate::module::run::ModuleRun;
use crate::name::{ModuleName, QueueName, RunId};
use crate::queue::fifo::Reason;
use crate::queue::next::Next;
use crate::task::in_flight::{Running, Work};
use crate::task::{Task, TaskKind};

impl Engine {
    /// Fills the queues of a wave, then waits for its modules.
    pub(crate) fn step_wave(&mut self, mut task: Task) -> Next {
        let TaskKind::ParallelModuleRun(wave) = &mut task.kind else { return Next::Done(task) };
        wave.waiting_for.retain(|name| self.modules.get(name).is_some_and(ModuleState::is_on));
        if wave.waiting_for.is_empty() {
            return Next::Done(task);
        }
        let names: Vec<&str> = wave.waiting_for.iter().map(ModuleName::as_str).collect();
        let reason = Reason::Modules(names.join(", "));
        if wave.queues.is_some() {
            return Next::Wait(task, reason);
        }
        let (members, event) = (wave.waiting_for.clone(), wave.event);
        let mut queues = BTreeSet::new();
        for (place, name) in members.iter().enumerate() {
            let queue = QueueName::from(format!("parallel_queue_{}", place % self.config.module_concurrency));
            let does_startup = self.modules.get(name).is_some_and(|module| !module.first_run_done);
            let kind = TaskKind::ModuleRun(ModuleRun::new(name.clone(), does_startup));
            let run = self.new_task(kind, event, task.cause.then(format!("module {name}")), task.generation);
            self.put_back(&queue, vec![run]);
            queues.insert(queue);
        }
        if let TaskKind::ParallelModuleRun(wave) = &mut task.kind {
            wave.queues = Some(queues);
        }
        Next::Wait(task, reason)
    }

    /// Takes in that a member of a wave succeeded or failed.
    pub(crate) fn wave_member_ended(
        &mut self,
        name: &ModuleName,
        generation: Option<u64>,
        failure: Option<&Failure>,
    ) {
        self.queues.edit(&QueueName::main(), |task| {
            let is_same = task.generation == generation;
            let TaskKind::ParallelModuleRun(wave) = &mut task.kind else { return false };
            if !is_same || !wave.waiting_for.contains(name) {
                return false;
            }
            match failure {
                None => {
                    wave.waiting_for.remove(name);
                }
                Some(failure) => {
                    task.failures = task.failures.saturating_add(1);
                    let message = format!("\n\tErrors:\n\t- {name}: {failure}");
                    let shown = Failure { message, chain: Vec::new(), ..failure.clone() };
                    task.last_failure = Some(Arc::new(shown));
                }
            }
            true
        });
    }

    /// Moves the wave that `name` is a member of behind the other runs of its converge, if
    /// all that it still waits for are modules whose charts have kinds that do not exist.
    pub(crate) fn put_wave_behind(&mut self, name: &ModuleName, generation: Option<u64>) {
        let main = QueueName::main();
        let lacks_kind = |name: &ModuleName| {
            let error = self.modules.get(name).and_then(|module| module.last_error.as_ref());
            error.is_some_and(|error| error.kind == FailureKind::MissingKind)
        };
        let is_stuck = |task: &Task| {
            let TaskKind::ParallelModuleRun(wave) = &task.kind else { return false };
            task.generation == generation
                && wave.waiting_for.contains(name)
                && wave.waiting_for.iter().all(lacks_kind)
                && self.has_other_runs(&main, task)
        };
        let head = self.queues.get(&main).and_then(|queue| queue.tasks.front());
        if head.is_some_and(is_stuck)
            && let Some(task) = self.queues.take_next(&main, |_| true)
        {
            self.put_behind(&main, task);
        }
    }

    /// Installs the CRDs of a module.
    pub(crate) fn step_crds(&mut self, task: Task) -> Next {
        let TaskKind::ModuleEnsureCrds(name) = &task.kind else { return Next::Done(task) };
        let Some(module) = self.modules.get(name).filter(|module| module.is_on()) else {
            return Next::Gone(task);
        };
        let module = Arc::clone(&module.spec);
        let run = self.next_run();
        Next::Run(task, run, Work::Crds, Box::new(Effect::EnsureCrds { run, module }))
    }

    /// Takes in that the CRDs of a module are installed, or not.
    pub(crate) fn crds_ensured(&mut self, run: RunId, outcome: Result<(), Failure>) {
        let Some((queue, Running { task, .. })) = self.finish_run(run) else { return };
        if let Err(failure) = outcome {
            return self.fail(&queue, task, failure);
        }
        if let Some(module) = task.module().cloned().and_then(|name| self.modules.get_mut(&name)) {
            module.crds_of = Some(module.spec.content);
        }
        self.end(&queue, task, None);
    }
}

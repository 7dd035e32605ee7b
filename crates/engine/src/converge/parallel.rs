//! Modules of one order number that run at a time, each in one of some queues of their own.

use std::sync::Arc;

use super::Converges;
use crate::context::Context;
use crate::failure::Failure;
use crate::module::Modules;
use crate::name::{ModuleName, QueueName};
use crate::queue::{End, Next, Queues, Reason};
use crate::task::{ModuleRun, ParallelModuleRun, Task, TaskHead, TaskKind};

impl Converges {
    /// Queues the runs of parallel modules, then waits for them.
    pub(crate) fn advance_parallel(
        &self,
        cx: &mut Context,
        modules: &Modules,
        queues: &mut Queues,
        head: &TaskHead,
        parallel: &mut ParallelModuleRun,
    ) -> Next {
        parallel.waiting_for.retain(|name| modules.is_on(name));
        if parallel.waiting_for.is_empty() {
            return Next::Done;
        }
        if !std::mem::replace(&mut parallel.is_queued, true) {
            for (place, name) in parallel.waiting_for.iter().enumerate() {
                let queue = QueueName::parallel(place % self.config.module_concurrency);
                let does_startup = modules.get(name).is_some_and(|module| !module.first_run_done());
                let kind = TaskKind::ModuleRun(ModuleRun::new(name.clone(), does_startup));
                let cause = head.cause.then(format!("module {name}"));
                let run = Task::new(cx, &queue, kind, parallel.event, cause, head.generation);
                queues.put(cx, &queue, End::Back, vec![run]);
            }
        }
        let names: Vec<&str> = parallel.waiting_for.iter().map(ModuleName::as_str).collect();
        let reason = Reason::Modules(names.join(", "));
        // A later module may bring the kinds that these lack.
        let is_stuck = parallel.waiting_for.is_subset(&queues.modules_aside(head.generation));
        if is_stuck { Next::Aside(reason) } else { Next::Wait(reason) }
    }
}

/// Records that a parallel module run succeeded, or failed.
pub(crate) fn member_ended(
    queues: &mut Queues,
    name: &ModuleName,
    generation: Option<u64>,
    failure: Option<&Failure>,
) {
    queues.edit(&QueueName::main(), |task| {
        let TaskKind::ParallelModuleRun(parallel) = &mut task.kind else { return false };
        if task.head.generation != generation || !parallel.waiting_for.contains(name) {
            return false;
        }
        match failure {
            None => {
                parallel.waiting_for.remove(name);
            }
            Some(failure) => {
                task.head.failures = task.head.failures.saturating_add(1);
                let of_member = |failure: &Failure| Failure {
                    message: format!("\n\tErrors:\n\t- {name}: {failure}"),
                    chain: Vec::new(),
                    masked: None,
                    ..failure.clone()
                };
                let masked = failure.masked.as_deref().map(|masked| Arc::new(of_member(masked)));
                let shown = Failure { masked, ..of_member(failure) };
                task.head.last_failure = Some(Arc::new(shown));
            }
        }
        true
    });
}

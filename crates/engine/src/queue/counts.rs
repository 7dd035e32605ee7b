//! What must be known about waiting tasks without looking at each.

use std::collections::BTreeMap;

use crate::name::{HookId, ModuleName, QueueName};
use crate::task::{Converge, ModuleRun, Task};

/// How many tasks of which sort there are.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Module runs that will see the values as they are now, by module.
    pub(super) pending_runs: BTreeMap<ModuleName, usize>,
    /// Hook runs that wait, by queue and hook.
    waiting_hooks: BTreeMap<(QueueName, HookId), usize>,
    /// Synchronizations in their row that the start of a hook waits for, by queue.
    awaited: BTreeMap<QueueName, usize>,
    /// Converges that did not begin.
    pub(super) unstarted_converges: usize,
    /// Tasks that readiness waits for, the running ones too.
    pub(super) unready: usize,
}

impl Counts {
    /// Counts a task that waits from now on.
    pub(super) fn add(&mut self, task: &Task) {
        self.add_unready(task);
        if let Some(run) = task.module_run().filter(|run| ModuleRun::is_pending(run)) {
            *self.pending_runs.entry(run.module.clone()).or_default() += 1;
        }
        if let Some(run) = task.hook_run() {
            *self.waiting_hooks.entry((task.head.queue.clone(), run.hook.clone())).or_default() += 1;
            if run.is_awaited {
                *self.awaited.entry(task.head.queue.clone()).or_default() += 1;
            }
        }
        if task.converge().is_some_and(Converge::is_unstarted) {
            self.unstarted_converges += 1;
        }
    }

    /// Counts a task out that waited.
    pub(super) fn remove(&mut self, task: &Task) {
        self.remove_unready(task);
        if let Some(run) = task.module_run().filter(|run| ModuleRun::is_pending(run)) {
            less(&mut self.pending_runs, &run.module);
        }
        if let Some(run) = task.hook_run() {
            less(&mut self.waiting_hooks, &(task.head.queue.clone(), run.hook.clone()));
            if run.is_awaited {
                less(&mut self.awaited, &task.head.queue);
            }
        }
        if task.converge().is_some_and(Converge::is_unstarted) {
            self.unstarted_converges = self.unstarted_converges.saturating_sub(1);
        }
    }

    /// Counts a task that is aside. What a global hook does late is not what the end of a converge waits for, and what
    /// stands before nothing needs no place.
    pub(super) fn add_aside(&mut self, task: &Task) {
        self.add(task);
        if let Some(run) = task.hook_run() {
            self.remove_unready(task);
            if run.is_awaited {
                less(&mut self.awaited, &task.head.queue);
            }
        }
    }

    /// Counts a task out that was aside.
    pub(super) fn remove_aside(&mut self, task: &Task) {
        if let Some(run) = task.hook_run() {
            self.add_unready(task);
            if run.is_awaited {
                *self.awaited.entry(task.head.queue.clone()).or_default() += 1;
            }
        }
        self.remove(task);
    }

    /// Counts a task that runs.
    pub(super) fn add_unready(&mut self, task: &Task) {
        self.unready += usize::from(task.counts_for_readiness());
    }

    /// Counts a task out that ran.
    pub(super) fn remove_unready(&mut self, task: &Task) {
        self.unready = self.unready.saturating_sub(usize::from(task.counts_for_readiness()));
    }

    /// Returns whether a Synchronization waits in the queue that the start of a hook waits for.
    pub(super) fn has_awaited(&self, queue: &QueueName) -> bool {
        self.awaited.contains_key(queue)
    }

    /// Returns how many runs of the hook wait in the queue.
    pub(super) fn waiting_runs(&self, queue: &QueueName, hook: &HookId) -> usize {
        self.waiting_hooks.get(&(queue.clone(), hook.clone())).copied().unwrap_or(0)
    }
}

fn less<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

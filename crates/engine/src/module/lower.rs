//! What steps of modules and hooks work with: the surroundings of a call, and the machines below the modules.

use crate::binding::Bindings;
use crate::configuration::Configuration;
use crate::context::Context;
use crate::name::QueueName;
use crate::queue::Queues;
use crate::task::Task;

/// The surroundings of a call, and the machines below the modules, which steps of modules and hooks work with.
#[derive(Debug)]
pub(crate) struct Lower<'a> {
    /// The time, new ids, and where effects go.
    pub(crate) cx: &'a mut Context,
    /// Where tasks are put.
    pub(crate) queues: &'a mut Queues,
    /// What hooks and charts read.
    pub(crate) configuration: &'a mut Configuration,
    /// What hooks see of the cluster.
    pub(crate) bindings: &'a mut Bindings,
}

impl Lower<'_> {
    /// Drops all tasks that `keep` rejects, in all queues.
    pub(crate) fn drop_tasks(&mut self, keep: impl Fn(&Task) -> bool) {
        for queue in self.queues.names() {
            self.drop_tasks_in(&queue, &keep);
        }
    }

    /// Drops the tasks of a queue that `keep` rejects. Returns whether there were any.
    pub(crate) fn drop_tasks_in(&mut self, queue: &QueueName, keep: impl Fn(&Task) -> bool) -> bool {
        let dropped = self.queues.drop_tasks(queue, keep);
        for task in dropped.tasks() {
            for key in task.hook_run().into_iter().flat_map(|run| &run.synchronizes) {
                self.bindings.mark_queued(key, false);
            }
        }
        dropped.any()
    }
}

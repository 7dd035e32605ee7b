//! How much the engine holds: what must not grow while it lives.

use crate::engine::Engine;
use crate::queue::fifo::Queue;
use crate::task::Task;

/// How much the engine holds, in pieces.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Held {
    /// Tasks in queues.
    pub tasks: usize,
    /// Contexts that tasks will show to hooks.
    pub contexts: usize,
    /// Events that wait for a Synchronization.
    pub held_back: usize,
    /// Objects in snapshots.
    pub objects: usize,
    /// Ends of tasks, and reasons to wait, that are remembered.
    pub journal: usize,
    /// Everything else that is kept by name or number: queues, watches, rates, commands.
    pub entries: usize,
}

impl Engine {
    /// Returns how much the engine holds.
    pub fn held(&self) -> Held {
        let tasks = || self.queues.iter().flat_map(|(_, queue)| Queue::iter(queue));
        let contexts = tasks().filter_map(Task::hook_run).map(|run| run.contexts.len()).sum();
        let (held_back, objects) = self.watches.held();
        Held {
            tasks: tasks().count(),
            contexts,
            held_back,
            objects,
            journal: self.journal.len(),
            entries: self.queues.iter().count()
                + self.watches.iter().count()
                + self.rates.len()
                + self.command_saves.len()
                + self.dynamic_flags.len(),
        }
    }
}

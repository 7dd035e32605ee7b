//! How much the engine holds: what must not grow while it lives.

/// How much the engine holds, in pieces.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Footprint {
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
    /// How many configurations and addons of sources were looked at so far, but for those that were asked for by name. It grows
    /// with what changes, not with what there is.
    pub looked_at: usize,
}

//! What the server does on its own after a change: it collects garbage, ends deletions, simulates workloads.

mod definition_finalizer;
mod finalizer;
mod garbage_collector;
mod namespace;
pub(crate) mod simulation;
mod volume_protection;
pub(crate) mod worker;

//! What the server does on its own after a change.

pub(crate) mod garbage_collector;
pub(crate) mod simulation;

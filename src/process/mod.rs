//! Processes: starts them, reads their output, limits and ends them. Also the memory of this process.
//!
//! Each process leads a group of its own, so that ending it ends what it
//! started. Its exit is seen through a pidfd, never by polling.

pub mod memory;
mod orphans;
mod run;
mod wait;

pub use orphans::adopt;
pub use run::{Exit, Finished, Program, RunError, Stream};

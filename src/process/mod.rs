//! Processes: starts them, reads their output, limits and ends them. Also the memory of this process, and who has a file open.
//!
//! Each process leads a group of its own, so that ending it ends what it
//! started; what left the group is found through its parents. Its exit is
//! seen through a pidfd, never by polling.

mod child_signal;
mod chroot;
mod clock;
mod control_group;
mod descendants;
pub mod guard;
mod lease;
mod limit_kind;
mod limits;
pub mod memory;
mod memory_limit;
mod orphans;
mod pipes;
pub mod python;
mod run;
mod spawn;
mod streams;
pub mod usage;
mod variables;
mod wait;
mod written;

pub use chroot::{Chroot, ChrootError, Chroots};
pub use clock::{since_boot, suspended};
pub use guard::Guard;
pub use lease::WatchedFile;
pub use limit_kind::{LimitKind, MetLimit};
pub use memory_limit::MemoryLimit;
pub use orphans::{adopt, end_all};
pub use run::{Exit, Finished, Program, RunError, Survivors};
pub use streams::Stream;
pub use variables::Variables;

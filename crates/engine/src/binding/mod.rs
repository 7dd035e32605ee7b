//! Bindings of hooks to objects and times: watches with their snapshots, schedules, and how often hooks may run.
//!
//! See docs/hooks.md#kubernetes-bindings.

mod bindings;
mod first_list;
mod rate;
mod schedule;
mod tally;
mod watch_events;
mod watch_health;
mod watches;

pub use bindings::WatchedObjects;
pub(crate) use bindings::{Bindings, Synchronization, Unfinished};
pub(crate) use rate::timeout;
pub use tally::Tally;
pub(crate) use watch_health::Restored;

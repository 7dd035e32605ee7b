//! Queues of tasks: what runs, what waits and why, what is tried again when, and how tasks ended.
//!
//! See docs/contract.md#queues-and-tasks.

mod aside;
mod attempts;
mod counts;
mod fifo;
mod journal;
mod next;
mod own_queue;
mod queues;
mod reason;
mod view;

pub(crate) use attempts::is_told_already;
pub(crate) use fifo::{Blocked, Queue};
pub(crate) use next::Next;
pub(crate) use queues::{Dropped, End, Finished, Queues};
pub(crate) use reason::Reason;

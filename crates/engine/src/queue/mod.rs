//! Queues of tasks.

pub(crate) mod attempts;
pub(crate) mod fifo;
pub(crate) mod journal;
pub(crate) mod next;
pub(crate) mod queues;

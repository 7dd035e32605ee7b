//! What a task does next.

use crate::effect::Effect;
use crate::failure::Failure;
use crate::name::RunId;
use crate::queue::fifo::Reason;
use crate::task::Task;
use crate::task::in_flight::Work;

/// What the first task of a queue does next.
#[derive(Debug)]
pub(crate) enum Next {
    /// It goes behind the other module runs of its converge.
    Behind(Task),
    /// It is done.
    Done(Task),
    /// It failed.
    Fail(Task, Failure),
    /// Other tasks go first.
    First(Task, Vec<Task>),
    /// What it is about does not exist any more.
    Gone(Task),
    /// It begins something in the outside world.
    Run(Task, RunId, Work, Box<Effect>),
    /// It is done, and other tasks take its place.
    Then(Task, Vec<Task>),
    /// It can't go on yet.
    Wait(Task, Reason),
}

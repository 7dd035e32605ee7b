//! What a task does next.

use super::Reason;
use crate::effect::Effect;
use crate::failure::Failure;
use crate::name::RunId;
use crate::task::{Answer, Task};

/// What the first task of a queue does next.
#[derive(Debug)]
pub(crate) enum Next {
    /// It goes behind the other module runs of its converge.
    Behind,
    /// It is done.
    Done,
    /// It failed.
    Fail(Failure),
    /// Other tasks go first.
    First(Vec<Task>),
    /// What it is about does not exist any more.
    Gone,
    /// It begins something outside of the engine.
    Run(RunId, Answer, Box<Effect>),
    /// It is done, and other tasks take its place.
    Then(Vec<Task>),
    /// It can't go on yet.
    Wait(Reason),
}

//! What a task does next.

use super::Reason;
use crate::effect::{Effect, ValuesInput};
use crate::failure::Failure;
use crate::name::RunId;
use crate::task::{Answer, Task};

/// What the first task of a queue does next.
#[derive(Debug)]
pub(crate) enum Next {
    /// It can't go on before other tasks that are aside.
    Aside(Reason),
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
    /// It waits for the end of a process that was begun before, and that read these values.
    Join(RunId, Answer, ValuesInput),
    /// It is done, and other tasks take its place.
    Then(Vec<Task>),
    /// It can't go on yet. Who waits for what a module may bring is set aside, since that one may be behind.
    Wait(Reason),
}

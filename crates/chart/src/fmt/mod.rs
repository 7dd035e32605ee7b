//! Go's `fmt`: how values become text.

mod number;
mod pad;
mod print;
mod printf;

pub use print::{PrintError, sprint, sprintln};
pub use printf::sprintf;

pub(crate) use print::{print_pointed, print_value, sprint_pointed};

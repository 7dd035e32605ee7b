//! Go's `fmt`: how values become text.
//!
//! Whatever has a [`Shape`] can be printed; see [`Operand`].

mod flags;
mod json;
mod number;
mod operand;
mod print;
mod printf;

pub use operand::{Operand, Shape};
pub use print::{PrintError, print, print_dereferenced, sprint, sprint_dereferenced, sprintln};
pub use printf::{sprintf, whole};

//! Changes of objects that hooks ask for.

mod error;
mod object;
mod outcome;
mod patcher;
mod unquoted;

pub use patcher::Patcher;

//! Go's template language.

mod context;
mod limits;

pub use context::Context;
pub use limits::Limits;

//! Full passes over all modules.

pub(crate) mod converges;
pub(crate) mod discovery;
pub(crate) mod parallel;

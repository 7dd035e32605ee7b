//! Passes over all modules: how they begin and go on, which modules are on, when the operator is ready or stuck.
//!
//! See docs/contract.md#a-converge.

mod converges;
mod discovery;
mod ends;
mod parallel;
mod progress;
mod readiness;

pub(crate) use converges::Converges;
pub(crate) use discovery::report_script;
pub(crate) use parallel::{member_ended, put_behind};

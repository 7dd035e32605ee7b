//! Passes over all modules: how they begin and go on, which modules are on, when the operator is ready or stuck.
//!
//! See docs/contract.md#a-converge.

mod ahead;
mod converges;
mod discovery;
mod ends;
mod parallel;
mod progress;
mod readiness;
mod script;

pub(crate) use converges::{Converges, is_at};
pub(crate) use parallel::member_ended;
pub(crate) use script::{record_answer, report_script};

//! Runs of hooks and scripts: files, environment, process, output.

mod input;
mod log;
mod output;
mod run;
mod scratch;
mod script;
pub mod shell_framework;

pub use log::LogRules;
pub use run::{HookRun, Hooks};
pub use scratch::{RunFiles, Scratch, ScratchError};
pub use script::ScriptRun;

//! Runs of hooks and scripts: files, environment, process, output.

mod error;
mod input;
mod log;
mod output;
mod run;
mod run_files;
mod runner;
mod scratch;
mod script;
pub mod shell_framework;

pub use error::ScratchError;
pub use log::LogRules;
pub use run::{HookRun, Hooks};
pub use run_files::{InputWriter, Layout, RunFiles};
pub use runner::{HookRunner, Ran};
pub use scratch::Scratch;
pub use script::ScriptRun;

//! Who runs hooks and scripts: processes, or what stands in for them.

use engine::{Failure, HookOutput, Usage, Verdict};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::run::{HookRun, Hooks};
use super::script::ScriptRun;

/// What a run returns: its outcome, and what it used.
pub type Ran<T> = (Result<T, Failure>, Option<Usage>);

/// Runs hooks and scripts. A run ends early when its `cancel` says so.
pub trait HookRunner: Send + Sync {
    /// Runs a hook and returns what it wrote, checked.
    fn run(&self, run: HookRun, cancel: oneshot::Receiver<()>) -> BoxFuture<'_, Ran<HookOutput>>;

    /// Runs an enabled script and returns its verdict.
    fn run_script(&self, run: ScriptRun, cancel: oneshot::Receiver<()>) -> BoxFuture<'_, Ran<Verdict>>;
}

impl HookRunner for Hooks {
    fn run(&self, run: HookRun, cancel: oneshot::Receiver<()>) -> BoxFuture<'_, Ran<HookOutput>> {
        Hooks::run(self, run, cancel).boxed()
    }

    fn run_script(&self, run: ScriptRun, cancel: oneshot::Receiver<()>) -> BoxFuture<'_, Ran<Verdict>> {
        Hooks::run_script(self, run, cancel).boxed()
    }
}

//! What is held while much passes through, counted byte by byte: a binary of its own, one test at a time.

#![expect(clippy::unwrap_used, reason = "a test that stumbles over a surprise has done its job")]

mod config_map;
#[expect(dead_code, reason = "tests of other crates count in other ways")]
mod counting;
mod flood;
mod git;
mod large;
mod lists;
mod metrics;
#[path = "../../crates/source/tests/git/packs.rs"]
#[expect(dead_code, reason = "tests of packs themselves make more of them")]
mod packs;
mod records;
#[cfg(target_env = "gnu")]
mod returned;
mod sources;

use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// Bytes are counted for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

/// Returns what keeps other tests of this process waiting.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` on a runtime of its own. Returns by how many bytes the process grew at most meanwhile.
fn grown_by(work: impl Future<Output = ()>) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let before = counting::live();
    counting::begin_peak();
    runtime.block_on(work);
    counting::peak() - before
}

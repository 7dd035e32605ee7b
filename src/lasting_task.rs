//! Tasks that last as long as the operator: one that panics is told, and started again.
//!
//! Without this a defect would end such a task in silence, and what it does would never happen again.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::Instant;

/// How long to wait before a task that panicked is started again; twice as long after each further time.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// The longest of these waits.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// How long a task has to last until the waits are short again.
const QUIET: Duration = Duration::from_mins(10);

/// How often tasks of this process have panicked.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Returns how often tasks of this process have panicked since it began.
pub(crate) fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// Does what `begin` returns, and does it again after each panic. Returns what it came to.
///
/// `name` is what people know the task by. What the task holds has to be as good after a panic as before.
pub(crate) async fn lasting<T, F>(name: &str, mut begin: impl FnMut() -> F) -> T
where
    F: Future<Output = T>,
{
    let mut wait = FIRST_WAIT;
    loop {
        let started = Instant::now();
        let panic = match AssertUnwindSafe(async { begin().await }).catch_unwind().await {
            Ok(outcome) => return outcome,
            Err(panic) => panic,
        };
        PANICS.fetch_add(1, Ordering::Relaxed);
        if started.elapsed() >= QUIET {
            wait = FIRST_WAIT;
        }
        let (cause, seconds) = (text(panic.as_ref()), wait.as_secs());
        tracing::error!("a defect of the operator: {name} panicked: {cause}; it begins again in {seconds} s");
        tokio::time::sleep(wait).await;
        wait = wait.saturating_mul(2).min(LONGEST_WAIT);
    }
}

/// Returns what a panic says.
pub(crate) fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_begun_again_ever_more_seldom_until_it_comes_to_its_end() {
        let before = panics();
        let (started, mut beginnings) = (Instant::now(), Vec::new());
        let outcome = lasting("the test", || {
            beginnings.push(started.elapsed().as_secs());
            let round = beginnings.len();
            async move {
                tokio::task::yield_now().await;
                assert!(round == 9, "a defect");
                round
            }
        });
        assert_eq!(outcome.await, 9);
        assert_eq!(beginnings, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
        assert!(panics() >= before + 8);
    }

    #[tokio::test(start_paused = true)]
    async fn the_waits_are_short_again_after_a_task_has_lasted() {
        let mut beginnings = Vec::new();
        lasting("the test", || {
            beginnings.push(Instant::now());
            let round = beginnings.len();
            async move {
                if round == 5 {
                    tokio::time::sleep(QUIET).await;
                }
                assert!(round == 7, "a defect");
            }
        })
        .await;
        let waits: Vec<u64> =
            beginnings.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 601, 2]);
    }
}

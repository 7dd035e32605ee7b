//! When a step is over: nothing runs, nothing is under way, nothing will happen by itself.
//!
//! A test has a thread and a runtime of its own. Before the runtime goes to sleep no task is ready, so
//! what the rest of the program says at that moment is how it stays.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Says whether all is still.
type Look = Box<dyn Fn() -> bool + Send + Sync>;

/// Tells a test when all is still.
#[derive(Default)]
pub(super) struct Stillness {
    asked: AtomicBool,
    still: Notify,
    look: OnceLock<Look>,
}

impl Stillness {
    /// Sets, once, what is asked.
    pub(super) fn ask(&self, look: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.look.set(Box::new(look));
    }

    /// To be called whenever the runtime has nothing to do.
    pub(super) fn runtime_sleeps(&self) {
        if self.asked.load(Ordering::Relaxed) && self.look.get().is_some_and(|look| look()) {
            self.asked.store(false, Ordering::Relaxed);
            self.still.notify_one();
        }
    }

    /// Returns when all is still.
    pub(super) async fn wait(&self) {
        self.asked.store(true, Ordering::Relaxed);
        self.still.notified().await;
    }
}

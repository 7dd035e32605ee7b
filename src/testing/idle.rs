//! Detects the end of a step: nothing runs, no effect is pending, nothing will happen by itself.
//!
//! A test has its own thread and runtime. Before the runtime parks, no task is ready, so
//! the state at that moment is final.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Returns whether nothing is pending.
type IsIdle = Box<dyn Fn() -> bool + Send + Sync>;

/// Signals when the test is idle.
#[derive(Default)]
pub(super) struct IdleSignal {
    is_awaited: AtomicBool,
    notify: Notify,
    is_idle: OnceLock<IsIdle>,
}

impl IdleSignal {
    /// Sets the check, once.
    pub(super) fn set_check(&self, is_idle: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.is_idle.set(Box::new(is_idle));
    }

    /// The runtime calls this whenever it has nothing to do.
    pub(super) fn runtime_sleeps(&self) {
        if self.is_awaited.load(Ordering::Relaxed) && self.is_idle.get().is_some_and(|is_idle| is_idle()) {
            self.is_awaited.store(false, Ordering::Relaxed);
            self.notify.notify_one();
        }
    }

    /// Waits until the test is idle.
    pub(super) async fn wait(&self) {
        self.is_awaited.store(true, Ordering::Relaxed);
        self.notify.notified().await;
    }
}

//! How long watches take for what they see, reported to a listener.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use engine::MonitorId;

/// What a watch did for a monitor, with the time that it took.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WatchTiming {
    /// It filtered an object.
    Filtered(Duration),
    /// It passed on a change, the filter included.
    PassedOn(Duration),
}

type Listener = Box<dyn Fn(MonitorId, WatchTiming) + Send + Sync>;

/// Where watches report how long they take. Its clones share one listener.
#[derive(Clone, Default)]
pub struct WatchTimings(Arc<OnceLock<Listener>>);

impl fmt::Debug for WatchTimings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchTimings").finish_non_exhaustive()
    }
}

impl WatchTimings {
    /// Sets the listener; a second one is ignored.
    pub fn listen(&self, listener: impl Fn(MonitorId, WatchTiming) + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(listener));
    }

    pub(super) fn report(&self, monitor: MonitorId, timing: WatchTiming) {
        if let Some(listener) = self.0.get() {
            listener(monitor, timing);
        }
    }
}

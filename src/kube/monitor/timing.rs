//! How long watches work on what they see, told to whoever listens.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use engine::MonitorId;

/// What a watch did for a monitor, and how long it took.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Timing {
    /// It filtered an object.
    Filtered(Duration),
    /// It passed on a change, the filter included.
    PassedOn(Duration),
}

type Listener = Box<dyn Fn(MonitorId, Timing) + Send + Sync>;

/// Tells a listener, once there is one.
#[derive(Clone, Default)]
pub struct Timings(Arc<OnceLock<Listener>>);

impl fmt::Debug for Timings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timings").finish_non_exhaustive()
    }
}

impl Timings {
    /// Sets, once, who is told.
    pub fn listen(&self, listener: impl Fn(MonitorId, Timing) + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(listener));
    }

    pub(super) fn tell(&self, monitor: MonitorId, timing: Timing) {
        if let Some(listener) = self.0.get() {
            listener(monitor, timing);
        }
    }
}

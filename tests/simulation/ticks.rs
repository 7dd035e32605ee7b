//! When crontab lines were in force, and when they fired.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

/// What happened to the lines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Tick {
    /// The engine wants them.
    On,
    /// The engine does not want them any more.
    Off,
    /// One fired.
    Fired,
}

/// What happened to the lines in one run, in its order: when, and to which operator. Clones are the same.
#[derive(Clone)]
pub(crate) struct Ticks(Instant, Arc<Mutex<Vec<(Duration, usize, Tick)>>>);

impl Ticks {
    /// Returns that nothing has happened yet. Time begins now.
    pub(crate) fn new() -> Self {
        Self(Instant::now(), Arc::default())
    }

    pub(crate) fn note(&self, life: usize, tick: Tick) {
        self.1.lock().unwrap().push((self.0.elapsed(), life, tick));
    }

    /// Returns all that happened so far.
    pub(crate) fn all(&self) -> Vec<(Duration, usize, Tick)> {
        self.1.lock().unwrap().clone()
    }
}

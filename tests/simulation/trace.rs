//! What happened in a run, line by line, with the time since its start.

use std::sync::{Arc, Mutex};

use tokio::time::Instant;

/// The lines of one run. Clones are the same trace.
#[derive(Clone)]
pub(crate) struct Trace(Arc<Inner>);

struct Inner {
    begun: Instant,
    lines: Mutex<Vec<String>>,
}

impl Trace {
    /// Returns an empty trace whose time begins now.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner { begun: Instant::now(), lines: Mutex::default() }))
    }

    /// Adds a line.
    pub(crate) fn note(&self, line: impl FnOnce() -> String) {
        let at = self.0.begun.elapsed();
        self.0.lines.lock().unwrap().push(format!("{:9.3} {}", at.as_secs_f64(), line()));
    }

    /// Returns all lines so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lines.lock().unwrap().clone()
    }
}

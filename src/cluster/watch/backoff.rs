//! How long to wait between attempts.

use std::time::Duration;

/// A wait that doubles with each failure in a row, up to a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
}

impl Backoff {
    /// The waits after failures of a list or a watch.
    pub(crate) const WATCH: Self = Self::new(Duration::from_millis(800), Duration::from_secs(30));

    /// Returns waits from `first` to `longest`.
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// Returns how long to wait after so many failures in a row, a little different each time.
    pub(crate) fn after(self, failures: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << failures.saturating_sub(1).min(8)).min(self.longest);
        doubled.mul_f64(rand::random_range(0.8..1.2))
    }
}

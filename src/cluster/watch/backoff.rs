//! How long to wait between attempts.

use std::time::Duration;

use tokio::time::Instant;

/// How long nothing has to fail until the waits are short again, as for client-go's reflector.
const QUIET: Duration = Duration::from_mins(2);

/// A wait that doubles with each failure in a row, up to a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
}

impl Backoff {
    /// The waits after failures of a list or a watch, which are those of client-go's reflector.
    const WATCH: Self = Self::new(Duration::from_millis(800), Duration::from_secs(30));

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

/// When something is listed or watched again. That one request was answered says little: a list may work while the watch
/// behind it never does. So only time without any failure makes the waits short again.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    failures: u32,
    /// When the next one may begin.
    next: Option<Instant>,
}

impl Attempts {
    /// Records a failure, and returns when to try again. What else fails until then belongs to the same failure.
    pub(crate) fn fail(&mut self) -> Instant {
        let now = Instant::now();
        match self.next {
            Some(next) if now < next => return next,
            Some(next) if now.duration_since(next) >= QUIET => self.failures = 0,
            Some(_) | None => {}
        }
        self.failures = self.failures.saturating_add(1);
        let next = now + Backoff::WATCH.after(self.failures);
        self.next = Some(next);
        next
    }

    /// Returns how many failures there were, with less than two minutes between them.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// Waits until the next attempt may begin.
    pub(crate) async fn ready(&self) {
        if let Some(next) = self.next {
            sleep_until(next).await;
        }
    }
}

/// Waits until `at`. Even a sleep until now lasts until the next tick of the runtime's clock.
pub(super) async fn sleep_until(at: Instant) {
    if at > Instant::now() {
        tokio::time::sleep_until(at).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn slip_02_waits_grow_to_half_a_minute_and_are_short_again_after_two_quiet_minutes() {
        let mut attempts = Attempts::default();
        let mut waits = Vec::new();
        for _ in 0..10 {
            let begun = Instant::now();
            attempts.fail();
            // All that fails at the same time is one failure.
            attempts.fail();
            attempts.ready().await;
            waits.push(begun.elapsed().as_secs_f64());
        }
        assert_eq!(attempts.failures(), 10);
        for (wait, expected) in waits.iter().zip([0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0, 30.0]) {
            assert!((expected * 0.79..expected * 1.21).contains(wait), "{wait} s instead of {expected} s");
        }
        // A watch that worked for a minute has not lasted.
        tokio::time::sleep(Duration::from_mins(1)).await;
        attempts.fail();
        assert_eq!(attempts.failures(), 11);
        attempts.ready().await;
        tokio::time::sleep(QUIET).await;
        attempts.fail();
        assert_eq!(attempts.failures(), 1);
    }
}

//! How long to wait between attempts.

use std::time::Duration;

use tokio::time::Instant;

/// How long a watch has to work, with no failure beside it, until the waits are short again.
const LASTING: Duration = Duration::from_mins(2);

/// A wait that doubles with each failure in a row, up to a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    /// The least and the most by which a wait is multiplied, so that not all clients come back at once.
    jitter: (f64, f64),
}

impl Backoff {
    /// The waits after failures of a list or a watch, which are those of client-go's reflector: up to twice as long as said.
    const WATCH: Self =
        Self { first: Duration::from_millis(800), longest: Duration::from_secs(30), jitter: (1.0, 2.0) };

    /// Returns waits from `first` to `longest`.
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, jitter: (0.8, 1.2) }
    }

    /// Returns how long to wait after so many failures in a row, a little different each time.
    pub(crate) fn after(self, failures: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << failures.saturating_sub(1).min(8)).min(self.longest);
        doubled.mul_f64(rand::random_range(self.jitter.0..self.jitter.1))
    }
}

/// When something is listed or watched again. That one request was answered says little: a list may work while the watch
/// behind it never does, and one that hangs fails late. So only a watch that has lasted makes the waits short again.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    failures: u32,
    /// When the next one may begin.
    next: Option<Instant>,
    /// Since when it works; `None` when nothing has worked since the last failure.
    works_since: Option<Instant>,
}

impl Attempts {
    /// Records a failure, and returns when to try again. What else fails until then belongs to the same failure.
    pub(crate) fn fail(&mut self) -> Instant {
        let now = Instant::now();
        let lasted = self.works_since.take().is_some_and(|since| now.duration_since(since) >= LASTING);
        match self.next {
            Some(next) if now < next => return next,
            Some(_) | None if lasted => self.failures = 0,
            Some(_) | None => {}
        }
        self.failures = self.failures.saturating_add(1);
        let next = now + Backoff::WATCH.after(self.failures);
        self.next = Some(next);
        next
    }

    /// Records that what is attempted works now, such as a watch that is open.
    pub(crate) fn work(&mut self) {
        self.works_since.get_or_insert_with(Instant::now);
    }

    /// Returns how many failures there were since it last worked for two minutes.
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
    async fn slip_02_waits_grow_to_half_a_minute_and_at_most_twice_that() {
        let mut attempts = Attempts::default();
        let mut waits = Vec::new();
        for _ in 0..60 {
            let begun = Instant::now();
            attempts.fail();
            // All that fails at the same time is one failure.
            attempts.fail();
            attempts.ready().await;
            waits.push(begun.elapsed().as_secs_f64());
        }
        assert_eq!(attempts.failures(), 60);
        let expected = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6].into_iter().chain(std::iter::repeat(30.0));
        for (wait, expected) in waits.iter().zip(expected) {
            // A tick of the clock is a millisecond.
            assert!((expected..expected * 2.0 + 0.002).contains(wait), "{wait} s instead of {expected} s");
        }
        // They are spread over all of that: of fifty, none below or above would be chance once in 10^15.
        let share =
            |from: f64, to: f64| waits.iter().skip(6).filter(|wait| (from..to).contains(*wait)).count();
        assert!(share(30.0, 45.0) > 0 && share(45.0, 60.1) > 0, "{waits:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn slip_02_waits_are_short_again_only_after_a_watch_has_lasted() {
        let mut attempts = Attempts::default();
        let failed = async |attempts: &mut Attempts| {
            attempts.fail();
            attempts.ready().await;
            attempts.failures()
        };
        assert_eq!(failed(&mut attempts).await, 1);
        // A list that hangs for long is no watch.
        tokio::time::sleep(2 * LASTING).await;
        assert_eq!(failed(&mut attempts).await, 2);
        // A watch that worked for a minute has not lasted, nor has one behind a list that hangs.
        attempts.work();
        tokio::time::sleep(LASTING / 2).await;
        assert_eq!(failed(&mut attempts).await, 3);
        tokio::time::sleep(2 * LASTING).await;
        attempts.work();
        assert_eq!(failed(&mut attempts).await, 4);
        // It is not told each time that it works.
        attempts.work();
        tokio::time::sleep(LASTING / 2).await;
        attempts.work();
        tokio::time::sleep(LASTING / 2).await;
        assert_eq!(failed(&mut attempts).await, 1);
        // What fails within a wait ends what worked beside it.
        attempts.fail();
        attempts.work();
        attempts.fail();
        tokio::time::sleep(LASTING).await;
        assert_eq!(failed(&mut attempts).await, 3);
    }
}

//! How often a hook may run: arithmetic on moments, without a clock.

use std::time::Duration;

use crate::hook::spec::Settings;
use crate::time::Time;

/// A bucket of tokens: a run takes one, and one comes back every interval.
///
/// All queues of a hook share one. Retries take tokens as well.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rate {
    interval: Duration,
    burst: u32,
    /// How many tokens there were at `since`.
    tokens: u32,
    /// When the last token that was counted came.
    since: Time,
}

impl Rate {
    /// Returns a full bucket.
    pub(super) fn new(settings: &Settings) -> Self {
        let Settings { execution_min_interval: interval, execution_burst: burst, .. } = *settings;
        let burst = burst.max(1);
        Self { interval, burst, tokens: burst, since: Time::START }
    }

    /// Takes a token at `now`, or returns when the next one comes.
    pub(super) fn take(&mut self, now: Time) -> Result<(), Time> {
        if self.interval.is_zero() {
            return Ok(());
        }
        self.refill(now);
        match self.tokens.checked_sub(1) {
            None => Err(self.since + self.interval),
            Some(left) => {
                if self.tokens == self.burst {
                    // A full bucket does not save up time.
                    self.since = now.max(self.since);
                }
                self.tokens = left;
                Ok(())
            }
        }
    }

    fn refill(&mut self, now: Time) {
        let passed = now.since(self.since).as_nanos() / self.interval.as_nanos();
        let come = u32::try_from(passed).unwrap_or(u32::MAX);
        if come >= self.burst - self.tokens {
            self.tokens = self.burst;
        } else {
            self.tokens += come;
            self.since = self.since + self.interval * come;
        }
    }
}

/// Returns how long a run of the hook may take: what the hook asked for, or the operator's default.
pub(crate) fn timeout(settings: &Settings, default: Option<Duration>) -> Option<Duration> {
    settings.timeout.or(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(interval: u64, burst: u32) -> Rate {
        Rate::new(&Settings {
            execution_min_interval: Duration::from_secs(interval),
            execution_burst: burst,
            ..Settings::default()
        })
    }

    fn at(seconds: f64) -> Time {
        Time::from_start(Duration::from_secs_f64(seconds))
    }

    #[test]
    fn without_an_interval_every_run_may_begin() {
        let mut rate = rate(0, 3);
        assert!((0..1000).all(|_| rate.take(at(1.0)).is_ok()));
    }

    #[test]
    fn one_run_may_begin_every_interval() {
        let mut rate = rate(20, 1);
        for (now, expected) in [
            (5.0, Ok(())),
            (5.0, Err(at(25.0))),
            (24.9, Err(at(25.0))),
            (25.0, Ok(())),
            (25.5, Err(at(45.0))),
            (300.0, Ok(())),
            (300.0, Err(at(320.0))),
        ] {
            assert_eq!(rate.take(at(now)), expected, "{now}");
        }
    }

    #[test]
    fn a_burst_is_saved_up_and_not_more() {
        let mut rate = rate(30, 3);
        assert!((0..3).all(|_| rate.take(at(0.0)).is_ok()));
        assert_eq!(rate.take(at(10.0)), Err(at(30.0)));
        assert_eq!(rate.take(at(35.0)), Ok(()));
        assert_eq!(rate.take(at(35.0)), Err(at(60.0)), "the half interval is not lost");
        assert!((0..3).all(|_| rate.take(at(10_000.0)).is_ok()));
        assert_eq!(rate.take(at(10_000.0)), Err(at(10_030.0)));
    }

    #[test]
    fn a_hooks_own_deadline_wins() {
        let minute = Duration::from_mins(1);
        let own = Settings { timeout: Some(minute), ..Settings::default() };
        assert_eq!(timeout(&own, Some(minute * 5)), Some(minute));
        assert_eq!(timeout(&Settings::default(), Some(minute * 5)), Some(minute * 5));
        assert_eq!(timeout(&Settings::default(), None), None);
    }

    proptest::proptest! {
        #[test]
        fn runs_never_exceed_the_rate(
            interval in 1_u64..50, burst in 1_u32..5, steps in proptest::collection::vec(0_u64..60, 1..80),
        ) {
            let mut rate = rate(interval, burst);
            let (mut now, mut taken) = (0_u64, Vec::new());
            for step in steps {
                now += step;
                match rate.take(Time::from_start(Duration::from_secs(now))) {
                    Ok(()) => taken.push(now),
                    Err(later) => proptest::prop_assert!(later > Time::from_start(Duration::from_secs(now))),
                }
            }
            for (index, first) in taken.iter().enumerate() {
                for (count, last) in taken[index..].iter().enumerate() {
                    let allowed = u64::from(burst) + (last - first) / interval;
                    proptest::prop_assert!((count as u64) < allowed, "{taken:?}");
                }
            }
        }
    }
}

//! Time as the engine sees it: a value that arrives with each event.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment, counted from the driver's start on a clock that never goes back.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Time(Duration);

impl Time {
    /// The driver's start.
    pub const START: Self = Self(Duration::ZERO);

    /// Returns the moment `since_start` after the driver's start.
    pub fn from_start(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// Returns the time that had passed since the driver's start.
    pub fn since_start(self) -> Duration {
        self.0
    }

    /// Returns the time from `earlier` until now; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl Sub for Time {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}s", self.0.as_secs_f64())
    }
}

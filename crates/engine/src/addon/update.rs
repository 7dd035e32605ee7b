//! When the bundles of a configuration may be replaced: how often it is looked at, in which windows, and with whose approval.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::cron::{CronError, Schedule};

/// How often a configuration may be looked at by itself, at most.
pub(super) const MIN_UPDATE_INTERVAL: Duration = Duration::from_secs(10);

/// How long it may be between two looks.
pub(super) const MAX_UPDATE_INTERVAL: Duration = Duration::from_hours(8_760);

/// How many windows a configuration may have.
pub(super) const MAX_WINDOWS: usize = 50;

/// How long a window may be open.
pub(super) const MAX_WINDOW: Duration = Duration::from_hours(168);

/// A time in which bundles may be replaced.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UpdateWindow {
    schedule: Schedule,
    length: Duration,
}

/// Who says that a bundle may be replaced.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Approval {
    /// Nobody is asked.
    #[default]
    Auto,
    /// An annotation of the object names the version that may come.
    Manual,
}

impl UpdateWindow {
    /// Returns the window that opens when the crontab line says, for so long.
    ///
    /// # Errors
    ///
    /// If that is no crontab line.
    pub fn new(cron: &str, length: Duration) -> Result<Self, CronError> {
        Ok(Self { schedule: Schedule::parse(cron)?, length })
    }

    /// Returns whether it is open. `zone` is where lines are read that name none.
    pub fn is_open(&self, now: Timestamp, zone: &TimeZone) -> bool {
        // The moment at which it opens belongs to it, and that at which it closes does not.
        let length = SignedDuration::try_from(self.length).unwrap_or(SignedDuration::MAX);
        let Ok(begin) = now.checked_sub(length) else { return false };
        self.schedule.next(begin, zone).is_some_and(|opened| opened <= now)
    }

    /// Returns when it opens next, after `now`; `None` if that is more than five years away.
    pub fn opens_after(&self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        self.schedule.next(now, zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_open_from_its_moment_on_for_its_length_where_the_clock_hangs() {
        let window = UpdateWindow::new("0 2 * * *", Duration::from_mins(90)).unwrap();
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        for (now, zone, is_open) in [
            ("2026-01-05T01:59:59Z", &TimeZone::UTC, false),
            ("2026-01-05T02:00:00Z", &TimeZone::UTC, true),
            ("2026-01-05T03:29:59Z", &TimeZone::UTC, true),
            ("2026-01-05T03:30:00Z", &TimeZone::UTC, false),
            ("2026-01-05T01:00:00Z", &zone, true),
            ("2026-01-05T02:45:00Z", &zone, false),
        ] {
            assert_eq!(window.is_open(now.parse().unwrap(), zone), is_open, "{now}");
        }
        let named = UpdateWindow::new("TZ=Europe/Berlin 0 2 * * *", Duration::from_mins(90)).unwrap();
        assert!(named.is_open("2026-01-05T01:00:00Z".parse().unwrap(), &TimeZone::UTC));
        let next = window.opens_after("2026-01-05T02:00:00Z".parse().unwrap(), &TimeZone::UTC);
        assert_eq!(next.unwrap().to_string(), "2026-01-06T02:00:00Z");
    }
}

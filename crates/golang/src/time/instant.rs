//! An instant with a zone to show it in.

use std::cmp::Ordering;

use super::calendar::{Month, Weekday};
use super::civil::Date;
use super::{Duration, Zone};

/// The instant at which Go's clock begins, 0001-01-01, in seconds since 1970.
const ZERO: i64 = -62_135_596_800;

const NANOS: i64 = 1_000_000_000;

/// An instant, to the nanosecond, in a time zone.
#[derive(Clone, Debug)]
pub struct Time {
    seconds: i64,
    nanos: u32,
    zone: Zone,
}

/// What the clock on the wall shows.
pub(super) struct Clock {
    pub(super) date: Date,
    pub(super) weekday: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    pub(super) nanos: u32,
    pub(super) offset: i64,
    pub(super) abbreviation: String,
}

impl Time {
    /// Returns the instant that is this long after 1970.
    pub fn from_unix(seconds: i64, nanos: u32, zone: Zone) -> Self {
        Self { seconds, nanos, zone }
    }

    /// Returns the same instant.
    pub fn from_zoned(zoned: &jiff::Zoned) -> Self {
        let nanos = zoned.timestamp().as_nanosecond();
        Self {
            seconds: i64::try_from(nanos.div_euclid(NANOS.into())).unwrap_or_default(),
            nanos: u32::try_from(nanos.rem_euclid(NANOS.into())).unwrap_or_default(),
            zone: Zone::ruled(zoned.time_zone()),
        }
    }

    /// Returns the instant at which the clock of `zone` shows `clock` seconds since 1970.
    pub(super) fn from_clock(clock: i64, nanos: u32, zone: Zone) -> Self {
        let seconds = clock.saturating_sub(zone.offset_of_clock(clock));
        Self { seconds, nanos, zone }
    }

    /// Returns the same instant in another zone.
    #[must_use]
    pub fn within(&self, zone: Zone) -> Self {
        Self { zone, ..self.clone() }
    }

    /// Returns the zone.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Returns the whole seconds since 1970.
    pub fn unix(&self) -> i64 {
        self.seconds
    }

    /// Returns the nanoseconds of the second.
    pub fn nanos(&self) -> u32 {
        self.nanos
    }

    /// Returns the time since 1970 in units of `nanos` nanoseconds, wrapping around.
    pub fn unix_in(&self, nanos: i64) -> i64 {
        let all = i128::from(self.seconds) * i128::from(NANOS) + i128::from(self.nanos);
        let units = all.div_euclid(i128::from(nanos.max(1)));
        i64::try_from(units & i128::from(u64::MAX))
            .unwrap_or_else(|_| u64::try_from(units & i128::from(u64::MAX)).unwrap_or_default().cast_signed())
    }

    /// Reports whether this is the beginning of the year 1.
    pub fn is_zero(&self) -> bool {
        self.seconds == ZERO && self.nanos == 0
    }

    /// Orders by instant.
    pub fn order(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }

    /// Returns the time `duration` later.
    #[must_use]
    pub fn plus(&self, duration: Duration) -> Self {
        let nanos = i64::from(self.nanos) + duration.0.rem_euclid(NANOS);
        let seconds =
            self.seconds.saturating_add(duration.0.div_euclid(NANOS)).saturating_add(nanos.div_euclid(NANOS));
        let nanos = u32::try_from(nanos.rem_euclid(NANOS)).unwrap_or_default();
        Self { seconds, nanos, zone: self.zone.clone() }
    }

    /// Returns the time so many years, months and days later; days that a month does not
    /// have are counted on.
    #[must_use]
    pub fn plus_date(&self, years: i64, months: i64, days: i64) -> Self {
        let clock = self.clock();
        let date = Date {
            year: clock.date.year.saturating_add(years),
            month: clock.date.month.saturating_add(months),
            day: clock.date.day.saturating_add(days),
        };
        let seconds = clock.hour * 3_600 + clock.minute * 60 + clock.second;
        let clock = date.to_days().saturating_mul(86_400).saturating_add(seconds);
        Self::from_clock(clock, self.nanos, self.zone.clone())
    }

    /// Returns how long after `other` this is, or the longest duration if it is longer.
    pub fn since(&self, other: &Self) -> Duration {
        let seconds = i128::from(self.seconds) - i128::from(other.seconds);
        let nanos = seconds * i128::from(NANOS) + i128::from(self.nanos) - i128::from(other.nanos);
        Duration(i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX }))
    }

    /// Returns the time since the beginning of the year 1, modulo `unit`.
    pub fn rest(&self, unit: Duration) -> Duration {
        let seconds = i128::from(self.seconds) - i128::from(ZERO);
        let nanos = seconds * i128::from(NANOS) + i128::from(self.nanos);
        let rest = nanos.rem_euclid(i128::from(unit.0.max(1)));
        Duration(i64::try_from(rest).unwrap_or_default())
    }

    /// Returns the year.
    pub fn year(&self) -> i64 {
        self.clock().date.year
    }

    /// Returns the month.
    pub fn month(&self) -> Month {
        Month(self.clock().date.month)
    }

    /// Returns the day of the month.
    pub fn day(&self) -> i64 {
        self.clock().date.day
    }

    /// Returns the day of the year, beginning with 1.
    pub fn year_day(&self) -> i64 {
        self.clock().date.day_of_year()
    }

    /// Returns the day of the week.
    pub fn weekday(&self) -> Weekday {
        Weekday(self.clock().weekday)
    }

    /// Returns the hour, the minute and the second that the clock shows.
    pub fn hour_minute_second(&self) -> (i64, i64, i64) {
        let clock = self.clock();
        (clock.hour, clock.minute, clock.second)
    }

    pub(super) fn clock(&self) -> Clock {
        let (offset, abbreviation) = self.zone.at(self.seconds);
        let shown = self.seconds.saturating_add(offset);
        let (days, seconds) = (shown.div_euclid(86_400), shown.rem_euclid(86_400));
        Clock {
            date: Date::from_days(days),
            weekday: (days.rem_euclid(7) + 4) % 7,
            hour: seconds / 3_600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            nanos: self.nanos,
            offset,
            abbreviation,
        }
    }
}

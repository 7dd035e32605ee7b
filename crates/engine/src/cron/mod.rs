//! Crontab lines, in the dialect of docs/hooks.md#schedules.
//!
//! Five fields (`minute hour day month weekday`) or six with leading seconds, descriptors as `@daily` and
//! `@every 5m`, and an optional prefix `TZ=Area/City `.

mod agenda;
mod error;
mod field;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};

pub use self::agenda::{Agenda, Moment};
pub use self::error::CronError;
use self::field::{Field, Unit};
use crate::duration;

/// How many years ahead a line is searched for its next moment.
const YEARS: i16 = 5;

/// A crontab line, understood.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Schedule {
    zone: Zone,
    rule: Rule,
}

/// The clock on the wall that a line means.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Zone {
    Local,
    Named(TimeZone),
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Rule {
    /// Every so many seconds.
    Every(SignedDuration),
    /// Whenever all fields match.
    Fields(Box<Fields>),
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Fields {
    second: Field,
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
}

impl Schedule {
    /// Returns what `line` means.
    pub fn parse(line: &str) -> Result<Self, CronError> {
        let (zone, rest) = match line.strip_prefix("TZ=") {
            Some(rest) => {
                let (name, rest) = rest.split_once(' ').ok_or(CronError::Empty)?;
                (Zone::parse(name)?, rest.trim())
            }
            None => (Zone::Local, line),
        };
        let rule =
            if rest.starts_with('@') { Rule::described(rest)? } else { Rule::Fields(Fields::parse(rest)?) };
        Ok(Self { zone, rule })
    }

    /// Returns the first moment after `after`, or `None` if there is none within five years.
    ///
    /// `local` is the time zone of lines that do not name one. When clocks go forward, what is in the hour that
    /// is left out does not come that day; when they go back, what is in the hour that comes twice comes twice.
    pub fn next(&self, after: Timestamp, local: &TimeZone) -> Option<Timestamp> {
        // Moments are whole seconds.
        let base = Timestamp::from_second(after.as_millisecond().div_euclid(1000)).ok()?;
        match &self.rule {
            Rule::Every(delay) => base.checked_add(*delay).ok(),
            Rule::Fields(fields) => {
                let zone = match &self.zone {
                    Zone::Local => local,
                    Zone::Named(zone) => zone,
                };
                let first = base.checked_add(SignedDuration::from_secs(1)).ok()?;
                fields.search(first.to_zoned(zone.clone())).map(|found| found.timestamp())
            }
        }
    }
}

impl Zone {
    fn parse(name: &str) -> Result<Self, CronError> {
        match name {
            "" => Ok(Self::Named(TimeZone::UTC)),
            "Local" => Ok(Self::Local),
            _ => TimeZone::get(name).map(Self::Named).map_err(|_| CronError::UnknownZone(name.to_owned())),
        }
    }
}

impl Rule {
    fn described(text: &str) -> Result<Self, CronError> {
        let line = match text {
            "@yearly" | "@annually" => "0 0 0 1 1 *",
            "@monthly" => "0 0 0 1 * *",
            "@weekly" => "0 0 0 * * 0",
            "@daily" | "@midnight" => "0 0 0 * * *",
            "@hourly" => "0 0 * * * *",
            _ => {
                let every = text.strip_prefix("@every ");
                let every = every.ok_or_else(|| CronError::UnknownDescriptor(text.to_owned()))?;
                let delay = duration::parse(every)
                    .map_err(|error| CronError::Duration { text: text.to_owned(), error })?;
                let seconds = i64::try_from(delay.as_secs()).unwrap_or(i64::MAX).max(1);
                return Ok(Self::Every(SignedDuration::from_secs(seconds)));
            }
        };
        Fields::parse(line).map(Self::Fields)
    }
}

impl Fields {
    fn parse(line: &str) -> Result<Box<Self>, CronError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (second, rest) = match words.as_slice() {
            [] => return Err(CronError::Empty),
            [second, rest @ ..] if rest.len() == 5 => (*second, rest),
            rest => ("0", rest),
        };
        let [minute, hour, day, month, weekday] = rest else {
            return Err(CronError::FieldCount { found: words.len(), line: line.to_owned() });
        };
        Ok(Box::new(Self {
            second: Field::parse(second, Unit::Second)?,
            minute: Field::parse(minute, Unit::Minute)?,
            hour: Field::parse(hour, Unit::Hour)?,
            day: Field::parse(day, Unit::Day)?,
            month: Field::parse(month, Unit::Month)?,
            weekday: Field::parse(weekday, Unit::Weekday)?,
        }))
    }

    /// Returns the first moment from `at` on, a whole second, that all fields match.
    ///
    /// Each step goes to the beginning of the next month, day, hour, minute or second on the wall and looks at
    /// all fields again, so a clock that jumps can't carry it past a field.
    fn search(&self, mut at: Zoned) -> Option<Zoned> {
        let last_year = at.year().saturating_add(YEARS);
        while at.year() <= last_year {
            at = if !self.month.has(at.month()) {
                let first = at.date().first_of_month().checked_add(1.month()).ok()?;
                on_wall(&at, first.at(0, 0, 0, 0))?
            } else if !self.matches_day(&at) {
                on_wall(&at, at.date().tomorrow().ok()?.at(0, 0, 0, 0))?
            } else if !self.hour.has(at.hour()) {
                later(&at, 3600 - i64::from(at.minute()) * 60 - i64::from(at.second()))?
            } else if !self.minute.has(at.minute()) {
                later(&at, 60 - i64::from(at.second()))?
            } else if !self.second.has(at.second()) {
                later(&at, 1)?
            } else {
                return Some(at);
            };
        }
        None
    }

    /// Both fields must match if one of them has a star; otherwise one is enough.
    fn matches_day(&self, at: &Zoned) -> bool {
        let day = self.day.has(at.day());
        let weekday = self.weekday.has(at.weekday().to_sunday_zero_offset());
        if self.day.has_star() || self.weekday.has_star() { day && weekday } else { day || weekday }
    }
}

fn on_wall(at: &Zoned, time: DateTime) -> Option<Zoned> {
    let found = time.to_zoned(at.time_zone().clone()).ok()?;
    // Where the beginning of a day was left out twice the search must not stand still.
    if found > *at { Some(found) } else { later(at, 3600) }
}

fn later(at: &Zoned, seconds: i64) -> Option<Zoned> {
    at.checked_add(SignedDuration::from_secs(seconds)).ok()
}

#[cfg(test)]
mod tests;

//! One field of a crontab line: a set of numbers.

use super::error::CronError;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// What a field counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Month,
    Weekday,
}

impl Unit {
    fn bounds(self) -> (u8, u8) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::Day => (1, 31),
            Self::Month => (1, 12),
            Self::Weekday => (0, 6),
        }
    }

    /// Returns the names of the numbers, from the least on.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Second | Self::Minute | Self::Hour | Self::Day => &[],
            Self::Month => &MONTHS,
            Self::Weekday => &WEEKDAYS,
        }
    }
}

/// The numbers that a field allows, as bits, and whether it was written with a star.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Field {
    bits: u64,
    star: bool,
}

impl Field {
    /// Returns what `text` says: ranges between commas.
    pub(super) fn parse(text: &str, unit: Unit) -> Result<Self, CronError> {
        let mut field = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            field.add_range(part, unit)?;
        }
        if field.bits == 0 {
            return Err(CronError::EmptyField(text.to_owned()));
        }
        Ok(field)
    }

    /// Returns whether the field allows this number.
    pub(super) fn has(self, number: i8) -> bool {
        u32::try_from(number)
            .is_ok_and(|number| self.bits.checked_shr(number).is_some_and(|bits| bits & 1 == 1))
    }

    /// Returns whether the field was written with a star.
    pub(super) fn has_star(self) -> bool {
        self.star
    }

    /// Adds `*`, `a`, `a-b`, each with or without a step behind a slash.
    fn add_range(&mut self, text: &str, unit: Unit) -> Result<(), CronError> {
        let (range, step) = match text.split_once('/') {
            None => (text, None),
            Some((_, step)) if step.contains('/') => {
                return Err(CronError::TooManySlashes(text.to_owned()));
            }
            Some((range, step)) => (range, Some(number(step, &[], 0)?)),
        };
        let step = match step {
            None => 1,
            Some(0) => return Err(CronError::ZeroStep(text.to_owned())),
            Some(step) => usize::try_from(step).unwrap_or(usize::MAX),
        };
        let (start, end) = self.ends(range, text, unit)?;
        for number in (start..=end).step_by(step) {
            self.bits |= 1 << number;
        }
        Ok(())
    }

    fn ends(&mut self, range: &str, text: &str, unit: Unit) -> Result<(u8, u8), CronError> {
        let (minimum, maximum) = unit.bounds();
        let (first, last) = match range.split_once('-') {
            None => (range, None),
            Some((first, last)) => (first, Some(last)),
        };
        if first == "*" || first == "?" {
            self.star = true;
            return Ok((minimum, maximum));
        }
        let read = |word: &str| number(word, unit.names(), minimum);
        let start = read(first)?;
        let end = match last {
            Some(last) if last.contains('-') => {
                return Err(CronError::TooManyHyphens(text.to_owned()));
            }
            Some(last) => read(last)?,
            // A single number with a step goes on to the end.
            None if range.len() < text.len() => u64::from(maximum),
            None => start,
        };
        let text = || text.to_owned();
        if start < u64::from(minimum) {
            return Err(CronError::TooLow { start, minimum, text: text() });
        }
        match (u8::try_from(start), u8::try_from(end)) {
            (Ok(start), Ok(end)) if end <= maximum && start <= end => Ok((start, end)),
            (Ok(start), Ok(end)) if end <= maximum => Err(CronError::Inverted { start, end, text: text() }),
            _ => Err(CronError::TooHigh { end: end.max(start), maximum, text: text() }),
        }
    }
}

fn number(text: &str, names: &[&str], first: u8) -> Result<u64, CronError> {
    let lower = text.to_ascii_lowercase();
    if let Some(place) = names.iter().position(|name| *name == lower) {
        return Ok(u64::from(first) + place as u64);
    }
    let digits = text.strip_prefix('+').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_number);
    number.ok_or_else(|| CronError::NotNumber(text.to_owned()))
}
